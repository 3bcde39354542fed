#include "twin/study/study_pairs.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

namespace orrery {
namespace {

/// Options that are conditions: the work, the faults, the price of electricity, what is known, what
/// is measured.
constexpr std::array<std::string_view, 27> kConditions = {
    "model",    "seq",         "global_batch", "task",    "tokens", "samples", "trace",
    "format",   "where",       "from",         "to",      "map",    "jobs",    "generate",
    "span",     "load",        "prices",       "until",   "carbon", "rules",   "seed",
    "failures", "information", "tenants",      "measure", "events", "arrivals"};

std::vector<Estimate> differences(const StudySpec& spec, const CellOutcome* point,
                                  const CellOutcome* base) {
  std::vector<Estimate> estimates;
  estimates.reserve(spec.figures.size());
  for (std::size_t f = 0; f < spec.figures.size(); ++f) {
    std::vector<double> values;
    for (std::uint32_t seed = 0; seed < spec.seeds; ++seed) {
      if (!point[seed].failure.empty() || !base[seed].failure.empty()) continue;
      values.push_back(point[seed].figures[f] - base[seed].figures[f]);
    }
    estimates.push_back(estimate_of(values));
  }
  return estimates;
}

}  // namespace

bool is_condition(const StudyAxis& axis) {
  return std::any_of(axis.values.begin(), axis.values.end(), [](const StudyValue& value) {
    return std::any_of(value.set.begin(), value.set.end(), [](const DocumentPatch& patch) {
      return std::find(kConditions.begin(), kConditions.end(), patch.path.front()) !=
             kConditions.end();
    });
  });
}

std::vector<std::size_t> conditions_of(const StudySpec& spec, const StudyPoint& point) {
  std::vector<std::size_t> conditions;
  for (std::size_t a = 0; a < spec.axes.size(); ++a) {
    if (is_condition(spec.axes[a])) conditions.push_back(point.values[a]);
  }
  return conditions;
}

std::vector<StudyPair> study_pairs(const StudySpec& spec,
                                   const std::vector<CellOutcome>& outcomes) {
  std::vector<StudyPair> pairs;
  if (spec.seeds == 1) return pairs;
  const std::vector<StudyPoint> points = study_points(spec, outcomes);
  std::map<std::vector<std::size_t>, std::size_t> first;
  for (std::size_t p = 0; p < points.size(); ++p) {
    const auto [base, is_first] = first.emplace(conditions_of(spec, points[p]), p);
    if (is_first) continue;
    pairs.push_back({p, base->second,
                     differences(spec, outcomes.data() + p * spec.seeds,
                                 outcomes.data() + base->second * spec.seeds)});
  }
  return pairs;
}

}  // namespace orrery
