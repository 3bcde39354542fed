#include "executor/services/canary_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "serving/canary.hpp"

namespace orrery {
namespace {

/// Requests, and scores where quality counts, that a canary needs in each stage.
constexpr std::uint64_t kRequestsMin = 50;

/// Times in buckets that are above the target as a whole.
RateCounts slower_than(const LatencyHistogram& times, const std::optional<Seconds>& target) {
  if (!target) return {};
  RateCounts counts{.count = static_cast<double>(times.count()), .sum = 0};
  double lower = 0;
  std::size_t bucket = 0;
  for (const std::uint64_t count : times.buckets()) {
    if (lower >= target->value()) counts.sum += static_cast<double>(count);
    lower = LatencyHistogram::upper_bound(bucket++).count_seconds();
  }
  return counts;
}

CanaryArm arm_of(const ArmReport& report, const SloSpec& slo) {
  return {.requests = report.requests,
          .failed = report.failed,
          .slow_first = slower_than(report.ttft, tail_of(slo.ttft)),
          .slow_next = slower_than(report.tpot, tail_of(slo.tpot)),
          .quality = {report.scores, report.score_sum}};
}

}  // namespace

CanaryWatch::Stage& CanaryWatch::stage_of(const SeenCanary& seen) {
  const ServiceUpdate& update = *seen.service.update;
  const auto [at, added] = stages_.try_emplace(seen.service.id);
  Stage& stage = at->second;
  if (added || stage.revision != update.to.number || stage.number != update.stage) {
    stage = {.revision = update.to.number,
             .number = update.stage,
             .since = std::nullopt,
             .requests = seen.counts.canary.requests,
             .waits_for = {}};
  }
  return stage;
}

std::optional<CanaryVerdict> CanaryWatch::judge(const SeenCanary& seen, Instant now) {
  const ServiceUpdate& update = *seen.service.update;
  Stage& stage = stage_of(seen);
  if (seen.ready == 0) {
    stage.waits_for = "a replica of the new revision";
    return std::nullopt;
  }
  if (!stage.since) stage.since = now;
  // A gateway that starts anew counts from zero.
  stage.requests = std::min(stage.requests, seen.counts.canary.requests);
  const CanaryTerms terms{.requests_min = stage.requests + kRequestsMin,
                          .scores_min = kRequestsMin,
                          .failures = update.terms.gates.failures,
                          .latencies = update.terms.gates.latencies,
                          .quality = update.terms.gates.quality};
  const CanaryJudgement judged = judge_canary(arm_of(seen.counts.canary, seen.slo),
                                              arm_of(seen.counts.others, seen.slo), terms);
  CanaryVerdict verdict{.service = seen.service.id,
                        .revision = stage.revision,
                        .stage = stage.number,
                        .of = CanaryVerdict::Of::kPromote,
                        .why = {}};
  if (judged.outcome == CanaryOutcome::kWorse) {
    verdict.of = CanaryVerdict::Of::kGiveUp;
    verdict.why = "the canary is worse: " + judged.why;
    return verdict;
  }
  if (judged.outcome == CanaryOutcome::kTooFew) {
    stage.waits_for = judged.why;
    return std::nullopt;
  }
  if (now < *stage.since + update.terms.bake) {
    stage.waits_for = fmt::format("the end of its {}", update.terms.bake.text());
    return std::nullopt;
  }
  return verdict;
}

std::string CanaryWatch::waits_for(JobId service) const {
  const auto found = stages_.find(service);
  return found == stages_.end() ? std::string() : found->second.waits_for;
}

}  // namespace orrery
