#include "inference/gguf/gguf_weights.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orrery {
namespace {

struct TensorName {
  std::string_view ours;  ///< behind "model.layers.N." for those of a layer
  std::string_view stored;
};
constexpr std::array kWhole{TensorName{"model.embed_tokens.weight", "token_embd.weight"},
                            TensorName{"model.norm.weight", "output_norm.weight"},
                            TensorName{"lm_head.weight", "output.weight"}};
constexpr std::array kOfLayer{TensorName{"input_layernorm.weight", "attn_norm.weight"},
                              TensorName{"self_attn.q_proj.weight", "attn_q.weight"},
                              TensorName{"self_attn.k_proj.weight", "attn_k.weight"},
                              TensorName{"self_attn.v_proj.weight", "attn_v.weight"},
                              TensorName{"self_attn.o_proj.weight", "attn_output.weight"},
                              TensorName{"post_attention_layernorm.weight", "ffn_norm.weight"},
                              TensorName{"mlp.gate_proj.weight", "ffn_gate.weight"},
                              TensorName{"mlp.up_proj.weight", "ffn_up.weight"},
                              TensorName{"mlp.down_proj.weight", "ffn_down.weight"}};
constexpr std::string_view kLayer = "model.layers.";

bool has_turned_rows(std::string_view name) {
  return name.ends_with(".attn_q.weight") || name.ends_with(".attn_k.weight");
}

}  // namespace

std::string gguf_name(std::string_view name) {
  const auto whole = std::ranges::find(kWhole, name, &TensorName::ours);
  if (whole != kWhole.end()) return std::string(whole->stored);
  if (!name.starts_with(kLayer)) return std::string(name);
  const std::size_t dot = name.find('.', kLayer.size());
  const std::string_view layer = name.substr(kLayer.size(), dot - kLayer.size());
  const auto part = std::ranges::find(kOfLayer, name.substr(dot + 1), &TensorName::ours);
  if (part == kOfLayer.end()) return std::string(name);
  return "blk." + std::string(layer) + "." + std::string(part->stored);
}

void restore_head_rows(std::span<float> weights, std::size_t width, std::size_t head_width) {
  const std::vector<float> turned(weights.begin(), weights.end());
  const std::size_t half = head_width / 2;
  for (std::size_t row = 0; row < weights.size() / width; ++row) {
    const std::size_t in_head = row % head_width;
    const std::size_t from = row - in_head + 2 * (in_head % half) + in_head / half;
    std::ranges::copy(std::span(turned).subspan(from * width, width),
                      weights.begin() + static_cast<std::ptrdiff_t>(row * width));
  }
}

GgufWeights::GgufWeights(const GgufFile& file, const TransformerConfig& config)
    : file_(file), head_width_(config.head_width()) {
  for (const GgufTensor& tensor : file.tensors()) {
    tensors_.push_back({.name = std::string(tensor.name),
                        .type = std::string(block_of(tensor.encoding).name),
                        .encoding = tensor.encoding,
                        .shape = tensor.shape,
                        .place = file.file()});
  }
}

Status GgufWeights::read(std::size_t tensor, std::span<float> to) {
  const GgufTensor& stored = file_.tensors()[tensor];
  decode_weights(stored.encoding, stored.bytes, to);
  if (has_turned_rows(stored.name)) {
    restore_head_rows(to, stored.shape.back(), static_cast<std::size_t>(head_width_));
  }
  return {};
}

}  // namespace orrery
