// fleet/import/host_list.hpp - host lists as Slurm writes them: "node[001-004,7],login1".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// Returns the names in order; widths of padded numbers are kept; several brackets multiply, with
/// the last one varying fastest. At most 1,048,576 names, of letters, digits, '-', '_' and '.',
/// which begin with a letter or a digit.
/// Errors without position: unbalanced brackets, a range that is empty or falls, no name, other
/// characters.
[[nodiscard]] Result<std::vector<std::string>> expand_host_list(std::string_view text);

}  // namespace orrery
