// serving/scaling/late_correction.hpp - how much more or less than its model says a replica can be
// given, by the requests that missed a target.
//
// The model of a replica's capacity knows means; how many requests are late depends on how they
// come. A step for each tick: up by what may be late, down by what was (Gibbs and Candes 2021), so
// that the mean share of late ones tends to what may be late, whatever the model is wrong by. The
// factor does not grow while more replicas would not be ordered anyway, as it would without end.
// Owned by an Autoscaler; pure. Cost: O(1).
#pragma once

#include <cstdint>

namespace orrery {

/// Requests that were answered in a tick.
struct AnsweredLately {
  double requests = 0;
  double late = 0;  ///< of these, beyond a target
};

/// Whether replicas follow the demand, or are the least that there may be.
enum class ReplicaCount : std::uint8_t { kFollows, kLeast };

class LateCorrection {
 public:
  void add(const AnsweredLately& lately, ReplicaCount count);
  /// By which the capacity is multiplied.
  [[nodiscard]] double factor() const;

 private:
  double log_ = 0;
  double requests_mean_ = 0;  ///< of ticks with requests, newer ones weigh more
};

}  // namespace orrery
