// workload/revision_spec.hpp - a revision of a service: the model it serves and the inference
// engine that computes it.
//
// Read with a job of kind Serve (workload/job_spec.hpp). Immutable once submitted: another model,
// or other arguments, are another revision. Invariant of a revision that was read: its names are
// well formed. The command line makes a relative artifact absolute when it submits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"

namespace orrery {

/// The inference engines that Orrery starts as replicas.
enum class EngineName : std::uint8_t {
  kOrrery,  ///< orrery-serve
};

inline std::array<EnumWord<EngineName>, 1> enum_words(EngineName) {
  return {{{"orrery", EngineName::kOrrery}}};
}

struct EngineSpec {
  EngineName name = EngineName::kOrrery;
  std::vector<std::string> arguments;  ///< appended to those that follow from the revision
  SourcePosition where;
};

template <class Visitor, SameStruct<EngineSpec> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.sole("name", e.name);
  visitor.optional("arguments", e.arguments);
}

struct RevisionSpec {
  std::string id = "r1";
  std::string model;     ///< the name that clients ask for
  std::string artifact;  ///< directory of a checkpoint of orrery-train; on nodes an absolute path
  EngineSpec engine;
  SourcePosition where;
};

template <class Visitor, SameStruct<RevisionSpec> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.optional("id", r.id);
  visitor.required("model", r.model);
  visitor.required("artifact", r.artifact);
  visitor.optional("engine", r.engine);
}

/// Returns what is wrong with a revision. Errors at its position.
[[nodiscard]] Status check_revision(const RevisionSpec& revision);

/// Returns the program of a replica and its arguments; the node finds an engine of Orrery's own
/// beside its agent.
[[nodiscard]] std::vector<std::string> engine_command(const RevisionSpec& revision);

}  // namespace orrery
