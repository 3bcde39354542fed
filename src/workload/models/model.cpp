#include "workload/models/model.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

double flag(bool set) { return set ? 1 : 0; }

// A matrix and its bias.
double affine(double in, double out) { return in * out + out; }

// What a mixer or a feed-forward part adds to its layer; the members mean what LayerGroup's do.
struct Part {
  double parameters = 0;
  double routed = 0;
  double routed_idle = 0;
  double matmul = 0;
  double attended_width = 0;
  double kv_elements = 0;
  double index_width = 0;
  double fixed_flops = 0;
};

// Ainslie et al. 2023 (grouped queries); multi-head and multi-query attention are its ends.
Part attention_part(const Transformer& model, const Attention& attention) {
  const double h = real(model.hidden);
  const double queries = real(attention.heads * attention.head_dim);
  const double keys = real(attention.kv_heads * attention.head_dim);
  const double query_copies = attention.output_gate ? 2 : 1;
  const double key_copies = attention.separate_value ? 2 : 1;
  Part part;
  part.matmul = h * queries * query_copies + h * keys * key_copies + queries * h;
  part.parameters = part.matmul + flag(attention.qkv_bias) * (queries * query_copies + 2 * keys) +
                    flag(attention.output_bias) * h + flag(attention.sinks) * real(attention.heads);
  switch (attention.norm) {
    case QueryKeyNorm::kNone:
      break;
    case QueryKeyNorm::kPerHead:
      part.parameters += 2 * real(attention.head_dim);
      break;
    case QueryKeyNorm::kAllHeads:
      part.parameters += queries + keys;
      break;
  }
  part.attended_width = 2 * queries;
  part.kv_elements = keys * key_copies;
  return part;
}

// DeepSeek-V2 2024, section 2.1; the indexer as in DeepSeek-V3.2 and GLM-5.
Part latent_part(const Transformer& model, const LatentAttention& latent) {
  const double h = real(model.hidden);
  const double q = real(latent.heads);
  const double rank = real(latent.kv_rank);
  const double query_rank = real(latent.query_rank);
  const double query = real(latent.nope_dim + latent.rope_dim);
  const double value = real(latent.value_dim);
  Part part;
  part.matmul = h * (rank + real(latent.rope_dim)) + rank * q * (real(latent.nope_dim) + value) +
                q * value * h;
  part.matmul += latent.query_rank > 0 ? h * query_rank + query_rank * q * query : h * q * query;
  part.parameters = rank + query_rank;
  if (latent.biases) part.parameters += query_rank + rank + real(latent.rope_dim) + h;
  if (latent.index_heads > 0) {
    const double heads = real(latent.index_heads);
    const double dim = real(latent.index_dim);
    part.matmul += query_rank * heads * dim + h * dim + h * heads;
    part.parameters += 2 * dim;
    part.index_width = heads * dim;
  }
  part.parameters += part.matmul;
  part.attended_width = q * (query + value);
  part.kv_elements = rank + real(latent.rope_dim);
  return part;
}

// Yang et al. 2024; the state update and read-out are 6 operations an element of the state.
Part delta_part(const Transformer& model, const DeltaNet& net) {
  const double h = real(model.hidden);
  const double heads = real(net.value_heads);
  const double keys = real(net.key_heads * net.key_dim);
  const double values = real(net.value_heads * net.value_dim);
  const double convolution = (2 * keys + values) * real(net.conv_kernel);
  Part part;
  part.matmul = h * (2 * keys + 2 * values + 2 * heads) + values * h;
  part.parameters = part.matmul + convolution + 2 * heads + real(net.value_dim);
  part.fixed_flops = 2 * convolution + 6 * heads * real(net.key_dim) * real(net.value_dim);
  return part;
}

// Dao and Gu 2024; the scan is 7 operations an element of the state.
Part mamba_part(const Transformer& model, const Mamba& mamba) {
  const double h = real(model.hidden);
  const double heads = real(mamba.heads);
  const double inner = heads * real(mamba.head_dim);
  const double state = real(mamba.state);
  const double channels = inner + 2 * real(mamba.groups) * state;
  const double kernel = real(mamba.conv_kernel);
  Part part;
  part.matmul = h * (inner + channels + heads) + inner * h;
  part.parameters = part.matmul + channels * kernel + channels + 3 * heads + inner;
  part.fixed_flops = 2 * channels * kernel + 7 * inner * state;
  return part;
}

