#include "perf/serving/serving_shape.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

ServingMatrix columns(double rows, double width, MatrixRole role = MatrixRole::kMixer) {
  return {.rows = rows, .columns = width, .split = MatrixSplit::kColumns, .role = role};
}

ServingMatrix summed(double rows, double width, MatrixRole role = MatrixRole::kMixer) {
  return {.rows = rows, .columns = width, .split = MatrixSplit::kRows, .role = role};
}

ServingMatrix replicated(double rows, double width, MatrixRole role = MatrixRole::kMixer) {
  return {.rows = rows, .columns = width, .split = MatrixSplit::kReplicated, .role = role};
}

void add_attention(ServingLayer& layer, const Transformer& model, const Attention& attention) {
  const double queries = real(attention.heads * attention.head_dim);
  const double keys = real(attention.kv_heads * attention.head_dim);
  const double query_copies = attention.output_gate ? 2 : 1;
  const double key_copies = attention.separate_value ? 2 : 1;
  layer.matrices.push_back(columns(real(model.hidden), queries * query_copies + keys * key_copies));
  layer.matrices.push_back(summed(queries, real(model.hidden)));
  layer.attention.heads = real(attention.heads);
  layer.attention.kv_heads = real(attention.kv_heads);
  layer.attention.prefill_width = 2 * queries;
  layer.attention.decode_width = 2 * queries;
  layer.attention.kv_elements = keys * key_copies;
}

// Absorbed decode (DeepSeek-V2 2024, section 2.1.2): scores and values are taken in the latent's
// space, so decode reads only the latent and each head works on its width.
void add_latent(ServingLayer& layer, const Transformer& model, const LatentAttention& latent) {
  const double hidden = real(model.hidden);
  const double heads = real(latent.heads);
  const double query = real(latent.nope_dim + latent.rope_dim);
  const double rank = real(latent.kv_rank);
  const double rope = real(latent.rope_dim);
  const double queries = real(latent.query_rank);
  layer.matrices.push_back(replicated(hidden, queries + rank + rope));
  layer.matrices.push_back(columns(queries > 0 ? queries : hidden, heads * query));
  layer.matrices.push_back(columns(rank, heads * real(latent.nope_dim + latent.value_dim)));
  layer.matrices.push_back(summed(heads * real(latent.value_dim), hidden));
  layer.attention.heads = heads;
  layer.attention.kv_heads = 1;
  layer.attention.latent = true;
  layer.attention.prefill_width = heads * (query + real(latent.value_dim));
  layer.attention.decode_width = heads * (2 * rank + rope);
  layer.attention.kv_elements = rank + rope;
  if (latent.index_heads == 0) return;
  layer.matrices.push_back(replicated(queries, real(latent.index_heads * latent.index_dim)));
  layer.attention.index_width = real(latent.index_dim);
  layer.attention.seen_max = real(latent.index_topk);
}

void add_delta_net(ServingLayer& layer, const Transformer& model, const DeltaNet& net) {
  const double keys = real(net.key_heads * net.key_dim);
  const double values = real(net.value_heads * net.value_dim);
  layer.matrices.push_back(
      columns(real(model.hidden), 2 * keys + 2 * values + 2 * real(net.value_heads)));
  layer.matrices.push_back(summed(values, real(model.hidden)));
  layer.attention.state_elements = values * real(net.key_dim);
}

void add_mamba(ServingLayer& layer, const Transformer& model, const Mamba& mamba) {
  const double inner = real(mamba.heads * mamba.head_dim);
  const double channels = inner + 2 * real(mamba.groups * mamba.state);
  layer.matrices.push_back(columns(real(model.hidden), inner + channels + real(mamba.heads)));
  layer.matrices.push_back(summed(inner, real(model.hidden)));
  layer.attention.state_elements = inner * real(mamba.state);
}

