#include "scheduler/moves/stay_memo.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace orrery {
namespace {

bool same(const PriceWeights& a, const PriceWeights& b) {
  using Figures = std::array<double, sizeof(PriceWeights) / sizeof(double)>;
  return std::bit_cast<Figures>(a) == std::bit_cast<Figures>(b);
}

}  // namespace

// Clears the entries when an input of the prices of running jobs changes, which is seldom.
void StayMemo::begin(const Situation& s, const Policy& policy) {
  Inputs& under = inputs_;
  const bool holds = same(under.weights, policy.weights) && under.horizon == policy.horizon &&
                     under.power == (s.power != nullptr) &&
                     under.failures_per_node_second == s.failures_per_node_second &&
                     std::equal(under.node_risk.begin(), under.node_risk.end(), s.node_risk.begin(),
                                s.node_risk.end());
  if (!holds) {
    entries_.clear();
    under = {policy.weights,
             policy.horizon,
             s.power != nullptr,
             s.failures_per_node_second,
             {s.node_risk.begin(), s.node_risk.end()}};
  }
  entries_.resize(s.running.size());
}

bool StayMemo::stays(std::uint32_t running, const Situation& s) const {
  const Entry& known = entries_[running];
  const RunningJob& job = s.running[running];
  return s.now < known.until && known.id == job.id && known.since == job.since &&
         known.expected_end == job.expected_end;
}

}  // namespace orrery
