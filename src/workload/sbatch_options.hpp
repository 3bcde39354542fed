// workload/sbatch_options.hpp - the #SBATCH lines of a script, as options with their places.
//
// A function of the script's text. What options there are, and what becomes of each, is one table:
// those of sbatch(1) of Slurm 22.05. What the values mean is workload/sbatch_script.hpp's business.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// What happens to an option that is not known, or asks for what there is not.
enum class UnknownSbatchOption : std::uint8_t { kError, kNote };

struct SbatchOption {
  std::string_view name;  ///< the long one, without its dashes
  std::string value;      ///< empty: it takes none
  SourcePosition where;
};

struct SbatchOptions {
  std::vector<SbatchOption> used;  ///< in the order written; of one name the last one holds
  std::vector<std::string> notes;  ///< "FILE:LINE: .." of each that has no effect
};

/// Those of the lines "#SBATCH .." before the first command. A word that begins with '#' ends a
/// line; quotes hold words together. A long option may be cut short where it stays unique. Errors:
/// a line that ends in a carriage return, a quote never closed, a word that is no option, a value
/// that is missing or not wanted, and, with kError, an option that is not known (with the nearest
/// name) or whose wish would silently not be met. O(bytes of the lines).
[[nodiscard]] Result<SbatchOptions> read_sbatch_options(std::string_view script,
                                                        const std::string& file,
                                                        UnknownSbatchOption unknown);

}  // namespace orrery
