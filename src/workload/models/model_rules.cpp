#include "workload/models/model_rules.hpp"

#include <algorithm>
#include <array>

namespace orrery {
namespace {

// GPT-2 and its kin share a tied head, norms with shift, two matrices a feed-forward part and
// biases everywhere.
constexpr ModelRules gpt_rules(std::string_view type) {
  return {.type = type,
          .tied = true,
          .norm_vectors = 2,
          .gated = false,
          .qkv_bias = true,
          .output_bias = true,
          .mlp_bias = true};
}

constexpr ModelRules gpt2_rules(std::string_view type, std::int64_t position_rows_extra) {
  ModelRules rules = gpt_rules(type);
  rules.position_rows_extra = position_rows_extra;
  return rules;
}

constexpr ModelRules bert_rules() {
  ModelRules rules = gpt2_rules("bert", 0);
  rules.causal = false;
  rules.embedding_norms = 1;
  rules.final_norm = false;
  return rules;
}

constexpr ModelRules bloom_rules() {
  ModelRules rules = gpt_rules("bloom");
  rules.embedding_norms = 1;
  return rules;
}

constexpr ModelRules glm130b_rules() {
  ModelRules rules = gpt_rules("glm130b");
  rules.gated = true;
  return rules;
}

constexpr QueryKeyNorm kPerHead = QueryKeyNorm::kPerHead;

constexpr auto kRules = std::to_array<ModelRules>({
    {.type = "llama"},
    gpt2_rules("gpt2", 0),
    gpt2_rules("opt", 2),
    bert_rules(),
    bloom_rules(),
    glm130b_rules(),
    {.type = "mpt", .tied = true, .gated = false},
    {.type = "gptj",
     .norm_vectors = 2,
     .norms = 1,
     .gated = false,
     .mlp_bias = true,
     .head_bias = true},
    {.type = "falcon", .tied = true, .norm_vectors = 2, .gated = false},
    {.type = "palm", .tied = true, .norms = 1},
    {.type = "mistral"},
    {.type = "mixtral"},
    {.type = "qwen2", .qkv_bias = true},
    {.type = "qwen2_moe", .qkv_bias = true, .shared_gate = true},
    {.type = "qwen3", .query_key_norm = kPerHead},
    {.type = "qwen3_moe", .query_key_norm = kPerHead},
    {.type = "qwen3_5_moe_text", .query_key_norm = kPerHead, .shared_gate = true},
    {.type = "gemma2", .tied = true, .norms = 4},
    {.type = "gemma3_text", .tied = true, .norms = 4, .query_key_norm = kPerHead},
    {.type = "gemma4_text", .tied = true, .norms = 4, .query_key_norm = kPerHead},
    {.type = "gpt_oss",
     .qkv_bias = true,
     .output_bias = true,
     .mlp_bias = true,
     .routing_bias = true,
     .sinks = true},
    {.type = "llama4_text"},
    {.type = "minimax_m2", .query_key_norm = QueryKeyNorm::kAllHeads, .routing_bias = true},
    {.type = "deepseek_v2"},
    {.type = "deepseek_v3", .routing_bias = true},
    {.type = "kimi_k2", .routing_bias = true},
    {.type = "glm_moe_dsa", .routing_bias = true},
    {.type = "nemotron_h", .norms = 1, .gated = false, .routing_bias = true},
});

enum class Holds { kAlways, kNestedOnly };

struct ClassDefault {
  std::string_view type;
  std::string_view key;
  std::int64_t value;
  Holds holds = Holds::kAlways;
};

constexpr auto kDefaults = std::to_array<ClassDefault>({
    {"gemma2", "head_dim", 256},
    {"gemma2", "sliding_window", 4096},
    {"gemma2", "sliding_window_pattern", 2},
    {"gemma3_text", "vocab_size", 262208, Holds::kNestedOnly},
    {"gemma3_text", "num_attention_heads", 8, Holds::kNestedOnly},
    {"gemma3_text", "num_key_value_heads", 4, Holds::kNestedOnly},
    {"gemma3_text", "num_hidden_layers", 26, Holds::kNestedOnly},
    {"gemma3_text", "hidden_size", 2304, Holds::kNestedOnly},
    {"gemma3_text", "intermediate_size", 9216, Holds::kNestedOnly},
    {"gemma3_text", "head_dim", 256},
    {"gemma3_text", "sliding_window", 4096},
    {"gemma3_text", "sliding_window_pattern", 6},
    {"gemma4_text", "head_dim", 256},
    {"gemma4_text", "sliding_window", 512},
    {"gemma4_text", "sliding_window_pattern", 6},
    {"llama", "vocab_size", 32000, Holds::kNestedOnly},
    {"llama", "hidden_size", 4096, Holds::kNestedOnly},
    {"llama", "intermediate_size", 11008, Holds::kNestedOnly},
    {"llama", "num_hidden_layers", 32, Holds::kNestedOnly},
    {"llama", "num_attention_heads", 32, Holds::kNestedOnly},
    {"llama4_text", "attention_chunk_size", 8192},
    {"mistral", "sliding_window", 4096},
    {"gpt_oss", "sliding_window", 128},
    {"gpt_oss", "sliding_window_pattern", 2},
    {"bert", "type_vocab_size", 2},
    {"glm_moe_dsa", "index_n_heads", 32},
    {"glm_moe_dsa", "index_head_dim", 128},
    {"glm_moe_dsa", "index_topk", 2048},
});

}  // namespace

const ModelRules* find_model_rules(std::string_view type) {
  const auto found = std::find_if(kRules.begin(), kRules.end(),
                                  [&](const ModelRules& rules) { return rules.type == type; });
  return found == kRules.end() ? nullptr : &*found;
}

const ModelRules& llama_rules() { return kRules.front(); }

std::optional<std::int64_t> class_default(std::string_view type, std::string_view key,
                                          Nesting nesting) {
  for (const ClassDefault& row : kDefaults) {
    if (row.type != type || row.key != key) continue;
    if (row.holds == Holds::kNestedOnly && nesting == Nesting::kAlone) return std::nullopt;
    return row.value;
  }
  return std::nullopt;
}

}  // namespace orrery
