// verbs/services/told_replicas.hpp - tells people how the replicas of a service come up.
//
// Used by one call of a verb, on its thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "orrery/v1/orrery.pb.h"
#include "verbs/cluster/live_session.hpp"

namespace orrery {

/// What waiting for a service needs of the program.
struct ServiceWait {
  std::function<void()> pause;                   ///< waits a moment
  std::function<void(const std::string&)> said;  ///< lines for people
};

/// Returns how many replicas take requests.
[[nodiscard]] std::int64_t ready_replicas(const v1::ServiceView& service);

class ToldReplicas {
 public:
  /// Both outlive it.
  ToldReplicas(LiveSession& session, const ServiceWait& wait) : session_(session), wait_(wait) {}

  /// Says each change of a replica's phase since the last call; of a replica that failed, the end
  /// of its log.
  void tell(const v1::ServiceView& service);

 private:
  struct Told {
    std::string state;
    std::uint32_t attempt = 0;
  };

  void tell(const v1::ServiceReplica& replica);
  void tell_failure(std::uint64_t job, std::uint32_t attempt);

  LiveSession& session_;
  const ServiceWait& wait_;
  std::map<std::uint64_t, Told> told_;
  bool no_gateway_told_ = false;
};

}  // namespace orrery
