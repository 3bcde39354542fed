#include "node/agent/agent_driver.hpp"

#include <vector>

#include "base/assert.hpp"

namespace orrery {

AgentDriver::~AgentDriver() {
  if (timer_) timers_.cancel(*timer_);
  for (const auto& [id, failure] : failures_) {
    if (failure.delay) timers_.cancel(*failure.delay);
  }
}

void AgentDriver::begin(const AgentSetup& setup, std::span<const AttemptId> found) {
  ORRERY_ASSERT(!agent_, "a process has one agent");
  agent_.emplace(setup, found, now());
}

void AgentDriver::obey(const NodeOrder& order) {
  agent_->on_order(order.order, now());
  act_for(&order.program);
}

// --- What keepers report ------------------------------------------------------------------------

void AgentDriver::keeper_report(const AttemptReport& report) {
  const bool failed = report.end && report.end->kind != ExitKind::kDone;
  if (!failed || failure_delay_ == Duration()) return agent_->on_keeper_report(report, now());
  const AttemptId& id = report.token.id;
  const auto [at, is_new] = failures_.try_emplace(id);
  at->second.report = report;
  if (is_new) {
    at->second.delay = timers_.call_after(failure_delay_, [this, id] {
      report_failure(id);
      act();
    });
  } else if (!at->second.delay) {
    agent_->on_keeper_report(report, now());
  }
}

void AgentDriver::report_failure(const AttemptId& id) {
  Failure& failure = failures_.at(id);
  failure.delay.reset();
  agent_->on_keeper_report(failure.report, now());
}

void AgentDriver::keeper_exit(const AttemptId& id) {
  const auto at = failures_.find(id);
  if (at != failures_.end()) {
    if (at->second.delay) {
      timers_.cancel(*at->second.delay);
      report_failure(id);
    }
    failures_.erase(at);
  }
  agent_->on_keeper_exit(id, now());
}

// --- Effects ------------------------------------------------------------------------------------

void AgentDriver::act_for(const NodeProgram* program) {
  if (acting_) return;  // The call that acts takes what has come meanwhile.
  acting_ = true;
  for (std::vector<AgentEffect> effects = agent_->take(); !effects.empty();
       effects = agent_->take()) {
    for (const AgentEffect& effect : effects) carry_out_(effect, program);
  }
  acting_ = false;
  arm_timer();
}

void AgentDriver::arm_timer() {
  if (timer_) timers_.cancel(*timer_);
  timer_ = timers_.call_after(agent_->next_due() - now(), [this] {
    timer_.reset();
    agent_->on_timer(now());
    act();
  });
}

}  // namespace orrery
