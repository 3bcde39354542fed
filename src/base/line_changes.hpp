// base/line_changes.hpp - in which lines a configuration file is not as it was applied last.
//
// Programs report these lines when they apply a file, so that neither an edit nor a damaged byte
// takes effect unseen. Values; functions hold nothing. Cost: that of reading both texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"

namespace orrery {

struct LineChange {
  std::size_t line = 0;  ///< from 1; of the newer text, or, of what is gone, of the older
  std::optional<std::string> before;  ///< none: the line is new
  std::optional<std::string> after;   ///< none: the line is gone
};

/// The lines between the first and the last that differ, paired in their order; those beyond the
/// first kLineChangesMax are left out. Empty: the texts are equal.
inline constexpr std::size_t kLineChangesMax = 20;
[[nodiscard]] std::vector<LineChange> line_changes(std::string_view before, std::string_view after);

/// "tenants.yaml:4: "weight: 1" is now "weight: 3"". Long lines are cut, controls are replaced.
[[nodiscard]] std::string change_text(std::string_view file, const LineChange& change);

/// Compares a file's text with the copy at PATH.applied that the call before made, then makes it
/// anew. Nothing the first time. A copy that cannot be written is tried again with the next call.
[[nodiscard]] std::vector<LineChange> changes_since_applied(Storage& storage,
                                                            const std::string& path,
                                                            const std::string& text);

}  // namespace orrery
