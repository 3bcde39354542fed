#include "node/agent/controller_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace orrery {

ControllerSession::~ControllerSession() {
  if (timer_) env_.timers.cancel(*timer_);
}

void ControllerSession::open(AgentOpening opening) {
  opening_ = std::move(opening);
  open_stream();
}

void ControllerSession::open_stream() { channel_.open(opening_, events_); }

Status ControllerSession::accept(const AgentWelcome& welcome) {
  backoff_ = kBackoffFirst;
  if (!first_) first_ = welcome;
  if (welcome.cluster != first_->cluster || welcome.node != first_->node) {
    return environment_error(
        fmt::format("the controller takes this agent for node {} of cluster {:016x}; it is node {} "
                    "of cluster {:016x}",
                    welcome.node.value(), welcome.cluster, first_->node.value(), first_->cluster));
  }
  welcomed_ = true;
  return {};
}

void ControllerSession::reopen(const Error& why) {
  // Only the first of many failures in a row is logged.
  if (welcomed_ || backoff_ == kBackoffFirst) {
    log_.warning(env_.clock.now_wall(), "controller out of reach", {{"why", why.text()}});
  }
  welcomed_ = false;
  const auto half = static_cast<std::uint64_t>(backoff_.count_ns() / 2);
  const auto jitter = static_cast<std::int64_t>(env_.entropy.draw() % half);
  const Duration delay =
      Duration::nanoseconds(static_cast<std::int64_t>(half)) + Duration::nanoseconds(jitter);
  backoff_ = std::min(backoff_ * 2, kBackoffMax);
  timer_ = env_.timers.call_after(delay, [this] {
    timer_.reset();
    open_stream();
  });
}

void ControllerSession::send(AgentMessage message) {
  if (welcomed_) channel_.send(std::move(message));
}

}  // namespace orrery
