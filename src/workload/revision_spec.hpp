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
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"

namespace orrery {

/// The inference engines that Orrery starts as replicas.
enum class EngineName : std::uint8_t {
  kOrrery,    ///< orrery-serve
  kVllm,      ///< vllm serve
  kSglang,    ///< python3 -m sglang.launch_server
  kTrtllm,    ///< trtllm-serve of TensorRT-LLM
  kLlamacpp,  ///< llama-server of llama.cpp
};

inline constexpr std::size_t kEngineNames = 5;

inline std::array<EnumWord<EngineName>, kEngineNames> enum_words(EngineName) {
  return {{{"orrery", EngineName::kOrrery},
           {"vllm", EngineName::kVllm},
           {"sglang", EngineName::kSglang},
           {"trtllm", EngineName::kTrtllm},
           {"llamacpp", EngineName::kLlamacpp}}};
}

/// What an instance computes of each request.
enum class EnginePart : std::uint8_t { kWhole, kPrompts, kAnswers };

inline std::array<EnumWord<EnginePart>, 3> enum_words(EnginePart) {
  return {{{"both", EnginePart::kWhole},
           {"prefill", EnginePart::kPrompts},
           {"decode", EnginePart::kAnswers}}};
}

struct EngineSpec {
  EngineName name = EngineName::kOrrery;
  std::string program;                 ///< path of it on nodes; empty: found by its name in PATH
  std::vector<std::string> arguments;  ///< appended to those that follow from the revision
  std::vector<std::pair<std::string, std::string>> environment;  ///< in the order written
  SourcePosition where;
};

template <class Visitor, SameStruct<EngineSpec> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.sole("name", e.name);
  visitor.optional("program", e.program);
  visitor.optional("arguments", e.arguments);
  visitor.optional("environment", e.environment);
}

struct RevisionSpec {
  std::string id = "r1";
  std::string model;  ///< the name that clients ask for
  /// Absolute path on nodes: a checkpoint of orrery-train for its engine, a file in GGUF for
  /// llama.cpp, a directory of a model hub's form for the others.
  std::string artifact;
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

/// Returns the program of a replica of that duty and its arguments; the node finds one of Orrery's
/// own beside its agent. Inference engines of others run under orrery-engine, which reports for
/// them.
[[nodiscard]] std::vector<std::string> engine_command(const RevisionSpec& revision,
                                                      EnginePart duty);

}  // namespace orrery
