#include "perf/runs/run_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "perf/runs/run_words.hpp"
#include "workload/models/config_keys.hpp"
#include "workload/models/model_config.hpp"
#include "workload/models/model_rules.hpp"
#include "workload/models/transformer_config.hpp"

namespace orrery {
namespace {

constexpr KeyNames kLayers{"layers", "num_layers"};
constexpr KeyNames kHidden{"hidden", "hidden_size"};
constexpr KeyNames kHeads{"heads"};
constexpr KeyNames kKvHeads{"kv_heads"};
constexpr KeyNames kHeadDim{"head_dim"};
constexpr KeyNames kFfn{"ffn"};
constexpr KeyNames kVocab{"vocab"};
constexpr KeyNames kActive{"topk", "top_k"};
constexpr KeyNames kExpertFfn{"expert_ffn", "moe_ffn"};

// ------------------------------------------------------------- names
// Letters and digits alone, with the dot of "3.1".
std::string squeezed(std::string_view name) {
  std::string letters;
  for (const std::string& word : split_words(name, ".")) letters += word;
  return letters;
}

// Without parentheses, the owner before a slash, and words that do not name an architecture.
std::string undecorated(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
  std::string plain;
  int depth = 0;
  for (const char c : name) {
    if (c == '(') ++depth;
    if (depth == 0) plain += c;
    if (c == ')' && depth > 0) --depth;
  }
  std::string letters;
  for (const std::string& word : split_words(plain, ".")) {
    const bool decoration = is_one_of(
        word, {"truncated", "pad", "padded", "maxtext", "lora", "sft", "qlora", "like", "instruct",
               "chat", "it", "base", "hf", "bf16", "fp8", "nvfp4", "mxfp4", "pretrain", "meta"});
    if (!decoration) letters += word;
  }
  return letters;
}

const CatalogModel* find_squeezed(const std::string& wanted, const ModelCatalog& catalog) {
  if (wanted.empty()) return nullptr;
  for (const CatalogModel& known : catalog.all()) {
    if (squeezed(known.model.name) == wanted) return &known;
    for (const std::string& alias : known.model.aliases) {
      if (squeezed(alias) == wanted) return &known;
    }
  }
  return nullptr;
}

struct FamilyPrefix {
  std::string_view prefix;
  std::string_view type;
};

// Longer prefixes before their beginnings. MosaicML's MPT of other sizes than the two published
// ones has GPT-2's biases and position table.
constexpr auto kFamilies = std::to_array<FamilyPrefix>({
    {"bloom", "bloom"},
    {"opt", "opt"},
    {"falcon", "falcon"},
    {"glm130", "glm130b"},
    {"gptj", "gptj"},
    {"gptoss", "gpt_oss"},
    {"gpt", "gpt2"},
    {"megatron", "gpt2"},
    {"mpt", "gpt2"},
    {"palm", "palm"},
    {"mixtral", "mixtral"},
    {"mistral", "mistral"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"gemma2", "gemma2"},
    {"gemma3", "gemma3_text"},
});

// ------------------------------------------------------------- what a row says
struct StatedExperts {
  std::int64_t count = 1;
  std::int64_t active = 1;
  std::int64_t ffn = 1;
  std::optional<std::int64_t> shared_ffn;
  std::optional<std::int64_t> dense_layers;
};

struct StatedLatent {
  std::optional<std::int64_t> kv_rank, query_rank, nope_dim, rope_dim, value_dim;
};

struct Shape {
  std::optional<std::int64_t> layers, hidden, heads, kv_heads, head_dim, ffn, vocab;
  std::optional<std::int64_t> window, window_every, full_every;
  std::optional<bool> gated;
  std::optional<StatedExperts> experts;
  std::optional<StatedLatent> latent;
  std::optional<DeltaNet> delta_net;

