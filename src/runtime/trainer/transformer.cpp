#include "runtime/trainer/transformer.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/kernels.hpp"

namespace orrery {
namespace {

constexpr auto kTransposed = MatrixOperand::Order::kTransposed;
/// The configuration that the attention of a part sees: a narrower model with heads of equal width.
TransformerConfig attention_of(TransformerConfig config, const ModelPart& part) {
  const std::int64_t ranks = part.tensor_ranks;
  config.width /= ranks;
  config.heads /= ranks;
  config.kv_heads /= ranks;
  return config;
}

}  // namespace

/// A micro-batch between its forward and its backward pass.
struct TrainableTransformer::Slot {
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
};

/// One call's arguments.
struct TrainableTransformer::Pass {
  std::span<const float> parameters;
  const Slot& slot;
  std::size_t chunk = 0;
  std::span<const BlockParameters> layers;  ///< layers of the chunk, like `blocks`
  std::span<const BlockRows> blocks;
  TokenRows batch;
  RowRange own;  ///< the rows of the batch whose stream is on this rank
  float* gradient = nullptr;
  float loss_scale = 0;
};

struct TrainableTransformer::LinearRows {
  const float* x = nullptr;
  const float* residual = nullptr;  ///< added to the result
  float* out = nullptr;
  std::int64_t rows = 0;
};

struct TrainableTransformer::LinearGradient {
  const float* x = nullptr;
  const float* out_gradient = nullptr;
  float* x_gradient = nullptr;  ///< written
  std::int64_t rows = 0;
};

TrainableTransformer::TrainableTransformer(const TransformerConfig& config, std::int64_t sequences,
                                           const ModelPart& part, std::size_t slots)
    : kernels_(kernels()),
      layout_(config, part),
      config_(config),
      sequences_(sequences),
      products_(config.precision),
      attention_(attention_of(config, part), products_),
      slots_(slots) {
  ORRERY_ASSERT(sequences > 0, "a micro-batch has a sequence");
  ORRERY_ASSERT(slots >= part.chunks, "each chunk can be on its way");
  ORRERY_ASSERT(slots == 1 || part.chunks > 1 || !part.last(), "a last stage goes back at once");
  rows_.slots.resize(slots);
  arena_.resize(lay_activations(layout_, sequences, rows_, nullptr));
  lay_activations(layout_, sequences, rows_, arena_.data());
  losses_.resize(static_cast<std::size_t>(sequences * config.sequence));
  if (config.experts > 0) moe_.emplace(layout_, sequences * config.sequence, products_);
}

TrainableTransformer::~TrainableTransformer() = default;

std::size_t TrainableTransformer::activation_bytes(const TransformerConfig& config,
                                                   std::int64_t sequences, const ModelPart& part,
                                                   std::size_t slots) {
  ActivationRows rows;
  rows.slots.resize(slots);
  return lay_activations(ParameterLayout(config, part), sequences, rows, nullptr) * sizeof(float);
}

std::size_t TrainableTransformer::stream_floats(const TransformerConfig& config,
                                                std::int64_t sequences) {
  return static_cast<std::size_t>(sequences * config.sequence * config.width);
}

std::size_t TrainableTransformer::rooms(const TransformerConfig& config) {
  return config.experts > 0 ? 3 : 2;
}

void TrainableTransformer::share(PartPeers& peers) {
  peers_ = &peers;
  if (layout_.part().tensor_ranks == 1) return;
  const std::size_t each = stream_floats(config_, sequences_);
  rows_.norm_gradient = peers.room(rooms(config_) * each).data();
  rows_.gathered = rows_.norm_gradient + each;
  if (moe_) rows_.out_gradient = rows_.gathered + each;
}

float TrainableTransformer::loss_and_gradient(std::span<const float> parameters,
                                              std::span<const std::int32_t> tokens,
                                              std::span<float> gradient, float loss_scale) {
  const std::size_t chunks = layout_.part().chunks;
  for (std::size_t i = 0; i < chunks; ++i) forward(parameters, tokens, {.slot = i, .chunk = i});
  float loss = 0;
  for (std::size_t i = chunks; i-- > 0;) {
    loss += backward(parameters, {.slot = i, .chunk = i}, gradient, loss_scale);
  }
  return loss;
}

TrainableTransformer::Pass TrainableTransformer::pass_of(std::span<const float> parameters,
                                                         const At& at, float* gradient) {
  ORRERY_ASSERT(parameters.size() == layout_.size(), "the parameters are the layout's");
  const Slot& of = slots_[at.slot];
  const auto tokens = static_cast<std::int64_t>(of.inputs.size());
  const ModelPart& part = layout_.part();
  const std::vector<BlockRows>& blocks = rows_.slots[at.slot];
  return {.parameters = parameters,
          .slot = of,
          .chunk = at.chunk,
          .layers = layout_.blocks().subspan(at.chunk * blocks.size(), blocks.size()),
          .blocks = blocks,
          .batch = {tokens / config_.sequence, config_.sequence},
          .own = own_rows(tokens, part.tensor_rank, part.tensor_ranks),
          .gradient = gradient};
}

void TrainableTransformer::forward(std::span<const float> parameters,
                                   std::span<const std::int32_t> tokens, const At& at) {
  ORRERY_ASSERT(at.slot < slots_.size(), "a slot is one of those there are");
  split(tokens, slots_[at.slot]);
  forward(pass_of(parameters, at, nullptr));
}

float TrainableTransformer::backward(std::span<const float> parameters, const At& at,
                                     std::span<float> gradient, float loss_scale) {
  ORRERY_ASSERT(gradient.size() == layout_.size(), "the gradient is the layout's");
  Pass pass = pass_of(parameters, at, gradient.data());
  pass.loss_scale = loss_scale;
  const float loss = layout_.part().ends_with(at.chunk) ? head_loss(pass, loss_scale) : 0;
  backward(pass);
  return loss;
}

void TrainableTransformer::join(std::span<float> gradient) {
  const ModelPart& part = layout_.part();
  if (part.tensor_ranks > 1) join_norms(gradient);
  const bool twice = config_.tied_embedding && part.stages > 1 && (part.first() || part.last());
  if (!twice) return;
  peers_->sum_ends(gradient.subspan(layout_.token_embedding(),
                                    static_cast<std::size_t>(config_.vocab * config_.width)));
}

void TrainableTransformer::join_norms(std::span<float> gradient) {
  const auto width = static_cast<std::size_t>(config_.width);
  std::vector<std::size_t> begins;
  const auto add = [&](const NormParameters& norm) {
    begins.push_back(norm.weight);
    if (norm.bias) begins.push_back(*norm.bias);
  };
  for (const BlockParameters& block : layout_.blocks()) {
    add(block.attention_norm);
    add(block.ffn_norm);
  }
  if (layout_.part().last()) add(layout_.final_norm());
  std::vector<float> norms(begins.size() * width);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    std::copy_n(gradient.data() + begins[i], width, norms.data() + i * width);
  }
  peers_->sum(norms);
  for (std::size_t i = 0; i < begins.size(); ++i) {
    std::copy_n(norms.data() + i * width, width, gradient.data() + begins[i]);
  }
}