void add_mixer(ServingLayer& layer, const Transformer& model, Mixer mixer) {
  switch (mixer) {
    case Mixer::kNone:
      return;
    case Mixer::kFullAttention:
      return add_attention(layer, model, model.full_attention);
    case Mixer::kSlidingAttention:
      add_attention(layer, model, model.attention);
      layer.attention.window = real(model.window);
      return;
    case Mixer::kChunkedAttention:
      add_attention(layer, model, model.attention);
      layer.attention.window = real(model.chunk);
      return;
    case Mixer::kLatentAttention:
      ORRERY_ASSERT(model.latent.has_value(), "the reader gives each mixer its sizes");
      return add_latent(layer, model, *model.latent);
    case Mixer::kDeltaNet:
      ORRERY_ASSERT(model.delta_net.has_value(), "the reader gives each mixer its sizes");
      return add_delta_net(layer, model, *model.delta_net);
    case Mixer::kMamba:
      ORRERY_ASSERT(model.mamba.has_value(), "the reader gives each mixer its sizes");
      return add_mamba(layer, model, *model.mamba);
  }
}

void add_dense(ServingLayer& layer, const Transformer& model, double ffn) {
  const double hidden = real(model.hidden);
  const double copies = model.gated ? 2 : 1;
  layer.matrices.push_back(columns(hidden, copies * ffn, MatrixRole::kFeedForward));
  layer.matrices.push_back(summed(ffn, hidden, MatrixRole::kFeedForward));
}

void add_experts(ServingLayer& layer, const Transformer& model) {
  ORRERY_ASSERT(model.experts.has_value(), "expert layers come with their experts");
  const Experts& experts = *model.experts;
  const double hidden = real(model.hidden);
  layer.matrices.push_back(replicated(hidden, real(experts.count), MatrixRole::kRouter));
  if (experts.shared_ffn > 0) add_dense(layer, model, real(experts.shared_ffn));
  layer.experts.count = real(experts.count);
  layer.experts.active = real(experts.active);
  layer.experts.ffn = real(experts.ffn);
  layer.experts.matrices = model.gated ? 3 : 2;
  layer.experts.outer = experts.latent > 0 ? real(experts.latent) : hidden;
  if (experts.latent == 0) return;
  layer.matrices.push_back(replicated(hidden, layer.experts.outer, MatrixRole::kFeedForward));
  layer.matrices.push_back(replicated(layer.experts.outer, hidden, MatrixRole::kFeedForward));
}

ServingLayer serving_layer(const Transformer& model, const Layer& kind) {
  ServingLayer layer;
  layer.layers = 1;
  add_mixer(layer, model, kind.mixer);
  switch (kind.feed_forward) {
    case FeedForward::kNone:
      break;
    case FeedForward::kDense:
      add_dense(layer, model, real(model.ffn));
      break;
    case FeedForward::kExperts:
      add_experts(layer, model);
      break;
    case FeedForward::kDenseAndExperts:
      add_dense(layer, model, real(model.ffn));
      add_experts(layer, model);
      break;
  }
  return layer;
}

}  // namespace

ServingShape serving_shape_of(const Transformer& transformer) {
  ServingShape shape;
  shape.hidden = real(transformer.hidden);
  shape.vocab = real(transformer.vocab);
  shape.layers = static_cast<double>(transformer.layers.size());
  shape.embedding_tables = transformer.tied ? 1 : 2;
  std::vector<Layer> seen;
  for (const Layer& kind : transformer.layers) {
    const auto at = std::find(seen.begin(), seen.end(), kind);
    if (at != seen.end()) {
      shape.kinds[static_cast<std::size_t>(at - seen.begin())].layers += 1;
      continue;
    }
    seen.push_back(kind);
    shape.kinds.push_back(serving_layer(transformer, kind));
  }
  return shape;
}

Result<ServingShape> serving_shape_of(const Model& model) {
  const auto* transformer = std::get_if<Transformer>(&model.architecture);
  if (transformer != nullptr && transformer->causal) return serving_shape_of(*transformer);
  return input_error(model.where, model.name + " is not a language model that generates tokens");
}

}  // namespace orrery
