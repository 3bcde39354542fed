#include "perf/runs/run_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text/utf8.hpp"
#include "perf/runs/run_words.hpp"

namespace orrery {
namespace {

void warn_unknown(std::string_view word, std::string_view what, Warnings& warnings) {
  warnings.push_back(fmt::format("\"{}\" in the {} is not understood", printable(word, 40), what));
}

// ------------------------------------------------------------- number formats
struct FormatWord {
  std::string_view word;
  NumberFormat format;
  Scaling scaling = Scaling::kNone;  ///< kNone: not implied by the word
};

constexpr auto kFormatWords = std::to_array<FormatWord>({
    {"bf16", NumberFormat::kBf16},
    {"bfloat16", NumberFormat::kBf16},
    {"fp16", NumberFormat::kFp16},
    {"float16", NumberFormat::kFp16},
    {"half", NumberFormat::kFp16},
    {"fp32", NumberFormat::kFp32},
    {"float32", NumberFormat::kFp32},
    {"float", NumberFormat::kFp32},
    {"tf32", NumberFormat::kTf32},
    {"fp64", NumberFormat::kFp64},
    {"fp8", NumberFormat::kFp8},
    {"float8", NumberFormat::kFp8},
    {"mxfp8", NumberFormat::kFp8, Scaling::kBlock},
    {"fp6", NumberFormat::kFp6},
    {"mxfp6", NumberFormat::kFp6, Scaling::kBlock},
    {"fp4", NumberFormat::kFp4},
    {"mxfp4", NumberFormat::kFp4, Scaling::kBlock},
    {"nvfp4", NumberFormat::kFp4, Scaling::kBlock},
    {"int8", NumberFormat::kInt8},
    {"int4", NumberFormat::kInt4},
});

const FormatWord* find_format(std::string_view word) {
  const auto* found = std::find_if(kFormatWords.begin(), kFormatWords.end(),
                                   [&](const FormatWord& known) { return known.word == word; });
  return found == kFormatWords.end() ? nullptr : found;
}

Scaling usual_scaling(NumberFormat format) {
  switch (format) {
    case NumberFormat::kFp8:
      return Scaling::kTensor;
    case NumberFormat::kInt8:
    case NumberFormat::kInt4:
      return Scaling::kRow;
    case NumberFormat::kFp6:
    case NumberFormat::kFp4:
      return Scaling::kBlock;
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
      break;
  }
  return Scaling::kNone;
}

// ------------------------------------------------------------- precision of training
// What a format before it is the format of, when not of the matrix products.
bool is_state_word(std::string_view word) {
  return is_one_of(word, {"opt", "optim", "optimizer", "grad", "grads", "gradient", "gradients",
                          "accumulation", "accum", "master", "reduce", "reduction", "state",
                          "states", "params", "parameters", "weights", "allreduce"});
}

bool is_precision_noise(std::string_view word) {
  return is_state_word(word) ||
         is_one_of(word, {"amp",    "mixed", "precision",   "autocast", "full",   "training",
                          "with",   "and",   "or",          "per",      "see",    "submission",
                          "likely", "te",    "torch",       "pytorch",  "recipe", "scaling",
                          "scaled", "e4m3",  "e5m2",        "hybrid",   "wise",   "o2",
                          "in",     "the",   "transformer", "engine"});
}

Scaling scaling_word(std::string_view word) {
  if (is_one_of(word, {"cs", "ds", "tensorwise", "tensor", "pertensor", "delayed", "current"})) {
    return Scaling::kTensor;
  }
  if (is_one_of(word, {"row", "rowwise", "channelwise", "channel", "aqt"})) return Scaling::kRow;
  if (is_one_of(word, {"mx", "block", "blockwise", "subchannel", "sc", "groupwise", "group"})) {
    return Scaling::kBlock;
  }
  return Scaling::kNone;
}

Execution execution_word(std::string_view word) {
  if (is_one_of(word, {"compile", "compiled", "inductor", "jit", "xla"})) {
    return Execution::kCompiled;
  }
  return word == "eager" ? Execution::kEager : Execution::kUnknown;
}

class PrecisionReader {
 public:
  PrecisionReader(std::string_view text, Warnings& warnings)
      : text_(text), words_(split_words(text)), warnings_(warnings) {}

  TrainingPrecision read() {
    for (std::size_t at = 0; at < words_.size(); ++at) read_word_at(at);
    if (!format_) {
      warnings_.push_back(
          fmt::format("the precision \"{}\" names no format; bf16 is taken", printable(text_, 60)));
      precision_.format = NumberFormat::kBf16;
      return precision_;
    }
    precision_.format = *format_;
    const Scaling usual = usual_scaling(*format_);
    if (usual == Scaling::kNone) {
      scaling_ = Scaling::kNone;
    } else if (scaling_ == Scaling::kNone) {
      scaling_ = usual;
    }
    precision_.scaling = scaling_;
    return precision_;
  }

