// executor/live/event_feed.hpp - hands the events of the log to their followers: lines about jobs
// and nodes in the controller's log as they are decided, watches once they are durable, and past
// events from the disk.
//
// Owned by the controller, on its loop; the state outlives it. Inputs that have events are numbered
// in ascending order.
// Invariant: a watch is called with each event decided while it exists, once, in the order of the
// log. Cost: that of a line, and a copy of each event while there are watches.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/env.hpp"
#include "base/log.hpp"
#include "control/log/journal.hpp"
#include "control/state/state.hpp"
#include "executor/live/decision_log.hpp"
#include "executor/live/event_history.hpp"

namespace orrery {

class EventFeed {
 public:
  /// `state` is the state after the events. `open` opens the log that past events are read from.
  EventFeed(const Env& env, const Log& log, const State& state, OpenReader open)
      : decisions_(env, log, state), history_(env, std::move(open)) {}

  /// Takes the events of an input, which are not durable yet.
  void decided(std::uint64_t input, Instant at, std::span<const Event> events);
  /// All inputs up to this one are durable: calls the watches with their events.
  void durable(std::uint64_t input);

  using WatchNumber = std::uint64_t;
  using Watch = std::function<void(const TimedEvent&)>;
  /// Calls `watch` with each event that is decided from now on, once it is durable, until
  /// unwatch(). While there are other watches it may also get events that were decided shortly
  /// before.
  WatchNumber watch(Watch watch);
  void unwatch(WatchNumber number) { watches_.erase(number); }
  [[nodiscard]] bool watched() const { return !watches_.empty(); }

  /// Reads events of the log from the disk.
  void ask(EventsAsked asked, EventHistory::Answered answered) {
    history_.ask(std::move(asked), std::move(answered));
  }
  /// Writes an operator's command to the controller's log.
  void note_operator(std::string_view what, const std::string& by, const LogField& field) {
    decisions_.info(what, {{"by", by}, field});
  }

 private:
  struct Undurable {
    std::uint64_t input = 0;
    TimedEvent event;
  };

  DecisionLog decisions_;
  EventHistory history_;
  std::deque<Undurable> undurable_;  ///< filled while there are watches
  std::map<WatchNumber, Watch> watches_;
  WatchNumber newest_watch_ = 0;
};

}  // namespace orrery
