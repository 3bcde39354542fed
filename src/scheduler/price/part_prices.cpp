#include "scheduler/price/part_prices.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace orrery {
namespace {

constexpr std::size_t kSizesMax = 64;
constexpr std::size_t kColumnsPerSizeMax = 50;  ///< far beyond need; ends a cycle of equal duals
constexpr double kImprovement = 1e-9;

using Column = std::vector<double>;

/// The best set of requests that fits into each free part.
struct Knapsack {
  PartPrices worth{};
  std::array<int, kDeviceThousandths + 1>
      first{};  ///< a size of the best set, or -1: 1 is left unused
};

Knapsack fill(std::span<const PartDemand> demand, const Column& dual) {
  Knapsack result;
  for (std::size_t free = 1; free <= kDeviceThousandths; ++free) {
    result.worth[free] = result.worth[free - 1];
    result.first[free] = -1;
    for (std::size_t i = 0; i < demand.size(); ++i) {
      const auto size = static_cast<std::size_t>(demand[i].thousandths);
      if (size > free) continue;
      const double worth = result.worth[free - size] + dual[i];
      if (worth <= result.worth[free] + 1e-12) continue;
      result.worth[free] = worth;
      result.first[free] = static_cast<int>(i);
    }
  }
  return result;
}

/// Number of requests of each size in the best filling of a whole device.
Column best_pattern(std::span<const PartDemand> demand, const Knapsack& knapsack) {
  Column pattern(demand.size(), 0);
  for (std::size_t free = kDeviceThousandths; free > 0;) {
    const int size = knapsack.first[free];
    if (size < 0) {
      --free;
      continue;
    }
    pattern[static_cast<std::size_t>(size)] += 1;
    free -= static_cast<std::size_t>(demand[static_cast<std::size_t>(size)].thousandths);
  }
  return pattern;
}

/// Basic solution of the packing program: how often each pattern of the basis is used.
class Packing {
 public:
  explicit Packing(std::span<const PartDemand> demand) {
    for (std::size_t i = 0; i < demand.size(); ++i) {
      const int whole = kDeviceThousandths / demand[i].thousandths;  // parts on one device
      const auto count = static_cast<double>(whole);
      inverse_.emplace_back(demand.size(), 0);
      inverse_[i][i] = 1 / count;
      used_.push_back(demand[i].frequency / count);
    }
  }

  /// Every pattern costs one device, so a size's dual is the sum of its column of the inverse.
  [[nodiscard]] Column dual() const {
    Column sum(used_.size(), 0);
    for (const Column& row : inverse_) {
      for (std::size_t j = 0; j < row.size(); ++j) sum[j] += row[j];
    }
    return sum;
  }

  /// One step of the simplex method. Returns false if it is unbounded.
  bool bring_in(const Column& pattern) {
    Column direction(used_.size(), 0);
    for (std::size_t i = 0; i < used_.size(); ++i) {
      for (std::size_t j = 0; j < used_.size(); ++j) direction[i] += inverse_[i][j] * pattern[j];
    }
    double step = std::numeric_limits<double>::infinity();
    std::size_t leaves = 0;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (direction[i] <= kImprovement || used_[i] / direction[i] >= step) continue;
      step = used_[i] / direction[i];
      leaves = i;
    }
    if (step == std::numeric_limits<double>::infinity()) return false;
    for (double& value : inverse_[leaves]) value /= direction[leaves];
    for (std::size_t i = 0; i < used_.size(); ++i) {
      if (i == leaves) continue;
      used_[i] -= step * direction[i];
      for (std::size_t j = 0; j < used_.size(); ++j) {
        inverse_[i][j] -= direction[i] * inverse_[leaves][j];
      }
    }
    used_[leaves] = step;
    return true;
  }

 private:
  std::vector<Column> inverse_;
  Column used_;
};

}  // namespace

PartPrices part_prices(std::span<const PartDemand> demand) {
  std::vector<PartDemand> sizes(demand.begin(), demand.end());
  std::sort(sizes.begin(), sizes.end(), [](const PartDemand& a, const PartDemand& b) {
    return a.frequency != b.frequency ? a.frequency > b.frequency : a.thousandths < b.thousandths;
  });
  if (sizes.size() > kSizesMax) sizes.resize(kSizesMax);
  std::sort(sizes.begin(), sizes.end(),
            [](const PartDemand& a, const PartDemand& b) { return a.thousandths > b.thousandths; });
  Packing packing(sizes);
  Knapsack knapsack = fill(sizes, packing.dual());
  for (std::size_t i = 0; i < kColumnsPerSizeMax * sizes.size(); ++i) {
    if (knapsack.worth[kDeviceThousandths] < 1 + kImprovement) break;
    if (!packing.bring_in(best_pattern(sizes, knapsack))) break;
    knapsack = fill(sizes, packing.dual());
  }
  const double whole = std::max(1.0, knapsack.worth[kDeviceThousandths]);
  for (double& worth : knapsack.worth) worth /= whole;
  knapsack.worth[kDeviceThousandths] = 1;
  return knapsack.worth;
}

}  // namespace orrery
