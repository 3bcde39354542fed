// twin/replay_rules.hpp - the rules by which a trace is replayed: our own world's, or those of
// another simulator, which reproduce its published numbers exactly.
//
// A bundle states a few facts of the world (what a start costs, whether time goes in rounds) and of
// the reading of the trace; the policy decides the schedule under any bundle. docs/status.md
// names the policies of each simulator whose numbers are reproduced. A value.
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
  /// Whether the world charges for launches, restarts from a checkpoint, checkpoints and their
  /// loss; else a start, a stop and a move take no time and lose nothing.
  bool costs = true;
  bool all_at_start = false;             ///< every job is submitted at the beginning
  std::optional<Duration> round;         ///< longest synchronous round; none: no rounds
  std::optional<int> node_accelerators;  ///< of a server; none: the type's usual
  bool work_from_steps = false;          ///< run = steps x step time, not the recorded duration
  Percentile percentile = Percentile::kLinear;
};

/// Known names: orrery, helios, muri, gavel. Errors (without position): an unknown name, with the
/// nearest.
[[nodiscard]] Result<ReplayRules> replay_rules(std::string_view name);

/// The policy that the other simulator means by this name; stated options are kept.
/// `unstated_version` is as for policy_named(); without a version, the name is taken as requested
/// now (asked_policy()). Errors: a policy that the rules of another simulator do not know.
[[nodiscard]] Result<Policy> policy_under(const ReplayRules& rules, std::string_view text,
                                          std::uint32_t unstated_version = 0);

}  // namespace orrery