 private:
  void read_word_at(std::size_t at) {
    const std::string& word = words_[at];
    if (const FormatWord* format = find_format(word); format != nullptr) {
      const bool state = at + 1 < words_.size() && is_state_word(words_[at + 1]);
      if (!state) take_format(*format);
    } else if (const Scaling scaling = scaling_word(word); scaling != Scaling::kNone) {
      // "FP8-CS (FP8-MX)": the first one belongs to the format that counts.
      if (scaling_ == Scaling::kNone) scaling_ = scaling;
    } else if (const Execution execution = execution_word(word); execution != Execution::kUnknown) {
      precision_.execution = execution;
    } else if (word == "likely" || word == "probably") {
      warnings_.push_back(
          fmt::format("the precision \"{}\" is a guess of its source", printable(text_, 60)));
    } else if (!is_precision_noise(word)) {
      warn_unknown(word, "precision", warnings_);
    }
  }

  void take_format(const FormatWord& format) {
    if (!format_) {
      format_ = format.format;
      scaling_ = format.scaling;
    } else {
      const bool same = format.format == *format_;
      warnings_.push_back(fmt::format("the precision \"{}\" names {}; the first is taken",
                                      printable(text_, 60),
                                      same ? "two kinds of scales" : "two formats"));
    }
  }

  std::string_view text_;
  std::vector<std::string> words_;
  Warnings& warnings_;
  std::optional<NumberFormat> format_;
  Scaling scaling_ = Scaling::kNone;
  TrainingPrecision precision_;
};

// ------------------------------------------------------------- recomputation
/// A policy of MaxText, which recomputes whole layers but for some outputs.
struct RematPolicy {
  std::string_view words;
  double kept;
  Offload offload = Offload::kNone;
};

// Shares of the operations of a layer with grouped queries (keys and values an eighth each) and a
// gated feed-forward part of 3.5 hidden sizes: queries, keys and values 1.25, output 1, the way
// into the feed-forward part 7, out of it 3.5, of 12.75 in all.
constexpr double kLayer = 12.75;
constexpr double kQueryKeyValue = 1.25 / kLayer;
constexpr double kOut = 1 / kLayer;
constexpr double kDown = 3.5 / kLayer;

// Longer names before their beginnings.
constexpr auto kPolicies = std::to_array<RematPolicy>({
    {"minimal offloaded", 1, Offload::kActivations},
    {"minimal", 1},
    {"qkv proj offloaded", kQueryKeyValue, Offload::kActivations},
    {"save qkv proj", kQueryKeyValue},
    {"save out proj", kOut},
    {"save dot with context except mlpwi", kQueryKeyValue + kOut + kDown},
    {"save dot except mlpwi", kQueryKeyValue + kOut + kDown},
    {"save dot with context except mlp", kQueryKeyValue + kOut},
    {"save dot except mlp", kQueryKeyValue + kOut},
});

const RematPolicy* find_policy(std::string_view spaced) {
  const auto* found =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const RematPolicy& policy) {
        if (!spaced.starts_with(policy.words)) return false;
        return spaced.size() == policy.words.size() || spaced[policy.words.size()] == ' ';
      });
  return found == kPolicies.end() ? nullptr : found;
}

std::optional<Recompute> recompute_word(std::string_view word) {
  if (is_one_of(word, {"none", "no", "off", "false", "0", "disabled", "nothing"})) {
    return Recompute::kNone;
  }
  if (is_one_of(word, {"full", "yes", "on", "true", "all", "uniform", "block", "enabled"})) {
    return Recompute::kFull;
  }
  if (is_one_of(word, {"selective", "sac", "core", "attention", "attn", "partial"})) {
    return Recompute::kSelective;
  }
  return std::nullopt;
}

// The row says that it does not say.
bool says_unstated(const std::vector<std::string>& words) {
  if (words.empty()) return true;
  return is_one_of(words.front(), {"per", "see", "not", "unknown", "unstated", "unspecified", "na",
                                   "n", "tbd", "custom", "default", "auto"});
}

