// twin/study/study_patch.hpp - a document with some of its values changed, as text that is read
// like a user's file, and whose errors still name the line the user wrote.
//
// Every node is written on a line of its own, so that a table of lines is a table of positions.
// Values; the documents that nodes and patches come from must outlive the writing.
// Cost: O(bytes x patches).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"

namespace orrery {

/// Replaces or adds the value at a path: keys of mappings, positions in lists from 0, "*" for every
/// item of a list.
struct DocumentPatch {
  std::vector<std::string> path;
  DocumentNode value;
  SourcePosition where;  ///< of the path
};

/// Splits a path such as "a.b.0" into its parts.
[[nodiscard]] std::vector<std::string> patch_path(std::string_view text);

struct PatchedText {
  std::string text;
  std::vector<SourcePosition> lines;  ///< position in the user's file of each line

  /// Moves an error of a reader of this text to its position in the user's file.
  [[nodiscard]] Error located(Error error) const;
};

/// Patches apply in order; later patches see the changes of earlier ones. The first `behind` parts
/// of every path lead to `base` itself. Errors: a path that leads into a value that is no mapping
/// and no list, or past the end of a list.
[[nodiscard]] Result<PatchedText> patched_text(const DocumentNode& base,
                                               std::span<const DocumentPatch> patches,
                                               std::size_t behind = 0);

}  // namespace orrery