float TrainableTransformer::loss(std::span<const float> parameters,
                                 std::span<const std::int32_t> tokens) {
  const std::size_t chunks = layout_.part().chunks;
  for (std::size_t i = 0; i < chunks; ++i) forward(parameters, tokens, {.slot = 0, .chunk = i});
  return layout_.part().last() ? head_loss(pass_of(parameters, {}, nullptr), 0) : 0;
}

double TrainableTransformer::router_loss(std::size_t slot) {
  double sum = 0;
  if (!moe_) return sum;
  const auto rows = static_cast<std::int64_t>(slots_[slot].inputs.size());
  for (const BlockRows& block : rows_.slots[slot]) sum += moe_->balance(block.router_scores, rows);
  return sum;
}

void TrainableTransformer::logits(std::span<const float> parameters,
                                  std::span<const std::int32_t> tokens, std::span<float> logits) {
  const auto time = static_cast<std::int64_t>(tokens.size());
  ORRERY_ASSERT(time > 0 && time <= config_.sequence, "the tokens are a sequence");
  ORRERY_ASSERT(logits.size() == static_cast<std::size_t>(config_.vocab), "a score for each token");
  Slot& slot = slots_[0];
  slot.inputs.assign(tokens.begin(), tokens.end());
  const Pass pass{.parameters = parameters,
                  .slot = slot,
                  .layers = layout_.blocks(),
                  .blocks = rows_.slots[0],
                  .batch = {1, time},
                  .own = {0, time}};
  forward(pass);
  const float* last = rows_.final_norm.out + (time - 1) * config_.width;
  project(pass, layout_.head(), {.x = last, .out = logits.data(), .rows = 1});
}

