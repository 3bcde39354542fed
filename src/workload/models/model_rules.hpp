// workload/models/model_rules.hpp - what a Hugging Face model_type implies and its config.json
// leaves out: norms, biases, tying, and the values of the configuration class that a file may omit.
//
// Facts follow the public implementations of the architectures (the transformers library and the
// makers' own code). Constant tables; look-ups are linear in their length.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "workload/models/model.hpp"

namespace orrery {

/// One row a model_type; the defaults are Llama's.
struct ModelRules {
  std::string_view type;
  bool tied = false;
  std::int64_t norm_vectors = 1;
  std::int64_t norms = 2;
  bool gated = true;
  bool qkv_bias = false;
  bool output_bias = false;
  bool mlp_bias = false;
  QueryKeyNorm query_key_norm = QueryKeyNorm::kNone;
  /// Rows of a learned position table beyond the positions; none: no table.
  std::optional<std::int64_t> position_rows_extra = std::nullopt;
  std::int64_t embedding_norms = 0;
  bool final_norm = true;
  bool causal = true;
  bool head_bias = false;
  bool routing_bias = false;
  bool sinks = false;
  bool shared_gate = false;
};

/// nullptr for an unknown type.
[[nodiscard]] const ModelRules* find_model_rules(std::string_view type);

/// The rules with which an unknown type is counted.
[[nodiscard]] const ModelRules& llama_rules();

/// Whether a configuration stands alone or inside another. Libraries write a stand-alone one out in
/// full, so a size missing there is a mistake; a nested one leaves out what its class defaults say.
enum class Nesting { kAlone, kNested };

/// The value that the configuration class of `type` has for an absent key.
[[nodiscard]] std::optional<std::int64_t> class_default(std::string_view type, std::string_view key,
                                                        Nesting nesting);

}  // namespace orrery
