#include "executor/stragglers.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr std::size_t kRanksMin = 3;
constexpr double kOfMedian = 1.2;
constexpr double kDeviations = 3;

/// Returns the median; of an even number of values the lower one. Precondition: not empty.
double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<Straggler> find_stragglers(const std::vector<NodePaces>& nodes) {
  std::vector<double> seconds;
  for (const NodePaces& node : nodes) {
    seconds.reserve(seconds.size() + node.paces.size());
    for (const RankPace& pace : node.paces) seconds.push_back(pace.seconds);
  }
  std::vector<Straggler> slow;
  if (seconds.size() < kRanksMin) return slow;
  const double usual = median(seconds);
  for (double& each : seconds) each = std::abs(each - usual);
  const double bound = std::max(usual * kOfMedian, usual + kDeviations * median(seconds));
  for (const NodePaces& node : nodes) {
    for (const RankPace& pace : node.paces) {
      if (pace.seconds > bound) slow.push_back({node.node, pace, usual});
    }
  }
  std::stable_sort(slow.begin(), slow.end(), [](const Straggler& a, const Straggler& b) {
    return a.pace.seconds > b.pace.seconds;
  });
  return slow;
}

}  // namespace orrery