// Each sequence predicts its tokens from the second on.
void TrainableTransformer::split(std::span<const std::int32_t> tokens, Slot& slot) const {
  const auto length = static_cast<std::size_t>(config_.sequence) + 1;
  ORRERY_ASSERT(!tokens.empty() && tokens.size() % length == 0, "tokens are whole sequences");
  ORRERY_ASSERT(tokens.size() / length <= static_cast<std::size_t>(sequences_),
                "the activations hold so many sequences");
  slot.inputs.clear();
  slot.targets.clear();
  for (std::size_t begin = 0; begin < tokens.size(); begin += length) {
    const auto sequence = tokens.subspan(begin, length);
    slot.inputs.insert(slot.inputs.end(), sequence.begin(), sequence.end() - 1);
    slot.targets.insert(slot.targets.end(), sequence.begin() + 1, sequence.end());
  }
  for (const std::int32_t target : slot.targets) {
    ORRERY_ASSERT(target >= 0 && target < config_.vocab, "a token is below the vocabulary's size");
  }
}

std::span<float> TrainableTransformer::own_stream(const Pass& pass, float* rows) const {
  return {rows, static_cast<std::size_t>(pass.own.size() * config_.width)};
}

/// Returns all rows of a value of which each rank of the stage has its own rows; gathered in `room`
/// if there are several ranks.
const float* TrainableTransformer::all_rows(const Pass& pass, const float* own, float* room) {
  if (layout_.part().tensor_ranks == 1) return own;
  const std::int64_t width = config_.width;
  std::copy_n(own, pass.own.size() * width, room + pass.own.begin * width);
  peers_->gather_rows({room, static_cast<std::size_t>(pass.batch.count() * width)}, width);
  return room;
}

void TrainableTransformer::embed(const Pass& pass) {
  const float* parameters = pass.parameters.data();
  const std::int64_t width = config_.width;
  for (std::int64_t row = pass.own.begin; row < pass.own.end; ++row) {
    const std::int32_t token = pass.slot.inputs[static_cast<std::size_t>(row)];
    ORRERY_ASSERT(token >= 0 && token < config_.vocab, "a token is below the vocabulary's size");
    const float* position = nullptr;
    if (layout_.position_embedding()) {
      position = parameters + *layout_.position_embedding() + row % pass.batch.time * width;
    }
    kernels_.fill_rows({.x = parameters + layout_.token_embedding() + token * width,
                        .bias = position,
                        .rows = 1,
                        .width = width,
                        .out = pass.blocks[0].stream_in + (row - pass.own.begin) * width});
  }
}

