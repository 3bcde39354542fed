// twin/world/agenda.hpp - the future of a virtual world: its events by time, and the inputs that
// reach control later.
//
// One for a world; each part of the world adds events to it, and the World takes them out. An event
// is a value that names its subject; the part that handles it decides whether it is still valid.
// Cost: O(log events) an event.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "control/input.hpp"
#include "fleet/ids.hpp"
#include "twin/world/event_queue.hpp"

namespace orrery {

/// The order among events of one instant.
enum class EventRank : std::uint8_t {
  kEnds,    ///< ends and arrived bytes come before the events that they make possible
  kThen,    ///< most events
  kSettle,  ///< events that follow from all changes of the instant
};

enum class WorldEventKind : std::uint8_t {
  kUp,        ///< the ranks of a job are up
  kShed,      ///< ranks of an earlier epoch are gone
  kEnd,       ///< the work of a job is done
  kGone,      ///< the ranks of a job are gone
  kCopy,      ///< a copy of its state is due
  kInput,     ///< an input that was made before arrives
  kRoundEnd,  ///< a round of a round-based replay is over
  kMoved,     ///< bytes have arrived
  kLinks,     ///< the changed links take effect
  kFault,     ///< a part breaks
  kKnown,     ///< a fault is detected
  kCut,       ///< a node is found to reach no other node
  kParted,    ///< jobs that need the network of such a node end
  kReached,   ///< such a node reaches others again
  kOver,      ///< a fault is over
  kRepaired,  ///< a node is back
  kSuspect,   ///< heartbeats of a silent node are missing
  kLost,      ///< enough heartbeats are missing that the node counts as lost
  kLeased,    ///< the leases of what ran there have expired
  kFenced,    ///< an operator vouches that the node is cut off
  kBack,      ///< the node has rebooted
};

struct WorldEvent {
  WorldEventKind kind = WorldEventKind::kUp;
  JobId job;
  /// The number of a run, silence, copy or arrival; once that has another number, the event is
  /// void.
  std::uint32_t serial = 0;
  std::uint32_t attempt = 0;
  std::uint32_t index = 0;  ///< of an input or a fault
  NodeId node;
  LinkId link;
};

class Agenda {
 public:
  void push(Instant at, EventRank rank, const WorldEvent& event) {
    queue_.push(at, static_cast<std::uint8_t>(rank), event);
  }
  /// Lets control receive the input at that time.
  void push_input(Instant at, EventRank rank, InputKind what) {
    inputs_.push_back(std::move(what));
    const auto index = static_cast<std::uint32_t>(inputs_.size() - 1);
    push(at, rank, {.kind = WorldEventKind::kInput, .index = index});
  }

  [[nodiscard]] std::size_t size() const { return queue_.size(); }
  /// When the next event happens; Instant::max(): there is none.
  [[nodiscard]] Instant next() const { return queue_.empty() ? Instant::max() : queue_.next(); }
  /// Takes the next event out. Precondition: there is one.
  [[nodiscard]] WorldEvent pop() { return queue_.pop(); }
  /// Takes the input of a kInput event out. Precondition: it was not taken before.
  [[nodiscard]] InputKind take_input(const WorldEvent& event) {
    return std::move(inputs_[event.index]);
  }

 private:
  EventQueue<WorldEvent> queue_;
  std::vector<InputKind> inputs_;  ///< of kInput events
};

}  // namespace orrery
