// base/text/csv_text.hpp - one cell of a CSV file.
//
// Pure. Cost: O(bytes).
#pragma once

#include <string>
#include <string_view>

namespace orrery {

/// The text as a cell: quoted, its quotes doubled, where it has a comma, a quote or a line end
/// (RFC 4180).
[[nodiscard]] std::string csv_text(std::string_view text);

}  // namespace orrery
