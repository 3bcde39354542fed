// twin/replay_rules.hpp - the rules by which a trace is played: our own world's, or those of
// another simulator, whose numbers then come out exactly.
//
// A bundle is a few facts of the world (what a start costs, whether time goes in rounds) and of the
// reading of the trace; who runs when is the policy's, in any bundle. docs/twin.md has each
// simulator's rules and where they come from. A value.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/time.hpp"
#include "scheduler/policy.hpp"

namespace orrery {

/// How a percentile is taken of sorted values.
enum class Percentile : std::uint8_t {
  kLinear,  ///< between the neighbours of (n - 1) p, as pandas does
  kIndex,   ///< the value at floor(n p)
};

struct ReplayRules {
  std::string name = "orrery";
  /// Launch of ranks, restart from a checkpoint, checkpoints and their loss are the world's; else a
  /// start, a stop and a move take no time and lose nothing.
  bool costs = true;
  bool all_at_start = false;             ///< every job is there at the beginning
  std::optional<Duration> round;         ///< of synchronous rounds, at most
  std::optional<int> node_accelerators;  ///< of a server; none: the type's usual
  bool work_from_steps = false;          ///< run = steps x step time, not the recorded duration
  Percentile percentile = Percentile::kLinear;
};

/// orrery, helios, muri, gavel. Errors (without position): an unknown name, with the nearest.
[[nodiscard]] Result<ReplayRules> replay_rules(std::string_view name);

/// The policy that the other simulator means by this name; options that were given stay as given.
/// `unstated_version`: as of policy_named(); without one it is asked for now (asked_policy()).
/// Errors: a policy that the rules of another simulator do not know.
[[nodiscard]] Result<Policy> policy_under(const ReplayRules& rules, std::string_view text,
                                          std::uint32_t unstated_version = 0);

}  // namespace orrery
