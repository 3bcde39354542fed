// bench/residual_kinds.hpp - the spread of measured over predicted by kind of question.
#pragma once

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "perf/calibration.hpp"
#include "perf/training/training_estimate.hpp"

namespace orrery {

struct KindedRatio {
  std::string kind;
  double ratio = 1;  ///< measured over predicted
};

inline double quantile(std::vector<double> sorted, double part) {
  std::sort(sorted.begin(), sorted.end());
  const double at = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// One for each kind with at least ten rows, and "training" for all of them together.
inline std::vector<ResidualKind> residual_kinds(const std::vector<KindedRatio>& ratios) {
  constexpr std::size_t kRowsMin = 10;
  std::map<std::string, std::vector<double>> by_kind;
  for (const KindedRatio& one : ratios) {
    by_kind[one.kind].push_back(one.ratio);
    by_kind["training"].push_back(one.ratio);
  }
  std::vector<ResidualKind> kinds;
  for (const auto& [kind, list] : by_kind) {
    if (list.size() < kRowsMin) continue;
    double sum = 0;
    for (const double ratio : list) sum += std::abs(1 / ratio - 1);
    kinds.push_back({.kind = kind,
                     .rows = static_cast<std::int64_t>(list.size()),
                     .mape = sum / static_cast<double>(list.size()),
                     .low = quantile(list, 0.1),
                     .high = quantile(list, 0.9)});
  }
  return kinds;
}

}  // namespace orrery