  [[nodiscard]] bool given() const { return layers || hidden || heads || ffn || vocab || experts; }
};

// `shared` counts experts of the routed width, `shared_ffn` is a width.
StatedExperts read_stated_experts(ConfigKeys& keys) {
  StatedExperts experts;
  experts.count = keys.required({"experts"}, {1, 1 << 16});
  experts.active = keys.required(kActive, {1, 1 << 16});
  experts.ffn = keys.required(kExpertFfn);
  experts.shared_ffn = keys.integer({"shared_ffn"}, kSizesOrNone);
  const std::optional<std::int64_t> copies = keys.integer({"shared"}, {0, 1 << 10});
  if (!experts.shared_ffn && copies) experts.shared_ffn = *copies * experts.ffn;
  experts.dense_layers = keys.integer({"dense_layers"}, {0, kLayersMax});
  if (experts.active > experts.count) {
    keys.refuse(kActive, fmt::format("\"topk\": {} experts a token of {} in all", experts.active,
                                     experts.count));
  }
  return experts;
}

StatedLatent read_stated_latent(ConfigKeys& keys) {
  return {.kv_rank = keys.integer({"kv_lora_rank"}),
          .query_rank = keys.integer({"q_lora_rank"}, kSizesOrNone),
          .nope_dim = keys.integer({"qk_nope_head_dim"}),
          .rope_dim = keys.integer({"qk_rope_head_dim"}),
          .value_dim = keys.integer({"v_head_dim"})};
}

DeltaNet read_stated_delta_net(ConfigKeys& keys) {
  constexpr std::int64_t kUsualKernel = 4;
  DeltaNet net;
  net.key_heads = keys.required({"key_heads"});
  net.value_heads = keys.required({"value_heads"});
  net.key_dim = net.value_dim = keys.required({"head_dim"});
  net.conv_kernel = keys.integer({"conv_kernel"}, {1, 1 << 8}).value_or(kUsualKernel);
  return net;
}

template <class Part, class Reader>
void read_part(ConfigKeys& keys, std::string_view key, std::optional<Part>& out, Reader read) {
  const std::optional<DocumentNode> node = keys.node(key);
  if (!node) return;
  ConfigKeys inner(*node, "", Nesting::kNested);
  out = read(inner);
  if (inner.status()) return;
  Error error = inner.status().error();
  error.message = fmt::format("\"{}\": {}", key, error.message);
  keys.fail(tl::unexpected<Error>(std::move(error)));
}

void check_heads(ConfigKeys& keys, const Shape& shape) {
  if (shape.heads && shape.kv_heads && *shape.heads % *shape.kv_heads != 0) {
    keys.refuse(kKvHeads, fmt::format("\"kv_heads\": {} heads are not a multiple of {} key-value "
                                      "heads",
                                      *shape.heads, *shape.kv_heads));
  }
  const bool derived = !shape.latent && !shape.head_dim && shape.hidden && shape.heads;
  if (derived && *shape.hidden % *shape.heads != 0) {
    keys.refuse(kHeads, fmt::format("\"heads\": the hidden size {} is not a multiple of {} heads, "
                                    "and there is no \"head_dim\"",
                                    *shape.hidden, *shape.heads));
  }
}

Shape read_shape(ConfigKeys& keys, std::vector<std::string>& warnings) {
  constexpr IntegerRange kReach{1, 1 << 30};
  Shape shape;
  shape.layers = keys.integer(kLayers, {1, kLayersMax});
  shape.hidden = keys.integer(kHidden);
  shape.heads = keys.integer(kHeads);
  shape.kv_heads = keys.integer(kKvHeads);
  shape.head_dim = keys.integer(kHeadDim);
  shape.ffn = keys.integer(kFfn);
  shape.vocab = keys.integer(kVocab);
  shape.gated = keys.truth("gated_mlp");
  shape.window = keys.integer({"sliding_window"}, kReach);
  shape.window_every = keys.integer({"sliding_every"}, {1, kLayersMax});
  shape.full_every = keys.integer({"full_attention_interval"}, {1, kLayersMax});
  read_part(keys, "moe", shape.experts, read_stated_experts);
  read_part(keys, "mla", shape.latent, read_stated_latent);
  read_part(keys, "linear_attention", shape.delta_net, read_stated_delta_net);
  const std::string attention = spaced_name(keys.text("attention").value_or(""));
  if (attention == "mla") {
    if (!shape.latent) shape.latent = StatedLatent{};
  } else if (!is_one_of(attention, {"", "mha", "gqa", "mqa", "full"})) {
    warnings.push_back(
        fmt::format("the attention \"{}\" is not understood", printable(attention, 40)));
  }
  check_heads(keys, shape);
  const std::int64_t dense = shape.experts ? shape.experts->dense_layers.value_or(0) : 0;
  if (shape.layers && dense > *shape.layers) {
    keys.refuse({"moe"}, fmt::format("\"moe\": \"dense_layers\": {} dense layers of {} in all",
                                     dense, *shape.layers));
  }
  return shape;
}

// ------------------------------------------------------------- from shape to model
class ModelBuilder {
 public:
  ModelBuilder(Shape shape, const CatalogModel* named, std::vector<std::string>& warnings)
      : shape_(std::move(shape)), named_(named), warnings_(warnings) {
    if (named_ != nullptr) known_ = std::get_if<Transformer>(&named_->model.architecture);
    if (known_ != nullptr && agrees(*known_)) base_ = known_;
  }

