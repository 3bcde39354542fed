#include "node/hold_watch.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr Duration kLook = Duration::seconds(10);
/// Without a controller.
constexpr Duration kAlone = Duration::minutes(10);
constexpr Duration kLookWhileEnding = Duration::milliseconds(100);
constexpr Duration kTellAgain = Duration::seconds(2);
/// From SIGTERM until the agent kills the ranks, and until it ends in any case.
constexpr Duration kPatience = Duration::seconds(20);
constexpr Duration kEnd = Duration::seconds(25);

}  // namespace

Status outcome_of_leaving(std::string_view hold, const Error& why) {
  if (!hold.empty() && why.message == kNodeNotLent) return {};
  return input_error({}, why.message);
}

HoldWatch::HoldWatch(const Setup& setup, Agent agent)
    : setup_(setup), agent_(std::move(agent)), heard_(setup.clock.now_monotonic()) {
  if (!setup_.hold.empty()) call_after(kLook, &HoldWatch::look_for_controller);
}

HoldWatch::~HoldWatch() {
  if (timer_) (void)setup_.timers.cancel(*timer_);
}

void HoldWatch::call_after(Duration delay, void (HoldWatch::*then)()) {
  if (timer_) (void)setup_.timers.cancel(*timer_);
  timer_ = setup_.timers.call_after(delay, [this, then] {
    timer_.reset();
    (this->*then)();
  });
}

void HoldWatch::look_for_controller() {
  const Instant now = setup_.clock.now_monotonic();
  if (agent_.connected()) heard_ = now;
  if (now - heard_ >= kAlone && agent_.idle()) {
    setup_.log.error(setup_.clock.now_wall(),
                     "no controller answers: the agent ends, and its part of the hold with it",
                     {{"hold", setup_.hold}});
    return agent_.stop();
  }
  call_after(kLook, &HoldWatch::look_for_controller);
}

void HoldWatch::end() {
  if (setup_.hold.empty()) return agent_.stop();
  if (ends_) return;
  ends_ = setup_.clock.now_monotonic();
  setup_.log.warning(setup_.clock.now_wall(), "the hold ends", {{"hold", setup_.hold}});
  tell();
  call_after(kLookWhileEnding, &HoldWatch::stop_when_idle);
}

/// Tells the controller, again after a while: it may be another one by then.
void HoldWatch::tell() {
  const Instant now = setup_.clock.now_monotonic();
  if (told_ && now - *told_ < kTellAgain) return;
  told_ = now;
  agent_.tell(HoldEnding{"its resource manager ends the hold"});
}

/// A keeper that its resource manager signals exits by itself, before the controller has
/// acknowledged the end of its attempt. An agent that ended then would leave the job waiting for a
/// proof that its ranks are gone.
void HoldWatch::stop_when_idle() {
  tell();
  const Duration since = setup_.clock.now_monotonic() - *ends_;
  if (agent_.idle() || since >= kEnd) return agent_.stop();
  if (since >= kPatience && !killed_) {
    killed_ = true;
    agent_.kill(agent_.stop);
  }
  call_after(kLookWhileEnding, &HoldWatch::stop_when_idle);
}

}  // namespace orrery