void TrainableTransformer::forward(const Pass& pass) {
  using enum PartPeers::Way;
  if (layout_.part().begins_with(pass.chunk)) {
    embed(pass);
  } else {
    peers_->receive(kOn, own_stream(pass, pass.blocks[0].stream_in));
  }
  for (std::size_t layer = 0; layer < pass.blocks.size(); ++layer) forward_block(pass, layer);
  if (!layout_.part().ends_with(pass.chunk)) {
    return peers_->send(kOn, own_stream(pass, rows_.stream_out));
  }
  norm(pass, layout_.final_norm(), rows_.final_norm);
}

void TrainableTransformer::forward_block(const Pass& pass, std::size_t layer) {
  fill_block(pass, layer);
  const std::span<const BlockRows> blocks = pass.blocks;
  const BlockRows& block = blocks[layer];
  float* stream_out = layer + 1 < blocks.size() ? blocks[layer + 1].stream_in : rows_.stream_out;
  if (moe_) return moe_and_sum(pass, layer, stream_out);
  project_and_sum(pass, pass.layers[layer].down,
                  {.x = block.activation,
                   .residual = block.stream_middle,
                   .out = stream_out,
                   .rows = pass.batch.count()});
}

/// Computes from the layer's input all that its backward pass needs.
void TrainableTransformer::fill_block(const Pass& pass, std::size_t layer) {
  const BlockParameters& parameters = pass.layers[layer];
  const BlockRows& block = pass.blocks[layer];
  const std::int64_t rows = pass.batch.count();
  norm(pass, parameters.attention_norm, block.attention_norm);
  const float* normed = all_rows(pass, block.attention_norm.out, rows_.gathered);
  project(pass, parameters.qkv, {.x = normed, .out = block.attention.qkv, .rows = rows});
  attention_.forward(pass.batch, block.attention);
  project_and_sum(pass, parameters.attention_out,
                  {.x = block.attention.out,
                   .residual = block.stream_in,
                   .out = block.stream_middle,
                   .rows = rows});
  norm(pass, parameters.ffn_norm, block.ffn_norm);
  normed = all_rows(pass, block.ffn_norm.out, rows_.gathered);
  if (moe_) return moe_->forward(moe_rows(pass, layer, normed));
  project(pass, parameters.up, {.x = normed, .out = block.inner, .rows = rows});
  activate(pass, block);
}

void TrainableTransformer::activate(const Pass& pass, const BlockRows& block) {
  const std::int64_t rows = pass.batch.count();
  const std::int64_t inner = layout_.blocks()[0].down.in;
  if (config_.family == TransformerFamily::kGpt) {
    kernels_.gelu(block.inner, rows * inner, block.activation);
  } else {
    kernels_.swiglu(
        {.gate_and_value = block.inner, .rows = rows, .width = inner, .out = block.activation});
  }
}

void TrainableTransformer::norm(const Pass& pass, const NormParameters& parameters,
                                const NormRows& rows) {
  const float* bias = parameters.bias ? pass.parameters.data() + *parameters.bias : nullptr;
  const auto run = parameters.bias ? kernels_.layer_norm : kernels_.rms_norm;
  run({.x = rows.x,
       .weight = pass.parameters.data() + parameters.weight,
       .bias = bias,
       .rows = pass.own.size(),
       .width = config_.width,
       .mean = rows.mean,
       .inverse_deviation = rows.inverse_deviation,
       .out = rows.out});
}

