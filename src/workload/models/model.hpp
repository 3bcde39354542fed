// workload/models/model.hpp - a model's architecture as typed values, and what follows from them
// alone: its parameters, the operations of a forward pass, the elements of its key-value cache.
//
// Built by workload/models/model_config.hpp from a Hugging Face config.json or a catalog file; a
// plain value afterwards. Counts are doubles: they are whole numbers, exact below 2^53. Invariant
// of a model that was read: every size is positive unless 0 is given a meaning here, heads are a
// multiple of key-value heads, and each mixer among the layers has its struct.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/number_format.hpp"

namespace orrery {

enum class ModelFamily { kTransformer, kVit, kDit, kDlrm };

inline std::array<EnumWord<ModelFamily>, 4> enum_words(ModelFamily) {
  return {{{"transformer", ModelFamily::kTransformer},
           {"vit", ModelFamily::kVit},
           {"dit", ModelFamily::kDit},
           {"dlrm", ModelFamily::kDlrm}}};
}

/// What connects the tokens of a layer.
enum class Mixer {
  kNone,
  kFullAttention,
  kSlidingAttention,  ///< the last `window` tokens
  kChunkedAttention,  ///< the tokens of the own chunk
  kLatentAttention,   ///< keys and values from a low-rank latent (DeepSeek-V2)
  kDeltaNet,          ///< gated delta rule: linear in the sequence
  kMamba,             ///< Mamba-2 state space: linear in the sequence
};

/// A layer's feed-forward part.
enum class FeedForward { kNone, kDense, kExperts, kDenseAndExperts };

struct Layer {
  Mixer mixer = Mixer::kFullAttention;
  FeedForward feed_forward = FeedForward::kDense;

  friend bool operator==(const Layer&, const Layer&) = default;
};

/// "full attention + experts".
[[nodiscard]] std::string name_of(const Layer& layer);

/// Norms on queries and keys: none, one vector of the head's width, or one over all heads.
enum class QueryKeyNorm { kNone, kPerHead, kAllHeads };

struct Attention {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 1;
  bool separate_value = true;  ///< false: the key projection also serves as the value's
  bool output_gate = false;    ///< the query projection also makes a gate of its own width
  bool qkv_bias = false;
  bool output_bias = false;
  bool sinks = false;  ///< one learned score a head
  QueryKeyNorm norm = QueryKeyNorm::kNone;
};

struct LatentAttention {
  std::int64_t heads = 1;
  std::int64_t kv_rank = 1;
  std::int64_t query_rank = 0;  ///< 0: queries are projected directly
  std::int64_t nope_dim = 1;    ///< of a query head, without position
  std::int64_t rope_dim = 1;    ///< of a query head and of the shared key, with position
  std::int64_t value_dim = 1;
  bool biases = false;
  std::int64_t index_heads = 0;  ///< indexer of sparse attention; 0: none
  std::int64_t index_dim = 0;
  std::int64_t index_topk = 0;  ///< earlier tokens attended to; 0: all
};

struct DeltaNet {
  std::int64_t key_heads = 1;
  std::int64_t value_heads = 1;
  std::int64_t key_dim = 1;
  std::int64_t value_dim = 1;
  std::int64_t conv_kernel = 1;
};

struct Mamba {
  std::int64_t heads = 1;
  std::int64_t head_dim = 1;
  std::int64_t state = 1;
  std::int64_t groups = 1;
  std::int64_t conv_kernel = 1;
};

/// How a token chooses its routed experts. Changes no size; a launcher needs it as an option.
struct Router {
  enum class Score { kSoftmax, kSigmoid } score = Score::kSoftmax;
  bool normalised = true;          ///< the weights of the chosen experts sum to 1 before `scale`
  double scale = 1;                ///< factor on the weights of the chosen experts
  std::int64_t groups = 0;         ///< of experts, for group-limited routing; 0: none
  std::int64_t groups_active = 0;  ///< groups that a token may choose from
};

struct Experts {
  std::int64_t count = 1;
  std::int64_t active = 1;      ///< routed experts a token visits
  std::int64_t ffn = 1;         ///< inner width of one routed expert
  std::int64_t shared_ffn = 0;  ///< of the experts every token visits, together; 0: none
  std::int64_t latent = 0;      ///< width the routed experts work in; 0: the hidden size
  bool shared_gate = false;     ///< a learned gate on the shared expert
  bool routing_bias = false;    ///< one bias an expert, in the router or its scores
  Router router;
};

/// The image tower of a multimodal model. It counts as parameters; its operations are not counted,
/// because a text token does not pass through it.
struct VisionPart {
  enum class Kind { kSiglip, kClip, kLlama4 } kind = Kind::kClip;
  enum class Projector { kNone, kLinear, kTwoLayers } projector = Projector::kNone;
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  std::int64_t ffn = 1;
  std::int64_t image = 1;  ///< pixels of an edge
  std::int64_t patch = 1;
  std::int64_t channels = 3;
  double shuffle_ratio = 1;  ///< kLlama4: patches merge 1/ratio^2 to one
  std::int64_t projector_in = 0;
  std::int64_t projector_out = 0;
  std::int64_t output = 0;
};

/// Rotary positions (Su et al. 2021) and how their wavelengths are stretched to longer sequences.
/// Changes no size; a launcher needs them as options.
struct Rotary {
  enum class Stretch { kNone, kLlama3, kYarn, kOther };
  std::optional<double> base;  ///< none: not stated
  Stretch stretch = Stretch::kNone;
  double factor = 1;
  double original_positions = 0;  ///< 0: not stated
  double beta_fast = 32;          ///< YaRN (Peng et al. 2023)
  double beta_slow = 1;
  double mscale = 1;
  double mscale_all_dim = 0;
  bool whole_bounds = true;  ///< YaRN's bounds are rounded to whole dimensions
};

/// A language model: tokens in, one distribution over `vocab` tokens out for each.
struct Transformer {
  std::int64_t hidden = 1;
  std::int64_t vocab = 1;
  std::int64_t positions_max = 0;  ///< longest sequence it was made for; 0: not stated
  std::int64_t ffn = 1;            ///< inner width of a dense feed-forward part
  std::vector<Layer> layers;       ///< in order from the embedding to the head

