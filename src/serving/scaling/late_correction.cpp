#include "serving/scaling/late_correction.hpp"

#include <algorithm>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// Requests that may be late: less than the 1 % that a target of p99 allows, as some are refused.
constexpr double kMayBeLate = 0.006;
constexpr double kGain = 0.05;
constexpr double kMeanGain = 0.01;
/// How often a tick counts at most, by its requests.
constexpr double kWeightMost = 4;
constexpr double kLogLeast = -0.7;
constexpr double kLogMost = 0.5;

}  // namespace

void LateCorrection::add(const AnsweredLately& lately, ReplicaCount count) {
  if (lately.requests <= 0) return;
  if (requests_mean_ <= 0) requests_mean_ = lately.requests;
  requests_mean_ += kMeanGain * (lately.requests - requests_mean_);
  const double weight = std::min(lately.requests / requests_mean_, kWeightMost);
  const double step = kGain * weight * (kMayBeLate - lately.late / lately.requests);
  if (step > 0 && count == ReplicaCount::kLeast) return;
  log_ = std::clamp(log_ + step, kLogLeast, kLogMost);
}

double LateCorrection::factor() const { return math::exp(log_); }

}  // namespace orrery
