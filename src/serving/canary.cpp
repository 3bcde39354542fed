#include "serving/canary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace orrery {
namespace {

/// The logarithm of the mixture likelihood ratio against the rate `p`.
double log_ratio(const RateCounts& arm, double p) {
  const double hits = arm.sum;
  const double misses = arm.count - arm.sum;
  const double mixture =
      std::lgamma(hits + 1) + std::lgamma(misses + 1) - std::lgamma(arm.count + 2);
  double against = 0;
  if (hits > 0) against += hits * std::log(p);
  if (misses > 0) against += misses * std::log1p(-p);
  return mixture - against;
}

struct Gate {
  bool on = false;
  RateCounts canary;
  RateCounts former;
  double margin = 0;
  std::string_view what;  ///< empty: the scores
};

RateCounts failures_of(const CanaryArm& arm) {
  return {static_cast<double>(arm.requests), static_cast<double>(arm.failed)};
}

/// What a score lacks to the best one.
RateCounts loss_of(const CanaryArm& arm) {
  return {arm.quality.count, arm.quality.count - arm.quality.sum};
}

std::string share_text(const RateCounts& counts) {
  return fmt::format("{:.3g} % of {:.0f}", 100 * counts.sum / std::max(counts.count, 1.0),
                     counts.count);
}

std::string score_text(const CanaryArm& canary, const CanaryArm& former) {
  const auto mean = [](const RateCounts& scores) {
    return scores.sum / std::max(scores.count, 1.0);
  };
  return fmt::format(
      "the mean score of {:.0f} answers is {:.3g}; of the former revision {:.3g} of {:.0f}",
      canary.quality.count, mean(canary.quality), mean(former.quality), former.quality.count);
}

}  // namespace

double evidence_of_more(const RateCounts& canary, const RateCounts& former, double margin) {
  if (canary.count == 0 || former.count == 0) return 0;
  // Without harm is: p of the canary <= p of the former + margin. Where the observed rates harm,
  // the least evidence is on the border; it has one minimum there, as each term is convex in p.
  if (canary.sum / canary.count <= former.sum / former.count + margin) return 0;
  const auto at_border = [&](double p) {
    return log_ratio(former, p) + log_ratio(canary, p + margin);
  };
  constexpr double kLeast = 1e-9;
  double low = kLeast;
  double high = 1 - margin - kLeast;
  if (high <= low) return 0;
  constexpr int kRounds = 100;
  constexpr double kThird = 1.0 / 3;
  for (int round = 0; round < kRounds; ++round) {
    const double a = low + (high - low) * kThird;
    const double b = high - (high - low) * kThird;
    (at_border(a) < at_border(b) ? high : low) = at_border(a) < at_border(b) ? b : a;
  }
  return at_border((low + high) / 2);
}

CanaryJudgement judge_canary(const CanaryArm& canary, const CanaryArm& former,
                             const CanaryTerms& terms) {
  const std::array<Gate, 4> gates{{
      {terms.failures, failures_of(canary), failures_of(former), terms.failures_more,
       "requests failed"},
      {terms.latencies, canary.slow_first, former.slow_first, terms.slow_more,
       "answers had their first token later than the target"},
      {terms.latencies, canary.slow_next, former.slow_next, terms.slow_more,
       "answers had tokens slower than the target"},
      {terms.quality, loss_of(canary), loss_of(former), terms.quality_less, ""},
  }};
  const auto on = std::max<std::int64_t>(std::ranges::count(gates, true, &Gate::on), 1);
  const double needed = std::log(static_cast<double>(on) / terms.error_rate);
  for (const Gate& gate : gates) {
    if (!gate.on || evidence_of_more(gate.canary, gate.former, gate.margin) < needed) continue;
    return {CanaryOutcome::kWorse,
            gate.what.empty()
                ? score_text(canary, former)
                : fmt::format("{} {}; of the former revision {}", share_text(gate.canary),
                              gate.what, share_text(gate.former))};
  }
  if (canary.requests < terms.requests_min) {
    return {CanaryOutcome::kTooFew,
            fmt::format("requests: it has answered {} of {}", canary.requests, terms.requests_min)};
  }
  if (terms.quality && canary.quality.count < static_cast<double>(terms.scores_min)) {
    return {CanaryOutcome::kTooFew,
            fmt::format("scores: it has {:.0f} of {}", canary.quality.count, terms.scores_min)};
  }
  return {CanaryOutcome::kNotWorse, {}};
}

}  // namespace orrery
