// verbs/serve/rehearsed_plan.hpp - how many instances of a planned service a trace of requests
// needs, found by playing the trace against them in the twin.
//
// The plans of planner/serving know means at one even rate; here bursts, queues and a failed
// instance count. Pure but for the time that it takes: some ten runs of the trace for each plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "twin/serving/service_run.hpp"
#include "verbs/serve/serve_request.hpp"

namespace orrery {

struct RehearsalTerms {
  RequestTargets targets;
  double attained = 0.99;  ///< share of the requests that are to be within the targets
  /// After which an instance that failed takes requests again.
  Duration cold_start = Duration::minutes(2);
};

/// A plan with as few instances as keep the targets, also while one of them is away from the
/// busiest minute on.
struct RehearsedOffer {
  ServingOffer plan;            ///< as planned for the means
  std::uint32_t instances = 0;  ///< 0: none suffice
  std::string why;              ///< there are none; empty: there are
  ServiceFigures figures;       ///< without a failure
  ServiceFigures disturbed;     ///< with one
  double usd_per_million = 0;   ///< dollars for a million tokens, read and generated; 0: no price

  [[nodiscard]] bool found() const { return instances > 0; }
};

/// Rehearses the best plan of each machine, or the plans of the only one; the cheapest first, then
/// those without price, then those that no number of instances suffices for.
[[nodiscard]] std::vector<RehearsedOffer> rehearse(const ServeRequest& request,
                                                   const ServingAnswer& answer,
                                                   const RequestTrace& trace,
                                                   const RehearsalTerms& terms);

/// The share of the requests that were completed within the targets.
[[nodiscard]] double attained_by(const ServiceFigures& figures);

/// The beginning of the busiest minute.
[[nodiscard]] Duration busiest_minute(const RequestTrace& trace);

}  // namespace orrery