  // Precondition: the shape's missing keys were refused, see first_missing().
  Model build(std::string_view name, std::optional<std::int64_t> sequence) {
    Model model;
    if (base_ != nullptr) {
      model = named_->model;
      model.aliases.clear();
      model_ = *base_;
    } else {
      apply_rules(rules_for(name), sequence);
      model.type = rules_for(name).type;
    }
    apply_sizes();
    apply_latent();
    apply_experts();
    apply_layers();
    model.architecture = std::move(model_);
    return model;
  }

  /// The first size that neither the row nor the catalog gives; "" when there is none.
  [[nodiscard]] std::string_view first_missing() const {
    if (base_ != nullptr) return "";
    if (!shape_.layers) return "layers";
    if (!shape_.hidden) return "hidden";
    if (!shape_.heads) return "heads";
    if (!shape_.vocab) return "vocab";
    return !shape_.ffn && !shape_.experts ? "ffn" : "";
  }

 private:
  // Whether the catalog's model is the row's but for depth, heads and vocabulary.
  [[nodiscard]] bool agrees(const Transformer& known) const {
    if (shape_.hidden.value_or(known.hidden) != known.hidden) return false;
    if (shape_.gated.value_or(known.gated) != known.gated) return false;
    if (shape_.experts && !known.experts) return false;
    if (shape_.latent && !known.latent) return false;
    const bool latent = known.latent.has_value();
    return latent || shape_.head_dim.value_or(known.attention.head_dim) == known.attention.head_dim;
  }

  [[nodiscard]] const ModelRules& rules_for(std::string_view name) const {
    const ModelRules* rules = nullptr;
    if (known_ != nullptr) {
      rules = find_model_rules(named_->model.type);
    } else {
      const std::string letters = undecorated(name);
      for (const FamilyPrefix& family : kFamilies) {
        if (!letters.starts_with(family.prefix)) continue;
        rules = find_model_rules(family.type);
        break;
      }
    }
    if (rules != nullptr) return *rules;
    return shape_.gated.value_or(true) ? llama_rules() : *find_model_rules("gpt2");
  }

  void apply_rules(const ModelRules& rules, std::optional<std::int64_t> sequence) {
    model_.norm_vectors = rules.norm_vectors;
    model_.norms = rules.norms;
    model_.gated = rules.gated;
    model_.mlp_bias = rules.mlp_bias;
    model_.embedding_norms = rules.embedding_norms;
    model_.final_norm = rules.final_norm;
    model_.causal = rules.causal;
    model_.head_bias = rules.head_bias;
    model_.tied = rules.tied;
    model_.attention.qkv_bias = rules.qkv_bias;
    model_.attention.output_bias = rules.output_bias;
    model_.attention.sinks = rules.sinks;
    model_.attention.norm = rules.query_key_norm;
    if (rules.position_rows_extra && sequence) {
      model_.learned_positions = *sequence + *rules.position_rows_extra;
    }
    model_.positions_max = sequence.value_or(0);
    model_.attention.heads = shape_.heads.value_or(1);
    model_.attention.kv_heads = shape_.kv_heads.value_or(model_.attention.heads);
    const std::int64_t derived = shape_.hidden.value_or(1) / model_.attention.heads;
    model_.attention.head_dim = shape_.head_dim.value_or(std::max<std::int64_t>(1, derived));
    model_.full_attention = model_.attention;
  }

  // Gemma 4's full-attention layers have sizes of their own; elsewhere both are the same.
  void set_attention(std::int64_t Attention::* size, const std::optional<std::int64_t>& stated) {
    if (!stated) return;
    const bool same = model_.attention.*size == model_.full_attention.*size;
    model_.attention.*size = *stated;
    if (same) model_.full_attention.*size = *stated;
  }

