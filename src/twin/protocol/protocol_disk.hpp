// twin/protocol/protocol_disk.hpp - the log of the controllers on a disk that is slow at times, can
// be full, and is torn by crashes.
//
// Owned by the ProtocolWorld. All events that wait go to disk in one write; what comes meanwhile
// waits for the next. One thread. Cost: O(events) a write.
// Invariant: what is durable is a prefix of what was appended.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "twin/protocol/protocol_context.hpp"
#include "twin/world/durable_log.hpp"

namespace orrery {

class ProtocolDisk {
 public:
  struct Outside {
    std::function<void(std::span<const Event>)> durable;  ///< events of one input, in order
    std::function<void()> written;  ///< a write of the present controller is complete
  };

  /// The context must outlive it.
  ProtocolDisk(ProtocolContext& context, Outside outside)
      : context_(context), outside_(std::move(outside)) {}
  ProtocolDisk(const ProtocolDisk&) = delete;
  ProtocolDisk& operator=(const ProtocolDisk&) = delete;

  /// Another controller begins: returns the durable events. Errors: those of DurableLog::recover.
  [[nodiscard]] Result<std::vector<TimedEvent>> begin();
  /// Appends the events of one input. Returns the number of such inputs of this controller.
  std::uint64_t append(Instant at, std::span<const Event> events);
  /// Begins to write all events that wait; no effect if none do. Precondition: nothing is being
  /// written.
  void write();
  /// The controller dies. Its write under way may be complete, torn, or not there at all. Returns
  /// whether all that it had appended is durable.
  bool crash();

  /// Inputs with events that this controller has appended.
  [[nodiscard]] std::uint64_t appended() const { return appended_; }
  /// How many of them are durable.
  [[nodiscard]] std::uint64_t durable() const { return appended_ - waiting_.size(); }
  [[nodiscard]] bool idle() const { return waiting_.empty(); }
  [[nodiscard]] const DurableLog& log() const { return log_; }

  /// Leaves only the reserve of the disk: no job is accepted, but ends are still recorded.
  void fill() { full_ = true; }
  void free() { full_ = false; }
  [[nodiscard]] bool full() const { return full_; }

 private:
  /// The events of one input, not durable yet.
  struct Waiting {
    Instant at;
    std::vector<Event> events;
  };

  void commit();

  ProtocolContext& context_;
  Outside outside_;
  DurableLog log_;
  std::deque<Waiting> waiting_;
  std::size_t writing_ = 0;       ///< how many of them, from the front, are being written
  std::uint64_t appended_ = 0;    ///< by this controller
  std::uint64_t controller_ = 0;  ///< a write of an earlier one has no effect
  bool full_ = false;
};

}  // namespace orrery
