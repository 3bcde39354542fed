#include "scheduler/pass/pass.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "scheduler/forecast/due_reservations.hpp"
#include "scheduler/forecast/new_reservations.hpp"
#include "scheduler/moves/defragmentation.hpp"
#include "scheduler/moves/improvement.hpp"
#include "scheduler/moves/migration.hpp"
#include "scheduler/pass/queue_walk.hpp"
#include "scheduler/pass/turn_walk.hpp"
#include "scheduler/preempt/common_order.hpp"
#include "scheduler/rounds/start_ramp.hpp"

namespace orrery {

Pass::Pass(const Situation& situation, const Policy& policy, PassKind kind, PassMemory& memory)
    : memory_(memory),
      context_(situation, policy, kind, memory.fleet),
      search_(context_, memory.placers),
      clocks_(context_, search_) {}

// Orders and timelines that depend on the clock are valid only at the time of the pass.
bool Pass::may_hold() const {
  const Situation& s = context_.situation;
  const Policy& policy = context_.policy;
  return context_.kind == PassKind::kIncremental && !makes_reservations(policy, context_.kind) &&
         s.electricity == nullptr && s.carbon == nullptr &&
         ((policy.inside == TenantOrder::kSubmitted && policy.yield_ratio == 0) ||
          s.waiting.empty()) &&
         (policy.preemption == PreemptionRule::kNone ||
          policy.preemption == PreemptionRule::kEntitled);
}

PassResult Pass::run() {
  const Situation& s = context_.situation;
  context_.result.holds_until = may_hold() ? Instant::max() : s.now;
  clocks_.relieve_power();
  const std::size_t before_starts = context_.result.decisions.size();
  for (const RunningJob& job : s.running) {
    if (job.stopping) context_.usage.count(*job.request, job.gangs, UsageEdits::Held::kLess);
  }
  DueReservations(context_, search_, clocks_).serve();
  start_waiting();
  clocks_.tell(before_starts);
  const bool replanned = context_.policy.preemption == PreemptionRule::kAnew;
  if (context_.kind == PassKind::kFull && !replanned) improve();
  stagger_starts();
  if (!context_.result.decisions.empty()) context_.hold_until(s.now);
  return std::move(context_.result);
}

void Pass::start_waiting() {
  const Situation& s = context_.situation;
  const Policy& policy = context_.policy;
  if (makes_reservations(policy, context_.kind) && !s.waiting.empty()) {
    context_.fleet.open_timeline(s, context_.result.reservations);
  }
  if (policy.preemption == PreemptionRule::kAnew) {
    CommonOrder(context_, search_).replan_all();
    return;
  }
  if (policy.preemption == PreemptionRule::kRounds) {
    TurnWalk(context_, search_, clocks_, memory_.shares).run();
    return;
  }
  QueueWalk walk(context_, search_, clocks_, memory_.queue);
  if (policy.preemption == PreemptionRule::kByOrder) {
    CommonOrder(context_, search_).preempt_later(walk);
  } else if (policy.order == QueueOrder::kFair) {
    walk.run_fair();
  } else {
    walk.run_in_order();
  }
}

// A pass that lowered clocks starts no improvements: they would cost power as well.
void Pass::improve() {
  const bool lowered = std::ranges::any_of(context_.result.decisions, [](const Decision& decision) {
    return std::holds_alternative<SetClock>(decision);
  });
  if (lowered) return;
  const Policy& policy = context_.policy;
  if (policy.preemption == PreemptionRule::kEntitled) {
    Defragmentation(context_, search_).make_room();
  }
  if (policy.preemption != PreemptionRule::kRounds) {
    Improvement(context_, search_, memory_.stays).improve_running();
  }
  if (policy.choice == OptionChoice::kCheapest) Migration(context_, search_).move_jobs();
  clocks_.raise();
}

void Pass::stagger_starts() {
  if (!context_.policy.start_ramp || *context_.policy.start_ramp <= Watts()) return;
  std::vector<StartJob*> starts;
  std::vector<Watts> rises;
  for (Decision& decision : context_.result.decisions) {
    auto* start = std::get_if<StartJob>(&decision);
    if (start == nullptr) continue;
    Watts rise;
    for (std::size_t g = 0; g < start->gangs.size(); ++g) {
      rise += start->terms[g].draw * start->gangs[g].allocation.devices();
    }
    starts.push_back(start);
    rises.push_back(rise);
  }
  const std::vector<Duration> delays = stagger(rises, *context_.policy.start_ramp / Seconds{1});
  for (std::size_t i = 0; i < starts.size(); ++i) starts[i]->delay = delays[i];
}

}  // namespace orrery
