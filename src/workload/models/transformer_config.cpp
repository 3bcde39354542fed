#include "workload/models/transformer_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/format/field_reader.hpp"

namespace orrery {
namespace {

constexpr KeyNames kHidden{"hidden_size", "n_embd", "d_model"};
constexpr KeyNames kLayers{"num_hidden_layers", "n_layer", "n_layers"};
constexpr KeyNames kHeads{"num_attention_heads", "n_head", "n_heads"};
constexpr KeyNames kKvHeads{"num_key_value_heads", "num_kv_heads"};
constexpr KeyNames kFfn{"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
constexpr KeyNames kPositions{"n_positions", "max_position_embeddings", "max_seq_len",
                              "seq_length"};
constexpr KeyNames kExperts{"num_experts", "num_local_experts", "n_routed_experts"};
constexpr KeyNames kExpertsActive{"num_experts_per_tok", "experts_per_token", "top_k_experts"};

bool repeats_windows(std::string_view type) {
  return type == "gemma2" || type == "gemma3_text" || type == "gemma4_text" || type == "gpt_oss";
}

// Reads in the order in which later parts need earlier ones.
class TransformerReader {
 public:
  TransformerReader(ConfigKeys& keys, const ModelRules& rules) : keys_(keys), rules_(rules) {}

  Transformer read() {
    read_rules();
    read_sizes();
    read_attention();
    read_layer_kinds();
    read_mixers();
    read_feed_forward();
    read_ends();
    read_rotary();
    return std::move(model_);
  }

 private:
  bool is(std::string_view type) const { return keys_.type() == type; }

  // A number given by the rules unless the configuration has it.
  std::int64_t integer(std::string_view key, std::int64_t otherwise) {
    return keys_.integer({key}, kSizesOrNone).value_or(otherwise);
  }

  void read_rules() {
    model_.norm_vectors = rules_.norm_vectors;
    model_.norms = rules_.norms;
    model_.gated = rules_.gated;
    model_.mlp_bias = rules_.mlp_bias;
    model_.embedding_norms = rules_.embedding_norms;
    model_.final_norm = rules_.final_norm;
    model_.causal = rules_.causal;
    model_.head_bias = rules_.head_bias;
    model_.layer_scalars = is("gemma4_text") ? 1 : 0;
    model_.attention.qkv_bias = rules_.qkv_bias;
    model_.attention.output_bias = rules_.output_bias;
    model_.attention.sinks = rules_.sinks;
    model_.attention.norm = rules_.query_key_norm;
    position_rows_extra_ = rules_.position_rows_extra;
    if (is("mpt")) read_mpt_variant();
    if (is("falcon")) read_falcon_variant();
    // Qwen2 has its biases regardless of the key; gpt-oss has its own in every expert.
    const std::optional<bool> attention_bias = keys_.truth("attention_bias");
    if (attention_bias && !is("qwen2")) {
      model_.attention.qkv_bias = model_.attention.output_bias = *attention_bias;
    }
    const std::optional<bool> mlp_bias = keys_.truth("mlp_bias");
    if (mlp_bias && !is("gpt_oss")) model_.mlp_bias = *mlp_bias;
  }

  void read_mpt_variant() {
    if (!keys_.truth("no_bias").value_or(true)) {
      model_.norm_vectors = 2;
      model_.mlp_bias = true;
      model_.attention.qkv_bias = model_.attention.output_bias = true;
    }
    const std::optional<DocumentNode> attention = keys_.node("attn_config");
    if (!attention) return;
    ConfigKeys inner(*attention, keys_.type(), Nesting::kNested);
    if (!inner.truth("alibi").value_or(true)) position_rows_extra_ = 0;
    keys_.fail(inner.status());
  }

  void read_falcon_variant() {
    const bool two_norms = keys_.truth("new_decoder_architecture").value_or(false) ||
                           !keys_.truth("parallel_attn").value_or(true);
    model_.norms = two_norms ? 2 : 1;
    const bool bias = keys_.truth("bias").value_or(false);
    model_.mlp_bias = bias;
    model_.attention.qkv_bias = model_.attention.output_bias = bias;
  }

  void read_sizes() {
    model_.hidden = keys_.required(kHidden);
    model_.vocab = keys_.required({"vocab_size"});
    model_.layers.resize(static_cast<std::size_t>(keys_.required(kLayers, {1, kLayersMax})));
    model_.positions_max = keys_.integer(kPositions, {1, 1 << 30}).value_or(0);
    if (position_rows_extra_ && model_.positions_max == 0) keys_.missing(kPositions);
    if (position_rows_extra_) {
      model_.learned_positions = model_.positions_max + *position_rows_extra_;
    }
  }

  void read_attention() {
    Attention& attention = model_.attention;
    attention.heads = keys_.required(kHeads);
    const bool multi_query = keys_.truth("multi_query").value_or(false);
    attention.kv_heads = keys_.integer(kKvHeads).value_or(multi_query ? 1 : attention.heads);
    check_kv_heads(kKvHeads, attention);
    const std::optional<std::int64_t> head_dim = keys_.integer({"head_dim"});
    if (!head_dim && !keys_.has("kv_lora_rank") && model_.hidden % attention.heads != 0) {
      keys_.refuse(kHeads, fmt::format("the hidden size {} is not a multiple of {} attention heads "
                                       "(\"num_attention_heads\"), and there is no \"head_dim\"",
                                       model_.hidden, attention.heads));
    }
    attention.head_dim =
        head_dim.value_or(std::max<std::int64_t>(1, model_.hidden / attention.heads));
    attention.output_gate = keys_.truth("attn_output_gate").value_or(false);
    model_.full_attention = attention;
    if (!is("gemma4_text")) return;
    Attention& full = model_.full_attention;
    full.head_dim = keys_.integer({"global_head_dim"}).value_or(full.head_dim);
    full.kv_heads = keys_.integer({"num_global_key_value_heads"}).value_or(full.kv_heads);
    full.separate_value = !keys_.truth("attention_k_eq_v").value_or(false);
    check_kv_heads({"num_global_key_value_heads"}, full);
  }

  void check_kv_heads(KeyNames names, const Attention& attention) {
    if (attention.heads % attention.kv_heads == 0) return;
    keys_.refuse(names, fmt::format("{} attention heads are not a multiple of {} key-value heads "
                                    "(\"{}\")",
                                    attention.heads, attention.kv_heads, *names.begin()));
  }

  // ------------------------------------------------------------- which layer is of which kind
  void read_layer_kinds() {
    read_experts();
    if (is("nemotron_h")) {
      read_pattern();
      return;
    }
    set_feed_forward_kinds();
    if (keys_.integer({"kv_lora_rank"})) {
      set_mixers([](std::int64_t) { return Mixer::kLatentAttention; });
    } else if (keys_.has("layer_types")) {
      read_layer_types();
    } else if (const auto full_every = keys_.integer({"full_attention_interval"})) {
      set_every(*full_every, Mixer::kDeltaNet);
    } else if (is("llama4_text")) {
      set_every(4, Mixer::kChunkedAttention);
    } else {
      read_windows();
    }
  }

  template <class Kind>
  void set_mixers(Kind kind) {
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      model_.layers[i].mixer = kind(static_cast<std::int64_t>(i));
    }
  }

  // Every n-th layer has full attention, the others `rest`.
  void set_every(std::int64_t n, Mixer rest) {
    set_mixers([&](std::int64_t i) { return (i + 1) % n == 0 ? Mixer::kFullAttention : rest; });
  }

  void read_windows() {
    const bool windowed = keys_.truth("use_sliding_window").value_or(true);
    const bool repeats = repeats_windows(keys_.type());
    const bool all = is("mistral") || is("mixtral");
    if (!windowed || (!repeats && !all) || !keys_.integer({"sliding_window"})) return;
    if (all) {
      set_mixers([](std::int64_t) { return Mixer::kSlidingAttention; });
    } else {
      set_every(keys_.required({"sliding_window_pattern"}), Mixer::kSlidingAttention);
    }
  }

  void read_layer_types() {
    constexpr std::array<std::string_view, 4> kWords{"full_attention", "sliding_attention",
                                                     "linear_attention", "chunked_attention"};
    constexpr std::array<Mixer, 4> kMixers{Mixer::kFullAttention, Mixer::kSlidingAttention,
                                           Mixer::kDeltaNet, Mixer::kChunkedAttention};
    const DocumentNode list = *keys_.node("layer_types");
    if (list.kind() != NodeKind::kSequence || list.size() != model_.layers.size()) {
      refuse_layer_list("layer_types", list.kind() == NodeKind::kSequence ? list.size() : 0);
      return;
    }
    std::size_t i = 0;
    for (const DocumentNode& item : list.items()) {
      Result<std::size_t> word = read_word(item, kWords);
      if (!word) {
        keys_.fail(forward_error(word));
        return;
      }
      model_.layers[i++].mixer = kMixers[*word];
    }
  }

  void refuse_layer_list(std::string_view key, std::size_t entries) {
    keys_.refuse({key}, fmt::format("\"{}\" has {} entries for {} layers (\"num_hidden_layers\")",
                                    key, entries, model_.layers.size()));
  }

  // Nemotron-H writes one letter a layer.
  void read_pattern() {
    const std::string pattern = keys_.text("hybrid_override_pattern").value_or("");
    if (!keys_.has("hybrid_override_pattern")) {
      keys_.missing({"hybrid_override_pattern"});
    } else if (pattern.size() != model_.layers.size()) {
      refuse_layer_list("hybrid_override_pattern", pattern.size());
    } else {
      for (std::size_t i = 0; i < pattern.size(); ++i) set_letter(model_.layers[i], pattern[i]);
    }
  }

  void set_letter(Layer& layer, char letter) {
    constexpr std::string_view kLetters = "M*-E";
    constexpr std::array<Layer, 4> kKinds{{{Mixer::kMamba, FeedForward::kNone},
                                           {Mixer::kFullAttention, FeedForward::kNone},
                                           {Mixer::kNone, FeedForward::kDense},
                                           {Mixer::kNone, FeedForward::kExperts}}};
    const std::size_t at = kLetters.find(letter);
    if (at == std::string_view::npos) {
      keys_.refuse({"hybrid_override_pattern"},
                   fmt::format("\"hybrid_override_pattern\": expected the letters M, *, - and E, "
                               "found code {}",
                               static_cast<unsigned char>(letter)));
    } else if (kKinds[at].feed_forward == FeedForward::kExperts && !model_.experts) {
      keys_.missing(kExperts);
    } else {
      layer = kKinds[at];
    }
  }

  void set_feed_forward_kinds() {
    const std::int64_t first = integer("first_k_dense_replace", 0);
    const std::int64_t every = keys_.integer({"moe_layer_freq"}).value_or(1);
    const std::int64_t step = keys_.integer({"decoder_sparse_step"}).value_or(1);
    const std::int64_t interleave = keys_.integer({"interleave_moe_layer_step"}).value_or(1);
    const std::vector<std::int64_t> dense = keys_.integers("mlp_only_layers", {0, kLayersMax});
    const bool both = is("gemma4_text") && keys_.truth("enable_moe_block").value_or(false);
    for (std::size_t at = 0; at < model_.layers.size(); ++at) {
      const auto i = static_cast<std::int64_t>(at);
      FeedForward& kind = model_.layers[at].feed_forward;
      if (!model_.experts || (is("gemma4_text") && !both)) {
        kind = FeedForward::kDense;
      } else if (both) {
        kind = FeedForward::kDenseAndExperts;
      } else {
        const bool sparse = i >= first && i % every == 0 && (i + 1) % step == 0 &&
                            (i + 1) % interleave == 0 &&
                            std::find(dense.begin(), dense.end(), i) == dense.end();
        kind = sparse ? FeedForward::kExperts : FeedForward::kDense;
      }
    }
  }

  bool uses(Mixer mixer) const {
    return std::any_of(model_.layers.begin(), model_.layers.end(),
                       [&](const Layer& layer) { return layer.mixer == mixer; });
  }

  bool uses(FeedForward kind) const {
    return std::any_of(model_.layers.begin(), model_.layers.end(),
                       [&](const Layer& layer) { return layer.feed_forward == kind; });
  }

  // ------------------------------------------------------------- mixers
  void read_mixers() {
    if (uses(Mixer::kSlidingAttention)) model_.window = keys_.required({"sliding_window"}, kReach);
    if (uses(Mixer::kChunkedAttention)) {
      model_.chunk = keys_.required({"attention_chunk_size"}, kReach);
    }
    if (uses(Mixer::kLatentAttention)) read_latent();
    if (uses(Mixer::kDeltaNet)) {
      model_.delta_net = DeltaNet{.key_heads = keys_.required({"linear_num_key_heads"}),
                                  .value_heads = keys_.required({"linear_num_value_heads"}),
                                  .key_dim = keys_.required({"linear_key_head_dim"}),
                                  .value_dim = keys_.required({"linear_value_head_dim"}),
                                  .conv_kernel = keys_.required({"linear_conv_kernel_dim"})};
    }
    if (uses(Mixer::kMamba)) {
      model_.mamba = Mamba{.heads = keys_.required({"mamba_num_heads"}),
                           .head_dim = keys_.required({"mamba_head_dim"}),
                           .state = keys_.required({"ssm_state_size"}),
                           .groups = keys_.required({"n_groups"}),
                           .conv_kernel = keys_.required({"conv_kernel"})};
    }
  }

  void read_latent() {
    LatentAttention latent;
    latent.heads = model_.attention.heads;
    latent.kv_rank = keys_.required({"kv_lora_rank"});
    latent.query_rank = integer("q_lora_rank", 0);
    latent.nope_dim = keys_.required({"qk_nope_head_dim"});
    latent.rope_dim = keys_.required({"qk_rope_head_dim"});
    latent.value_dim = keys_.required({"v_head_dim"});
    latent.biases = model_.attention.qkv_bias;
    latent.index_heads = integer("index_n_heads", 0);
    if (latent.index_heads > 0) {
      latent.index_dim = keys_.required({"index_head_dim"});
      latent.index_topk = keys_.required({"index_topk"}, kReach);
      if (latent.query_rank == 0) keys_.missing({"q_lora_rank"});
    }
    model_.latent = latent;
  }

  // ------------------------------------------------------------- feed-forward parts
  void read_experts() {
    const std::int64_t count = keys_.integer(kExperts, {0, 1 << 16}).value_or(0);
    if (count == 0) return;
    Experts experts;
    experts.count = count;
    experts.active = keys_.required(kExpertsActive, {1, 1 << 16});
    if (experts.active > count) {
      keys_.refuse(kExpertsActive, fmt::format("{} experts a token of {} experts in all "
                                               "(\"num_experts_per_tok\")",
                                               experts.active, count));
    }
    experts.shared_gate = rules_.shared_gate;
    experts.routing_bias = rules_.routing_bias;
    experts.latent = integer("moe_latent_size", 0);
    read_router(experts.router);
    model_.experts = experts;
  }

  void read_router(Router& router) {
    // The class defaults of DeepSeek-V3 and its kin; Mixtral and Llama 4 have no such keys.
    const bool sigmoid = is("deepseek_v3") || is("kimi_k2") || is("glm_moe_dsa");
    const std::string score = keys_.text("scoring_func").value_or(sigmoid ? "sigmoid" : "softmax");
    router.score = score == "sigmoid" ? Router::Score::kSigmoid : Router::Score::kSoftmax;
    router.normalised = keys_.truth("norm_topk_prob").value_or(!is("deepseek_v2"));
    router.scale = keys_.number("routed_scaling_factor", 1e-6, 1e6).value_or(1);
    router.groups = keys_.integer({"n_group"}, kSizesOrNone).value_or(0);
    router.groups_active = keys_.integer({"topk_group"}, kSizesOrNone).value_or(0);
  }

  void read_feed_forward() {
    std::optional<std::int64_t> ffn = keys_.integer(kFfn);
    const double ratio = keys_.number("expansion_ratio", 0.01, 100).value_or(4);
    // Two matrices of ratio x hidden are what the GPT-2 kin take when nothing is said.
    if (!ffn && !model_.gated) {
      const double width = std::floor(ratio * static_cast<double>(model_.hidden));
      ffn = std::max<std::int64_t>(1, static_cast<std::int64_t>(width));
    }
    if (model_.experts) read_expert_widths(ffn);
    if (is("llama4_text")) ffn = keys_.required({"intermediate_size_mlp"});
    const bool dense = uses(FeedForward::kDense) || uses(FeedForward::kDenseAndExperts);
    if (dense && !ffn) keys_.missing(kFfn);
    model_.ffn = ffn.value_or(1);
  }

  void read_expert_widths(const std::optional<std::int64_t>& ffn) {
    Experts& experts = *model_.experts;
    const std::optional<std::int64_t> own = keys_.integer({"moe_intermediate_size"});
    if (!own && !ffn) keys_.missing({"moe_intermediate_size", "intermediate_size"});
    experts.ffn = own ? *own : ffn.value_or(1);
    if (is("llama4_text")) {
      experts.shared_ffn = experts.ffn;
      return;
    }
    const std::optional<std::int64_t> shared = keys_.integer(
        {"moe_shared_expert_intermediate_size", "shared_expert_intermediate_size"}, kSizesOrNone);
    const std::int64_t copies = keys_.integer({"n_shared_experts"}, {0, 1 << 10}).value_or(0);
    experts.shared_ffn = shared.value_or(copies * experts.ffn);
  }

  void read_ends() {
    model_.tied = keys_.truth("tie_word_embeddings").value_or(rules_.tied);
    model_.prediction_layers =
        keys_.integer({"num_nextn_predict_layers"}, {0, 1 << 10}).value_or(0);
    if (!is("bert")) return;
    model_.token_types = keys_.required({"type_vocab_size"});
    model_.pretraining_heads = true;
  }

  void read_rotary() {
    for (const std::string_view key : {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps"}) {
      if (!model_.norm_epsilon) model_.norm_epsilon = keys_.number(key, 0, 1);
    }
    Rotary& rotary = model_.rotary;
    rotary.base = keys_.number("rope_theta", 1, 1e12);
    // Newer libraries keep the base beside the stretch.
    for (const std::string_view key : {"rope_parameters", "rope_scaling"}) {
      const std::optional<DocumentNode> node = keys_.node(key);
      if (!node || node->kind() != NodeKind::kMapping) continue;
      ConfigKeys inner(*node, keys_.type(), Nesting::kNested);
      if (!rotary.base) rotary.base = inner.number("rope_theta", 1, 1e12);
      read_stretch(inner, rotary);
      keys_.fail(inner.status());
      return;
    }
  }

  static void read_stretch(ConfigKeys& keys, Rotary& rotary) {
    std::optional<std::string> word = keys.text("rope_type");
    if (!word) word = keys.text("type");
    if (!word || *word == "default") return;
    using Stretch = Rotary::Stretch;
    rotary.stretch = *word == "llama3" ? Stretch::kLlama3
                     : *word == "yarn" ? Stretch::kYarn
                                       : Stretch::kOther;
    constexpr double kMost = 1e12;
    rotary.factor = keys.number("factor", 0, kMost).value_or(1);
    rotary.original_positions =
        keys.number("original_max_position_embeddings", 0, kMost).value_or(0);
    rotary.beta_fast = keys.number("beta_fast", 0, kMost).value_or(rotary.beta_fast);
    rotary.beta_slow = keys.number("beta_slow", 0, kMost).value_or(rotary.beta_slow);
    rotary.mscale = keys.number("mscale", 0, kMost).value_or(rotary.mscale);
    rotary.mscale_all_dim = keys.number("mscale_all_dim", 0, kMost).value_or(0);
    rotary.whole_bounds = keys.truth("truncate").value_or(true);
  }

  // Windows and chunks, in tokens.
  static constexpr IntegerRange kReach{1, 1 << 30};

  ConfigKeys& keys_;
  const ModelRules& rules_;
  std::optional<std::int64_t> position_rows_extra_;
  Transformer model_;
};

}  // namespace

Transformer read_transformer(ConfigKeys& keys, const ModelRules& rules) {
  return TransformerReader(keys, rules).read();
}

}  // namespace orrery