  Attention attention;
  Attention full_attention;  ///< of kFullAttention layers; Gemma 4's differ from its sliding ones
  std::optional<LatentAttention> latent;
  std::optional<DeltaNet> delta_net;
  std::optional<Mamba> mamba;
  std::optional<Experts> experts;
  std::int64_t window = 0;  ///< of kSlidingAttention layers
  std::int64_t chunk = 0;   ///< of kChunkedAttention layers

  bool gated = true;  ///< three matrices a feed-forward part instead of two
  bool mlp_bias = false;
  std::int64_t norm_vectors = 1;  ///< of a norm: 1 scale only, 2 scale and shift
  std::int64_t norms = 2;         ///< a layer
  std::int64_t layer_scalars = 0;
  std::int64_t embedding_norms = 0;
  bool final_norm = true;

  bool tied = false;  ///< the head is the embedding matrix
  bool head_bias = false;
  std::int64_t learned_positions = 0;  ///< rows of the position table; 0: none
  std::int64_t token_types = 0;        ///< rows of the token type table
  bool pretraining_heads = false;      ///< BERT's masked-language, pooler and next-sentence heads
  bool causal = true;
  std::int64_t prediction_layers = 0;  ///< multi-token prediction modules, not part of the total
  std::optional<VisionPart> vision;
  Rotary rotary;
  std::optional<double> norm_epsilon;  ///< none: not stated
};

/// Image classifier of Dosovitskiy et al. 2021. One sample is one image.
struct VisionTransformer {
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  std::int64_t ffn = 1;
  std::int64_t image = 1;
  std::int64_t patch = 1;
  std::int64_t channels = 3;
  std::int64_t labels = 0;  ///< 0: no head
};

/// Image diffusion model with adaLN-zero (Peebles and Xie 2023). One sample is one denoising step
/// of one latent image.
struct DiffusionTransformer {
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  std::int64_t ffn = 1;
  std::int64_t input = 1;  ///< latent pixels of an edge
  std::int64_t patch = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t classes = 1;
};

/// Video diffusion model with cross-attention to text (Wan 2.1). One sample is one denoising step
/// of one latent video.
struct VideoDiffusionTransformer {
  std::int64_t hidden = 1;
  std::int64_t layers = 1;
  std::int64_t ffn = 1;
  std::int64_t patch_volume = 1;
  std::int64_t in_channels = 1;
  std::int64_t out_channels = 1;
  std::int64_t text_dim = 1;
  std::int64_t text_tokens = 1;
  std::int64_t time_dim = 1;
  std::int64_t tokens = 1;  ///< latent tokens of the video
  bool cross_attention_norm = false;
};

/// Recommendation model with embedding tables (Naumov et al. 2019; DCNv2: Wang et al. 2021).
/// One sample is one scored item.
struct RecommendationModel {
  struct Table {
    std::int64_t rows = 1;
    std::int64_t lookups = 1;  ///< rows a sample reads
  };
  std::int64_t embedding_dim = 1;
  std::int64_t dense_features = 1;
  std::vector<Table> tables;
  std::vector<std::int64_t> bottom_mlp;  ///< widths after the dense features
  std::vector<std::int64_t> top_mlp;     ///< widths after the interaction
  std::int64_t cross_layers = 0;         ///< low-rank cross layers; 0: pairwise dot products
  std::int64_t cross_rank = 0;
};

using Architecture = std::variant<Transformer, VisionTransformer, DiffusionTransformer,
                                  VideoDiffusionTransformer, RecommendationModel>;

struct Model {
  std::string name;
  std::vector<std::string> aliases;
  std::string type;  ///< model_type of the configuration (of its text part, where it has one)
  Architecture architecture;
  /// Format the weights are published in (torch_dtype); none when not stated.
  std::optional<NumberFormat> weight_format;
  /// Format of the quantised matrices (quantization_config); the rest keep weight_format.
  std::optional<NumberFormat> quantized_format;
  /// Whether `type` is one whose rules are known; else it is counted with Llama's.
  bool known_type = true;
  /// What the configuration left open and how it was settled, one sentence each.
  std::vector<std::string> assumptions;
  SourcePosition where;
};

[[nodiscard]] ModelFamily family_of(const Model& model);

/// Tokens of one sample; 0 for models that work on sequences or have no tokens.
[[nodiscard]] double sample_tokens(const Model& model);

/// Layers of one kind, and what one of them holds and does. Per-token figures of a family that
/// works on samples hold for one of the sample's tokens.
struct LayerGroup {
  Layer kind;
  std::string name;
  std::int64_t layers = 0;
  double parameters = 0;      ///< of one layer
  double active = 0;          ///< of them, used for one token
  double routed = 0;          ///< of `parameters`, in routed experts
  double matmul = 0;          ///< weights a token is multiplied with: 2 operations each
  double attended_width = 0;  ///< width of queries and values, all heads: 2 operations a seen token
  double kv_elements = 0;     ///< keys and values (or latent) of one token
  double index_width = 0;     ///< operations of a sparse-attention indexer for one earlier token
  double fixed_flops = 0;     ///< operations a token beside those
  std::int64_t window = 0;    ///< most earlier tokens seen; 0: all
  bool causal = true;
};

struct ParameterCount {
  double total = 0;   ///< with the vision part, without prediction modules
  double active = 0;  ///< used for one text token (DLRM: one sample), head and embedding included
  double embedding = 0;  ///< token and position tables, an untied head, or the DLRM's tables
  double active_without_embedding = 0;  ///< `active` less input tables that are not also the head
  double vision = 0;
  double prediction = 0;           ///< multi-token prediction modules
  std::vector<LayerGroup> groups;  ///< by layer kind, in order of first appearance; DLRM: none
};

/// Counts every weight, bias and norm vector of the shape. Cost: O(layers), DLRM O(tables).
/// Formulas: Narayanan et al. SC21 (dense transformers), DeepSeek-V2 2024 (latent attention),
/// Dao and Gu 2024 (Mamba-2), Yang et al. 2024 (gated delta net), Dosovitskiy et al. 2021,
/// Peebles and Xie 2023, Naumov et al. 2019; biases and norms as in the public implementations.
[[nodiscard]] ParameterCount count_parameters(const Model& model);

/// Whether scores a causal mask throws away count as operations. Kernels skip them; the formulas
/// of SC21 and of PaLM's model FLOPs utilisation count them.
enum class MaskedScores { kSkipped, kCounted };

struct ForwardFlops {
  Flops layers;
  Flops ends;  ///< embedding and head

