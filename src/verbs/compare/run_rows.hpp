// verbs/compare/run_rows.hpp - the rows of a run file with what they measured, which predictions
// may not read (perf/runs/run_file.hpp).
#pragma once

#include <optional>
#include <string>

#include "base/error.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {

/// The rows of a file, in its order. Errors: an unreadable file, or no list of rows.
[[nodiscard]] Result<Json> run_rows(const std::string& path);
/// A number of an object; none: it has none under that key.
[[nodiscard]] std::optional<double> number_in(const Json& object, const char* key);
/// A text of a row; empty: it has none under that key.
[[nodiscard]] std::string text_in(const Json& row, const char* key);
/// The row's group; empty where it has none.
[[nodiscard]] std::string group_in(const Json& row);

}  // namespace orrery
