#include "executor/services/scale_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {
namespace {

constexpr double kQuantile = 0.95;
constexpr Seconds kIdle{600};
/// How long more replicas are not asked for after an order that did not succeed; twice as long
/// after each further one.
constexpr Duration kAfterFailure = Duration::minutes(1);
constexpr Duration kAfterFailuresMost = Duration::minutes(32);

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

std::optional<Instant> ScaleWatch::asks_again(const SeenScaling& seen, Failed& failed,
                                              Instant now) {
  const bool more = seen.last != nullptr && seen.last->replicas > seen.last->before;
  const bool under_way = seen.service.update.has_value();
  if (under_way) return std::nullopt;
  if (!more || seen.service.outcome.empty()) {
    failed = {};
    return std::nullopt;
  }
  if (failed.orders == 0 || failed.order != seen.last->at) {
    failed = {.order = seen.last->at, .seen = now, .orders = failed.orders + 1};
  }
  Duration pause = kAfterFailure;
  for (std::uint32_t i = 1; i < failed.orders && pause < kAfterFailuresMost; ++i) pause = pause * 2;
  return failed.seen + pause;
}

std::optional<ScaleOrder> ScaleWatch::judge(const SeenScaling& seen, Instant now) {
  Watched& watched = watched_[seen.service.id];
  const ServiceReport& measured = seen.measured;
  if (const auto answered = static_cast<double>(measured.window_requests); answered > 0) {
    watched.shape = {static_cast<double>(measured.window_prompt_tokens) / answered,
                     static_cast<double>(measured.window_output_tokens) / answered};
  }
  const ScaleTargets targets = targets_of(seen.terms, seen.slo);
  const std::optional<Instant> again = asks_again(seen, watched.failed, now);
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  std::optional<ScaleAnswer> answer =
      watched.scaler.look({.now = now,
                           .flow = seen.flow,
                           .shape = watched.shape,
                           .waiting = static_cast<std::uint32_t>(std::min(measured.waiting, kMost)),
                           .running = seen.running,
                           .variants = {{.wanted = seen.wanted,
                                         .ready = static_cast<std::uint32_t>(seen.ready.size()),
                                         .slots = seen.ready.empty() ? 1 : seen.ready.front().slots,
                                         .cost = mean_cost(seen.ready)}},
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
  if (again && now < *again && answer->total > seen.wanted) {
    watched.why += fmt::format("; the last order did not succeed, the next one comes in {}: {}",
                               (*again - now).text(), seen.service.outcome);
    return std::nullopt;
  }
  return ScaleOrder{seen.service.id, answer->total, std::move(answer->why)};
}

std::string ScaleWatch::why(JobId service) const {
  const auto found = watched_.find(service);
  return found == watched_.end() ? std::string() : found->second.why;
}

}  // namespace orrery
