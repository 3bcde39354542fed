#include "serving/scaling/autoscaler.hpp"

#include <algorithm>
#include <limits>

namespace orrery {
namespace {

/// The quantile that the rest must serve when a replica is given up.
constexpr double kQuantileIn = 0.95;
/// .. as long as it was needed within this time.
constexpr Duration kNeeded = Duration::seconds(60);
/// How much a tick with full replicas says of their speed.
constexpr double kSpeedGain = 0.3;
constexpr double kSpeedLeast = 0.1;
/// .. and how much of that a tick with others forgets: half in an hour.
constexpr double kSpeedForgotten = 0.001;

TokenDemand more_of(const TokenDemand& a, const TokenDemand& b) {
  return {std::max(a.prompt_s, b.prompt_s), std::max(a.output_s, b.output_s)};
}

}  // namespace

ReplicaCapacity Autoscaler::capacity(const ScaleTargets& targets) const {
  ReplicaCapacity capacity = replica_capacity({.cost = cost_,
                                               .slots = slots_,
                                               .shape = shape_,
                                               .ttft_s = targets.ttft_s,
                                               .tpot_s = targets.tpot_s});
  const double corrected = speed_ * late_.factor();
  capacity.prompt_token_s /= corrected;
  capacity.output_token_s /= corrected;
  return capacity;
}

void Autoscaler::observe(const SeenDemand& seen, const ScaleTargets& targets) {
  const double seconds = (seen.now - *tick_).count_seconds();
  const auto came = static_cast<double>(seen.flow.requests - flow_.requests);
  const double rate = std::max(came, 0.0) / seconds;
  // A tick lies after the one before and a rate is a number: it is never refused.
  (void)forecast_.observe(seen.now, {rate * shape_.prompt, rate * shape_.output});
  // As many requests wait as the replicas compute: these are busy all the time, whatever their cost
  // says.
  const bool queued = seen.ready > 0 && seen.waiting / seen.ready >= slots_;
  if (queued_ && queued && is_known(cost_)) {
    const ReplicaCapacity costs =
        replica_capacity({.cost = cost_, .slots = slots_, .shape = shape_, .error = 0});
    const auto prompt = static_cast<double>(seen.flow.prompt_tokens - flow_.prompt_tokens);
    const auto output = static_cast<double>(seen.flow.output_tokens - flow_.output_tokens);
    const double busy =
        (prompt * costs.prompt_token_s + output * costs.output_token_s) / (seconds * seen.ready);
    speed_ += kSpeedGain * (std::clamp(busy, kSpeedLeast, 1.0) - speed_);
  } else {
    speed_ += kSpeedForgotten * (1 - speed_);
  }
  if (targets.ttft_s > 0 || targets.tpot_s > 0) {
    const bool least = seen.wanted <= std::max(targets.terms.min, 1U);
    late_.add(seen.answered, least ? ReplicaCount::kLeast : ReplicaCount::kFollows);
  }
  tick_ = seen.now;
  flow_ = seen.flow;
  queued_ = queued;
}

TokenDemand Autoscaler::most_needed(Instant now, const TokenDemand& demand) {
  needed_.push_back({now, demand});
  while (needed_.front().at + kNeeded < now) needed_.pop_front();
  TokenDemand most;
  for (const Needed& each : needed_) most = more_of(most, each.demand);
  return most;
}

ScaleAnswer Autoscaler::plan(const SeenDemand& seen, const ScaleTargets& targets) {
  const Duration horizon = seen.cold_start + DemandForecast::kTick;
  const auto demand = [&](double quantile) {
    const TokenDemand expected = forecast_.quantile(seen.now + horizon, quantile);
    return with_waiting(expected, seen.waiting, shape_, horizon);
  };
  const double quantile_in = std::max(targets.terms.quantile, kQuantileIn);
  ScaleQuestion question{.now = seen.now,
                         .terms = targets.terms,
                         .traffic = {.shape = shape_,
                                     .demand = demand(targets.terms.quantile),
                                     .demand_in = most_needed(seen.now, demand(quantile_in)),
                                     .waiting = seen.waiting,
                                     .running = seen.running,
                                     .last_request = last_request_},
                         .cold_start = seen.cold_start,
                         .last = seen.last};
  question.variants.push_back({.present = seen.wanted,
                               .most = std::numeric_limits<std::uint32_t>::max(),
                               .capacity = capacity(targets)});
  return plan_scale(question);
}

std::optional<ScaleAnswer> Autoscaler::look(const SeenDemand& seen, const ScaleTargets& targets) {
  if (!tick_) {
    tick_ = last_request_ = seen.now;
    flow_ = seen.flow;
  }
  shape_ = seen.shape;
  if (is_known(seen.cost)) {
    cost_ = seen.cost;
    slots_ = std::max(seen.slots, 1U);
  }
  const bool asked = seen.flow.requests != flow_.requests;
  if (asked || seen.running > 0 || seen.waiting > 0) last_request_ = seen.now;
  const bool tick = seen.now >= *tick_ + DemandForecast::kTick;
  if (tick) observe(seen, targets);
  const bool wakes = seen.wanted == 0 && seen.waiting > 0;
  if (!tick && !wakes) return std::nullopt;
  return plan(seen, targets);
}

}  // namespace orrery
