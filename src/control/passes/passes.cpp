#include "control/passes/passes.hpp"

#include <algorithm>
#include <utility>

namespace orrery {

Passes::Passes(Recorder& recorder, const Parts& parts)
    : recorder_(recorder),
      state_(recorder.state()),
      jobs_(parts.jobs),
      replacement_(parts.replacement),
      decisions_(recorder, {parts.jobs, parts.starts, parts.plans}) {
  scheduler_.emplace(*state_.setup().tree);
}

void Passes::take_up_fleet() {
  scheduler_.emplace(*state_.setup().tree);
  decisions_.forget();
  full_.take_up_fleet(state_.version());
  seen_.queued.reset();
}

void Passes::emit_unfelt(Event event) {
  const bool holds = held_.version == state_.version() && recorder_.now() < held_.until;
  recorder_.emit(std::move(event));
  if (!holds) return;
  held_.version = state_.version();
  seen_.changes.links = state_.changes().links;
}

// If no job waits there is nothing to decide, unless a power limit changed for running jobs. A
// changed link is a reason to move running jobs, which only full passes do.
bool Passes::changed() const {
  const Changes& now = state_.changes();
  const Changes& seen = seen_.changes;
  if (now.limits != seen.limits) return true;
  const bool links = now.links != seen.links;
  if (state_.waiting().empty()) {
    return !decisions_.last().waiting.empty() || (links && every_pass_full());
  }
  if (recorder_.now() >= wake_asked_) return true;
  return links || jobs_.queued() != seen_.queued || now.freed != seen.freed ||
         now.plans != seen.plans;
}

bool Passes::every_pass_full() const {
  return wants_full(state_.policy()) && state_.policy().full_interval <= Seconds();
}

// The interval is waived while no job runs: no job could free anything.
Instant Passes::next_pass() const {
  if (!last_pass_ || state_.running().empty()) return recorder_.now();
  return *last_pass_ + Duration::from_seconds(state_.policy().pass_interval.value());
}

Instant Passes::wake() const {
  Instant next = full_.due(state_, recorder_.now());
  if (!state_.waiting().empty() && wake_asked_ > recorder_.now()) {
    next = std::min(next, wake_asked_);
  }
  if (changed()) next = std::min(next, std::max(recorder_.now(), next_pass()));
  return next;
}

void Passes::run_due() {
  if (changed() && recorder_.now() >= next_pass()) run_pass();
  if (recorder_.now() < full_.due(state_, recorder_.now())) return;
  full_.begin(state_, recorder_.now());
  emit_unfelt(PassDone{PassKind::kFull});
  recorder_.act(RunFullPass{state_.version()});
}

void Passes::run_pass() {
  const PassKind kind = every_pass_full() ? PassKind::kFull : PassKind::kIncremental;
  if (state_.changes().freed != seen_.changes.freed) replacement_.restart_waiting();
  seen_ = {state_.changes(), jobs_.queued()};
  if (!first_pass_) last_pass_ = recorder_.now();
  first_pass_ = false;
  PassResult result = scheduler_->decide(state_.situation(recorder_.now()), state_.policy(), kind);
  const Instant holds_until = result.holds_until;
  wake_asked_ = result.wake;
  const std::uint64_t before = state_.version();
  decisions_.carry_out(kind, std::move(result), recorder_.now());
  held_ = {before == state_.version() ? holds_until : recorder_.now(), state_.version()};
}

// A proposal for an earlier fleet has other ids.
void Passes::on(const Proposal& proposal) {
  if (!full_.end(proposal)) {
    return recorder_.refuse("the proposal is for the fleet or the requests of before");
  }
  decisions_.carry_out(PassKind::kFull, proposal.result, full_.begun().value_or(recorder_.now()));
}

}  // namespace orrery
