// serving/scaling/replica_mix.hpp - how many replicas of each kind of machine serve a demand for
// the least money and energy.
//
// A small integer program: each replica of a variant serves a share of the demand, costs dollars
// and draws watts; counts, the sum of counts and the sum of watts have limits. Pure. Cost: a branch
// and bound over the counts, exact for the few variants that a service has; it ends after 200,000
// branches with the best mix that it has seen.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace orrery {

/// Replicas of one service on one kind of machine.
struct MixVariant {
  double serves = 0;  ///< the share of the demand that one of them serves
  double usd_s = 0;   ///< dollars a second of one
  double watts = 0;   ///< of one
  std::uint32_t least = 0;
  std::uint32_t most = 0;
};

struct MixLimits {
  std::uint32_t least = 0;  ///< replicas of all variants together
  std::uint32_t most = 0;
  std::optional<double> watts;  ///< of all together
  double usd_per_joule = 0;     ///< what energy weighs beside the dollars of `usd_s`
};

struct ReplicaMix {
  std::vector<std::uint32_t> counts;  ///< by variant; empty: no counts keep the limits
  double serves = 0;                  ///< of the demand; 1 or more: all of it
  double usd_s = 0;                   ///< with the weight of energy
};

/// Returns the cheapest mix that serves the whole demand within the limits; where none does, the
/// one that serves most of it. Of mixes with equal results the one with more of the earlier
/// variants.
[[nodiscard]] ReplicaMix least_cost_mix(std::span<const MixVariant> variants,
                                        const MixLimits& limits);

}  // namespace orrery