  void apply_sizes() {
    model_.hidden = shape_.hidden.value_or(model_.hidden);
    model_.vocab = shape_.vocab.value_or(model_.vocab);
    model_.ffn = shape_.ffn.value_or(model_.ffn);
    model_.gated = shape_.gated.value_or(model_.gated);
    set_attention(&Attention::heads, shape_.heads);
    set_attention(&Attention::kv_heads, shape_.kv_heads);
    if (!model_.latent) set_attention(&Attention::head_dim, shape_.head_dim);
    if (shape_.window) model_.window = *shape_.window;
    if (shape_.delta_net && !model_.delta_net) model_.delta_net = shape_.delta_net;
    // A row that gives only one of the two may leave a remainder against the catalog's other.
    Attention& attention = model_.attention;
    if (attention.heads % attention.kv_heads != 0) attention.kv_heads = attention.heads;
    Attention& full = model_.full_attention;
    if (full.heads % full.kv_heads != 0) full.kv_heads = full.heads;
  }

  void apply_latent() {
    if (!shape_.latent && !model_.latent) return;
    const StatedLatent stated = shape_.latent.value_or(StatedLatent{});
    LatentAttention latent;
    if (model_.latent) {
      latent = *model_.latent;
    } else if (known_ != nullptr && known_->latent) {
      latent = *known_->latent;
    } else {
      latent = usual_latent(stated);
    }
    latent.heads = model_.attention.heads;
    latent.kv_rank = stated.kv_rank.value_or(latent.kv_rank);
    latent.query_rank = stated.query_rank.value_or(latent.query_rank);
    latent.nope_dim = stated.nope_dim.value_or(latent.nope_dim);
    latent.rope_dim = stated.rope_dim.value_or(latent.rope_dim);
    latent.value_dim = stated.value_dim.value_or(latent.value_dim);
    model_.latent = latent;
  }

  // DeepSeek-V2's sizes.
  LatentAttention usual_latent(const StatedLatent& stated) {
    const bool whole = stated.kv_rank && stated.query_rank && stated.nope_dim && stated.rope_dim &&
                       stated.value_dim;
    if (!whole) {
      warnings_.push_back(
          "the sizes of the latent attention are not given; DeepSeek-V2's are taken");
    }
    return {.kv_rank = 512, .query_rank = 1536, .nope_dim = 128, .rope_dim = 64, .value_dim = 128};
  }

  void apply_experts() {
    if (!shape_.experts) return;
    const StatedExperts& stated = *shape_.experts;
    Experts experts = model_.experts.value_or(Experts{});
    experts.count = stated.count;
    experts.active = stated.active;
    experts.ffn = stated.ffn;
    experts.shared_ffn = stated.shared_ffn.value_or(experts.shared_ffn);
    model_.experts = experts;
    if (!shape_.ffn && base_ == nullptr) model_.ffn = stated.ffn;
  }

  void apply_layers() {
    const std::size_t known = model_.layers.size();
    const auto count =
        static_cast<std::size_t>(shape_.layers.value_or(static_cast<std::int64_t>(known)));
    std::vector<Layer> layers(count);
    for (std::size_t i = 0; i < count; ++i) {
      layers[i] = known > 0 ? model_.layers[i % known] : fresh_layer(i);
    }
    const auto dense = std::count_if(layers.begin(), layers.end(), [](const Layer& layer) {
      return layer.feed_forward == FeedForward::kDense;
    });
    const std::int64_t wanted =
        shape_.experts ? shape_.experts->dense_layers.value_or(dense) : std::int64_t{dense};
    if (count != known && model_.experts) model_.prediction_layers = 0;
    if (wanted != dense) set_dense(layers, wanted);
    model_.layers = std::move(layers);
  }

  [[nodiscard]] Layer fresh_layer(std::size_t i) const {
    Layer layer;
    const auto at = static_cast<std::int64_t>(i);
    if (model_.latent) {
      layer.mixer = Mixer::kLatentAttention;
    } else if (model_.delta_net && (at + 1) % shape_.full_every.value_or(1) != 0) {
      layer.mixer = Mixer::kDeltaNet;
    } else if (shape_.window && at % shape_.window_every.value_or(1) == 0) {
      layer.mixer = Mixer::kSlidingAttention;
    }
    layer.feed_forward = model_.experts ? FeedForward::kExperts : FeedForward::kDense;
    return layer;
  }

