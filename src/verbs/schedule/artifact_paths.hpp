// verbs/schedule/artifact_paths.hpp - artifacts of a service's revisions, which a user names by
// their place on this machine.
//
// A pure function but for a look at the file system.
#pragma once

#include <string>

#include "base/error.hpp"

namespace orrery {

/// Returns the text of a spec with each relative `revisions[].artifact` as the absolute path from
/// `current`, the lines otherwise unchanged; a text that is no spec is returned as it is, for its
/// reader to refuse. `file` names the text in messages. Errors (kInput) at the artifact: a relative
/// one that is neither a directory nor a GGUF file here.
[[nodiscard]] Result<std::string> with_absolute_artifacts(std::string text, const std::string& file,
                                                          const std::string& current);

/// Returns "; run scripts/quickstart first" for a path of the quickstart's checkpoints, else "".
[[nodiscard]] std::string quickstart_hint(const std::string& path);

}  // namespace orrery
