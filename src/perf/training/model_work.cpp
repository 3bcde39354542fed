#include "perf/training/model_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

void add_attention(const Transformer& model, const Attention& attention, LayerWork& work) {
  const double h = real(model.hidden);
  const double queries = real(attention.heads * attention.head_dim);
  const double keys = real(attention.kv_heads * attention.head_dim);
  work.heads = real(attention.heads);
  work.head_dim = real(attention.head_dim);
  work.sinks = attention.sinks;
  work.query_width = queries;
  work.key_value_width = 2 * keys;
  const double gate = attention.output_gate ? queries : 0;
  work.products.push_back(
      {.n = queries + gate + (attention.separate_value ? 2 : 1) * keys, .k = h});
  work.products.push_back({.n = h, .k = queries, .cut = Cut::kRows});
}

void add_latent(const Transformer& model, const LatentAttention& latent, LayerWork& work) {
  const double h = real(model.hidden);
  const double heads = real(latent.heads);
  const double query = real(latent.nope_dim + latent.rope_dim);
  const double value = real(latent.value_dim);
  const double rank = real(latent.kv_rank);
  const double query_rank = real(latent.query_rank);
  work.heads = heads;
  work.head_dim = query;
  work.query_width = heads * query;
  work.key_value_width = heads * (query + value);
  if (query_rank > 0) {
    work.products.push_back({.n = query_rank, .k = h, .cut = Cut::kReplicated});
    work.products.push_back({.n = heads * query, .k = query_rank});
  } else {
    work.products.push_back({.n = heads * query, .k = h});
  }
  work.products.push_back({.n = rank + real(latent.rope_dim), .k = h, .cut = Cut::kReplicated});
  work.products.push_back({.n = heads * (real(latent.nope_dim) + value), .k = rank});
  work.products.push_back({.n = h, .k = heads * value, .cut = Cut::kRows});
  if (latent.index_heads > 0) {
    const double width = real(latent.index_heads * latent.index_dim);
    work.products.push_back({.n = width, .k = query_rank, .cut = Cut::kReplicated});
  }
}

void add_linear_mixer(const Transformer& model, double inner, double in_width, LayerWork& work) {
  const double h = real(model.hidden);
  work.products.push_back({.n = in_width, .k = h});
  work.products.push_back({.n = h, .k = inner, .cut = Cut::kRows});
  work.scan_width = in_width + inner;
}

void add_mixer(const Transformer& model, Mixer mixer, LayerWork& work) {
  switch (mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kFullAttention:
      return add_attention(model, model.full_attention, work);
    case Mixer::kSlidingAttention:
    case Mixer::kChunkedAttention:
      return add_attention(model, model.attention, work);
    case Mixer::kLatentAttention:
      return add_latent(model, *model.latent, work);
    case Mixer::kDeltaNet: {
      const double keys = real(model.delta_net->key_heads * model.delta_net->key_dim);
      const double values = real(model.delta_net->value_heads * model.delta_net->value_dim);
      return add_linear_mixer(model, values, 2 * keys + 2 * values, work);
    }
    case Mixer::kMamba: {
      const double inner = real(model.mamba->heads * model.mamba->head_dim);
      const double states = 2 * real(model.mamba->groups * model.mamba->state);
      return add_linear_mixer(model, inner, 2 * inner + states, work);
    }
  }
}

void add_dense_mlp(const Transformer& model, double ffn, LayerWork& work) {
  const double h = real(model.hidden);
  work.ffn_width += ffn;
  work.products.push_back({.n = work.gates * ffn, .k = h});
  work.products.push_back({.n = h, .k = ffn, .cut = Cut::kRows});
}

void add_experts(const Transformer& model, LayerWork& work) {
  const Experts& experts = *model.experts;
  const double h = real(model.hidden);
  const double outer = experts.latent > 0 ? real(experts.latent) : h;
  work.experts = real(experts.count);
  work.experts_active = real(experts.active);
  work.expert_ffn = real(experts.ffn);
  work.expert_biases = model.mlp_bias;
  work.products.push_back({.n = work.experts, .k = h, .cut = Cut::kReplicated, .narrow = false});
  if (outer != h) {
    work.products.push_back({.n = outer, .k = h, .cut = Cut::kReplicated});
    work.products.push_back({.n = h, .k = outer, .cut = Cut::kReplicated});
  }
  work.products.push_back(
      {.n = work.gates * work.expert_ffn, .k = outer, .operand = Operand::kExpert});
  work.products.push_back(
      {.n = outer, .k = work.expert_ffn, .cut = Cut::kRows, .operand = Operand::kExpert});
  if (experts.shared_ffn > 0) add_dense_mlp(model, real(experts.shared_ffn), work);
}

