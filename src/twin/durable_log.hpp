// twin/durable_log.hpp - the log of a virtual controller: what of it outlives a crash.
//
// One for a world; controllers come and go. The events of one input are durable together or not at
// all. Each start of a controller begins a journal that continues the one before. One thread.
// Invariant: up to what was committed, the bytes are whole journals. Cost: that of encoding; of
// recover(), that of decoding all there is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "control/journal.hpp"

namespace orrery {

class DurableLog {
 public:
  void commit(Instant at, std::span<const Event> events);
  /// The crash comes in the midst of the write: some first bytes of it are there. The next call is
  /// recover().
  void tear(Instant at, std::span<const Event> events, Rng& rng);

  /// What is durable, in order, and from here on the log goes on: what a crash tore off is cut.
  /// Errors: those of a journal that cannot be read, which no crash may cause.
  [[nodiscard]] Result<std::vector<TimedEvent>> recover();

  /// Of all that is durable.
  [[nodiscard]] std::uint64_t history_hash() const { return hash_; }
  [[nodiscard]] std::uint64_t events() const { return events_; }

 private:
  struct Segment : JournalSink {
    void write(std::string_view added) override { bytes += added; }

    std::string bytes;
    std::size_t committed = 0;
  };

  [[nodiscard]] static Status read(const Segment& segment, std::vector<TimedEvent>& events);
  void begin();

  std::vector<std::unique_ptr<Segment>> segments_;
  std::unique_ptr<Journal> journal_;  ///< of the last segment
  std::uint64_t hash_ = 0;
  std::uint64_t events_ = 0;
};

}  // namespace orrery
