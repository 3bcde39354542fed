#include "executor/services/scale_watch.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {
namespace {

constexpr double kQuantile = 0.95;
constexpr Seconds kIdle{600};
/// How long more replicas are not asked for after an order that did not succeed.
constexpr Duration kAfterFailure = Duration::minutes(1);

/// Returns the mean cost of replicas that have measured their pace; unknown: none has.
EngineStepCost mean_cost(const std::vector<ReplicaReport>& ready) {
  EngineStepCost sum;
  double known = 0;
  for (const ReplicaReport& each : ready) {
    const EngineStepCost cost = engine_step_cost_of(each.pace, each.slots);
    if (!is_known(cost)) continue;
    sum.step_s += cost.step_s;
    sum.sequence_s += cost.sequence_s;
    sum.prompt_token_s += cost.prompt_token_s;
    ++known;
  }
  if (known == 0) return {};
  sum.step_s /= known;
  sum.sequence_s /= known;
  sum.prompt_token_s /= known;
  return sum;
}

std::optional<PastScaleOrder> past(const ServiceScaling* last) {
  if (last == nullptr) return std::nullopt;
  const bool more = last->replicas > last->before;
  return PastScaleOrder{last->at, more ? ScaleDirection::kOut : ScaleDirection::kIn};
}

ScaleTargets targets_of(const ScalingSpec& spec, const SloSpec& slo) {
  const auto seconds = [](const std::optional<Seconds>& target) {
    return target ? target->value() : 0;
  };
  return {.terms = scale_terms_of(spec),
          .ttft_s = seconds(slo.ttft.p99),
          .tpot_s = seconds(slo.tpot.p99)};
}

/// Returns the requests of the window; as many are late as missed the target that more of them
/// missed.
AnsweredLately answered_lately(const ServiceReport& measured, const ScaleTargets& targets) {
  const auto late = [](const LatencyHistogram& latencies, double target_s) {
    return target_s > 0 ? latencies.count_above(Duration::from_seconds(target_s)) : 0;
  };
  const std::uint64_t most =
      std::max(late(measured.ttft, targets.ttft_s), late(measured.tpot, targets.tpot_s));
  return {.requests = static_cast<double>(measured.ttft.count()),
          .late = static_cast<double>(most)};
}

bool is_of_other_revision(const Service& service) {
  return service.update &&
         (service.update->to.number != service.revision.number || !service.update->back.empty());
}

}  // namespace

ScaleTerms scale_terms_of(const ScalingSpec& spec) {
  return {.min = spec.min,
          .max = spec.max,
          .idle = Duration::from_seconds(spec.idle.value_or(kIdle).value()),
          .quantile = spec.quantile.value_or(kQuantile)};
}

std::optional<ScaleOrder> ScaleWatch::judge(const SeenScaling& seen, Instant now) {
  Watched& watched = watched_[seen.service.id];
  const ServiceReport& measured = seen.measured;
  if (const auto answered = static_cast<double>(measured.window_requests); answered > 0) {
    watched.shape = {static_cast<double>(measured.window_prompt_tokens) / answered,
                     static_cast<double>(measured.window_output_tokens) / answered};
  }
  const ScaleTargets targets = targets_of(seen.terms, seen.slo);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::optional<ScaleAnswer> answer =
      watched.scaler.look({.now = now,
                           .flow = seen.flow,
                           .shape = watched.shape,
                           .answered = answered_lately(measured, targets),
                           .waiting = static_cast<std::uint32_t>(std::min(measured.waiting, kMost)),
                           .running = seen.running,
                           .wanted = seen.wanted,
                           .ready = static_cast<std::uint32_t>(seen.ready.size()),
                           .slots = seen.ready.empty() ? 1 : seen.ready.front().slots,
                           .cost = mean_cost(seen.ready),
                           .cold_start = seen.cold_start,
                           .last = past(seen.last)},
                          targets);
  if (!answer) return std::nullopt;
  if (is_of_other_revision(seen.service)) {
    watched.why = "it is not scaled before its update has ended";
    return std::nullopt;
  }
  watched.why = answer->why;
  if (answer->total == seen.wanted) return std::nullopt;
  const bool failed =
      !seen.service.outcome.empty() && seen.last != nullptr && now < seen.last->at + kAfterFailure;
  if (failed && answer->total > seen.wanted) {
    watched.why += "; the last order did not succeed: " + seen.service.outcome;
    return std::nullopt;
  }
  return ScaleOrder{seen.service.id, answer->total, std::move(answer->why)};
}

std::string ScaleWatch::why(JobId service) const {
  const auto found = watched_.find(service);
  return found == watched_.end() ? std::string() : found->second.why;
}

}  // namespace orrery