  [[nodiscard]] Flops total() const { return layers + ends; }
};

/// Operations (a multiply-add is two) of one forward pass: per token of a sequence of `sequence`
/// tokens for a transformer, averaged over its positions; per sample, whatever the sequence, for
/// the other families. Matrix products, attention scores, convolutions and scans count; norms,
/// softmax and element-wise work do not. Latent attention in its expanded form, as in training and
/// prefill. SC21 (Narayanan et al. 2021): 4 x layers + 3 x ends with MaskedScores::kCounted is
/// 96 l h^2 (1 + s/6h + V/16lh) a token, one forward pass being recomputed.
[[nodiscard]] ForwardFlops forward_flops_parts(const Model& model, Tokens sequence,
                                               MaskedScores masked = MaskedScores::kSkipped);
[[nodiscard]] Flops forward_flops(const Model& model, Tokens sequence,
                                  MaskedScores masked = MaskedScores::kSkipped);

/// The part of one layer of the group, per token.
[[nodiscard]] Flops layer_forward_flops(const LayerGroup& group, Tokens sequence,
                                        MaskedScores masked = MaskedScores::kSkipped);

/// Elements (not bytes) of keys and values that one token adds to the cache, all layers together;
/// 0 for families without one. Recurrent states and an indexer's keys are not counted.
[[nodiscard]] double kv_elements_per_token(const Model& model);

}  // namespace orrery
