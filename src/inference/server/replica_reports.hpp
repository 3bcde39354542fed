// inference/server/replica_reports.hpp - what a replica of a service reports to the keeper of its
// node: JSON lines into the pipe that ORRERY_PROGRESS names.
//
//   {"quiet": 1e9}                          a server takes no steps: silence is no hang
//   {"replica": {"phase": "loading"}}       then "warming", "ready" (with where it listens and how
//                                           fast it is) and "draining"
//
// Used on one thread. Without a pipe it does nothing.
#pragma once

#include <string>
#include <string_view>

#include "base/launch/progress_pipe.hpp"
#include "inference/server/engine_measurement.hpp"

namespace orrery {

/// Where and how a replica serves.
struct ReplicaEndpoint {
  std::string address;  ///< "HOST:PORT", reachable for gateways
  std::size_t slots = 0;
  std::size_t kv_tokens = 0;  ///< that its cache holds
  std::string kv_events;      ///< "HOST:PORT" where it tells what its cache has; "": nowhere
  EngineSpeed speed;
};

class ReplicaReports {
 public:
  /// `path`: a named pipe; "": none.
  explicit ReplicaReports(const std::string& path);

  void phase(std::string_view phase);
  void ready(const ReplicaEndpoint& endpoint);

 private:
  ProgressPipe pipe_;
};

}  // namespace orrery