Part mixer_part(const Transformer& model, Mixer mixer) {
  switch (mixer) {
    case Mixer::kNone:
      return {};
    case Mixer::kFullAttention:
      return attention_part(model, model.full_attention);
    case Mixer::kSlidingAttention:
    case Mixer::kChunkedAttention:
      return attention_part(model, model.attention);
    case Mixer::kLatentAttention:
      ORRERY_ASSERT(model.latent.has_value(), "the reader gives each mixer its sizes");
      return latent_part(model, *model.latent);
    case Mixer::kDeltaNet:
      ORRERY_ASSERT(model.delta_net.has_value(), "the reader gives each mixer its sizes");
      return delta_part(model, *model.delta_net);
    case Mixer::kMamba:
      ORRERY_ASSERT(model.mamba.has_value(), "the reader gives each mixer its sizes");
      return mamba_part(model, *model.mamba);
  }
  return {};
}

// Weights of a feed-forward part of inner width `ffn` on vectors of width `outer`.
double mlp_weights(const Transformer& model, double outer, double ffn) {
  return (model.gated ? 3 : 2) * outer * ffn;
}

double mlp_parameters(const Transformer& model, double outer, double ffn) {
  const double biases = (model.gated ? 2 : 1) * ffn + outer;
  return mlp_weights(model, outer, ffn) + flag(model.mlp_bias) * biases;
}

Part experts_part(const Transformer& model, const Experts& experts) {
  const double h = real(model.hidden);
  const double count = real(experts.count);
  const double outer = experts.latent > 0 ? real(experts.latent) : h;
  Part part;
  part.matmul = h * count + flag(experts.shared_gate) * h;
  if (experts.shared_ffn > 0) {
    const double shared = mlp_parameters(model, h, real(experts.shared_ffn));
    part.parameters += shared - mlp_weights(model, h, real(experts.shared_ffn));
    part.matmul += mlp_weights(model, h, real(experts.shared_ffn));
  }
  if (outer != h) part.matmul += 2 * h * outer;
  part.parameters += part.matmul + flag(experts.routing_bias) * count;
  const double one = mlp_parameters(model, outer, real(experts.ffn));
  part.routed = count * one;
  part.routed_idle = (count - real(experts.active)) * one;
  part.parameters += part.routed;
  part.matmul += real(experts.active) * mlp_weights(model, outer, real(experts.ffn));
  return part;
}

Part dense_part(const Transformer& model) {
  Part part;
  part.matmul = mlp_weights(model, real(model.hidden), real(model.ffn));
  part.parameters = mlp_parameters(model, real(model.hidden), real(model.ffn));
  return part;
}

Part feed_forward_part(const Transformer& model, FeedForward kind) {
  switch (kind) {
    case FeedForward::kNone:
      return {};
    case FeedForward::kDense:
      return dense_part(model);
    case FeedForward::kExperts:
      ORRERY_ASSERT(model.experts.has_value(), "expert layers come with their experts");
      return experts_part(model, *model.experts);
    case FeedForward::kDenseAndExperts: {
      ORRERY_ASSERT(model.experts.has_value(), "expert layers come with their experts");
      const Part dense = dense_part(model);
      Part part = experts_part(model, *model.experts);
      // Gemma 4: a scale on the router's input, one on each expert's output, three more norms.
      part.parameters += dense.parameters + 4 * real(model.hidden) + real(model.experts->count);
      part.matmul += dense.matmul;
      return part;
    }
  }
  return {};
}

std::int64_t window_of(const Transformer& model, Mixer mixer) {
  switch (mixer) {
    case Mixer::kSlidingAttention:
      return model.window;
    case Mixer::kChunkedAttention:
      return model.chunk;
    case Mixer::kLatentAttention:
      return model.latent->index_topk;
    case Mixer::kNone:
    case Mixer::kFullAttention:
    case Mixer::kDeltaNet:
    case Mixer::kMamba:
      return 0;
  }
  return 0;
}

LayerGroup layer_group(const Transformer& model, const Layer& kind) {
  const Part mixer = mixer_part(model, kind.mixer);
  const Part mlp = feed_forward_part(model, kind.feed_forward);
  const double norms = real(model.norms * model.norm_vectors) * real(model.hidden);
  LayerGroup group;
  group.kind = kind;
  group.name = name_of(kind);
  group.layers = 1;
  group.parameters = mixer.parameters + mlp.parameters + norms + real(model.layer_scalars);
  group.active = group.parameters - mlp.routed_idle;
  group.routed = mlp.routed;
  group.matmul = mixer.matmul + mlp.matmul;
  group.attended_width = mixer.attended_width;
  group.kv_elements = mixer.kv_elements;
  group.index_width = mixer.index_width;
  group.fixed_flops = mixer.fixed_flops;
  group.window = window_of(model, kind.mixer);
  group.causal = model.causal;
  return group;
}

