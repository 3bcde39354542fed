#include "workload/engine_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

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
  void flag(std::string_view name) { command_.words.emplace_back(name); }
  void note(std::string text) { command_.notes.push_back(std::move(text)); }
  void config(std::string text) { command_.config = std::move(text); }

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

Result<EngineCommand> vllm_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  CommandWords words({name_of(launch, "vllm"), "serve", launch.artifact});
  words.option("--served-model-name", launch.model);
  add_place(words, launch);
  words.number("--tensor-parallel-size", shape.tensor, 1);
  words.number("--pipeline-parallel-size", shape.pipeline, 1);
  words.number("--data-parallel-size", shape.data, 1);
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
  words.number("--context-length", shape.context);
  // The limit is of all groups together.
  words.number("--max-running-requests", shape.sequences * shape.data);
  if (shape.weights) add_weights(words, *shape.weights);
  if (shape.cache && *shape.cache == NumberFormat::kFp8) {
    words.option("--kv-cache-dtype", "fp8_e4m3");
  } else if (shape.cache && !is_wide(*shape.cache)) {
    return cannot("sglang.launch_server", fmt::format("a KV cache in {}", word_of(*shape.cache)));
  }
  return words.take(launch.arguments);
}

Result<EngineCommand> trtllm_launch(const EngineLaunch& launch) {
  const EngineShape& shape = launch.shape;
  CommandWords words({name_of(launch, "trtllm-serve"), launch.artifact});
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
  std::optional<std::uint32_t> slots;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string name = with_hyphens(std::string_view(word).substr(0, equals));
    if (std::ranges::find(kSlotOptions, std::pair<EngineName, std::string_view>(engine, name)) ==
        kSlotOptions.end()) {
      continue;
    }
    // The last of several counts.
    if (equals < word.size()) {
      slots = whole_number(std::string_view(word).substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      slots = whole_number(arguments[i + 1]);
    }
  }
  return slots;
}

}  // namespace orrery
