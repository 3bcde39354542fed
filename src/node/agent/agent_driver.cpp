#include "node/agent/agent_driver.hpp"

#include <vector>

#include "base/assert.hpp"

namespace orrery {

AgentDriver::~AgentDriver() {
  if (timer_) timers_.cancel(*timer_);
}

void AgentDriver::begin(const AgentSetup& setup, std::span<const AttemptId> found) {
  ORRERY_ASSERT(!agent_, "a process has one agent");
  agent_.emplace(setup, found, now());
}

void AgentDriver::obey(const NodeOrder& order) {
  agent_->on_order(order.order, now());
  act_for(&order.program);
}

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
