#include "workload/engine_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

/// Options that set how many requests run at once.
constexpr std::array<std::pair<EngineName, std::string_view>, 7> kSlotOptions = {
    {{EngineName::kOrrery, "--slots"},
     {EngineName::kVllm, "--max-num-seqs"},
     {EngineName::kSglang, "--max-running-requests"},
     {EngineName::kTrtllm, "--max-batch-size"},
     {EngineName::kLlamacpp, "-np"},
     {EngineName::kLlamacpp, "--parallel"},
     {EngineName::kLlamacpp, "--n-parallel"}}};

/// Words of a command, option by option.
class CommandWords {
 public:
  explicit CommandWords(std::vector<std::string> words) { command_.words = std::move(words); }

  void option(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    command_.words.emplace_back(name);
    command_.words.push_back(value);
  }
  void number(std::string_view name, std::uint64_t value, std::uint64_t otherwise = 0) {
    if (value != otherwise) option(name, std::to_string(value));
  }
  void word(std::string text) { command_.words.push_back(std::move(text)); }
  void flag(std::string_view name) { word(std::string(name)); }
  void note(std::string text) { command_.notes.push_back(std::move(text)); }
  void config(std::string text) { command_.config = std::move(text); }
  void variable(std::string name, std::string value) {
    command_.environment.emplace_back(std::move(name), std::move(value));
  }
  void follower(std::string word) { command_.followers.push_back(std::move(word)); }

  EngineCommand take(const std::vector<std::string>& arguments) {
    command_.words.insert(command_.words.end(), arguments.begin(), arguments.end());
    return std::move(command_);
  }

 private:
  EngineCommand command_;
};

tl::unexpected<Error> cannot(std::string_view program, const std::string& what) {
  return infeasible(fmt::format("{} cannot be told {}", program, what));
}

std::string name_of(const EngineLaunch& launch, std::string_view own) {
  return launch.program.empty() ? std::string(own) : launch.program;
}

void add_place(CommandWords& words, const EngineLaunch& launch) {
  const bool v6 = launch.host.starts_with('[');
  words.option("--host", v6 ? launch.host.substr(1, launch.host.size() - 2) : launch.host);
  words.number("--port", launch.port);
}

/// The formats that an engine of PyTorch casts or quantises the weights to when it loads them.
/// Other formats must be those of the checkpoint.
void add_weights(CommandWords& words, NumberFormat format) {
  switch (format) {
    case NumberFormat::kBf16:
      return words.option("--dtype", "bfloat16");
    case NumberFormat::kFp16:
      return words.option("--dtype", "float16");
    case NumberFormat::kFp32:
      return words.option("--dtype", "float32");
    case NumberFormat::kFp8:
      return words.option("--quantization", "fp8");
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
    case NumberFormat::kTf32:
    case NumberFormat::kFp6:
    case NumberFormat::kFp4:
    case NumberFormat::kInt8:
    case NumberFormat::kInt4:
      words.note(
          fmt::format("The weights are in {}: a checkpoint in that format, which the engine "
                      "recognises itself.",
                      word_of(format)));
  }
}

bool is_wide(NumberFormat format) {
  return format == NumberFormat::kBf16 || format == NumberFormat::kFp16 ||
         format == NumberFormat::kFp32;
}

/// Attention groups each lie within a node, or the only one spans them all.
Status add_vllm_nodes(CommandWords& words, const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  const EngineNodes& nodes = launch.nodes;
  if (nodes.count <= 1) return {};
  words.follower("--headless");
  if (shape.data == 1) {
    words.number("--nnodes", nodes.count);
    words.option("--node-rank", nodes.rank);
    words.option("--master-addr", nodes.first);
    return {};
  }
  if (shape.pipeline > 1) {
    return cannot("vllm serve", "to have stages of several attention groups on nodes of their own");
  }
  if (shape.data % nodes.count != 0) {
    return cannot("vllm serve", fmt::format("to spread {} attention groups over {} nodes",
                                            shape.data, nodes.count));
  }
  words.number("--data-parallel-size-local", shape.data / nodes.count);
  words.option("--data-parallel-address", nodes.first);
  words.option("--data-parallel-start-rank", nodes.first_group);
  return {};
}

/// Requests say what the connector does: one that answers computes prompts of its own, too.
void add_vllm_part(CommandWords& words, const EngineLaunch& launch) {
  if (launch.part == EnginePart::kWhole) return;
  words.option("--kv-transfer-config", R"({"kv_connector":"NixlConnector","kv_role":"kv_both"})");
  words.variable("VLLM_NIXL_SIDE_CHANNEL_HOST", launch.own_host);
  if (launch.own_port > 0) {
    words.variable("VLLM_NIXL_SIDE_CHANNEL_PORT", std::to_string(launch.own_port));
  }
}

