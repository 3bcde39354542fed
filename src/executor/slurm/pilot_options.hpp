// executor/slurm/pilot_options.hpp - which options of sbatch a site may add to those of a hold.
//
// Pure. A hold is one plain Slurm job that the controller names, sizes and finds again. With an
// option that changes one of these, the controller would request holds that it never finds. Options
// are refused in each spelling that sbatch accepts: "--time=5", "--time" and "5", "-t5",
// abbreviated, and behind other letters. Cost: O(bytes).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace orrery {

struct RefusedOption {
  std::size_t at = 0;  ///< its place among the options
  std::string why;
};

/// Returns the first of these options of sbatch that a hold may not be submitted with; none: all
/// are allowed.
[[nodiscard]] std::optional<RefusedOption> refused_option(std::span<const std::string> options);

}  // namespace orrery
