#include "runtime/trainer/parameter_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/assert.hpp"
#include "base/distribution.hpp"
#include "base/rng.hpp"

namespace orrery {
namespace {

constexpr std::size_t kAlignment = 16;  // floats of a cache line
constexpr double kDeviation = 0.02;

// The square root is rounded correctly, alike on every machine.
double residual_deviation(const TransformerConfig& config) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(config.layers));
}

}  // namespace

ParameterLayout::ParameterLayout(const TransformerConfig& config) : config_(config) {
  ORRERY_ASSERT(check(config).has_value(), "a layout is made of a checked configuration");
  blocks_.reserve(static_cast<std::size_t>(config.layers));
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

std::size_t ParameterLayout::add(std::string name, std::vector<std::int64_t> shape,
                                 double deviation) {
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  const std::size_t begin = size_;
  tensors_.push_back({.name = std::move(name),
                      .shape = std::move(shape),
                      .begin = begin,
                      .size = count,
                      .decays = true,
                      .deviation = deviation});
  size_ += (count + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

std::size_t ParameterLayout::add_vector(std::string name, std::int64_t size, float mean) {
  const std::size_t begin = add(std::move(name), {size}, 0);
  tensors_.back().decays = false;
  tensors_.back().mean = mean;
  return begin;
}

NormParameters ParameterLayout::add_layer_norm(const std::string& name) {
  return {.weight = add_vector(name + ".weight", config_.width, 1),
          .bias = add_vector(name + ".bias", config_.width, 0)};
}

// What gpt2 calls its linear layers: a convolution of one token.
LinearParameters ParameterLayout::add_conv1d(const std::string& name,
                                             const LinearParameters& linear, double deviation) {
  LinearParameters laid = linear;
  laid.storage = LinearParameters::Storage::kInOut;
  laid.weight = add(name + ".weight", {linear.in, linear.out}, deviation);
  laid.bias = add_vector(name + ".bias", linear.out, 0);
  return laid;
}

void ParameterLayout::lay_gpt_block(const std::string& prefix) {
  const std::int64_t width = config_.width;
  const std::int64_t inner = config_.inner_width();
  const double residual = residual_deviation(config_);
  BlockParameters& block = blocks_.emplace_back();
  block.attention_norm = add_layer_norm(prefix + "ln_1");
  block.qkv = add_conv1d(prefix + "attn.c_attn", {.in = width, .out = 3 * width}, kDeviation);
  block.attention_out = add_conv1d(prefix + "attn.c_proj", {.in = width, .out = width}, residual);
  block.ffn_norm = add_layer_norm(prefix + "ln_2");
  block.up = add_conv1d(prefix + "mlp.c_fc", {.in = width, .out = inner}, kDeviation);
  block.down = add_conv1d(prefix + "mlp.c_proj", {.in = inner, .out = width}, residual);
}

void ParameterLayout::lay_gpt() {
  token_embedding_ = add("transformer.wte.weight", {config_.vocab, config_.width}, kDeviation);
  position_embedding_ =
      add("transformer.wpe.weight", {config_.sequence, config_.width}, kDeviation);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    lay_gpt_block(fmt::format("transformer.h.{}.", layer));
  }
  final_norm_ = add_layer_norm("transformer.ln_f");
  lay_head();
}

void ParameterLayout::lay_llama_block(const std::string& prefix) {
  using enum LinearParameters::Storage;
  const std::int64_t width = config_.width;
  const std::int64_t kv = config_.key_value_width();
  const std::int64_t inner = config_.inner_width();
  const double residual = residual_deviation(config_);
  const auto matrix = [&](const char* name, const LinearParameters& linear, double deviation) {
    return add(prefix + name, {linear.out, linear.in}, deviation);
  };
  BlockParameters& block = blocks_.emplace_back();
  block.attention_norm.weight = add_vector(prefix + "input_layernorm.weight", width, 1);
  block.qkv = {.in = width, .out = width + 2 * kv, .storage = kOutIn};
  block.qkv.weight = matrix("self_attn.q_proj.weight", {.in = width, .out = width}, kDeviation);
  matrix("self_attn.k_proj.weight", {.in = width, .out = kv}, kDeviation);
  matrix("self_attn.v_proj.weight", {.in = width, .out = kv}, kDeviation);
  block.attention_out = {.in = width, .out = width, .storage = kOutIn};
  block.attention_out.weight = matrix("self_attn.o_proj.weight", block.attention_out, residual);
  block.ffn_norm.weight = add_vector(prefix + "post_attention_layernorm.weight", width, 1);
  block.up = {.in = width, .out = 2 * inner, .storage = kOutIn};
  block.up.weight = matrix("mlp.gate_proj.weight", {.in = width, .out = inner}, kDeviation);
  matrix("mlp.up_proj.weight", {.in = width, .out = inner}, kDeviation);
  block.down = {.in = inner, .out = width, .storage = kOutIn};
  block.down.weight = matrix("mlp.down_proj.weight", block.down, residual);
}

void ParameterLayout::lay_llama() {
  token_embedding_ = add("model.embed_tokens.weight", {config_.vocab, config_.width}, kDeviation);
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
    lay_llama_block(fmt::format("model.layers.{}.", layer));
  }
  final_norm_.weight = add_vector("model.norm.weight", config_.width, 1);
  lay_head();
}

void ParameterLayout::lay_head() {
  head_ = {.in = config_.width,
           .out = config_.vocab,
           .storage = LinearParameters::Storage::kOutIn,
           .weight = token_embedding_};
  if (config_.tied_embedding) return;
  head_.weight = add("lm_head.weight", {config_.vocab, config_.width}, kDeviation);
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
    for (float& value : values) value = static_cast<float>(normal.sample(rng));
  }
}

}  // namespace orrery