Result<EngineCommand> vllm_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  CommandWords words({name_of(launch, "vllm"), "serve", launch.artifact});
  words.option("--served-model-name", launch.model);
  add_place(words, launch);
  words.number("--tensor-parallel-size", shape.tensor, 1);
  words.number("--pipeline-parallel-size", shape.pipeline, 1);
  words.number("--data-parallel-size", shape.data, 1);
  if (Status added = add_vllm_nodes(words, launch); !added) return forward_error(added);
  if (shape.expert > 1) {
    if (shape.expert != shape.tensor * shape.data) {
      return cannot("vllm serve", fmt::format("to deal the experts to {} of {} devices",
                                              shape.expert, shape.tensor * shape.data));
    }
    words.flag("--enable-expert-parallel");
  }
  words.number("--max-model-len", shape.context);
  words.number("--max-num-seqs", shape.sequences);
  if (shape.weights) add_weights(words, *shape.weights);
  if (shape.cache && *shape.cache == NumberFormat::kFp8) {
    words.option("--kv-cache-dtype", "fp8");
  } else if (shape.cache && !is_wide(*shape.cache)) {
    return cannot("vllm serve", fmt::format("a KV cache in {}", word_of(*shape.cache)));
  }
  add_vllm_part(words, launch);
  return words.take(launch.arguments);
}

Result<EngineCommand> sglang_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  CommandWords words(
      {name_of(launch, "python3"), "-m", "sglang.launch_server", "--model-path", launch.artifact});
  words.option("--served-model-name", launch.model);
  add_place(words, launch);
  words.flag("--enable-metrics");
  // With attention in groups, the size of tensor parallelism counts all devices of a stage.
  words.number("--tensor-parallel-size", std::uint64_t{shape.tensor} * shape.data, 1);
  words.number("--pipeline-parallel-size", shape.pipeline, 1);
  if (shape.data > 1) {
    words.number("--data-parallel-size", shape.data);
    words.flag("--enable-dp-attention");
  }
  words.number("--expert-parallel-size", shape.expert, 1);
  if (launch.nodes.count > 1) {
    words.number("--nnodes", launch.nodes.count);
    words.option("--node-rank", launch.nodes.rank);
    words.option("--dist-init-addr", launch.nodes.first + ":5000");
  }
  words.number("--context-length", shape.context);
  // The limit is of all groups together.
  words.number("--max-running-requests", shape.sequences * shape.data);
  if (shape.weights) add_weights(words, *shape.weights);
  if (shape.cache && *shape.cache == NumberFormat::kFp8) {
    words.option("--kv-cache-dtype", "fp8_e4m3");
  } else if (shape.cache && !is_wide(*shape.cache)) {
    return cannot("sglang.launch_server", fmt::format("a KV cache in {}", word_of(*shape.cache)));
  }
  if (launch.part != EnginePart::kWhole) {
    words.option("--disaggregation-mode",
                 launch.part == EnginePart::kPrompts ? "prefill" : "decode");
    words.option("--disaggregation-transfer-backend", "nixl");
  }
  return words.take(launch.arguments);
}

/// Over several nodes, Slurm starts a process for each device.
CommandWords trtllm_program(const EngineLaunch& launch) {
  const std::string program = name_of(launch, "trtllm-serve");
  if (launch.nodes.count <= 1) return CommandWords({program, launch.artifact});
  const EngineShape& shape = launch.shape;
  const std::uint32_t each = shape.tensor * shape.pipeline * shape.data / launch.nodes.count;
  CommandWords words({"srun", "-N", std::to_string(launch.nodes.count)});
  words.number("--ntasks-per-node", each);
  words.option("--mpi", "pmix");
  words.word("trtllm-llmapi-launch");
  words.word(program);
  words.word(launch.artifact);
  words.note("The working directory is one that all nodes share.");
  return words;
}

Result<EngineCommand> trtllm_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  CommandWords words = trtllm_program(launch);
  add_place(words, launch);
  words.number("--tensor_parallel_size", std::uint64_t{shape.tensor} * shape.data, 1);
  words.number("--pipeline_parallel_size", shape.pipeline, 1);
  words.number("--moe_expert_parallel_size", shape.expert, 1);
  words.number("--max_seq_len", shape.context);
  words.number("--max_batch_size", shape.sequences);
  // Its figures in Prometheus' form need both.
  std::string config = "return_perf_metrics: true\nenable_iter_perf_stats: true\n";
  if (shape.data > 1) config += "enable_attention_dp: true\n";
  if (shape.cache && *shape.cache == NumberFormat::kFp8) {
    config += "kv_cache_config:\n  dtype: fp8\n";
  } else if (shape.cache && !is_wide(*shape.cache)) {
    return cannot("trtllm-serve", fmt::format("a KV cache in {}", word_of(*shape.cache)));
  }
  if (shape.weights && !is_wide(*shape.weights)) {
    words.note(
        fmt::format("The weights are in {}: a checkpoint in that format, which the engine "
                    "recognises itself.",
                    word_of(*shape.weights)));
  }
  if (launch.part == EnginePart::kPrompts) config += "disable_overlap_scheduler: true\n";
  if (launch.part != EnginePart::kWhole) {
    config += fmt::format(
        "cache_transceiver_config:\n  backend: DEFAULT\n{}",
        shape.context > 0 ? fmt::format("  max_tokens_in_buffer: {}\n", shape.context) : "");
  }
  const auto is_own = [](const std::string& word) {
    return word.starts_with("--config") || word.starts_with("--extra_llm_api_options");
  };
  if (std::ranges::none_of(launch.arguments, is_own)) {
    words.option("--config", std::string(kEngineConfigFile));
    words.config(std::move(config));
  }
  return words.take(launch.arguments);
}

