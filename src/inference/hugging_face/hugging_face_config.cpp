#include "inference/hugging_face/hugging_face_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text/utf8.hpp"
#include "inference/formats/rope_scaling.hpp"
#include "inference/hugging_face/json_fields.hpp"

namespace orrery {
namespace {

constexpr JsonFields::Range kWidths{.low = 1, .high = 1 << 20};
constexpr JsonFields::Range kContexts{.low = 1, .high = 1 << 30};
constexpr JsonFields::Range kEpsilons{.low = 0, .high = 1};
constexpr JsonFields::Range kFactors{.low = 1, .high = 1e6};

/// Refuses a flag that is set.
void require_unset(JsonFields& fields, const std::string& key) {
  if (fields.flag(key).value_or(false)) fields.refuse(key, "false: such models are not served");
}

void read_llama3(JsonFields& fields, const RopePairs& pairs, ModelVariant& variant) {
  const Llama3Rope rope{
      .factor = fields.number("factor", kFactors, std::nullopt),
      .low_frequency_factor = fields.number("low_freq_factor", kFactors, std::nullopt),
      .high_frequency_factor = fields.number("high_freq_factor", kFactors, std::nullopt),
      .original_context =
          fields.number("original_max_position_embeddings", kContexts, std::nullopt)};
  if (rope.high_frequency_factor <= rope.low_frequency_factor) {
    fields.refuse("high_freq_factor", "more than the low_freq_factor");
  }
  if (fields.status()) variant.rotary_factors = llama3_rope_factors(pairs, rope);
}

/// Reads "rope_scaling", or what "rope_parameters" has of it.
void read_scaling(JsonFields& fields, const RopePairs& pairs, ModelVariant& variant) {
  const std::string type = fields.text("rope_type", fields.text("type", "default"));
  if (!fields.status() || type == "default") return;
  if (type == "llama3") return read_llama3(fields, pairs, variant);
  if (type == "linear") {
    const double factor = fields.number("factor", kFactors, std::nullopt);
    variant.rotary_factors = linear_rope_factors(pairs, factor);
    return;
  }
  fields.refuse(fields.find("rope_type") == nullptr ? "type" : "rope_type",
                "default, linear or llama3");
}

/// Reads the rotary positions, which newer files have in one object, older ones in two keys.
Status read_rope(JsonFields& fields, DescribedModel& model) {
  TransformerConfig& config = model.config;
  constexpr JsonFields::Range kBases{.low = 1.001, .high = 1e12};
  config.rope_base = fields.number("rope_theta", kBases, TransformerConfig{}.rope_base);
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const nlohmann::json* scaling = fields.find(key);
    if (scaling == nullptr) continue;
    if (!scaling->is_object()) {
      fields.refuse(key, "an object");
      break;
    }
    JsonFields part(*scaling, fmt::format("{}: {}", fields.file(), key));
    config.rope_base = part.number("rope_theta", kBases, config.rope_base);
    read_scaling(part, {.half = config.head_width() / 2, .base = config.rope_base}, model.variant);
    if (!part.status()) return part.status();
  }
  return fields.status();
}

Result<DescribedModel> read_llama(JsonFields& fields) {
  DescribedModel model{.config = {.family = TransformerFamily::kLlama}};
  TransformerConfig& config = model.config;
  config.layers = fields.whole("num_hidden_layers", kWidths, std::nullopt);
  config.width = fields.whole("hidden_size", kWidths, std::nullopt);
  config.heads = fields.whole("num_attention_heads", kWidths, std::nullopt);
  config.kv_heads = fields.whole("num_key_value_heads", kWidths, config.heads);
  config.ffn = fields.whole("intermediate_size", kWidths, std::nullopt);
  config.vocab = fields.whole("vocab_size", kWidths, std::nullopt);
  config.tied_embedding = fields.flag("tie_word_embeddings").value_or(false);
  model.context = fields.whole("max_position_embeddings", kContexts, 2048);
  model.variant.norm_epsilon = static_cast<float>(fields.number("rms_norm_eps", kEpsilons, 1e-6));
  if (fields.text("hidden_act", "silu") != "silu") fields.refuse("hidden_act", "silu");
  require_unset(fields, "attention_bias");
  require_unset(fields, "mlp_bias");
  if (!fields.status()) return forward_error(fields.status());
  const std::int64_t head_width = config.width / config.heads;
  if (fields.whole("head_dim", kWidths, head_width) != head_width) {
    fields.refuse("head_dim",
                  fmt::format("{}, the hidden_size over the num_attention_heads", head_width));
  }
  if (Status rope = read_rope(fields, model); !rope) return forward_error(rope);
  return model;
}

Result<DescribedModel> read_gpt2(JsonFields& fields) {
  DescribedModel model{.config = {.family = TransformerFamily::kGpt}};
  TransformerConfig& config = model.config;
  config.layers = fields.whole("n_layer", kWidths, std::nullopt);
  config.width = fields.whole("n_embd", kWidths, std::nullopt);
  config.heads = fields.whole("n_head", kWidths, std::nullopt);
  config.ffn = fields.whole("n_inner", kWidths, 0);
  config.vocab = fields.whole("vocab_size", kWidths, std::nullopt);
  config.tied_embedding = fields.flag("tie_word_embeddings").value_or(true);
  model.context = fields.whole("n_positions", kContexts, 1024);
  model.variant.norm_epsilon =
      static_cast<float>(fields.number("layer_norm_epsilon", kEpsilons, 1e-5));
  const std::string activation = fields.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    fields.refuse("activation_function", "gelu_new");
  }
  if (!fields.flag("scale_attn_weights").value_or(true))
    fields.refuse("scale_attn_weights", "true");
  require_unset(fields, "scale_attn_by_inverse_layer_idx");
  require_unset(fields, "add_cross_attention");
  if (model.context > kContextMax) {
    fields.refuse("n_positions", fmt::format("at most {}", kContextMax));
  }
  if (!fields.status()) return forward_error(fields.status());
  return model;
}

/// Returns the architecture; "" where none is named.
Result<std::string> architecture_of(const nlohmann::json& json, const std::string& file) {
  const auto list = json.find("architectures");
  const auto type = json.find("model_type");
  if (list != json.end() && list->is_array() && list->size() == 1 && list->front().is_string()) {
    return list->front().get<std::string>();
  }
  if (list == json.end() && type != json.end() && *type == "llama") return "LlamaForCausalLM";
  if (list == json.end() && type != json.end() && *type == "gpt2") return "GPT2LMHeadModel";
  return input_error({file}, "expected \"architectures\" with one name");
}

}  // namespace

Result<DescribedModel> read_hugging_face_config(const nlohmann::json& json,
                                                const std::string& file) {
  Result<std::string> architecture = architecture_of(json, file);
  if (!architecture) return forward_error(architecture);
  JsonFields fields(json, file);
  if (fields.find("quantization_config") != nullptr) {
    fields.refuse("quantization_config", "nothing: weights are F32, F16 or BF16");
    return forward_error(fields.status());
  }
  Result<DescribedModel> model =
      *architecture == "LlamaForCausalLM" ? read_llama(fields)
      : *architecture == "GPT2LMHeadModel"
          ? read_gpt2(fields)
          : input_error({file}, fmt::format("\"architectures\" is {}, "
                                            "expected LlamaForCausalLM or "
                                            "GPT2LMHeadModel",
                                            printable(*architecture, 60)));
  if (!model) return model;
  return checked_model(std::move(*model), file);
}

}  // namespace orrery