// A transformer block with every bias and two norms of scale and shift, as image towers have it.
double encoder_block(double h, double ffn) {
  return 4 * affine(h, h) + affine(h, ffn) + affine(ffn, h) + 4 * h;
}

double patches(std::int64_t image, std::int64_t patch) {
  const double edge = real(image / patch);
  return edge * edge;
}

double vision_parameters(const VisionPart& vision, double text_hidden) {
  const double h = real(vision.hidden);
  const double embedding = real(vision.channels * vision.patch * vision.patch) * h + h;
  const double positions = patches(vision.image, vision.patch);
  double total = real(vision.layers) * encoder_block(h, real(vision.ffn)) + embedding;
  // A class token joins the patches in all but SigLIP, which also has no norm before its blocks.
  const bool siglip = vision.kind == VisionPart::Kind::kSiglip;
  total += siglip ? positions * h + 2 * h : (positions + 1) * h + 4 * h;
  if (vision.kind == VisionPart::Kind::kLlama4) {
    const double merged = std::floor(h / (vision.shuffle_ratio * vision.shuffle_ratio));
    total += merged * real(vision.projector_in) +
             real(vision.projector_in) * real(vision.projector_out) +
             real(vision.output) * text_hidden;
  }
  switch (vision.projector) {
    case VisionPart::Projector::kNone:
      return total;
    case VisionPart::Projector::kLinear:  // and a norm before it
      return total + h * text_hidden + h;
    case VisionPart::Projector::kTwoLayers:
      return total + affine(h, text_hidden) + affine(text_hidden, text_hidden);
  }
  return total;
}

// Parameters besides the layers, the embedding and the head.
double loose_parameters(const Transformer& model) {
  const double h = real(model.hidden);
  const double vocab = real(model.vocab);
  const double norms = real(model.embedding_norms) + flag(model.final_norm);
  double loose = flag(model.head_bias) * vocab + real(model.norm_vectors) * h * norms;
  // Transform, its norm and the bias of the masked-language head; pooler; next-sentence head.
  if (model.pretraining_heads) loose += 2 * affine(h, h) + 2 * h + vocab + 2 * h + 2;
  return loose;
}

ParameterCount count(const Transformer& model) {
  const double h = real(model.hidden);
  ParameterCount result;
  double idle = 0;
  double body = 0;
  for (const Layer& layer : model.layers) {
    auto group = std::find_if(result.groups.begin(), result.groups.end(),
                              [&](const LayerGroup& known) { return known.kind == layer; });
    if (group == result.groups.end()) {
      group = result.groups.insert(group, layer_group(model, layer));
    } else {
      ++group->layers;
    }
    body += group->parameters;
    idle += group->parameters - group->active;
  }
  const double tokens = real(model.vocab) * h;
  const double positions = real(model.learned_positions + model.token_types) * h;
  const double untied = model.tied ? 0 : tokens;
  const double text = tokens + untied + positions + loose_parameters(model) + body;
  result.vision = model.vision ? vision_parameters(*model.vision, h) : 0;
  result.total = text + result.vision;
  result.active = text - idle;
  result.embedding = tokens + positions + untied;
  result.active_without_embedding = result.active - positions - untied;
  // A prediction module: one more layer, a projection of two states to one, three norms.
  result.prediction =
      real(model.prediction_layers) * (result.groups.back().parameters + 2 * h * h + 3 * h);
  return result;
}

// The one group of a model made of `layers` equal blocks that see all tokens of the sample.
LayerGroup block_group(double parameters, double matmul, double attended_width) {
  LayerGroup group;
  group.name = name_of(group.kind);
  group.parameters = parameters;
  group.active = parameters;
  group.matmul = matmul;
  group.attended_width = attended_width;
  group.causal = false;
  return group;
}

ParameterCount count_sampled(const LayerGroup& group, double embedding, double rest) {
  ParameterCount result;
  result.groups.push_back(group);
  result.total = real(group.layers) * group.parameters + embedding + rest;
  result.active = result.total;
  result.embedding = embedding;
  result.active_without_embedding = result.total;
  return result;
}

ParameterCount count(const VisionTransformer& model) {
  const double h = real(model.hidden);
  const double f = real(model.ffn);
  LayerGroup group = block_group(encoder_block(h, f), 4 * h * h + 2 * h * f, 2 * h);
  group.layers = model.layers;
  const double pixels = real(model.channels * model.patch * model.patch);
  const double positions = patches(model.image, model.patch) + 1;
  const double head = model.labels > 0 ? affine(h, real(model.labels)) : 0;
  return count_sampled(group, affine(pixels, h) + h + positions * h, 2 * h + head);
}

