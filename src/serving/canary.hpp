// serving/canary.hpp - whether a new revision of a service, which a share of the requests tries,
// is worse than the present one.
//
// Pure functions of counts, so that control, twin and tests judge alike. A gate compares the rates
// of both revisions: of failed requests, of requests that miss a latency target, of quality lost.
// Its test may be looked at after every request: a good revision is rolled back with a probability
// of at most CanaryTerms::error_rate, however often it is looked at. Cost: O(1) a judgement.
//
// Method: the mixture likelihood ratio of each arm against a rate p, with a uniform prior, is a
// martingale under p (Robbins 1970; Howard, Ramdas, McAuliffe, Sekhon 2021); their product over
// both arms, least over all pairs of rates without harm, exceeds 1/a with a probability of at most
// a (Ville's inequality). It holds for values between 0 and 1, too, as they are spread less than
// outcomes of 0 and 1 with the same mean.
#pragma once

#include <cstdint>
#include <string>

namespace orrery {

/// Values between 0 and 1: how many, and their sum.
struct RateCounts {
  double count = 0;
  double sum = 0;
};

/// What the requests of one of two revisions came to.
struct CanaryArm {
  std::uint64_t requests = 0;  ///< completed or failed
  std::uint64_t failed = 0;
  RateCounts slow_first;  ///< answers whose first token came later than its target
  RateCounts slow_next;   ///< answers whose mean time between tokens is above its target
  RateCounts quality;     ///< scores that clients or graders gave, 1 is best
};

struct CanaryTerms {
  double error_rate = 0.05;         ///< of rolling a good revision back, all gates together
  double failures_more = 0.005;     ///< harmless difference of the share that fails
  double slow_more = 0.02;          ///< .. that is too slow
  double quality_less = 0.02;       ///< .. of the mean score
  std::uint64_t requests_min = 50;  ///< of the canary, before a stage may be passed
  std::uint64_t scores_min = 50;    ///< .. and scores, where quality is a gate
  bool failures = true;             ///< gates
  bool latencies = true;
  bool quality = false;
};

enum class CanaryOutcome : std::uint8_t { kNotWorse, kTooFew, kWorse };

struct CanaryJudgement {
  CanaryOutcome outcome = CanaryOutcome::kTooFew;
  std::string why;  ///< "12 of 140 requests failed (8.57 %), of the former revision 3 of .."
};

/// Returns the natural logarithm of the evidence that the mean of `canary` is above that of
/// `former` by more than `margin`; 0 or less: there is none. Precondition: 0 <= sum <= count.
[[nodiscard]] double evidence_of_more(const RateCounts& canary, const RateCounts& former,
                                      double margin);

/// Judges a canary by all counts since it began.
[[nodiscard]] CanaryJudgement judge_canary(const CanaryArm& canary, const CanaryArm& former,
                                           const CanaryTerms& terms);

}  // namespace orrery
