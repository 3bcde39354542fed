// twin/world/virtual_time.hpp - a clock that jumps from one event to the next, with the queue of
// events.
//
// One for a virtual world. Events of one instant run in the order of their insertion. One thread.
// Cost: O(log waiting) an event.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "twin/world/event_queue.hpp"

namespace orrery {

class VirtualTime {
 public:
  using Event = std::function<void()>;

  [[nodiscard]] Instant now() const { return now_; }
  void after(Duration delay, Event event) { queue_.push(now_ + delay, 0, std::move(event)); }

  /// When the next event is due; Instant::max(): there is none.
  [[nodiscard]] Instant next() const { return queue_.empty() ? Instant::max() : queue_.next(); }
  /// Runs the next event. Precondition: there is one, and it is due.
  void run_next() {
    const Event event = queue_.pop();
    event();
  }
  /// Advances the clock; it never goes back.
  void move_to(Instant at) { now_ = std::max(now_, at); }

 private:
  Instant now_;
  EventQueue<Event> queue_;
};

}  // namespace orrery
