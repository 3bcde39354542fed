// executor/live/event_history.hpp - reads events of the log from the disk beside the loop,
// beginning with the oldest that is still there.
//
// Owned by the controller, used on its loop; a thread of its own with a reader of its own does the
// reading, one question at a time. Cost of a question: that of reading and decoding the log up to
// the requested events, at most two snapshots' worth.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/threads/side_thread.hpp"
#include "executor/log/shared_log.hpp"
#include "store/history.hpp"

namespace orrery {

/// Where reading continues: after `skip` events of a batch, in the segment that begins there.
struct EventPlace {
  HistoryStart segment;
  std::uint64_t batch = 0;
  std::uint64_t skip = 0;
};

struct EventsAsked {
  /// Called on another thread: it may use only the event.
  std::function<bool(const TimedEvent&)> wanted;
  std::optional<EventPlace> from;  ///< none: from the oldest that is there
  std::size_t count = 100;         ///< most events to return
  bool newest = false;             ///< return the last `count` events instead of the first
};

struct EventsFound {
  std::vector<TimedEvent> events;  ///< in the order of the log
  std::optional<EventPlace> next;  ///< none: there are no more
};

class EventHistory {
 public:
  using Answered = std::function<void(Result<EventsFound>)>;

  /// `open` opens the log for each question.
  EventHistory(const Env& env, OpenReader open) : env_(env), open_(std::move(open)) {}

  /// Reads events; `answered` is called on the loop. Errors: of the store; damage.
  void ask(EventsAsked asked, Answered answered);

 private:
  Env env_;
  OpenReader open_;
  SideThread beside_;
};

/// Reads events in the caller's thread.
[[nodiscard]] Result<EventsFound> read_events(StoreReader& store, const EventsAsked& asked);

}  // namespace orrery
