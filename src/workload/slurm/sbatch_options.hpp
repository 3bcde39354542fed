// workload/slurm/sbatch_options.hpp - the #SBATCH lines of a script, as options with their
// positions.
//
// A function of the script's text. One table lists the options and their effects: those of
// sbatch(1) of Slurm 22.05. workload/slurm/sbatch_script.hpp interprets the values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// What happens to an option that is unknown, or that requests something that does not exist.
enum class UnknownSbatchOption : std::uint8_t { kError, kNote };

struct SbatchOption {
  std::string_view name;  ///< the long name, without its dashes
  std::string value;      ///< empty: the option takes none
  SourcePosition where;
};

struct SbatchOptions {
  std::vector<SbatchOption> used;  ///< in the order written; the last one of a name holds
  std::vector<std::string> notes;  ///< "FILE:LINE: .." of each that has no effect
};

/// The option of sbatch that a letter stands for.
struct SbatchLetter {
  std::string_view name;     ///< the long name, without its dashes
  bool takes_value = false;  ///< also one that may be left out; if not, other letters may follow
};
/// None: no option of sbatch has the letter.
[[nodiscard]] std::optional<SbatchLetter> sbatch_letter(char letter);

/// The options of the lines "#SBATCH .." before the first command. A word that begins with '#' ends
/// a line; quotes hold words together. A long option may be abbreviated if it stays unique. Errors:
/// a line that ends in a carriage return, an unclosed quote, a word that is no option, a value that
/// is missing or not allowed, and, with kError, an option that is unknown (with the nearest name)
/// or that would silently have no effect. O(bytes of the lines).
[[nodiscard]] Result<SbatchOptions> read_sbatch_options(std::string_view script,
                                                        const std::string& file,
                                                        UnknownSbatchOption unknown);

}  // namespace orrery