void add_feed_forward(const Transformer& model, FeedForward kind, LayerWork& work) {
  work.gates = model.gated ? 2 : 1;
  const bool dense = kind == FeedForward::kDense || kind == FeedForward::kDenseAndExperts;
  if (dense) add_dense_mlp(model, real(model.ffn), work);
  if (kind == FeedForward::kExperts || kind == FeedForward::kDenseAndExperts) {
    add_experts(model, work);
  }
}

/// A block of another family: one product that stands for all of its weights.
void add_block(const LayerGroup& group, double hidden, LayerWork& work) {
  work.products.push_back({.n = group.matmul / hidden, .k = hidden});
  work.query_width = group.attended_width / 2;
  work.key_value_width = group.attended_width;
  work.head_dim = 128;
  work.heads = std::max(1.0, work.query_width / 128);
  work.ffn_width = 4 * hidden;
}

/// Where the layers of each kind stand; kinds of other families than transformers do not mix.
void set_order(const Transformer* transformer, ModelWork& work) {
  for (LayerWork& kind : work.kinds) {
    kind.before.push_back(0);
    for (std::size_t i = 0; i < static_cast<std::size_t>(work.layers); ++i) {
      const bool own = transformer == nullptr || transformer->layers[i] == kind.group.kind;
      kind.before.push_back(kind.before.back() + (own ? 1 : 0));
    }
  }
}

double hidden_of(const Model& model) {
  if (const auto* vit = std::get_if<VisionTransformer>(&model.architecture)) {
    return real(vit->hidden);
  }
  if (const auto* dit = std::get_if<DiffusionTransformer>(&model.architecture)) {
    return real(dit->hidden);
  }
  if (const auto* video = std::get_if<VideoDiffusionTransformer>(&model.architecture)) {
    return real(video->hidden);
  }
  return 0;
}

}  // namespace

Result<ModelWork> work_of(const Model& model) {
  const ParameterCount count = count_parameters(model);
  if (count.groups.empty()) {
    return infeasible(
        fmt::format("{}: a {} has no layers to split over ranks; its step is not "
                    "priced",
                    model.name, word_of(family_of(model))));
  }
  ModelWork result;
  const auto* transformer = std::get_if<Transformer>(&model.architecture);
  result.token_model = transformer != nullptr;
  result.hidden = transformer != nullptr ? real(transformer->hidden) : hidden_of(model);
  result.parameters = count.total;
  result.active_parameters = count.active;
  if (transformer != nullptr) {
    result.vocab = real(transformer->vocab);
    result.tied = transformer->tied;
    result.prediction_layers = real(transformer->prediction_layers);
    result.head = result.vocab * result.hidden;
    result.embedding = count.embedding - (transformer->tied ? 0 : result.head);
  }
  for (const LayerGroup& group : count.groups) {
    LayerWork work{.group = group,
                   .layers = real(group.layers),
                   .parameters = group.parameters,
                   .routed_parameters = group.routed,
                   .attended_width = group.attended_width,
                   .scan_flops = group.fixed_flops};
    if (transformer != nullptr) {
      add_mixer(*transformer, group.kind.mixer, work);
      add_feed_forward(*transformer, group.kind.feed_forward, work);
    } else {
      add_block(group, result.hidden, work);
    }
    for (const Product& product : work.products) {
      if (product.operand == Operand::kExpert) continue;
      work.largest_weight = std::max(work.largest_weight, product.n * product.k);
    }
    result.layers += work.layers;
    result.kinds.push_back(std::move(work));
  }
  set_order(transformer, result);
  return result;
}

double attention_flops_per_token(const LayerWork& work, Tokens sequence, MaskedScores masked) {
  const double all = layer_forward_flops(work.group, sequence, masked).value();
  return std::max(0.0, all - 2 * work.group.matmul - work.group.fixed_flops);
}

}  // namespace orrery