// With a gradient, also computes that of the final norm's output, while the logits are in the
// cache.
float TrainableTransformer::head_loss(const Pass& pass, float scale) {
  using enum CrossEntropy::Gradient;
  const std::int64_t rows = pass.batch.count();
  const std::int64_t chunk = logit_rows(config_);
  const float* normed = all_rows(pass, rows_.final_norm.out, rows_.gathered);
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const float* x = normed + first * config_.width;
    project(pass, layout_.head(), {.x = x, .out = rows_.logits, .rows = count});
    kernels_.cross_entropy({.logits = rows_.logits,
                            .targets = pass.slot.targets.data() + first,
                            .rows = count,
                            .vocab = config_.vocab,
                            .loss = losses_.data() + first,
                            .gradient = pass.gradient == nullptr ? kNone : kInPlace,
                            .scale = scale / static_cast<float>(rows)});
    if (pass.gradient == nullptr) continue;
    project_backward(pass, layout_.head(),
                     {.x = x,
                      .out_gradient = rows_.logits,
                      .x_gradient = rows_.norm_gradient + first * config_.width,
                      .rows = count});
  }
  double total = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    total += static_cast<double>(losses_[static_cast<std::size_t>(row)]);
  }
  return static_cast<float>(total / static_cast<double>(rows));
}

void TrainableTransformer::backward(const Pass& pass) {
  using enum PartPeers::Way;
  const std::span<float> gradient = own_stream(pass, rows_.stream_gradient);
  if (layout_.part().ends_with(pass.chunk)) {
    std::ranges::fill(gradient, 0.0F);
    norm_backward(pass, layout_.final_norm(), rows_.final_norm);
  } else {
    peers_->receive(kBack, gradient);
  }
  for (std::size_t layer = pass.blocks.size(); layer-- > 0;) backward_block(pass, layer);
  if (!layout_.part().begins_with(pass.chunk)) return peers_->send(kBack, gradient);
  embed_backward(pass);
}

// Turns rows_.stream_gradient from the gradient of the layer's output into that of its input.
void TrainableTransformer::backward_block(const Pass& pass, std::size_t layer) {
  const BlockParameters& parameters = pass.layers[layer];
  const BlockRows& block = pass.blocks[layer];
  const std::int64_t rows = pass.batch.count();
  const bool newest = layer + 1 == pass.blocks.size() && slots_.size() == 1;
  const bool kept = config_.recompute == ActivationRecompute::kNone || newest;
  if (!kept) fill_block(pass, layer);
  if (moe_) {
    moe_backward(pass, layer);
  } else {
    const float* gradient = all_rows(pass, rows_.stream_gradient, rows_.gathered);
    project_backward(pass, parameters.down,
                     {block.activation, gradient, rows_.activation_gradient, rows});
    activate_backward(pass, block);
    const float* normed = all_rows(pass, block.ffn_norm.out, rows_.gathered);
    project_backward(pass, parameters.up,
                     {normed, rows_.inner_gradient, rows_.norm_gradient, rows});
  }
  sum_norm_gradient(pass);
  norm_backward(pass, parameters.ffn_norm, block.ffn_norm);
  const float* gradient = all_rows(pass, rows_.stream_gradient, rows_.gathered);
  project_backward(pass, parameters.attention_out,
                   {block.attention.out, gradient, rows_.norm_gradient, rows});
  attention_.backward(pass.batch, block.attention,
                      {.out = rows_.norm_gradient, .qkv = rows_.qkv_gradient});
  const float* normed = all_rows(pass, block.attention_norm.out, rows_.gathered);
  project_backward(pass, parameters.qkv, {normed, rows_.qkv_gradient, rows_.norm_gradient, rows});
  sum_norm_gradient(pass);
  norm_backward(pass, parameters.attention_norm, block.attention_norm);
}

void TrainableTransformer::activate_backward(const Pass& pass, const BlockRows& block) {
  const std::int64_t rows = pass.batch.count();
  const std::int64_t inner = layout_.blocks()[0].down.in;
  if (config_.family == TransformerFamily::kGpt) {
    std::swap(rows_.inner_gradient, rows_.activation_gradient);
    kernels_.gelu_backward(block.inner, rows * inner, rows_.inner_gradient);
  } else {
    kernels_.swiglu_backward({.gate_and_value = block.inner,
                              .rows = rows,
                              .width = inner,
                              .out_gradient = rows_.activation_gradient,
                              .gradient = rows_.inner_gradient});
  }
}