Result<EngineCommand> llamacpp_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  if (shape.data > 1 || shape.expert > 1) {
    return cannot("llama-server", "to compute attention in groups or to deal out experts");
  }
  if (launch.nodes.count > 1) return cannot("llama-server", "to compute on several nodes");
  if (launch.part != EnginePart::kWhole) return cannot("llama-server", "to hand prompts over");
  if (shape.tensor > 1 && shape.pipeline > 1) {
    return cannot("llama-server", "to divide layers and to have stages at once");
  }
  CommandWords words({name_of(launch, "llama-server"), "--model", launch.artifact});
  words.option("--alias", launch.model);
  add_place(words, launch);
  words.flag("--metrics");
  if (shape.tensor > 1) words.option("--split-mode", "row");
  if (shape.pipeline > 1) words.option("--split-mode", "layer");
  words.number("--parallel", shape.sequences);
  // The context is that of all slots together.
  words.number("--ctx-size", shape.context * std::max<std::uint64_t>(1, shape.sequences));
  if (shape.cache && !is_wide(*shape.cache)) {
    if (*shape.cache != NumberFormat::kInt8 && *shape.cache != NumberFormat::kFp8) {
      return cannot("llama-server", fmt::format("a KV cache in {}", word_of(*shape.cache)));
    }
    words.option("--cache-type-k", "q8_0");
    words.option("--cache-type-v", "q8_0");
  }
  if (shape.weights) {
    words.note(fmt::format("The weights are in the format of the GGUF file; the plan has {}.",
                           word_of(*shape.weights)));
  }
  return words.take(launch.arguments);
}

/// "--max_num_seqs" as "--max-num-seqs": several engines take both.
std::string with_hyphens(std::string_view option) {
  std::string text(option);
  std::ranges::replace(text, '_', '-');
  return text;
}

std::optional<std::uint32_t> whole_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size() || number == 0) return std::nullopt;
  return number;
}

/// Returns the value of the option for which `wanted` answers true, the last of several; none: it
/// is not given, or has no value.
template <class Wanted>
std::optional<std::string> value_in(std::span<const std::string> arguments, const Wanted& wanted) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    if (!wanted(with_hyphens(std::string_view(word).substr(0, equals)))) continue;
    if (equals < word.size()) {
      value = word.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[i + 1];
    }
  }
  return value;
}

}  // namespace

Result<EngineCommand> engine_launch(const EngineLaunch& launch) {
  switch (launch.engine) {
    case EngineName::kOrrery: {
      CommandWords words({name_of(launch, "orrery-serve"), "--checkpoint", launch.artifact});
      words.option("--model", launch.model);
      words.option("--listen", fmt::format("{}:{}", launch.host, launch.port));
      return words.take(launch.arguments);
    }
    case EngineName::kVllm:
      return vllm_launch(launch);
    case EngineName::kSglang:
      return sglang_launch(launch);
    case EngineName::kTrtllm:
      return trtllm_launch(launch);
    case EngineName::kLlamacpp:
      return llamacpp_launch(launch);
  }
  return EngineCommand{};
}

std::optional<std::uint32_t> slots_in(EngineName engine, std::span<const std::string> arguments) {
  const auto value = value_in(arguments, [engine](const std::string& name) {
    return std::ranges::find(kSlotOptions, std::pair<EngineName, std::string_view>(engine, name)) !=
           kSlotOptions.end();
  });
  return value ? whole_number(*value) : std::nullopt;
}

std::optional<std::uint32_t> kv_events_port_in(std::span<const std::string> arguments) {
  const auto value =
      value_in(arguments, [](const std::string& name) { return name == "--kv-events-config"; });
  const Json config = value ? Json::parse(*value, nullptr, false) : Json();
  if (!config.is_object() || config.value("enable_kv_cache_events", Json()) != true) {
    return std::nullopt;
  }
  // Where none is named vLLM takes this one.
  const Json endpoint = config.value("endpoint", Json("tcp://*:5557"));
  if (!endpoint.is_string()) return std::nullopt;
  const std::string text = endpoint.get<std::string>();
  const std::optional<std::uint32_t> port = whole_number(text.substr(text.rfind(':') + 1));
  return text.starts_with("tcp://") && port && *port <= 65'535 ? port : std::nullopt;
}

}  // namespace orrery