bool is_recompute_noise(std::string_view word) {
  return is_one_of(word, {"attention",   "attn",        "core",
                          "sequence",    "parallel",    "sp",
                          "mlp",         "moe",         "act",
                          "layernorm",   "norm",        "uniform",
                          "block",       "granularity", "method",
                          "activation",  "activations", "checkpointing",
                          "checkpoint",  "recompute",   "recomputation",
                          "remat",       "policy",      "layers",
                          "layer",       "blocks",      "every",
                          "of",          "with",        "context",
                          "flash",       "proj",        "up",
                          "mla",         "to",          "host",
                          "transformer", "full",        "selective",
                          "only",        "modules",     "on",
                          "all",         "per",         "stage",
                          "rank",        "and"});
}

void read_recompute_qualifiers(const std::vector<std::string>& words, StatedRecompute& stated,
                               Warnings& warnings) {
  for (const std::string& word : words) {
    const std::optional<std::uint32_t> number = whole_number(word);
    if (word.starts_with("offload") || word == "cpu") {
      stated.offload = Offload::kActivations;
    } else if (number && stated.mode == Recompute::kFull) {
      stated.layers = *number;
    } else if (!is_recompute_noise(word)) {
      warn_unknown(word, "recomputation", warnings);
    }
  }
}

// ------------------------------------------------------------- versions
// "0.17", "v0.5.12-rocm700", "1.2.0rc6.post2" at the beginning of the text.
std::optional<double> read_version(std::string_view text) {
  if (text.starts_with('v') || text.starts_with('V')) text.remove_prefix(1);
  constexpr std::array<double, 3> kWeights{1, 0.01, 0.0001};
  double version = 0;
  std::size_t parts = 0;
  while (parts < kWeights.size() && !text.empty() && text.front() >= '0' && text.front() <= '9') {
    unsigned part = 0;
    const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (failure != std::errc() || part > 9999) return std::nullopt;
    version += std::min(part, 99U) * kWeights[parts++];
    text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
    if (text.size() < 2 || text.front() != '.' || text[1] < '0' || text[1] > '9') break;
    text.remove_prefix(1);
  }
  if (parts < 2) return std::nullopt;
  constexpr double kCandidate = 0.00005;
  return text.starts_with("rc") ? version - kCandidate : version;
}

/// Versions at the time of a round, from the release notes as recalled: TensorRT-LLM 0.12 (August
/// 2024), 0.17 (February 2025), 1.0 (September 2025); vLLM 0.5.5, 0.7.2, 0.10.0 at the same times.
struct RoundVersion {
  std::string_view family;
  std::string_view round;
  double version;
};

constexpr auto kRoundVersions = std::to_array<RoundVersion>({
    {"tensorrt-llm", "4.1", 0.12},
    {"tensorrt-llm", "5.0", 0.17},
    {"tensorrt-llm", "5.1", 1.00},
    {"vllm", "4.1", 0.0505},
    {"vllm", "5.0", 0.0702},
    {"vllm", "5.1", 0.10},
});

std::optional<double> round_version(std::string_view family, const std::string& spaced) {
  for (const RoundVersion& row : kRoundVersions) {
    if (row.family == family && spaced.find(row.round) != std::string::npos) return row.version;
  }
  return std::nullopt;
}

struct EngineWord {
  std::string_view word;
  std::string_view family;
};

constexpr auto kEngineWords = std::to_array<EngineWord>({
    {"tensorrt", "tensorrt-llm"}, {"trtllm", "tensorrt-llm"},
    {"trt", "tensorrt-llm"},      {"vllm", "vllm"},
    {"sglang", "sglang"},         {"atom", "atom"},
    {"deepspeed", "deepspeed"},   {"neuronx", "neuronx"},
    {"neuron", "neuronx"},        {"optimum", "optimum-habana"},
    {"habana", "optimum-habana"}, {"llmboost", "llmboost"},
    {"lmdeploy", "lmdeploy"},     {"tgi", "tgi"},
    {"jetstream", "jetstream"},   {"deepseek", "deepseek"},
    {"openvino", "openvino"},     {"llama.cpp", "llama.cpp"},
    {"pytorch", "pytorch"},       {"transformers", "transformers"},
});

// The first engine of the text; "PyTorch" counts only when there is no other, because engines name
// their backend.
std::string engine_family(std::string_view text) {
  const std::vector<std::string> words = split_words(text, ".");
  for (const EngineWord& known : kEngineWords) {
    if (std::find(words.begin(), words.end(), known.word) != words.end()) {
      return std::string(known.family);
    }
  }
  return join_words(words, 0, words.size());
}

// A version behind the engine's own name; TensorRT's is not TensorRT-LLM's.
std::optional<double> version_in_engine(std::string_view engine, std::string_view family) {
  if (family == "tensorrt-llm") return std::nullopt;
  const std::size_t space = engine.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  return read_version(engine.substr(space + 1));
}

}  // namespace

