// planner/serving/serving_refusal.hpp - which limit leaves a machine without a service, and the
// smallest changes, each alone, that would help.
//
// Collects the closest attempts while layouts are tried. Invariant: figures are of layouts tried.
#pragma once

#include <optional>
#include <string>

#include "planner/serving/serving_plan.hpp"

namespace orrery {

/// One layout and how close it came.
struct ServingAttempt {
  ServingPlan plan;
  ServingNumbers numbers;
  ServingPrediction least;  ///< with the least in flight
  double requests_max = 0;  ///< a second, by the machine's accelerators within limits
  double accelerators =
      0;  ///< number needed for the offered rate; 0: the limits do not hold at all
};

class ServingShortfall {
 public:
  ServingShortfall(const PlannerFacts& facts, const ServingQuestion& question,
                   const ServingChoice& choice)
      : facts_(facts), question_(question), choice_(choice) {}

  void add(const ServingAttempt& attempt);

  /// Precondition: no layout added was a service.
  [[nodiscard]] Error explain() const;

 private:
  [[nodiscard]] std::string memory_text() const;
  [[nodiscard]] std::string network_text() const;
  [[nodiscard]] std::string memory_help() const;
  [[nodiscard]] std::string latency_text() const;
  [[nodiscard]] std::string rate_text() const;
  [[nodiscard]] bool fits(const ServingNumbers& numbers, std::uint64_t devices) const;

  const PlannerFacts& facts_;
  const ServingQuestion& question_;
  const ServingChoice& choice_;
  std::optional<ServingAttempt> smallest_;        ///< least memory of a device
  std::optional<ServingAttempt> first_;           ///< least time to the first token
  std::optional<ServingAttempt> token_;           ///< least time of a token
  std::optional<ServingAttempt> first_of_token_;  ///< as first_, where the limit on tokens holds
  std::optional<ServingAttempt> fastest_;         ///< most requests
  std::optional<ServingAttempt> fewest_;          ///< least accelerators for the rate
};

}  // namespace orrery
