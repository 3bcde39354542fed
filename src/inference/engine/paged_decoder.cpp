#include "inference/engine/paged_decoder.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr std::int64_t kBlock = PagedAttention::kBlock;

std::size_t floats(std::int64_t count) { return static_cast<std::size_t>(count); }

std::int64_t qkv_width(const TransformerConfig& config) {
  return config.width + 2 * config.key_value_width();
}

}  // namespace

std::size_t PagedDecoder::block_floats(const TransformerConfig& config) {
  return floats(kBlock * config.layers * 2 * config.key_value_width());
}

PagedDecoder::PagedDecoder(const PackedTransformer& model, const Limits& limits) : model_(model) {
  const TransformerConfig& config = model.config();
  const PackedBlock& block = model.blocks().front();
  const std::int64_t blocks_of_sequence = (config.sequence + kBlock - 1) / kBlock;
  cache_.resize(limits.blocks * block_floats(config));
  stream_.resize(floats(limits.rows * config.width));
  normed_.resize(stream_.size());
  qkv_.resize(floats(limits.rows * qkv_width(config)));
  inner_.resize(floats(limits.rows * block.up.out()));
  activated_.resize(floats(limits.rows * block.down.in()));
  const std::int64_t widest = std::max(config.width, block.down.in());
  row_room_.resize(floats(PanelProduct::row_room_of(limits.rows, widest)));
  row_sums_.resize(floats(2 * limits.rows));
  scores_.resize(floats(PagedAttention::kHeadsMax * blocks_of_sequence * kBlock));
  pointers_.resize(floats(blocks_of_sequence));
}

float* PagedDecoder::block_at(KvBlockId block, std::size_t layer) {
  const std::size_t size = block_floats(model_.config());
  const std::size_t of_layer = size / floats(model_.config().layers);
  return cache_.data() + block * size + layer * of_layer;
}

std::span<const float> PagedDecoder::compute(Rows rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  ORRERY_ASSERT(floats(count * model_.config().width) <= stream_.size(), "the buffers hold them");
  embed(rows);
  for (std::size_t layer = 0; layer < model_.blocks().size(); ++layer) {
    const PackedBlock& block = model_.blocks()[layer];
    norm(block.attention_norm, count);
    block.qkv.multiply(
        decode_kernels(),
        {.x = normed_.data(), .room = row_room_.data(), .out = qkv_.data(), .rows = count});
    attend(rows, layer);
    block.attention_out.multiply(decode_kernels(), {.x = normed_.data(),
                                                    .room = row_room_.data(),
                                                    .residual = stream_.data(),
                                                    .out = stream_.data(),
                                                    .rows = count});
    norm(block.ffn_norm, count);
    block.up.multiply(
        decode_kernels(),
        {.x = normed_.data(), .room = row_room_.data(), .out = inner_.data(), .rows = count});
    activate(count);
    block.down.multiply(decode_kernels(), {.x = activated_.data(),
                                           .room = row_room_.data(),
                                           .residual = stream_.data(),
                                           .out = stream_.data(),
                                           .rows = count});
  }
  return score(rows);
}

void PagedDecoder::embed(Rows rows) {
  const TransformerConfig& config = model_.config();
  float* out = stream_.data();
  for (const DecoderRow& row : rows) {
    ORRERY_ASSERT(row.token >= 0 && row.token < config.vocab, "a token is below the vocabulary");
    ORRERY_ASSERT(row.position >= 0 && row.position < config.sequence, "the context is limited");
    kernels().fill_rows({.x = model_.token_row(row.token),
                         .bias = model_.position_row(row.position),
                         .rows = 1,
                         .width = config.width,
                         .out = out});
    out += config.width;
  }
}