TrainingPrecision read_precision_text(std::string_view text, Warnings& warnings) {
  return PrecisionReader(text, warnings).read();
}

StatedRecompute read_recompute_text(std::string_view text, Warnings& warnings) {
  StatedRecompute stated;
  double number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool numeric = failed == std::errc() && end == text.data() + text.size();
  if (numeric && !(number >= 0 && std::floor(number) == number)) {
    warnings.push_back(fmt::format("the recomputation {} is no number of layers", text));
    return stated;
  }
  std::vector<std::string> words = split_words(text);
  const std::string spaced = join_words(words, 0, words.size());
  if (const RematPolicy* policy = find_policy(spaced); policy != nullptr) {
    stated = {
        .mode = Recompute::kFull, .layers = 0, .offload = policy->offload, .kept = policy->kept};
    const std::string_view rest = std::string_view(spaced).substr(policy->words.size());
    read_recompute_qualifiers(split_words(rest), stated, warnings);
    return stated;
  }
  if (says_unstated(words)) return stated;
  stated.mode = recompute_word(words.front());
  if (const auto layers = whole_number(words.front())) {
    stated.mode = Recompute::kFull;
    stated.layers = *layers;
  }
  if (!stated.mode) {
    warnings.push_back(
        fmt::format("the recomputation \"{}\" is not understood", printable(text, 60)));
    return stated;
  }
  words.erase(words.begin());
  read_recompute_qualifiers(words, stated, warnings);
  return stated;
}

std::optional<double> read_release_text(std::string_view text, Warnings& warnings) {
  for (const std::string& word : split_words(text, ".")) {
    const std::optional<NumberPrefix> number = number_prefix(word);
    if (!number) continue;
    // "26.04.01": the number stops at the second dot.
    const std::size_t dot = word.find('.');
    if (dot != 2 && dot != 4) continue;
    const std::uint32_t year = whole_number(word.substr(0, dot)).value_or(0);
    const std::size_t second = std::min(word.find('.', dot + 1), word.size());
    const std::uint32_t month = whole_number(word.substr(dot + 1, second - dot - 1)).value_or(0);
    const double since = static_cast<double>(dot == 4 ? year : 2000 + year) - 2020;
    if (since < 0 || since > 40 || month < 1 || month > 12) continue;
    const std::string third = second < word.size() ? word.substr(second + 1) : "";
    const std::uint32_t patch = std::min<std::uint32_t>(whole_number(third).value_or(0), 29);
    return since + (month - 1) / 12.0 + patch / 360.0;
  }
  warnings.push_back(
      fmt::format("the release \"{}\" names no year and month; the usual one is "
                  "taken",
                  printable(text, 60)));
  return std::nullopt;
}

TrainingTask read_task_text(std::string_view text, Warnings& warnings) {
  const std::vector<std::string> words = split_words(text);
  const auto has = [&](std::initializer_list<std::string_view> list) {
    return std::any_of(words.begin(), words.end(),
                       [&](const std::string& word) { return is_one_of(word, list); });
  };
  if (has({"lora", "qlora", "peft"})) return TrainingTask::kLora;
  if (has({"sft", "fine", "finetune", "finetuning", "tuning"})) return TrainingTask::kFineTune;
  if (!has({"pretrain", "pretraining", "pre", "train", "training"})) {
    warnings.push_back(fmt::format("the task \"{}\" is not understood; pretraining is taken",
                                   printable(text, 60)));
  }
  return TrainingTask::kPretrain;
}

std::optional<NumberFormat> read_format_text(std::string_view text, Warnings& warnings) {
  for (const std::string& word : split_words(text)) {
    if (const FormatWord* format = find_format(word); format != nullptr) return format->format;
  }
  warnings.push_back(
      fmt::format("the number format \"{}\" is not understood", printable(text, 60)));
  return std::nullopt;
}

ServingEngine read_engine_text(std::string_view engine, std::string_view version,
                               Warnings& warnings) {
  ServingEngine read{engine_family(engine), std::nullopt};
  const std::vector<std::string> words = split_words(version, ".");
  const std::string spaced = join_words(words, 0, words.size());
  read.version = version_in_engine(engine, read.family);
  if (read.version || spaced.empty()) return read;
  if (spaced.find("mlperf") != std::string::npos) {
    read.version = round_version(read.family, spaced);
    return read;
  }
  read.version = read_version(version);
  if (!read.version) {
    warnings.push_back(
        fmt::format("the engine version \"{}\" is not understood", printable(version, 60)));
  }
  return read;
}

}  // namespace orrery
