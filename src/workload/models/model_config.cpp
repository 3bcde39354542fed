#include "workload/models/model_config.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/text/utf8.hpp"
#include "workload/models/config_keys.hpp"
#include "workload/models/model_rules.hpp"
#include "workload/models/sample_model_config.hpp"
#include "workload/models/transformer_config.hpp"

namespace orrery {
namespace {

// ------------------------------------------------------------- number formats of the weights
std::optional<NumberFormat> format_of_dtype(std::string_view dtype) {
  if (dtype.starts_with("torch.")) dtype.remove_prefix(6);
  if (dtype == "float64") return NumberFormat::kFp64;
  if (dtype == "float32" || dtype == "float") return NumberFormat::kFp32;
  if (dtype == "bfloat16") return NumberFormat::kBf16;
  if (dtype == "float16" || dtype == "half") return NumberFormat::kFp16;
  if (dtype.starts_with("float8")) return NumberFormat::kFp8;
  if (dtype == "int8" || dtype == "uint8") return NumberFormat::kInt8;
  return std::nullopt;
}

// torch_dtype, or dtype as newer files call it; "auto" and null leave it open.
void read_dtype(ConfigKeys& keys, Model& model) {
  for (const std::string_view key : {"torch_dtype", "dtype"}) {
    const std::optional<std::string> dtype = keys.text(key);
    if (!dtype || *dtype == "auto") continue;
    model.weight_format = format_of_dtype(*dtype);
    if (model.weight_format) return;
    keys.refuse({key}, fmt::format("\"{}\": unknown format \"{}\"; expected for example bfloat16, "
                                   "float16 or float32",
                                   key, printable(*dtype, 60)));
    return;
  }
}

std::optional<NumberFormat> format_of_bits(std::int64_t bits, std::string_view kind) {
  if (bits == 8) return kind == "float" ? NumberFormat::kFp8 : NumberFormat::kInt8;
  if (bits == 4) return kind == "float" ? NumberFormat::kFp4 : NumberFormat::kInt4;
  return std::nullopt;
}

// compressed-tensors: config_groups.<group>.weights.{num_bits, type}; the first group stands for
// all.
std::optional<NumberFormat> format_of_groups(ConfigKeys& keys) {
  const std::optional<DocumentNode> groups = keys.node("config_groups");
  if (!groups || groups->entries().empty()) return std::nullopt;
  const DocumentNode first = groups->entries().front().value;
  ConfigKeys group(first, "", Nesting::kNested);
  const std::optional<DocumentNode> weights = group.node("weights");
  if (!weights) return std::nullopt;
  ConfigKeys inner(*weights, "", Nesting::kNested);
  const std::int64_t bits = inner.integer({"num_bits"}).value_or(0);
  const std::string kind = inner.text("type").value_or("int");
  keys.fail(inner.status());
  return format_of_bits(bits, kind);
}

std::optional<NumberFormat> format_of_method(ConfigKeys& keys, std::string_view method) {
  if (method == "fp8" || method == "fbgemm_fp8") return NumberFormat::kFp8;
  if (method == "mxfp4") return NumberFormat::kFp4;
  if (method == "gptq" || method == "awq") {
    return format_of_bits(keys.integer({"bits"}).value_or(4), "int");
  }
  if (method == "bitsandbytes") {
    return keys.truth("load_in_8bit").value_or(false) ? NumberFormat::kInt8 : NumberFormat::kInt4;
  }
  if (method == "compressed-tensors") return format_of_groups(keys);
  if (method == "modelopt") {
    const std::string algorithm = keys.text("quant_algo").value_or("");
    if (algorithm == "FP8") return NumberFormat::kFp8;
    if (algorithm == "NVFP4") return NumberFormat::kFp4;
  }
  return std::nullopt;
}

void read_quantization(ConfigKeys& keys, Model& model) {
  const std::optional<DocumentNode> node = keys.node("quantization_config");
  if (!node) return;
  ConfigKeys inner(*node, "", Nesting::kNested);
  const std::string method = inner.text("quant_method").value_or("");
  model.quantized_format = format_of_method(inner, method);
  keys.fail(inner.status());
  if (model.quantized_format) return;
  model.assumptions.push_back(fmt::format(
      "the quantization method \"{}\" is not known; the weights are taken as not quantized",
      printable(method, 60)));
}

// ------------------------------------------------------------- image towers
std::optional<VisionPart::Kind> tower_kind(std::string_view type) {
  if (type == "siglip_vision_model") return VisionPart::Kind::kSiglip;
  if (type == "clip_vision_model") return VisionPart::Kind::kClip;
  if (type == "llama4_vision_model") return VisionPart::Kind::kLlama4;
  return std::nullopt;
}

VisionPart read_tower(ConfigKeys& keys, VisionPart::Kind kind) {
  constexpr IntegerRange kEdges{1, 1 << 16};
  VisionPart vision;
  vision.kind = kind;
  vision.hidden = keys.required({"hidden_size"});
  vision.layers = keys.required({"num_hidden_layers"}, {1, kLayersMax});
  vision.ffn = keys.required({"intermediate_size"});
  vision.image = keys.required({"image_size"}, kEdges);
  vision.patch = keys.required({"patch_size"}, kEdges);
  vision.channels = keys.integer({"num_channels"}, kEdges).value_or(3);
  check_patch(keys, "image_size", vision.image, vision.patch);
  if (kind == VisionPart::Kind::kLlama4) {
    const std::optional<double> ratio = keys.number("pixel_shuffle_ratio", 0.01, 1);
    if (!ratio) keys.missing({"pixel_shuffle_ratio"});
    vision.shuffle_ratio = ratio.value_or(1);
    vision.projector_in = keys.required({"projector_input_dim"});
    vision.projector_out = keys.required({"projector_output_dim"});
    vision.output = keys.required({"vision_output_dim"});
  }
  return vision;
}

void read_vision(ConfigKeys& outer, Model& model) {
  const std::optional<DocumentNode> node = outer.node("vision_config");
  if (!node) return;
  ConfigKeys keys(*node, "", Nesting::kNested);
  const std::string type = keys.text("model_type").value_or("");
  if (const auto kind = tower_kind(type)) {
    VisionPart vision = read_tower(keys, *kind);
    if (outer.type() == "gemma3") vision.projector = VisionPart::Projector::kLinear;
    if (outer.type() == "llava") vision.projector = VisionPart::Projector::kTwoLayers;
    std::get<Transformer>(model.architecture).vision = vision;
  } else {
    model.assumptions.push_back(fmt::format(
        "the vision part of type \"{}\" is not known and not counted", printable(type, 60)));
  }
  outer.fail(keys.status());
}

// ------------------------------------------------------------- the whole
void read_language_model(ConfigKeys& keys, Model& model) {
  if (keys.truth("is_encoder_decoder").value_or(false)) {
    keys.refuse({"is_encoder_decoder"},
                "\"is_encoder_decoder\": encoder-decoder models are not supported");
    return;
  }
  const ModelRules* rules = find_model_rules(keys.type());
  if (rules == nullptr) {
    model.known_type = false;
    model.assumptions.push_back(
        fmt::format("model_type \"{}\" is not known; it is counted with the rules of llama",
                    printable(keys.type(), 60)));
  }
  model.type = keys.type();
  model.architecture = read_transformer(keys, rules != nullptr ? *rules : llama_rules());
  model.assumptions.insert(model.assumptions.end(), keys.defaults_used().begin(),
                           keys.defaults_used().end());
}

// A text_config inside a multimodal configuration.
void read_wrapped_model(ConfigKeys& outer, const DocumentNode& text, Model& model) {
  ConfigKeys untyped(text, "", Nesting::kNested);
  const std::string type = untyped.text("model_type").value_or("llama");
  outer.fail(untyped.status());
  ConfigKeys keys(text, type, Nesting::kNested);
  read_language_model(keys, model);
  outer.fail(keys.status());
  if (!outer.status()) return;
  // The outer level's value counts only where the text part has none, not even null.
  const std::optional<bool> tied = outer.truth("tie_word_embeddings");
  if (tied && !keys.mentions("tie_word_embeddings")) {
    std::get<Transformer>(model.architecture).tied = *tied;
  }
  read_dtype(keys, model);
  outer.fail(keys.status());
  read_vision(outer, model);
}

Status check_total(const DocumentNode& config, const Model& model) {
  const double total = count_parameters(model).total;
  if (total <= kParametersMax) return {};
  return input_error(config.position(),
                     fmt::format("the sizes given here make {:.3g} parameters, more than the {:g} "
                                 "a model may have",
                                 total, kParametersMax));
}

}  // namespace

Result<Model> read_model_config(const DocumentNode& config) {
  ConfigKeys untyped(config, "", Nesting::kAlone);
  const std::optional<std::string> type = untyped.text("model_type");
  if (!type) untyped.missing({"model_type"});
  if (!untyped.status()) return tl::unexpected<Error>(untyped.status().error());

  ConfigKeys keys(config, *type, Nesting::kAlone);
  Model model;
  model.where = config.position();
  model.type = *type;
  if (std::optional<Architecture> sampled = read_sample_model(keys)) {
    model.architecture = *std::move(sampled);
  } else if (const std::optional<DocumentNode> text = keys.node("text_config")) {
    read_wrapped_model(keys, *text, model);
  } else {
    read_language_model(keys, model);
  }
  if (!model.weight_format) read_dtype(keys, model);
  read_quantization(keys, model);
  if (!keys.status()) return tl::unexpected<Error>(keys.status().error());
  if (Status fits = check_total(config, model); !fits) return forward_error(fits);
  return model;
}

}  // namespace orrery