MoeRows TrainableTransformer::moe_rows(const Pass& pass, std::size_t layer, const float* x) const {
  const BlockRows& block = pass.blocks[layer];
  return {.parameters = pass.parameters.data(),
          .layer = pass.layers[layer].moe,
          .count = pass.batch.count(),
          .x = x,
          .scores = block.router_scores,
          .inner = block.inner,
          .activation = block.activation,
          .gathered = rows_.expert_rows};
}

// To be called after fill_block(), which has left all rows of the input where this reads them.
void TrainableTransformer::moe_and_sum(const Pass& pass, std::size_t layer, float* stream_out) {
  const BlockRows& block = pass.blocks[layer];
  const bool shared = layout_.part().tensor_ranks > 1;
  float* out = shared ? rows_.norm_gradient : stream_out;
  kernels_.fill_rows({.x = shared ? nullptr : block.stream_middle,
                      .rows = pass.batch.count(),
                      .width = config_.width,
                      .out = out});
  moe_->add_result(moe_rows(pass, layer, shared ? rows_.gathered : block.ffn_norm.out), out);
  if (shared) sum_to_stream(pass, block.stream_middle, stream_out);
}

// Computes rows_.norm_gradient from rows_.stream_gradient. Each rank has a part of the choices'
// gradients; with their sum all do the router's backward pass, and one adds its result.
void TrainableTransformer::moe_backward(const Pass& pass, std::size_t layer) {
  const BlockRows& block = pass.blocks[layer];
  const MoeRows rows = moe_rows(pass, layer, all_rows(pass, block.ffn_norm.out, rows_.gathered));
  MoeGradient gradient{.out = all_rows(pass, rows_.stream_gradient, rows_.out_gradient),
                       .x = rows_.norm_gradient,
                       .inner = rows_.inner_gradient,
                       .activation = rows_.activation_gradient,
                       .parameters = pass.gradient,
                       .loss_scale = pass.loss_scale};
  moe_->experts_backward(rows, gradient);
  if (layout_.part().tensor_ranks > 1) peers_->sum(moe_->choice_gradient(rows));
  if (layout_.part().tensor_rank > 0) gradient.x = nullptr;
  moe_->router_backward(rows, gradient);
}

// Reads rows_.norm_gradient and adds to rows_.stream_gradient.
void TrainableTransformer::norm_backward(const Pass& pass, const NormParameters& parameters,
                                         const NormRows& rows) {
  const auto run = parameters.bias ? kernels_.layer_norm_backward : kernels_.rms_norm_backward;
  run({.x = rows.x,
       .weight = pass.parameters.data() + parameters.weight,
       .mean = rows.mean,
       .inverse_deviation = rows.inverse_deviation,
       .out_gradient = rows_.norm_gradient + pass.own.begin * config_.width,
       .rows = pass.own.size(),
       .width = config_.width,
       .x_gradient = rows_.stream_gradient,
       .weight_gradient = pass.gradient + parameters.weight,
       .bias_gradient = parameters.bias ? pass.gradient + *parameters.bias : nullptr});
}

void TrainableTransformer::embed_backward(const Pass& pass) {
  const std::int64_t width = config_.width;
  const float* gradient = all_rows(pass, rows_.stream_gradient, rows_.gathered);
  for (std::int64_t row = 0; row < pass.batch.count(); ++row) {
    const float* x = gradient + row * width;
    const std::int64_t token = pass.slot.inputs[static_cast<std::size_t>(row)];
    float* embedding = pass.gradient + layout_.token_embedding() + token * width;
    kernels_.sum_rows({.x = x, .rows = 1, .width = width, .out = embedding});
    if (!layout_.position_embedding()) continue;
    float* position = pass.gradient + *layout_.position_embedding() + row % pass.batch.time * width;
    kernels_.sum_rows({.x = x, .rows = 1, .width = width, .out = position});
  }
}

