#include "node/health/health_check.hpp"

#include <utility>

namespace orrery {

HealthCheck::HealthCheck(RealEnv& real, HealthSpec spec, Events events)
    : real_(real), spec_(std::move(spec)), events_(std::move(events)) {
  run();
}

HealthCheck::~HealthCheck() {
  if (timer_) real_.env().timers.cancel(*timer_);
}

void HealthCheck::run() {
  if (process_) return;
  if (timer_) real_.env().timers.cancel(*std::exchange(timer_, std::nullopt));
  const HookStart start{spec_.command, {}, Duration::from_seconds(spec_.timeout.value())};
  process_ = std::make_unique<HookProcess>(real_, start,
                                           [this](const std::string& failure) { note(failure); });
}

void HealthCheck::note(const std::string& failure) {
  const std::unique_ptr<HookProcess> ended = std::move(process_);  // whose call this is
  timer_ = real_.env().timers.call_after(Duration::from_seconds(spec_.interval.value()), [this] {
    timer_.reset();
    run();
  });
  if (failure.empty()) {
    failures_ = 0;
    complaint_.clear();
    return events_.passed();
  }
  ++failures_;
  complaint_ = fmt::format("health check failed {} times: {}", failures_, failure);
  if (failures_ == spec_.failures) events_.failed(complaint_);
}

}  // namespace orrery
