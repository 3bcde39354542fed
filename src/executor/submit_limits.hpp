// executor/submit_limits.hpp - how many submissions a tenant may make a second.
//
// One for a controller's life, on its loop. A bucket a tenant: it fills at the rate up to the burst
// and a submission takes one out. Nothing of it is kept: after a start all are full.
// Invariant: a bucket holds at most the burst. Cost: O(log tenants).
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"
#include "base/time.hpp"
#include "executor/controller_settings.hpp"

namespace orrery {

class SubmitLimits {
 public:
  /// From now on; what is in the buckets stays, up to the new burst.
  void set(const ControllerSettings& settings);

  /// Takes one, at a time that does not go back. Error (kEnvironment): none is left, with the time
  /// until there is one.
  [[nodiscard]] Status admit(const std::string& tenant, Instant now);

 private:
  struct Bucket {
    double left = 0;
    Instant at;
  };

  double rate_ = 0;  ///< 0: none binds
  double burst_ = 0;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace orrery
