#include "scheduler/scheduler.hpp"

#include "scheduler/pass/pass.hpp"

namespace orrery {

Scheduler::Scheduler(const PlaceTree& tree) : memory_(std::make_unique<PassMemory>(tree)) {}
Scheduler::~Scheduler() = default;

bool wants_full(const Policy& policy) {
  return policy.blocked == Blocked::kReserves || policy.preemption == PreemptionRule::kEntitled ||
         policy.preemption == PreemptionRule::kRounds || policy.choice == OptionChoice::kCheapest;
}

PassResult Scheduler::decide(const Situation& situation, const Policy& policy, PassKind kind) {
  return Pass(situation, policy, kind, *memory_).run();
}

void Scheduler::forget() { memory_->forget(); }

}  // namespace orrery
