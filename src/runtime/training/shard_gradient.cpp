#include "runtime/training/shard_gradient.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "base/checksum.hpp"

namespace orrery {

std::uint64_t checksum_of_floats(std::span<const float> floats) {
  const std::span<const std::byte> bytes = std::as_bytes(floats);
  return block_checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::uint32_t pipeline_slots(const TrainingBatch& batch, const ModelPart& part) {
  return std::min(batch.per_shard() / batch.micro, part.stages - part.stage);
}

ShardGradient::ShardGradient(const TrainingSpec& spec, const TextStream& stream,
                             const ModelPart& part)
    : batch_(spec.batch),
      stream_(stream),
      slots_(pipeline_slots(spec.batch, part)),
      model_(spec.model, spec.batch.micro, part, slots_),
      tokens_(spec.batch.micro * static_cast<std::size_t>(spec.model.sequence + 1)) {}

void ShardGradient::compute(std::span<const float> parameters, std::uint64_t step,
                            const LeafRange& node, std::span<float> out) {
  ORRERY_ASSERT(out.size() >= layout().size() + losses(), "there is room for the loss");
  compute_node(parameters, step, node, {0, out.first(layout().size() + losses())});
}

void ShardGradient::compute_node(std::span<const float> parameters, std::uint64_t step,
                                 const LeafRange& node,
                                 std::pair<std::size_t, std::span<float>> place) {
  const auto [depth, out] = place;
  if (node.size() == 1) return compute_shard(parameters, step, node.begin, out);
  const std::uint32_t middle = split_of(node);
  if (right_.size() <= depth) right_.resize(depth + 1);
  right_[depth].resize(out.size());
  compute_node(parameters, step, {node.begin, middle}, {depth + 1, out});
  compute_node(parameters, step, {middle, node.end}, {depth + 1, right_[depth]});
  const AlignedFloats& right = right_[depth];
  for (std::size_t i = 0; i < out.size(); ++i) out[i] += right[i];
}

void ShardGradient::compute_shard(std::span<const float> parameters, std::uint64_t step,
                                  std::uint32_t shard, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0f);
  const std::uint32_t rounds = batch_.per_shard() / batch_.micro;
  const float share = 1.0f / static_cast<float>(rounds);
  const std::uint64_t first = step * batch_.sequences + std::uint64_t{shard} * batch_.per_shard();
  const std::span<float> gradient = out.first(layout().size());
  const std::uint32_t ahead = slots_ - 1;
  float loss = 0;
  double router_loss = 0;
  for (std::uint32_t round = 0; round < rounds + ahead; ++round) {
    if (round < rounds) {
      stream_.training_samples(first + std::uint64_t{round} * batch_.micro, tokens_);
      model_.forward(parameters, tokens_, round % slots_);
    }
    if (round < ahead) continue;
    const std::uint32_t slot = (round - ahead) % slots_;
    loss += share * model_.backward(parameters, slot, gradient, share);
    router_loss += static_cast<double>(share) * model_.router_loss(slot);
  }
  model_.join(gradient);
  out[layout().size()] = loss;
  if (losses() > 1) out[layout().size() + 1] = static_cast<float>(router_loss);
  if (flip_in_ == step) {
    flip_in_.reset();
    out[0] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(out[0]) ^ (1u << 22));
  }
  if (watches_ == shard) watched_ = checksum_of_floats(out);
}

void ShardGradient::watch(std::optional<std::uint32_t> shard) {
  watches_ = shard;
  watched_ = 0;
}

std::uint64_t ShardGradient::checksum_of(std::span<const float> parameters, std::uint64_t step,
                                         std::uint32_t shard) {
  again_.resize(layout().size() + losses());
  watch(shard);
  compute_shard(parameters, step, shard, again_);
  return watched_;
}

std::optional<double> ShardGradient::evaluate(std::span<const float> parameters,
                                              std::uint32_t sequences) {
  const auto all = std::min<std::int64_t>(sequences, stream_.held_out_sequences());
  double sum = 0;
  std::int64_t done = 0;
  for (; done + batch_.micro <= all; done += batch_.micro) {
    stream_.held_out_samples(done, tokens_);
    sum += static_cast<double>(model_.loss(parameters, tokens_)) * batch_.micro;
  }
  if (done == 0) return std::nullopt;
  return sum / static_cast<double>(done);
}

}  // namespace orrery
