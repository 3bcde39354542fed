#include "planner/serving/serving_capacity.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kGrowth = 1.19;

class CapacitySearch {
 public:
  CapacitySearch(const ServingJob& job, const ServingConstants& constants,
                 const LatencyLimits& limits)
      : job_(job), constants_(constants), limits_(limits) {
    job_.load.rate.reset();
    job_.load.batch_max.reset();
  }

  CapacityAnswer search() {
    const double first = job_.plan.attention_dp * job_.plan.pp;
    CapacityAnswer answer;
    answer.least = predict(first);
    const bool possible = answer.least.fits && is_finite(answer.least);
    if (!possible || !limits_.met(answer.least)) return answer;
    const double memory = std::floor(answer.least.memory.sequences);
    const double scheduler = std::floor(constants_.engine.sequences_max * job_.plan.attention_dp);
    const double most = std::max(first, std::min(memory, scheduler));
    best_ = {.concurrency = first,
             .prediction = answer.least,
             .bound = memory < scheduler ? ServingBound::kMemory : ServingBound::kScheduler};
    grow(first, most);
    answer.capacity = best_;
    return answer;
  }

 private:
  [[nodiscard]] ServingPrediction predict(double concurrency) {
    job_.load.concurrency = concurrency;
    return predict_serving(job_, constants_);
  }

  /// Whether the limits allow it; keeps the best and what forbade it.
  bool allowed(double concurrency) {
    const ServingPrediction prediction = predict(concurrency);
    if (!limits_.met(prediction)) {
      best_.bound =
          limits_.tpot_met(prediction) ? ServingBound::kFirstToken : ServingBound::kTokenTime;
      return false;
    }
    if (prediction.requests > best_.prediction.requests) {
      best_.concurrency = concurrency;
      best_.prediction = prediction;
    }
    return true;
  }

  /// Grows by quarters of a doubling up to `most` or a limit, then halves the gap to it. Throughput
  /// is not quite monotonic in the batch (prompts come in whole pieces), hence the small steps.
  void grow(double good, double most) {
    double bad = 0;
    while (good < most && bad == 0) {
      const double next = std::min(std::ceil(good * kGrowth), most);
      (allowed(next) ? good : bad) = next;
    }
    while (bad - good > 1) {
      const double middle = std::floor((good + bad) / 2);
      (allowed(middle) ? good : bad) = middle;
    }
    if (best_.concurrency < good) best_.bound = ServingBound::kThroughput;
  }

  ServingJob job_;
  const ServingConstants& constants_;
  const LatencyLimits& limits_;
  ServingCapacity best_;
};

}  // namespace

CapacityAnswer serving_capacity(const ServingJob& job, const ServingConstants& constants,
                                const LatencyLimits& limits) {
  return CapacitySearch(job, constants, limits).search();
}

bool is_finite(const ServingPrediction& p) {
  return std::isfinite(p.tokens_total.value()) && std::isfinite(p.output_tokens.value()) &&
         std::isfinite(p.requests) && std::isfinite(p.ttft.value()) &&
         std::isfinite(p.tpot.value()) && std::isfinite(p.e2e.value()) && std::isfinite(p.batch) &&
         std::isfinite(p.breakdown.total()) && std::isfinite(p.memory.used(p.batch, 1));
}

}  // namespace orrery
