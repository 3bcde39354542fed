// executor/jobs/submit_limits.hpp - limits how many submissions a tenant may make a second.
//
// One for a controller's life, on its loop. Each tenant has a token bucket: it fills at the rate up
// to the burst, and a submission takes one token. Nothing is stored: after a start all buckets are
// full.
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
  /// Applies new limits from now on; tokens stay in the buckets, up to the new burst.
  void set(const ControllerSettings& settings);

  /// Takes one token; `now` must not go back. Error (kEnvironment): the bucket is empty, with the
  /// time until the next token.
  [[nodiscard]] Status admit(const std::string& tenant, Instant now);

 private:
  struct Bucket {
    double left = 0;
    Instant at;
  };

  double rate_ = 0;  ///< 0: unlimited
  double burst_ = 0;
  std::map<std::string, Bucket> buckets_;
};

}  // namespace orrery
