#include "executor/jobs/submit_limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

constexpr double kBurstSeconds = 10;

}  // namespace

void SubmitLimits::set(const ControllerSettings& settings) {
  rate_ = settings.submit_rate;
  burst_ = settings.submit_burst > 0 ? settings.submit_burst : rate_ * kBurstSeconds;
  burst_ = std::max(burst_, 1.0);
}

Status SubmitLimits::admit(const std::string& tenant, Instant now) {
  if (rate_ <= 0) return {};
  Bucket& bucket = buckets_.try_emplace(tenant, Bucket{burst_, now}).first->second;
  const double filled = bucket.left + (now - bucket.at).count_seconds() * rate_;
  bucket = {std::min(filled, burst_), now};
  if (bucket.left < 1) {
    return environment_error(
        fmt::format("{} is above {:g} submissions a second; the next is taken in {:.1f} s",
                    tenant.empty() ? "who names no tenant" : "tenant " + tenant, rate_,
                    (1 - bucket.left) / rate_));
  }
  bucket.left -= 1;
  return {};
}

}  // namespace orrery
