// twin/study_patch.hpp - a document with some of its values changed, as text that is read like the
// file of a user, and whose errors still name the line the user wrote.
//
// Every node is written on a line of its own, so that a table of lines is a table of positions.
// Values; the documents that nodes and patches come from must stay while the text is written.
// Cost: O(bytes x patches).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/document.hpp"
#include "base/error.hpp"

namespace orrery {

/// What stands at a path is replaced, or added: keys of mappings, positions in lists from 0, "*"
/// for every item of a list.
struct DocumentPatch {
  std::vector<std::string> path;
  DocumentNode value;
  SourcePosition where;  ///< of the path
};

/// "a.b.0" as its parts.
[[nodiscard]] std::vector<std::string> patch_path(std::string_view text);

struct PatchedText {
  std::string text;
  std::vector<SourcePosition> lines;  ///< where the user wrote what each line says

  /// The error of a reader of this text, at the position the user knows.
  [[nodiscard]] Error located(Error error) const;
};

/// Patches apply in their order, a later one to what an earlier one put. The first `behind` parts
/// of every path lead to `base` itself. Errors: a path that leads into a value that is no mapping
/// and no list, or past the end of a list.
[[nodiscard]] Result<PatchedText> patched_text(const DocumentNode& base,
                                               std::span<const DocumentPatch> patches,
                                               std::size_t behind = 0);

}  // namespace orrery
