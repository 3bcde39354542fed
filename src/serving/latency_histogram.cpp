#include "serving/latency_histogram.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kFirstSeconds = 1e-5;  ///< upper bound of bucket 0
constexpr double kOctave = 8;           ///< buckets for each doubling

/// Returns the upper bounds of all buckets, in nanoseconds.
const std::array<std::int64_t, LatencyHistogram::kBuckets>& bounds() {
  static const auto kBounds = [] {
    std::array<std::int64_t, LatencyHistogram::kBuckets> made{};
    for (std::size_t i = 0; i < made.size(); ++i) {
      const double seconds =
          kFirstSeconds * math::exp(math::log(2) * static_cast<double>(i) / kOctave);
      made[i] = static_cast<std::int64_t>(seconds * 1e9);
    }
    return made;
  }();
  return kBounds;
}

/// The geometric middle of a bucket.
Duration middle_of(std::size_t bucket) {
  const double upper = static_cast<double>(bounds()[bucket]) * 1e-9;
  return Duration::from_seconds(upper * math::exp(-math::log(2) / (2 * kOctave)));
}

}  // namespace

void LatencyHistogram::add(Duration duration) {
  const auto& all = bounds();
  const auto* const at = std::ranges::lower_bound(all, duration.count_ns());
  const auto bucket = static_cast<std::size_t>(at - all.begin());
  add(std::min(bucket, kBuckets - 1), 1);
}

void LatencyHistogram::add(std::size_t bucket, std::uint64_t count) {
  ORRERY_ASSERT(bucket < kBuckets, "a bucket of the histogram");
  if (bucket >= counts_.size()) counts_.resize(bucket + 1);
  counts_[bucket] += count;
  total_ += count;
}

LatencyHistogram& LatencyHistogram::operator+=(const LatencyHistogram& other) {
  for (std::size_t i = 0; i < other.counts_.size(); ++i) add(i, other.counts_[i]);
  return *this;
}

Duration LatencyHistogram::upper_bound(std::size_t bucket) {
  ORRERY_ASSERT(bucket < kBuckets, "a bucket of the histogram");
  return Duration::nanoseconds(bounds()[bucket]);
}

Duration LatencyHistogram::quantile(double share) const {
  if (total_ == 0) return {};
  const double wanted = share * static_cast<double>(total_);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while (bucket + 1 < counts_.size() && static_cast<double>(seen += counts_[bucket]) < wanted) {
    ++bucket;
  }
  return middle_of(bucket);
}

std::uint64_t LatencyHistogram::count_above(Duration limit) const {
  std::uint64_t above = 0;
  for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
    if (middle_of(bucket) > limit) above += counts_[bucket];
  }
  return above;
}

}  // namespace orrery