  // The first `dense` feed-forward parts are dense, the others experts.
  static void set_dense(std::vector<Layer>& layers, std::int64_t dense) {
    for (Layer& layer : layers) {
      if (layer.feed_forward == FeedForward::kNone) continue;
      layer.feed_forward = dense-- > 0 ? FeedForward::kDense : FeedForward::kExperts;
    }
  }

  Shape shape_;
  const CatalogModel* named_;
  const Transformer* known_ = nullptr;  ///< of the name
  const Transformer* base_ = nullptr;   ///< the same, if the shape agrees with it
  std::vector<std::string>& warnings_;
  Transformer model_;
};

void apply_variant(std::string_view variant, Model& model, std::vector<std::string>& warnings) {
  auto* transformer = std::get_if<Transformer>(&model.architecture);
  const std::string lowered = lower_case(variant);
  const bool mentions = lowered.find("mtp") != std::string::npos;
  const bool without =
      lowered.find("w/o") != std::string::npos || lowered.find("without") != std::string::npos;
  if (mentions && transformer != nullptr) {
    transformer->prediction_layers =
        without ? 0 : std::max<std::int64_t>(1, transformer->prediction_layers);
  } else if (!lowered.empty()) {
    warnings.push_back(
        fmt::format("the model's variant \"{}\" is not modelled", printable(variant, 60)));
  }
}

tl::unexpected<Error> at_model(Error error) {
  error.message = fmt::format("\"model\": {}", error.message);
  return tl::unexpected<Error>(std::move(error));
}

tl::unexpected<Error> unknown_model(std::string_view name, const ModelCatalog& catalog,
                                    SourcePosition where) {
  // The whole name, else its beginning: "DeepSeekV4 Flash" is near "DeepSeekV3".
  std::string hint = catalog.suggestion(name);
  std::vector<std::string> words = split_words(name, ".");
  while (hint.empty() && words.size() > 1) {
    words.pop_back();
    hint = catalog.suggestion(join_words(words, 0, words.size()));
  }
  return input_error(std::move(where),
                     fmt::format("\"model\": no model \"{}\" in the catalog, and no shape{}",
                                 printable(name, 80), hint));
}

Status check_total(const DocumentNode& node, const Model& model) {
  const double total = count_parameters(model).total;
  if (total <= kParametersMax) return {};
  return input_error(node.position(),
                     fmt::format("\"model\": the sizes given here make {:.3g} parameters, more "
                                 "than the {:g} a model may have",
                                 total, kParametersMax));
}

}  // namespace

const CatalogModel* find_run_model(std::string_view name, const ModelCatalog& catalog) {
  if (const CatalogModel* known = catalog.find(name); known != nullptr) return known;
  if (const CatalogModel* known = find_squeezed(squeezed(name), catalog); known != nullptr) {
    return known;
  }
  return find_squeezed(undecorated(name), catalog);
}

Result<Model> read_run_model(const DocumentNode& node, const ModelCatalog& catalog,
                             std::optional<std::int64_t> sequence,
                             std::vector<std::string>& warnings) {
  const bool bare = node.kind() == NodeKind::kScalar;
  ConfigKeys keys(node, "", Nesting::kNested);
  const std::string name = bare ? std::string(node.text()) : keys.text("name").value_or("");
  const CatalogModel* named = find_run_model(name, catalog);
  Shape shape;
  if (!bare) shape = read_shape(keys, warnings);
  if (!bare && !keys.status()) return at_model(keys.status().error());
  if (!shape.given()) {
    if (named == nullptr) return unknown_model(name, catalog, node.position());
    Model model = named->model;
    model.name = name;
    if (!bare) apply_variant(keys.text("variant").value_or(""), model, warnings);
    return model;
  }
  ModelBuilder builder(std::move(shape), named, warnings);
  if (const std::string_view missing = builder.first_missing(); !missing.empty()) {
    return input_error(node.position(),
                       fmt::format("\"model\": the key \"{}\" is missing, and no model \"{}\" of "
                                   "this shape is in the catalog",
                                   missing, printable(name, 80)));
  }
  Model model = builder.build(name, sequence);
  model.name = name;
  model.where = node.position();
  apply_variant(keys.text("variant").value_or(""), model, warnings);
  if (!keys.status()) return at_model(keys.status().error());
  if (Status fits = check_total(node, model); !fits) return forward_error(fits);
  return model;
}

}  // namespace orrery
