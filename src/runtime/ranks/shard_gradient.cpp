#include "runtime/ranks/shard_gradient.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"
#include "base/format/checksum.hpp"

namespace orrery {

std::uint64_t checksum_of_floats(std::span<const float> floats) {
  const std::span<const std::byte> bytes = std::as_bytes(floats);
  return block_checksum({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

ShardGradient::ShardGradient(const TrainingSpec& spec, const TextStream& stream,
                             const ModelPart& part)
    : batch_(spec.batch),
      stream_(stream),
      schedule_(pipeline_schedule(part, spec.batch.micro_batches())),
      model_(spec.model, spec.batch.micro, part, pipeline_slots(part, spec.batch.micro_batches())),
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
  const float share = 1.0f / static_cast<float>(batch_.micro_batches());
  const std::uint64_t first = step * batch_.sequences + std::uint64_t{shard} * batch_.per_shard();
  const std::span<float> gradient = out.first(layout().size());
  float loss = 0;
  double router_loss = 0;
  for (const PipelineStep& each : schedule_) {
    const TrainableTransformer::At at{.slot = each.slot, .chunk = each.chunk};
    if (each.pass == PipelineStep::Pass::kForward) {
      stream_.training_samples(first + std::uint64_t{each.micro_batch} * batch_.micro, tokens_);
      model_.forward(parameters, tokens_, at);
      continue;
    }
    loss += share * model_.backward(parameters, at, gradient, share);
    router_loss += static_cast<double>(share) * model_.router_loss(at.slot);
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
