#include "workload/models/sample_model_config.hpp"

#include <fmt/format.h>

#include <cmath>

namespace orrery {
namespace {

constexpr IntegerRange kEdges{1, 1 << 16};
constexpr IntegerRange kLayerCounts{1, 10'000};
constexpr IntegerRange kTableRows{1, std::int64_t{1} << 40};

// A real model_type vit of the hub lists its classes instead of counting them.
std::int64_t read_labels(ConfigKeys& keys) {
  if (const auto labels = keys.integer({"num_labels"}, kSizesOrNone)) return *labels;
  const std::optional<DocumentNode> names = keys.node("id2label");
  return names ? static_cast<std::int64_t>(names->size()) : 0;
}

VisionTransformer read_vit(ConfigKeys& keys) {
  VisionTransformer model;
  model.hidden = keys.required({"hidden_size"});
  model.layers = keys.required({"num_hidden_layers"}, kLayerCounts);
  model.ffn = keys.required({"intermediate_size"});
  model.image = keys.required({"image_size"}, kEdges);
  model.patch = keys.required({"patch_size"}, kEdges);
  model.channels = keys.integer({"num_channels"}, kEdges).value_or(3);
  model.labels = read_labels(keys);
  check_patch(keys, "image_size", model.image, model.patch);
  return model;
}

DiffusionTransformer read_dit(ConfigKeys& keys) {
  DiffusionTransformer model;
  model.hidden = keys.required({"hidden_size"});
  model.layers = keys.required({"num_hidden_layers"}, kLayerCounts);
  const std::optional<double> ratio = keys.number("mlp_ratio", 0.01, 100);
  if (!ratio) keys.missing({"mlp_ratio"});
  model.ffn =
      static_cast<std::int64_t>(std::floor(ratio.value_or(1) * static_cast<double>(model.hidden)));
  model.input = keys.required({"input_size"}, kEdges);
  model.patch = keys.required({"patch_size"}, kEdges);
  model.in_channels = keys.required({"in_channels"}, kEdges);
  const bool with_variance = keys.truth("learn_sigma").value_or(true);
  model.out_channels = model.in_channels * (with_variance ? 2 : 1);
  model.classes = keys.required({"num_classes"});
  check_patch(keys, "input_size", model.input, model.patch);
  return model;
}

VideoDiffusionTransformer read_video(ConfigKeys& keys) {
  VideoDiffusionTransformer model;
  model.hidden = keys.required({"num_attention_heads"}, kEdges) *
                 keys.required({"attention_head_dim"}, kEdges);
  model.layers = keys.required({"num_layers"}, kLayerCounts);
  model.ffn = keys.required({"ffn_dim"});
  model.in_channels = keys.required({"in_channels"}, kEdges);
  model.out_channels = keys.required({"out_channels"}, kEdges);
  model.text_dim = keys.required({"text_dim"});
  model.text_tokens = keys.integer({"text_tokens"}).value_or(512);
  model.time_dim = keys.required({"freq_dim"});
  model.tokens = keys.required({"tokens"}, {1, 1 << 30});
  model.cross_attention_norm = keys.truth("cross_attn_norm").value_or(false);
  const std::vector<std::int64_t> patch = keys.integers("patch_size", kEdges);
  if (patch.size() == 3) {
    model.patch_volume = patch[0] * patch[1] * patch[2];
  } else {
    keys.refuse({"patch_size"}, "\"patch_size\": expected three numbers: frames, height, width");
  }
  return model;
}

std::vector<std::int64_t> read_widths(ConfigKeys& keys, std::string_view key) {
  std::vector<std::int64_t> widths = keys.integers(key, kSizes);
  if (!keys.has(key)) {
    keys.missing({key});
  } else if (widths.empty()) {
    keys.refuse({key}, fmt::format("\"{}\": expected at least one width", key));
  }
  return widths;
}

void read_tables(ConfigKeys& keys, RecommendationModel& model) {
  const std::vector<std::int64_t> rows = keys.integers("embedding_tables", kTableRows);
  const std::vector<std::int64_t> lookups = keys.integers("multi_hot_sizes", kSizes);
  if (rows.empty()) keys.missing({"embedding_tables"});
  if (!lookups.empty() && lookups.size() != rows.size()) {
    keys.refuse({"multi_hot_sizes"}, fmt::format("\"multi_hot_sizes\" has {} entries for {} tables "
                                                 "(\"embedding_tables\")",
                                                 lookups.size(), rows.size()));
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    model.tables.push_back({.rows = rows[i], .lookups = lookups.empty() ? 1 : lookups[i]});
  }
}

RecommendationModel read_dlrm(ConfigKeys& keys) {
  RecommendationModel model;
  model.embedding_dim = keys.required({"embedding_dim"});
  model.dense_features = keys.required({"num_dense_features"});
  model.bottom_mlp = read_widths(keys, "bottom_mlp");
  model.top_mlp = read_widths(keys, "top_mlp");
  read_tables(keys, model);
  if (!model.bottom_mlp.empty() && model.bottom_mlp.back() != model.embedding_dim) {
    keys.refuse({"bottom_mlp"}, fmt::format("\"bottom_mlp\" ends in {}, not in the width {} of the "
                                            "embeddings (\"embedding_dim\")",
                                            model.bottom_mlp.back(), model.embedding_dim));
  }
  const std::string interaction = keys.text("interaction").value_or("");
  if (interaction == "dcn") {
    model.cross_layers = keys.required({"dcn_num_layers"}, kLayerCounts);
    model.cross_rank = keys.required({"dcn_low_rank_dim"});
  } else if (interaction != "dot") {
    keys.refuse({"interaction"}, "\"interaction\": expected \"dot\" or \"dcn\"");
  }
  return model;
}

}  // namespace

void check_patch(ConfigKeys& keys, std::string_view image_key, std::int64_t image,
                 std::int64_t patch) {
  if (patch <= image) return;
  keys.refuse({"patch_size"}, fmt::format("\"patch_size\": {} is more than the {} pixels of "
                                          "\"{}\"",
                                          patch, image, image_key));
}

std::optional<Architecture> read_sample_model(ConfigKeys& keys) {
  if (keys.type() == "vit") return read_vit(keys);
  if (keys.type() == "dit") return read_dit(keys);
  if (keys.type() == "wan") return read_video(keys);
  if (keys.type() == "dlrm") return read_dlrm(keys);
  return std::nullopt;
}

}  // namespace orrery
