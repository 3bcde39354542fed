#include "runtime/trainer/parameter_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"
#include "base/numbers/distribution.hpp"
#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr std::size_t kAlignment = 16;  // floats of a cache line
constexpr double kDeviation = 0.02;

// The square root is correctly rounded, so it is equal on every machine.
double residual_deviation(const TransformerConfig& config) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

}  // namespace

ParameterLayout::ParameterLayout(const TransformerConfig& config, const ModelPart& part)
    : config_(config), part_(part), sharer_{part.tensor_rank, part.tensor_ranks} {
  ORRERY_ASSERT(check(config) && check_parts(config, part),
                "a layout is made of a checked configuration");
  blocks_.reserve(static_cast<std::size_t>(config.layers / part.stages));
  if (config.family == TransformerFamily::kGpt) {
    lay_gpt();
  } else {
    lay_llama();
  }
}

std::size_t ParameterLayout::trained() const {
  std::size_t count = 0;
  for (const ParameterTensor& tensor : tensors_) count += tensor.size;
  return count;
}

const ParameterTensor* ParameterLayout::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &ParameterTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

/// This rank's part of each `period` floats.
TensorCut ParameterLayout::cut_of(std::int64_t period) const {
  const auto whole = static_cast<std::size_t>(period);
  const std::size_t count = whole / sharer_.ranks;
  return {.period = whole, .first = sharer_.rank * count, .count = count};
}

