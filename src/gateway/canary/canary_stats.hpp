// gateway/canary/canary_stats.hpp - what a gateway counts of the requests of a service while a
// revision is tried on a share of them: those of that revision, and those of the others.
//
// A service of the gateway owns one. It begins anew with each canary. Not thread-safe. Cost: O(1) a
// request.
#pragma once

#include <optional>

#include "gateway/service_stats.hpp"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"

namespace orrery {

class CanaryStats {
 public:
  /// Takes the canary of a new table.
  void set(const std::optional<RoutedCanary>& canary);
  /// A replica of the revision has answered a request. What its client has cancelled says nothing.
  void add(std::uint32_t revision, const EndedRequest& request);
  /// A replica of the revision failed before anything of its answer came.
  void add_failure(std::uint32_t revision);
  /// An answer of the revision got a score between 0 and 1.
  void add_score(std::uint32_t revision, double score);

  /// None: the service has no canary.
  [[nodiscard]] const std::optional<CanaryReport>& report() const { return report_; }

 private:
  [[nodiscard]] ArmReport& arm(std::uint32_t revision);

  std::optional<CanaryReport> report_;
};

}  // namespace orrery
