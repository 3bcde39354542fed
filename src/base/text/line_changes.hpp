// base/text/line_changes.hpp - the lines in which a configuration file differs from its last
// applied text.
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
  std::size_t line = 0;  ///< from 1; of the newer text, or, for a removed line, of the older
  std::optional<std::string> before;  ///< none: the line is new
  std::optional<std::string> after;   ///< none: the line is gone
};

/// Returns the lines between the first and the last that differ, paired in their order; pairs of
/// equal lines, and those beyond the first kLineChangesMax, are left out. Empty: the texts are
/// equal.
inline constexpr std::size_t kLineChangesMax = 20;
[[nodiscard]] std::vector<LineChange> line_changes(std::string_view before, std::string_view after);

/// Returns "tenants.yaml:4: "weight: 1" is now "weight: 3"". Long lines are cut, controls are
/// replaced.
[[nodiscard]] std::string change_text(std::string_view file, const LineChange& change);

/// Compares a file's text with the copy at PATH.applied that the call before made, then renews the
/// copy. Returns nothing the first time. A copy that cannot be written is tried again with the next
/// call.
[[nodiscard]] std::vector<LineChange> changes_since_applied(Storage& storage,
                                                            const std::string& path,
                                                            const std::string& text);

}  // namespace orrery
