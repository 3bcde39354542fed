// executor/services/scale_watch.hpp - follows the services that are scaled, and says when one is to
// have another number of replicas.
//
// Owned by the ServiceBook, on the controller's loop; soft: after a takeover the forecast and the
// time without requests begin anew, while control keeps the last order. Cost: that of a look of
// serving/scaling/autoscaler.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "control/input.hpp"
#include "control/services/service_table.hpp"
#include "serving/gateway_report.hpp"
#include "serving/scaling/autoscaler.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

/// Returns the terms of a spec, with what it has by default.
[[nodiscard]] ScaleTerms scale_terms_of(const ScalingSpec& spec);

/// A service that is scaled, and what is known of it.
struct SeenScaling {
  const Service& service;
  const ScalingSpec& terms;
  const SloSpec& slo;
  const ServiceScaling* last = nullptr;  ///< null: no order has scaled it
  std::uint32_t wanted = 0;              ///< replicas; 0: it rests
  std::vector<ReplicaReport> ready;
  ServiceFlow flow;
  ServiceReport measured;     ///< of all gateways together
  std::uint32_t running = 0;  ///< requests that replicas have
  Duration cold_start;
};

class ScaleWatch {
 public:
  /// Returns the order that control is to get; none: the number is right, or it is not yet time to
  /// look.
  [[nodiscard]] std::optional<ScaleOrder> judge(const SeenScaling& seen, Instant now);
  /// Why a service has as many replicas as it has; empty: nothing is known.
  [[nodiscard]] std::string why(JobId service) const;
  /// The service is not scaled.
  void forget(JobId service) { watched_.erase(service); }

 private:
  /// Orders for more replicas that did not succeed, one after the other.
  struct Failed {
    Instant order;  ///< when the newest was given
    Instant seen;   ///< when it was first known to have failed
    std::uint32_t orders = 0;
  };
  struct Watched {
    Autoscaler scaler;
    RequestShape shape;
    std::string why;
    Failed failed;
  };
  /// Returns when more replicas may be asked for again; none: at any time.
  [[nodiscard]] static std::optional<Instant> asks_again(const SeenScaling& seen, Failed& failed,
                                                         Instant now);

  std::map<JobId, Watched> watched_;
};

}  // namespace orrery
