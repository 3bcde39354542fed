// workload/engine_flags.hpp - an inference engine of others, and what it is to do, as the command
// that starts it: for replicas (adapter/engine_replica.hpp) and for plans
// (planner/launch/serving_flags.hpp).
//
// Options, choices and defaults are those of vLLM 0.32.0, SGLang at commit 004813e, TensorRT-LLM at
// commit 00209af and the llama.cpp that llama-cpp-python 0.3.36 holds; tests/launchers lists them,
// and every command is checked against it. Several nodes: vLLM's docs/serving/
// parallelism_scaling.md (096bd6a) and data_parallel_deployment.md (01e4fce), SGLang's
// docs/advanced_features/server_arguments.md, TensorRT-LLM's docs/source/commands/trtllm-serve/
// trtllm-serve.rst (0434755). Prompts apart: vLLM's docs/features/nixl_connector_usage.md
// (026c83f), SGLang's docs/advanced_features/pd_disaggregation.md (08edc50), TensorRT-LLM's
// docs/source/features/disagg-serving.md (0434b98). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "hardware/number_format.hpp"
#include "workload/revision_spec.hpp"

namespace orrery {

/// How an instance of an engine computes. Zero or none: the engine's own choice.
struct EngineShape {
  std::uint32_t tensor = 1;     ///< devices each layer is divided over
  std::uint32_t pipeline = 1;   ///< stages
  std::uint32_t data = 1;       ///< groups with their own sequences that share the experts
  std::uint32_t expert = 1;     ///< groups of devices the experts are dealt to
  std::uint64_t context = 0;    ///< tokens of a sequence, prompt and answer
  std::uint64_t sequences = 0;  ///< that run at once, in each group
  std::optional<NumberFormat> weights;
  std::optional<NumberFormat> cache;
};

/// The nodes of one instance, for the command on one of them.
struct EngineNodes {
  std::uint32_t count = 1;
  std::string rank;         ///< of this node, from 0
  std::string first;        ///< address of the node 0
  std::string first_group;  ///< rank x groups of a node: number of its first one
};

struct EngineLaunch {
  EngineName engine = EngineName::kVllm;
  std::string program;   ///< empty: by its name
  std::string artifact;  ///< path, or name on a model hub
  std::string model;     ///< the name that clients ask for; empty: the engine's choice
  std::string host;      ///< as in a URL, "[::1]"; empty: the engine's choice
  std::uint16_t port = 0;
  EngineShape shape;
  EngineNodes nodes;
  EnginePart part = EnginePart::kWhole;
  std::string own_host;                ///< where instances that continue prompts reach this one
  std::uint16_t own_port = 0;          ///< the same; 0: the engine's choice
  std::vector<std::string> arguments;  ///< of the user, appended
};

/// A command, and what stands beside it.
struct EngineCommand {
  std::vector<std::string> words;
  /// Text of the file kEngineConfigFile, which `words` name; empty: there is none.
  std::string config;
  std::vector<std::string> followers;  ///< words that the nodes after the first add
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> notes;  ///< what the options do not say, a sentence each
};

/// Metrics are turned on. Errors (kInfeasible): a shape that the engine has no option for, naming
/// it. Precondition: the engine is not kOrrery or has no shape of its own.
[[nodiscard]] Result<EngineCommand> engine_launch(const EngineLaunch& launch);

/// Name of the file with the text of EngineCommand::config.
inline constexpr std::string_view kEngineConfigFile = "orrery-engine.yaml";

/// Returns how many requests run at once by the user's arguments ("--max-num-seqs 8",
/// "--max-num-seqs=8"); none: they do not say.
[[nodiscard]] std::optional<std::uint32_t> slots_in(EngineName engine,
                                                    std::span<const std::string> arguments);

/// Returns the port at which vLLM publishes its KV events by the user's --kv-events-config (JSON);
/// none: it publishes none, or not by TCP.
[[nodiscard]] std::optional<std::uint32_t> kv_events_port_in(
    std::span<const std::string> arguments);

}  // namespace orrery
