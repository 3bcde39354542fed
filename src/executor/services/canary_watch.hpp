// executor/services/canary_watch.hpp - follows the canaries of services stage by stage, and says
// when one ends.
//
// Owned by the ServiceBook, on the controller's loop; soft: after a takeover a stage lasts its
// whole time again, and gateways still have the counts. Cost: O(1) a judgement.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.hpp"
#include "control/input.hpp"
#include "control/services/service_table.hpp"
#include "serving/gateway_report.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

/// A service whose update is a canary, and what is known of it.
struct SeenCanary {
  const Service& service;
  CanaryReport counts;  ///< of all gateways together
  SloSpec slo;
  std::uint32_t ready = 0;  ///< replicas of the new revision
};

class CanaryWatch {
 public:
  /// Judges the present stage; none: it goes on. Precondition: is_canary() of the update.
  [[nodiscard]] std::optional<CanaryVerdict> judge(const SeenCanary& seen, Instant now);
  /// What the next stage of a service's canary waits for; empty: nothing is known.
  [[nodiscard]] std::string waits_for(JobId service) const;
  /// The canary of the service has ended.
  void forget(JobId service) { stages_.erase(service); }

 private:
  struct Stage {
    std::uint32_t revision = 0;
    std::uint32_t number = 0;
    std::optional<Instant> since;  ///< requests may have reached it
    std::uint64_t requests = 0;    ///< of the canary before this stage
    std::string waits_for;
  };

  Stage& stage_of(const SeenCanary& seen);

  std::map<JobId, Stage> stages_;
};

}  // namespace orrery
