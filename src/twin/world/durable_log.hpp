// twin/world/durable_log.hpp - the log of a virtual controller: the part of it that outlives a
// crash.
//
// One for a world; controllers come and go. Either all events of one input are durable or none.
// Each start of a controller begins a journal that continues the one before. One thread.
// Invariant: up to what was committed, the bytes are whole journals. Cost: that of encoding; of
// recover(), that of decoding all there is.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "control/log/journal.hpp"

namespace orrery {

class DurableLog {
 public:
  void commit(Instant at, std::span<const Event> events);
  /// Simulates a crash in the middle of a write: only some first bytes of it are on disk. The next
  /// call must be recover().
  void tear(Instant at, std::span<const Event> events, Rng& rng);

  /// Cuts off what a crash tore and returns the durable events, in order; the log continues from
  /// there. Errors: those of a journal that cannot be read, which no crash may cause.
  [[nodiscard]] Result<std::vector<TimedEvent>> recover();

  /// Hash of all durable events.
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