std::size_t ParameterLayout::add(std::string name, const Added& added) {
  std::size_t count = 1;
  for (const std::int64_t extent : added.shape) count *= static_cast<std::size_t>(extent);
  TensorCut cut = added.period == 0 ? TensorCut{.period = count, .first = 0, .count = count}
                                    : cut_of(added.period);
  const bool alike = cut.whole() && sharer_.rank > 0;
  if (place_ == Place::kElsewhere) cut.count = 0;
  const std::size_t begin = size_;
  const std::size_t here = count / cut.period * cut.count;
  tensors_.push_back({.name = std::move(name),
                      .shape = added.shape,
                      .cut = cut,
                      .begin = begin,
                      .size = here,
                      .counts = place_ == Place::kHere && !alike,
                      .decays = added.shape.size() > 1,
                      .mean = added.mean,
                      .deviation = added.deviation});
  size_ += (here + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

NormParameters ParameterLayout::add_layer_norm(const std::string& name) {
  return {.weight = add(name + ".weight", {.shape = {config_.width}, .mean = 1}),
          .bias = add(name + ".bias", {.shape = {config_.width}})};
}

// gpt2 calls its linear layers Conv1D: a convolution over one token.
LinearParameters ParameterLayout::add_conv1d(const std::string& name, const Conv1d& linear) {
  const bool columns = linear.period > 0;
  const std::int64_t ranks = part_.tensor_ranks;
  LinearParameters laid{.in = columns ? linear.in : linear.in / ranks,
                        .out = columns ? linear.out / ranks : linear.out,
                        .storage = LinearParameters::Storage::kInOut};
  laid.weight = add(name + ".weight", {.shape = {linear.in, linear.out},
                                       .deviation = linear.deviation,
                                       .period = columns ? linear.period : linear.in * linear.out});
  laid.bias = add(name + ".bias", {.shape = {linear.out}, .period = linear.period});
  return laid;
}

void ParameterLayout::lay_gpt_block(const std::string& prefix) {
  const std::int64_t width = config_.width;
  const std::int64_t inner = config_.inner_width();
  const double residual = residual_deviation(config_);
  BlockParameters& block = blocks_.emplace_back();
  block.attention_norm = add_layer_norm(prefix + "ln_1");
  block.qkv = add_conv1d(prefix + "attn.c_attn",
                         {.in = width, .out = 3 * width, .period = width, .deviation = kDeviation});
  block.attention_out =
      add_conv1d(prefix + "attn.c_proj", {.in = width, .out = width, .deviation = residual});
  block.ffn_norm = add_layer_norm(prefix + "ln_2");
  if (config_.experts > 0) return lay_moe(prefix + "moe.");
  block.up = add_conv1d(prefix + "mlp.c_fc",
                        {.in = width, .out = inner, .period = inner, .deviation = kDeviation});
  block.down =
      add_conv1d(prefix + "mlp.c_proj", {.in = inner, .out = width, .deviation = residual});
}

void ParameterLayout::lay_gpt() {
  place_ = place_of_embedding();
  token_embedding_ = add("transformer.wte.weight",
                         {.shape = {config_.vocab, config_.width}, .deviation = kDeviation});
  place_ = place_on_stage(0);
  position_embedding_ = add("transformer.wpe.weight",
                            {.shape = {config_.sequence, config_.width}, .deviation = kDeviation});
  lay_layers();
  place_ = place_on_stage(std::int64_t{part_.stages} - 1);
  final_norm_ = add_layer_norm("transformer.ln_f");
  lay_head();
}

ParameterLayout::Place ParameterLayout::place_of_embedding() const {
  if (part_.first()) return Place::kHere;
  return config_.tied_embedding && part_.last() ? Place::kHereAgain : Place::kElsewhere;
}

void ParameterLayout::lay_layers() {
  const std::int64_t of_a_chunk = config_.layers / part_.stages / part_.chunks;
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    place_ = place_on_stage(layer / of_a_chunk % part_.stages);
    if (config_.family == TransformerFamily::kGpt) {
      lay_gpt_block(fmt::format("transformer.h.{}.", layer));
    } else {
      lay_llama_block(fmt::format("model.layers.{}.", layer));
    }
    if (place_ == Place::kElsewhere) blocks_.pop_back();
  }
}

void ParameterLayout::lay_llama_block(const std::string& prefix) {
  using enum LinearParameters::Storage;
  const std::int64_t width = config_.width;
  const std::int64_t kv = config_.key_value_width();
  const std::int64_t inner = config_.inner_width();
  const std::int64_t ranks = part_.tensor_ranks;
  const double residual = residual_deviation(config_);
  // A cut by rows keeps contiguous floats, since a row makes one output; a cut by columns takes
  // some floats of each row.
  const auto by_rows = [&](const char* name, std::int64_t out) {
    return add(prefix + name,
               {.shape = {out, width}, .deviation = kDeviation, .period = out * width});
  };
  const auto by_columns = [&](const char* name, std::int64_t in) {
    return add(prefix + name, {.shape = {width, in}, .deviation = residual, .period = in});
  };
  BlockParameters& block = blocks_.emplace_back();
  block.attention_norm.weight =
      add(prefix + "input_layernorm.weight", {.shape = {width}, .mean = 1});
  block.qkv = {.in = width, .out = (width + 2 * kv) / ranks, .storage = kOutIn};
  block.qkv.weight = by_rows("self_attn.q_proj.weight", width);
  by_rows("self_attn.k_proj.weight", kv);
  by_rows("self_attn.v_proj.weight", kv);
  block.attention_out = {.in = width / ranks, .out = width, .storage = kOutIn};
  block.attention_out.weight = by_columns("self_attn.o_proj.weight", width);
  block.ffn_norm.weight =
      add(prefix + "post_attention_layernorm.weight", {.shape = {width}, .mean = 1});
  if (config_.experts > 0) return lay_moe(prefix + "block_sparse_moe.");
  block.up = {.in = width, .out = 2 * inner / ranks, .storage = kOutIn};
  block.up.weight = by_rows("mlp.gate_proj.weight", inner);
  by_rows("mlp.up_proj.weight", inner);
  block.down = {.in = inner / ranks, .out = width, .storage = kOutIn};
  block.down.weight = by_columns("mlp.down_proj.weight", inner);
}

/// Lays out the experts: each is on the ranks of one group, which share its inner columns.
void ParameterLayout::lay_moe(const std::string& prefix) {
  MoeParameters& moe = blocks_.back().moe;
  moe.router = {
      .in = config_.width, .out = config_.experts, .storage = LinearParameters::Storage::kOutIn};
  moe.router.weight = add(prefix + "gate.weight",
                          {.shape = {config_.experts, config_.width}, .deviation = kDeviation});
  const Place place = place_;
  const std::uint32_t sharers = part_.tensor_ranks / part_.expert_ranks;
  const std::int64_t each = config_.experts / part_.expert_ranks;
  const std::int64_t first = part_.tensor_rank / sharers * each;
  moe.first = static_cast<std::size_t>(first);
  sharer_ = {part_.tensor_rank % sharers, sharers};
  for (std::int64_t number = 0; number < config_.experts; ++number) {
    const bool here = number >= first && number < first + each;
    place_ = here ? place : Place::kElsewhere;
    const ExpertParameters expert = lay_expert(fmt::format("{}experts.{}.", prefix, number));
    if (here) moe.experts.push_back(expert);
  }
  place_ = place;
  sharer_ = {part_.tensor_rank, part_.tensor_ranks};
  blocks_.back().up = moe.experts.front().up;
  blocks_.back().down = moe.experts.front().down;
}

ExpertParameters ParameterLayout::lay_expert(const std::string& prefix) {
  using enum LinearParameters::Storage;
  const std::int64_t width = config_.width;
  const std::int64_t inner = config_.inner_width();
  const std::int64_t here = inner / sharer_.ranks;
  const double residual = residual_deviation(config_);
  const Added up_rows{{inner, width}, kDeviation, 0, inner * width};
  ExpertParameters expert;
  if (config_.family == TransformerFamily::kGpt) {
    expert.up = {.in = width, .out = here, .storage = kInOut};
    expert.up.weight = add(prefix + "c_fc.weight", {{width, inner}, kDeviation, 0, inner});
    expert.down = {.in = here, .out = width, .storage = kInOut};
    expert.down.weight =
        add(prefix + "c_proj.weight", {{inner, width}, residual, 0, inner * width});
    return expert;
  }
  expert.up = {.in = width, .out = 2 * here, .storage = kOutIn};
  expert.up.weight = add(prefix + "w1.weight", up_rows);
  add(prefix + "w3.weight", up_rows);
  expert.down = {.in = here, .out = width, .storage = kOutIn};
  expert.down.weight = add(prefix + "w2.weight", {{width, inner}, residual, 0, inner});
  return expert;
}

void ParameterLayout::lay_llama() {
  place_ = place_of_embedding();
  token_embedding_ = add("model.embed_tokens.weight",
                         {.shape = {config_.vocab, config_.width}, .deviation = kDeviation});
  lay_layers();
  place_ = place_on_stage(std::int64_t{part_.stages} - 1);
  final_norm_.weight = add("model.norm.weight", {.shape = {config_.width}, .mean = 1});
  lay_head();
}

void ParameterLayout::lay_head() {
  head_ = {.in = config_.width,
           .out = config_.vocab,
           .storage = LinearParameters::Storage::kOutIn,
           .weight = token_embedding_};
  if (config_.tied_embedding) return;
  head_.weight =
      add("lm_head.weight", {.shape = {config_.vocab, config_.width}, .deviation = kDeviation});
}

namespace {

/// Returns the weights that one row is multiplied with, if experts are chosen equally often.
double ffn_weights_of_a_token(const ParameterLayout& layout, const BlockParameters& block) {
  const double each =
      static_cast<double>(block.up.in * block.up.out + block.down.in * block.down.out);
  if (layout.config().experts == 0) return each;
  const double here =
      static_cast<double>(layout.config().experts_per_token) / layout.part().expert_ranks;
  return here * each + static_cast<double>(block.moe.router.in * block.moe.router.out);
}

}  // namespace

double operations_per_token(const ParameterLayout& layout) {
  double weights =
      layout.part().last() ? static_cast<double>(layout.config().vocab * layout.config().width) : 0;
  double attention = 0;
  for (const BlockParameters& block : layout.blocks()) {
    for (const LinearParameters* linear : {&block.qkv, &block.attention_out}) {
      weights += static_cast<double>(linear->in * linear->out);
    }
    weights += ffn_weights_of_a_token(layout, block);
    attention += static_cast<double>(block.attention_out.in * (layout.config().sequence + 1));
  }
  return 6 * (weights + attention);
}

void initialise(const ParameterLayout& layout, std::uint64_t seed, std::span<float> parameters) {
  ORRERY_ASSERT(parameters.size() == layout.size(), "the vector is the layout's");
  std::ranges::fill(parameters, 0.0F);
  for (const ParameterTensor& tensor : layout.tensors()) {
    const std::span<float> values = parameters.subspan(tensor.begin, tensor.size);
    std::ranges::fill(values, tensor.mean);
    if (tensor.deviation == 0) continue;
    Rng rng = Rng::stream(seed, tensor.name);
    const Normal normal{.mean = tensor.mean, .deviation = tensor.deviation};
    const TensorCut& cut = tensor.cut;
    for (std::size_t at = 0; at < values.size(); at += cut.count) {
      for (std::size_t i = 0; i < cut.period; ++i) {
        const auto value = static_cast<float>(normal.sample(rng));
        if (i >= cut.first && i < cut.first + cut.count) values[at + i - cut.first] = value;
      }
    }
  }
}

}  // namespace orrery