// Computes out = x weight + bias + residual.
void TrainableTransformer::project(const Pass& pass, const LinearParameters& linear,
                                   const LinearRows& at) {
  const float* weight = pass.parameters.data() + linear.weight;
  const float* bias = linear.bias ? pass.parameters.data() + *linear.bias : nullptr;
  const bool filled = bias != nullptr || at.residual != nullptr;
  if (filled) {
    kernels_.fill_rows(
        {.x = at.residual, .bias = bias, .rows = at.rows, .width = linear.out, .out = at.out});
  }
  const bool in_out = linear.storage == LinearParameters::Storage::kInOut;
  products_.multiply({.rows = at.rows,
                      .columns = linear.out,
                      .inner = linear.in,
                      .a = {at.x, linear.in},
                      .b = in_out ? MatrixOperand{weight, linear.out}
                                  : MatrixOperand{weight, linear.in, kTransposed},
                      .c = at.out,
                      .c_stride = linear.out,
                      .beta = filled ? 1.0F : 0.0F});
}

// Each rank computes what its columns add to the result, and these are summed. One rank adds the
// bias.
void TrainableTransformer::project_and_sum(const Pass& pass, const LinearParameters& linear,
                                           const LinearRows& rows) {
  if (layout_.part().tensor_ranks == 1) return project(pass, linear, rows);
  LinearParameters own = linear;
  if (layout_.part().tensor_rank != 0) own.bias.reset();
  project(pass, own, {.x = rows.x, .out = rows_.norm_gradient, .rows = rows.rows});
  sum_to_stream(pass, rows.residual, rows.out);
}

// Adds `residual` to the sum over the ranks of rows_.norm_gradient.
void TrainableTransformer::sum_to_stream(const Pass& pass, const float* residual, float* out) {
  sum_norm_gradient(pass);
  kernels_.fill_rows({.x = residual,
                      .bias = rows_.norm_gradient + pass.own.begin * config_.width,
                      .rows = 1,
                      .width = pass.own.size() * config_.width,
                      .out = out});
}

// Sums rows_.norm_gradient over the ranks of the stage, for the own rows.
void TrainableTransformer::sum_norm_gradient(const Pass& pass) {
  if (layout_.part().tensor_ranks == 1) return;
  const auto floats = static_cast<std::size_t>(pass.batch.count() * config_.width);
  peers_->sum_rows({rows_.norm_gradient, floats}, config_.width);
}

void TrainableTransformer::project_backward(const Pass& pass, const LinearParameters& linear,
                                            const LinearGradient& rows) {
  const MatrixOperand x{rows.x, linear.in};
  const MatrixOperand dy{rows.out_gradient, linear.out};
  const auto turned = [](MatrixOperand operand) {
    operand.order = kTransposed;
    return operand;
  };
  const bool in_out = linear.storage == LinearParameters::Storage::kInOut;
  const std::int64_t stride = in_out ? linear.out : linear.in;
  products_.multiply({.rows = in_out ? linear.in : linear.out,
                      .columns = stride,
                      .inner = rows.rows,
                      .a = turned(in_out ? x : dy),
                      .b = in_out ? dy : x,
                      .c = pass.gradient + linear.weight,
                      .c_stride = stride,
                      .beta = 1});
  if (linear.bias) {
    kernels_.sum_rows({.x = rows.out_gradient,
                       .rows = rows.rows,
                       .width = linear.out,
                       .out = pass.gradient + *linear.bias});
  }
  const MatrixOperand weight{pass.parameters.data() + linear.weight, stride};
  products_.multiply({.rows = rows.rows,
                      .columns = linear.in,
                      .inner = linear.out,
                      .a = dy,
                      .b = in_out ? turned(weight) : weight,
                      .c = rows.x_gradient,
                      .c_stride = linear.in});
}

}  // namespace orrery
