#include "runtime/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/kernels/gemm.hpp"
#include "runtime/kernels/rotation.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kBlockRows = 64;
constexpr auto kTransposed = MatrixOperand::Order::kTransposed;

}  // namespace

/// One head of one sequence; pointers to its first row. The gradients are null in a forward pass.
struct CausalAttention::Head {
  const float* query = nullptr;
  const float* key = nullptr;
  const float* value = nullptr;
  float* out = nullptr;
  float* peak = nullptr;
  float* inverse_sum = nullptr;
  const float* out_gradient = nullptr;
  float* query_gradient = nullptr;
  float* key_gradient = nullptr;
  float* value_gradient = nullptr;
};

CausalAttention::CausalAttention(const TransformerConfig& config, MatrixMultiplier& products)
    : kernels_(kernels()),
      products_(products),
      heads_(config.heads),
      kv_heads_(config.key_value_heads()),
      head_width_(config.head_width()),
      stride_(config.width + 2 * config.key_value_width()),
      scale_(1.0F / std::sqrt(static_cast<float>(config.head_width()))),
      scores_(static_cast<std::size_t>(kBlockRows * config.sequence)),
      score_gradient_(scores_.size()) {
  if (config.family != TransformerFamily::kLlama) return;
  RotaryTable table = rotary_table(
      {.positions = config.sequence, .half = head_width_ / 2, .base = config.rope_base});
  cosine_ = std::move(table.cosine);
  sine_ = std::move(table.sine);
}

// Queries and keys lie side by side, so they turn as the heads of one matrix.
void CausalAttention::rotate(const TokenRows& batch, float* qkv, float direction) const {
  if (cosine_.empty()) return;
  kernels_.rotate({.x = qkv,
                   .stride = stride_,
                   .rows = batch.count(),
                   .time = batch.time,
                   .heads = heads_ + kv_heads_,
                   .half = head_width_ / 2,
                   .cosine = cosine_.data(),
                   .sine = sine_.data(),
                   .direction = direction});
}

// Heads are numbered sequence by sequence.
CausalAttention::Head CausalAttention::head_of(const TokenRows& batch, const AttentionRows& rows,
                                               std::int64_t index) const {
  const std::int64_t first_row = index / heads_ * batch.time;
  const std::int64_t head = index % heads_;
  const std::int64_t kv_head = head / (heads_ / kv_heads_);
  float* row = rows.qkv + first_row * stride_;
  const std::int64_t kept = head * batch.count() + first_row;
  return {.query = row + head * head_width_,
          .key = row + (heads_ + kv_head) * head_width_,
          .value = row + (heads_ + kv_heads_ + kv_head) * head_width_,
          .out = rows.out + (first_row * heads_ + head) * head_width_,
          .peak = rows.peak + kept,
          .inverse_sum = rows.inverse_sum + kept};
}

void CausalAttention::forward(const TokenRows& batch, const AttentionRows& rows) {
  rotate(batch, rows.qkv, 1);
  for (std::int64_t index = 0; index < batch.sequences * heads_; ++index) {
    const Head head = head_of(batch, rows, index);
    for (std::int64_t first = 0; first < batch.time; first += kBlockRows) {
      forward_block(head, first, std::min(first + kBlockRows, batch.time));
    }
  }
}

void CausalAttention::forward_block(const Head& head, std::int64_t first, std::int64_t end) {
  const std::int64_t rows = end - first;
  products_.multiply({.rows = rows,
                      .columns = end,
                      .inner = head_width_,
                      .a = {head.query + first * stride_, stride_},
                      .b = {head.key, stride_, kTransposed},
                      .c = scores_.data(),
                      .c_stride = end,
                      .alpha = scale_});
  kernels_.softmax({.scores = scores_.data(),
                    .rows = rows,
                    .columns = end,
                    .visible = first + 1,
                    .peak = head.peak + first,
                    .inverse_sum = head.inverse_sum + first});
  const std::int64_t out_stride = heads_ * head_width_;
  products_.multiply({.rows = rows,
                      .columns = head_width_,
                      .inner = end,
                      .a = {scores_.data(), end},
                      .b = {head.value, stride_},
                      .c = head.out + first * out_stride,
                      .c_stride = out_stride});
}

// Gradients of keys and values add up over several blocks, and over several heads if shared.
void CausalAttention::backward(const TokenRows& batch, const AttentionRows& rows,
                               const AttentionGradient& gradient) {
  std::fill_n(gradient.qkv, batch.count() * stride_, 0.0F);
  for (std::int64_t index = 0; index < batch.sequences * heads_; ++index) {
    Head head = head_of(batch, rows, index);
    head.out_gradient = gradient.out + (head.out - rows.out);
    head.query_gradient = gradient.qkv + (head.query - rows.qkv);
    head.key_gradient = gradient.qkv + (head.key - rows.qkv);
    head.value_gradient = gradient.qkv + (head.value - rows.qkv);
    for (std::int64_t first = 0; first < batch.time; first += kBlockRows) {
      backward_block(head, first, std::min(first + kBlockRows, batch.time));
    }
  }
  rotate(batch, gradient.qkv, -1);
}

void CausalAttention::backward_block(const Head& head, std::int64_t first, std::int64_t end) {
  const std::int64_t rows = end - first;
  const std::int64_t out_stride = heads_ * head_width_;
  const MatrixOperand query{head.query + first * stride_, stride_};
  const MatrixOperand out_gradient{head.out_gradient + first * out_stride, out_stride};
  products_.multiply({.rows = rows,
                      .columns = end,
                      .inner = head_width_,
                      .a = query,
                      .b = {head.key, stride_, kTransposed},
                      .c = scores_.data(),
                      .c_stride = end,
                      .alpha = scale_});
  products_.multiply({.rows = rows,
                      .columns = end,
                      .inner = head_width_,
                      .a = out_gradient,
                      .b = {head.value, stride_, kTransposed},
                      .c = score_gradient_.data(),
                      .c_stride = end});
  kernels_.softmax_backward({.scores = scores_.data(),
                             .gradient = score_gradient_.data(),
                             .rows = rows,
                             .columns = end,
                             .visible = first + 1,
                             .peak = head.peak + first,
                             .inverse_sum = head.inverse_sum + first});
  products_.multiply({.rows = end,
                      .columns = head_width_,
                      .inner = rows,
                      .a = {scores_.data(), end, kTransposed},
                      .b = out_gradient,
                      .c = head.value_gradient,
                      .c_stride = stride_,
                      .beta = 1});
  products_.multiply({.rows = rows,
                      .columns = head_width_,
                      .inner = end,
                      .a = {score_gradient_.data(), end},
                      .b = {head.key, stride_},
                      .c = head.query_gradient + first * stride_,
                      .c_stride = stride_,
                      .alpha = scale_});
  products_.multiply({.rows = end,
                      .columns = head_width_,
                      .inner = rows,
                      .a = {score_gradient_.data(), end, kTransposed},
                      .b = {query.data, query.stride},
                      .c = head.key_gradient,
                      .c_stride = stride_,
                      .alpha = scale_,
                      .beta = 1});
}

}  // namespace orrery