void PagedDecoder::norm(const PackedNorm& weights, std::int64_t rows) {
  const auto run = weights.bias.empty() ? kernels().rms_norm : kernels().layer_norm;
  run({.x = stream_.data(),
       .weight = weights.weight.data(),
       .bias = weights.bias.empty() ? nullptr : weights.bias.data(),
       .rows = rows,
       .width = model_.config().width,
       .mean = row_sums_.data(),
       .inverse_deviation = row_sums_.data() + rows,
       .out = normed_.data(),
       .epsilon = model_.norm_epsilon()});
}

void PagedDecoder::activate(std::int64_t rows) {
  const std::int64_t inner = model_.blocks().front().down.in();
  if (model_.config().family == TransformerFamily::kGpt) {
    kernels().gelu(inner_.data(), rows * inner, activated_.data());
  } else {
    kernels().swiglu(
        {.gate_and_value = inner_.data(), .rows = rows, .width = inner, .out = activated_.data()});
  }
}

// Puts the row's key and value where paged_attention() finds them.
void PagedDecoder::store(const DecoderRow& row, float* qkv, std::size_t layer) {
  const TransformerConfig& config = model_.config();
  const std::int64_t head_width = config.head_width();
  const std::int64_t kv_width = config.key_value_width();
  const std::int64_t column = row.position % kBlock;
  if (!model_.rotary().cosine.empty()) {
    const std::int64_t half = head_width / 2;
    kernels().rotate({.x = qkv,
                      .stride = qkv_width(config),
                      .rows = 1,
                      .time = 1,
                      .heads = config.heads + config.key_value_heads(),
                      .half = half,
                      .cosine = model_.rotary().cosine.data() + row.position * half,
                      .sine = model_.rotary().sine.data() + row.position * half});
  }
  float* block = block_at(row.blocks[floats(row.position / kBlock)], layer);
  const float* key = qkv + config.width;
  const float* value = key + kv_width;
  for (std::int64_t i = 0; i < kv_width; ++i) block[i * kBlock + column] = key[i];
  float* values = block + kv_width * kBlock;
  for (std::int64_t head = 0; head < config.key_value_heads(); ++head) {
    std::copy_n(value + head * head_width, head_width,
                values + (head * kBlock + column) * head_width);
  }
}

// A row sees the keys of earlier rows of this pass, so all are stored first.
void PagedDecoder::attend(Rows rows, std::size_t layer) {
  const TransformerConfig& config = model_.config();
  float* qkv = qkv_.data();
  for (const DecoderRow& row : rows) {
    store(row, qkv, layer);
    qkv += qkv_width(config);
  }
  qkv = qkv_.data();
  float* out = normed_.data();
  for (const DecoderRow& row : rows) {
    const std::size_t used = floats(row.position / kBlock + 1);
    for (std::size_t i = 0; i < used; ++i) pointers_[i] = block_at(row.blocks[i], layer);
    decode_kernels().paged_attention(
        {.query = qkv,
         .blocks = pointers_.data(),
         .visible = row.position + 1,
         .heads = config.heads,
         .kv_heads = config.key_value_heads(),
         .head_width = config.head_width(),
         .scale = 1.0F / std::sqrt(static_cast<float>(config.head_width())),
         .scores = scores_.data(),
         .out = out});
    qkv += qkv_width(config);
    out += config.width;
  }
}

std::span<const float> PagedDecoder::score(Rows rows) {
  const std::int64_t width = model_.config().width;
  std::int64_t wanted = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].scores != DecoderRow::Scores::kWanted) continue;
    const float* from = stream_.data() + static_cast<std::int64_t>(i) * width;
    std::copy_n(from, width, stream_.data() + wanted * width);
    ++wanted;
  }
  logits_.resize(std::max(logits_.size(), floats(wanted * model_.config().vocab)));
  norm(model_.final_norm(), wanted);
  model_.head().multiply(
      decode_kernels(),
      {.x = normed_.data(), .room = row_room_.data(), .out = logits_.data(), .rows = wanted});
  return std::span<const float>(logits_).first(floats(wanted * model_.config().vocab));
}

}  // namespace orrery
