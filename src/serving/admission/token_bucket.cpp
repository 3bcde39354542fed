#include "serving/admission/token_bucket.hpp"

#include <algorithm>

namespace orrery {

double TokenBucket::level_at(Instant now) const {
  const double more = rate_ * std::max((now - time_).count_seconds(), 0.0);
  return std::min(level_ + more, size());
}

void TokenBucket::set_rate(double tokens_per_s, Instant now) {
  const double share = limited() ? level_at(now) / size() : 1;
  rate_ = std::max(tokens_per_s, 0.0);
  level_ = share * size();
  time_ = now;
}

bool TokenBucket::take(std::uint64_t tokens, Instant now) {
  if (!limited()) return true;
  const auto wanted = static_cast<double>(tokens);
  const double level = level_at(now);
  if (level < std::min(wanted, size())) return false;
  level_ = level - wanted;
  time_ = now;
  return true;
}

void TokenBucket::give_back(double tokens, Instant now) {
  if (!limited()) return;
  level_ = std::min(level_at(now) + tokens, size());
  time_ = now;
}

double TokenBucket::left(Instant now) const { return std::max(level_at(now), 0.0); }

Duration TokenBucket::time_to(double level, Instant now) const {
  const double missing = level - level_at(now);
  if (!limited() || missing <= 0) return {};
  // A nanosecond more, so that rounding does not end the wait too early.
  return Duration::from_seconds(missing / rate_) + Duration::nanoseconds(1);
}

Duration TokenBucket::time_until(std::uint64_t tokens, Instant now) const {
  return time_to(std::min(static_cast<double>(tokens), size()), now);
}

Duration TokenBucket::time_until_full(Instant now) const { return time_to(size(), now); }

}  // namespace orrery
