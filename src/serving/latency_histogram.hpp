// serving/latency_histogram.hpp - counts of durations in buckets that grow by 2^(1/8), so that
// histograms of several gateways add up and a quantile is off by at most 4.4 %.
//
// A value: buckets from 10 us to 3 h; shorter and longer durations count in the outermost ones.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/time.hpp"

namespace orrery {

class LatencyHistogram {
 public:
  static constexpr std::size_t kBuckets = 240;

  void add(Duration duration);
  /// Adds `count` durations of a bucket. Precondition: bucket < kBuckets.
  void add(std::size_t bucket, std::uint64_t count);
  LatencyHistogram& operator+=(const LatencyHistogram& other);

  [[nodiscard]] std::uint64_t count() const { return total_; }
  /// Counts by bucket; shorter than kBuckets where the last ones are empty.
  [[nodiscard]] std::span<const std::uint64_t> buckets() const { return counts_; }
  /// Returns the geometric middle of the bucket that holds the quantile, 0 < share <= 1; zero where
  /// nothing was counted. O(buckets).
  [[nodiscard]] Duration quantile(double share) const;
  /// Returns how many durations are longer, by the middles of their buckets. O(buckets).
  [[nodiscard]] std::uint64_t count_above(Duration limit) const;
  /// The longest duration that counts in a bucket, but for the last one. Precondition: bucket <
  /// kBuckets.
  [[nodiscard]] static Duration upper_bound(std::size_t bucket);

 private:
  std::vector<std::uint64_t> counts_;
  std::uint64_t total_ = 0;
};

}  // namespace orrery