// Width of the sinusoidal time embedding in Peebles and Xie's code.
constexpr double kTimeWidth = 256;

ParameterCount count(const DiffusionTransformer& model) {
  const double h = real(model.hidden);
  const double f = real(model.ffn);
  const double s = patches(model.input, model.patch);
  const double block = 4 * affine(h, h) + affine(h, f) + affine(f, h) + affine(h, 6 * h);
  LayerGroup group = block_group(block, 4 * h * h + 2 * h * f, 2 * h);
  group.layers = model.layers;
  group.fixed_flops = 2 * 6 * h * h / s;  // the modulation, once a sample
  const double pixels = real(model.patch * model.patch);
  const double embedding = affine(pixels * real(model.in_channels), h) + affine(kTimeWidth, h) +
                           affine(h, h) + (real(model.classes) + 1) * h;
  const double final = affine(h, 2 * h) + affine(h, pixels * real(model.out_channels));
  return count_sampled(group, embedding, final);
}

ParameterCount count(const VideoDiffusionTransformer& model) {
  const double h = real(model.hidden);
  const double f = real(model.ffn);
  const double s = real(model.tokens);
  const double n = real(model.text_tokens);
  const double attention = 4 * affine(h, h) + 2 * h;
  const double block = 2 * attention + affine(h, f) + affine(f, h) + 6 * h +
                       flag(model.cross_attention_norm) * 2 * h;
  LayerGroup group = block_group(block, 6 * h * h + 2 * h * f, 2 * h);
  group.layers = model.layers;
  // Keys and values of the text, once a sample, and each token's attention to them.
  group.fixed_flops = 2 * n * 2 * h * h / s + 4 * h * n;
  const double volume = real(model.patch_volume);
  const double embedding = affine(real(model.in_channels) * volume, h) +
                           affine(real(model.text_dim), h) + affine(h, h) +
                           affine(real(model.time_dim), h) + affine(h, h) + affine(h, 6 * h);
  return count_sampled(group, embedding, affine(h, real(model.out_channels) * volume) + 2 * h);
}

struct DlrmShape {
  double dense_parameters = 0;
  double dense_matmul = 0;
  double rows = 0;
  double lookups = 0;
};

void add_mlp(DlrmShape& shape, double in, const std::vector<std::int64_t>& widths) {
  for (const std::int64_t width : widths) {
    shape.dense_parameters += affine(in, real(width));
    shape.dense_matmul += in * real(width);
    in = real(width);
  }
}

DlrmShape dlrm_shape(const RecommendationModel& model) {
  DlrmShape shape;
  for (const RecommendationModel::Table& table : model.tables) {
    shape.rows += real(table.rows);
    shape.lookups += real(table.lookups);
  }
  add_mlp(shape, real(model.dense_features), model.bottom_mlp);
  const double d = real(model.embedding_dim);
  const double vectors = static_cast<double>(model.tables.size()) + 1;
  if (model.cross_layers > 0) {
    const double wide = vectors * d;
    const double cross = real(model.cross_layers) * 2 * wide * real(model.cross_rank);
    shape.dense_parameters += cross + real(model.cross_layers) * wide;
    shape.dense_matmul += cross;
    add_mlp(shape, wide, model.top_mlp);
  } else {
    shape.dense_matmul += vectors * vectors * d;
    add_mlp(shape, d + vectors * (vectors - 1) / 2, model.top_mlp);
  }
  return shape;
}

ParameterCount count(const RecommendationModel& model) {
  const DlrmShape shape = dlrm_shape(model);
  const double d = real(model.embedding_dim);
  ParameterCount result;
  result.embedding = shape.rows * d;
  result.total = result.embedding + shape.dense_parameters;
  result.active = shape.lookups * d + shape.dense_parameters;
  result.active_without_embedding = shape.dense_parameters;
  return result;
}

double end_flops(const Transformer& model) { return 2 * real(model.vocab) * real(model.hidden); }

double end_flops(const VisionTransformer& model) {
  const double h = real(model.hidden);
  const double pixels = real(model.channels * model.patch * model.patch);
  return 2 * (patches(model.image, model.patch) * pixels * h + h * real(model.labels));
}

double end_flops(const DiffusionTransformer& model) {
  const double h = real(model.hidden);
  const double channels = real(model.in_channels + model.out_channels);
  const double pixels = real(model.patch * model.patch) * patches(model.input, model.patch);
  return 2 * (pixels * channels * h + kTimeWidth * h + h * h + 2 * h * h);
}

