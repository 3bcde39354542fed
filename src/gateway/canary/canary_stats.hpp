// gateway/canary/canary_stats.hpp - what a gateway counts of the requests of a service while a
// revision is tried on a share of them: those of that revision, and those of the others.
//
// A service of the gateway owns one. It begins anew with each canary. Not thread-safe. Cost: O(1) a
// request.
#pragma once

#include <optional>

#include "gateway/service_stats.hpp"
#include "serving/gateway_report.hpp"
#include "serving/route_table.hpp"

namespace orrery {

class CanaryStats {
 public:
  /// Takes the canary of a new table.
  void set(const std::optional<RoutedCanary>& canary, std::uint64_t epoch);
  /// A replica of the revision has answered a request. What its client has cancelled says nothing.
  void add(std::uint32_t revision, const EndedRequest& request);
  /// A replica of the revision failed before anything of its answer came.
  void add_failure(std::uint32_t revision);
  /// An answer got a score between 0 and 1. `epoch`: of the table by which it was routed; one from
  /// before the canary says nothing.
  void add_score(std::uint32_t revision, std::uint64_t epoch, double score);

  /// None: the service has no canary.
  [[nodiscard]] const std::optional<CanaryReport>& report() const { return report_; }

 private:
  [[nodiscard]] ArmReport& arm(std::uint32_t revision);

  std::optional<CanaryReport> report_;
  std::uint64_t since_ = 0;  ///< epoch of the first table with it
};

}  // namespace orrery
