#include "serving/scaling/autoscaler.hpp"

#include <algorithm>
#include <limits>
#include <utility>

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

/// Returns how many replicas of the first variant do what all that are ready do of a demand.
/// `replicas`: of each variant, that the demand would keep busy alone.
double ready_as_first(const SeenDemand& seen, const std::vector<double>& replicas) {
  double sum = 0;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    if (replicas[i] > 0) sum += seen.variants[i].ready * (replicas.front() / replicas[i]);
  }
  return sum;
}

}  // namespace

ReplicaCapacity Autoscaler::capacity(std::size_t variant, const ScaleTargets& targets) const {
  ReplicaCapacity capacity = replica_capacity({.cost = paces_[variant].cost,
                                               .slots = paces_[variant].slots,
                                               .shape = shape_,
                                               .ttft_s = targets.ttft_s,
                                               .tpot_s = targets.tpot_s});
  const double corrected = speed_ * late_.factor();
  capacity.prompt_token_s /= corrected;
  capacity.output_token_s /= corrected;
  return capacity;
}

void Autoscaler::note_paces(const SeenDemand& seen) {
  paces_.resize(seen.variants.size());
  for (std::size_t i = 0; i < paces_.size(); ++i) {
    const SeenVariant& each = seen.variants[i];
    if (is_known(each.cost)) paces_[i] = {each.cost, std::max(each.slots, 1U)};
  }
}

void Autoscaler::observe(const SeenDemand& seen, const ScaleTargets& targets) {
  const double seconds = (seen.now - *tick_).count_seconds();
  const auto came = static_cast<double>(seen.flow.requests - flow_.requests);
  const double rate = std::max(came, 0.0) / seconds;
  // A tick lies after the one before and a rate is a number: it is never refused.
  const TokenDemand asked{rate * shape_.prompt, rate * shape_.output};
  (void)forecast_.observe(seen.now, asked);
  learn_speed(seen);
  if (targets.ttft_s > 0 || targets.tpot_s > 0) learn_lateness(seen, targets, asked);
  tick_ = seen.now;
  flow_ = seen.flow;
}

void Autoscaler::learn_speed(const SeenDemand& seen) {
  // As many requests wait as the replicas compute: these are busy all the time, whatever their cost
  // says.
  std::uint64_t ready = 0;
  std::uint64_t slots = 0;
  bool known = true;
  for (std::size_t i = 0; i < paces_.size(); ++i) {
    ready += seen.variants[i].ready;
    slots += std::uint64_t{seen.variants[i].ready} * paces_[i].slots;
    known = known && is_known(paces_[i].cost);
  }
  const bool queued = ready > 0 && seen.waiting >= slots;
  const bool full = std::exchange(queued_, queued) && queued && known;
  if (!full) {
    speed_ += kSpeedForgotten * (1 - speed_);
    return;
  }
  const double seconds = (seen.now - *tick_).count_seconds();
  const auto prompt = static_cast<double>(seen.flow.prompt_tokens - flow_.prompt_tokens) / seconds;
  const auto output = static_cast<double>(seen.flow.output_tokens - flow_.output_tokens) / seconds;
  std::vector<double> replicas;
  for (const Pace& each : paces_) {
    const ReplicaCapacity costs =
        replica_capacity({.cost = each.cost, .slots = each.slots, .shape = shape_, .error = 0});
    replicas.push_back(prompt * costs.prompt_token_s + output * costs.output_token_s);
  }
  const double there = ready_as_first(seen, replicas);
  const double busy = there > 0 ? replicas.front() / there : 0;
  speed_ += kSpeedGain * (std::clamp(busy, kSpeedLeast, 1.0) - speed_);
}

void Autoscaler::learn_lateness(const SeenDemand& seen, const ScaleTargets& targets,
                                const TokenDemand& asked) {
  const AnsweredLately answered{
      .requests = static_cast<double>(seen.flow.answered - flow_.answered),
      .late = static_cast<double>(seen.flow.late - flow_.late)};
  std::vector<double> replicas;
  double holds = 0;
  std::uint32_t wanted = 0;
  for (std::size_t i = 0; i < paces_.size(); ++i) {
    const ReplicaCapacity estimate = capacity(i, targets);
    replicas.push_back(replicas_for(asked, estimate));
    holds += static_cast<double>(seen.variants[i].ready) * estimate.batch;
    wanted += seen.variants[i].wanted;
  }
  const bool shortage = shortage_.add({.needed = replicas.front(),
                                       .ready = ready_as_first(seen, replicas),
                                       .open = static_cast<double>(seen.waiting) + seen.running,
                                       .answered = answered.requests,
                                       .holds = holds});
  if (shortage) return;
  const bool least = wanted <= std::max(targets.terms.min, 1U);
  late_.add(answered, least ? ReplicaCount::kLeast : ReplicaCount::kFollows);
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
                         .last = seen.last,
                         .power = targets.power};
  for (std::size_t i = 0; i < paces_.size(); ++i) {
    const SeenVariant& each = seen.variants[i];
    question.variants.push_back(
        {.name = each.name,
         .present = each.wanted,
         .most = each.most.value_or(std::numeric_limits<std::uint32_t>::max()),
         .capacity = capacity(i, targets),
         .usd_s = each.usd_s,
         .watts = each.watts});
  }
  return plan_scale(question);
}

std::optional<ScaleAnswer> Autoscaler::look(const SeenDemand& seen, const ScaleTargets& targets) {
  if (!tick_) {
    tick_ = last_request_ = seen.now;
    flow_ = seen.flow;
  }
  shape_ = seen.shape;
  note_paces(seen);
  const bool asked = seen.flow.requests != flow_.requests;
  if (asked || seen.running > 0 || seen.waiting > 0) last_request_ = seen.now;
  const bool tick = seen.now >= *tick_ + DemandForecast::kTick;
  if (tick) observe(seen, targets);
  const bool rests =
      std::ranges::all_of(seen.variants, [](const SeenVariant& each) { return each.wanted == 0; });
  const bool wakes = rests && seen.waiting > 0;
  if (!tick && !wakes) return std::nullopt;
  return plan(seen, targets);
}

}  // namespace orrery