double end_flops(const VideoDiffusionTransformer& model) {
  const double h = real(model.hidden);
  const double channels = real(model.in_channels + model.out_channels);
  return 2 * (real(model.tokens) * h * real(model.patch_volume) * channels +
              real(model.text_tokens) * (real(model.text_dim) * h + h * h) +
              real(model.time_dim) * h + 7 * h * h);
}

double end_flops(const RecommendationModel& model) {
  const DlrmShape shape = dlrm_shape(model);
  return 2 * shape.dense_matmul + shape.lookups * real(model.embedding_dim);
}

// Number of tokens that a token attends to, averaged over the positions of a sequence of `s`.
double mean_context(const LayerGroup& group, double s, MaskedScores masked) {
  if (!group.causal) return s;
  const double w = group.window > 0 ? std::min(real(group.window), s) : s;
  if (masked == MaskedScores::kCounted) return w;
  return group.kind.mixer == Mixer::kChunkedAttention ? w / 2 : w - w * w / (2 * s);
}

std::string_view name_of(Mixer mixer) {
  switch (mixer) {
    case Mixer::kNone:
      return "";
    case Mixer::kFullAttention:
      return "full attention";
    case Mixer::kSlidingAttention:
      return "sliding attention";
    case Mixer::kChunkedAttention:
      return "chunked attention";
    case Mixer::kLatentAttention:
      return "latent attention";
    case Mixer::kDeltaNet:
      return "delta net";
    case Mixer::kMamba:
      return "mamba";
  }
  return "";
}

std::string_view name_of(FeedForward kind) {
  switch (kind) {
    case FeedForward::kNone:
      return "";
    case FeedForward::kDense:
      return "dense";
    case FeedForward::kExperts:
      return "experts";
    case FeedForward::kDenseAndExperts:
      return "dense + experts";
  }
  return "";
}

}  // namespace

std::string name_of(const Layer& layer) {
  std::string name(name_of(layer.mixer));
  const std::string_view mlp = name_of(layer.feed_forward);
  if (!name.empty() && !mlp.empty()) name += " + ";
  return name.append(mlp);
}

double sample_tokens(const Model& model) {
  const Architecture& architecture = model.architecture;
  if (const auto* vit = std::get_if<VisionTransformer>(&architecture)) {
    return patches(vit->image, vit->patch) + 1;
  }
  if (const auto* dit = std::get_if<DiffusionTransformer>(&architecture)) {
    return patches(dit->input, dit->patch);
  }
  if (const auto* video = std::get_if<VideoDiffusionTransformer>(&architecture)) {
    return real(video->tokens);
  }
  return 0;
}

ModelFamily family_of(const Model& model) {
  struct Visitor {
    ModelFamily operator()(const Transformer&) const { return ModelFamily::kTransformer; }
    ModelFamily operator()(const VisionTransformer&) const { return ModelFamily::kVit; }
    ModelFamily operator()(const DiffusionTransformer&) const { return ModelFamily::kDit; }
    ModelFamily operator()(const VideoDiffusionTransformer&) const { return ModelFamily::kDit; }
    ModelFamily operator()(const RecommendationModel&) const { return ModelFamily::kDlrm; }
  };
  return std::visit(Visitor{}, model.architecture);
}

ParameterCount count_parameters(const Model& model) {
  return std::visit([](const auto& shape) { return count(shape); }, model.architecture);
}

Flops layer_forward_flops(const LayerGroup& group, Tokens sequence, MaskedScores masked) {
  const double s = sequence.value();
  if (s <= 0) return Flops(2 * group.matmul + group.fixed_flops);
  return Flops(2 * group.matmul + group.fixed_flops +
               2 * group.attended_width * mean_context(group, s, masked) + group.index_width * s);
}

ForwardFlops forward_flops_parts(const Model& model, Tokens sequence, MaskedScores masked) {
  ForwardFlops flops;
  flops.ends =
      Flops(std::visit([](const auto& shape) { return end_flops(shape); }, model.architecture));
  const double tokens = sample_tokens(model);
  const Tokens seen = tokens > 0 ? Tokens(tokens) : sequence;
  for (const LayerGroup& group : count_parameters(model).groups) {
    flops.layers += real(group.layers) * layer_forward_flops(group, seen, masked);
  }
  if (tokens > 0) flops.layers = tokens * flops.layers;
  return flops;
}

Flops forward_flops(const Model& model, Tokens sequence, MaskedScores masked) {
  return forward_flops_parts(model, sequence, masked).total();
}

double kv_elements_per_token(const Model& model) {
  double elements = 0;
  for (const LayerGroup& group : count_parameters(model).groups) {
    elements += real(group.layers) * group.kv_elements;
  }
  return elements;
}

}  // namespace orrery
