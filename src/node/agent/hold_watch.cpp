#include "node/agent/hold_watch.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr Duration kLook = Duration::seconds(10);
/// Without a controller.
constexpr Duration kAlone = Duration::minutes(10);
constexpr Duration kLookWhileEnding = Duration::milliseconds(100);
/// From SIGTERM until the agent kills the ranks, and until it ends in any case.
constexpr Duration kPatience = Duration::seconds(20);
constexpr Duration kEnd = Duration::seconds(25);

}  // namespace

HoldWatch::HoldWatch(Parts parts, std::string hold)
    : parts_(std::move(parts)), hold_(std::move(hold)), heard_(parts_.env.clock.now_monotonic()) {
  if (!hold_.empty()) call_after(kLook, &HoldWatch::look_for_controller);
}

HoldWatch::~HoldWatch() {
  if (timer_) (void)parts_.env.timers.cancel(*timer_);
}

void HoldWatch::call_after(Duration delay, void (HoldWatch::*then)()) {
  if (timer_) (void)parts_.env.timers.cancel(*timer_);
  timer_ = parts_.env.timers.call_after(delay, [this, then] {
    timer_.reset();
    (this->*then)();
  });
}

void HoldWatch::look_for_controller() {
  const Instant now = parts_.env.clock.now_monotonic();
  if (parts_.session.welcomed()) heard_ = now;
  if (now - heard_ >= kAlone && parts_.attempts.empty()) {
    parts_.log.error(parts_.env.clock.now_wall(),
                     "no controller answers: the agent ends, and its part of the hold with it",
                     {{"hold", hold_}});
    return parts_.stop();
  }
  call_after(kLook, &HoldWatch::look_for_controller);
}

void HoldWatch::end() {
  if (hold_.empty()) return parts_.stop();
  if (ends_) return;
  ends_ = parts_.env.clock.now_monotonic();
  parts_.log.warning(parts_.env.clock.now_wall(), "the hold ends", {{"hold", hold_}});
  parts_.session.send(HoldEnding{"its resource manager ends the hold"});
  call_after(kLookWhileEnding, &HoldWatch::stop_when_empty);
}

/// An attempt is over when the controller has acknowledged its end.
void HoldWatch::stop_when_empty() {
  const Duration since = parts_.env.clock.now_monotonic() - *ends_;
  if (parts_.attempts.empty() || since >= kEnd) return parts_.stop();
  if (since >= kPatience) parts_.attempts.abandon(parts_.stop);
  call_after(kLookWhileEnding, &HoldWatch::stop_when_empty);
}

}  // namespace orrery
