// verbs/services/engine_artifact.hpp - a model for an inference engine of others, which a user
// names by its place on this machine.
//
// A function of one call of a verb; it looks at files of this machine.
#pragma once

#include <string>

#include "base/error.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// Returns the absolute path of a model that the engine can read: of llama.cpp a file in GGUF, of
/// the others a directory in the form of a model hub. Error (kInput): what is wrong with it.
/// Precondition: the engine is not Orrery's own.
[[nodiscard]] Result<std::string> engine_artifact(EngineName engine, const std::string& typed);

}  // namespace orrery
