#include "runtime/ranks/rank_memory.hpp"

#include <algorithm>
#include <bit>

#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/ranks/pipeline_schedule.hpp"
#include "runtime/ranks/replica_peers.hpp"
#include "runtime/trainer/transformer.hpp"

namespace orrery {
namespace {

constexpr std::size_t kMoments = 2;
constexpr std::size_t kSaved = 1 + kMoments;  ///< vectors of the whole model

Bytes of_floats(std::size_t floats) { return Bytes(static_cast<double>(floats * sizeof(float))); }

/// Number of gradients in memory at once while a node of `shards` shards is summed.
std::size_t gradients_of(std::uint32_t shards) {
  return 1 + static_cast<std::size_t>(std::bit_width(shards - 1));
}

RankMemory memory_of(const TrainingSpec& spec, const ModelPart& part, std::uint32_t replicas) {
  const std::size_t weights = ParameterLayout(spec.model, part).size();
  const std::size_t whole = ParameterLayout(spec.model).size();
  std::uint32_t shards = 1;
  for (const LeafRange& owned : share_leaves(spec.batch.shards, replicas)) {
    shards = std::max(shards, owned.size());
  }
  const bool shared_moments = spec.layout.zero > 0;
  const std::uint32_t savers = spec.layout.cut() ? replicas * part.ranks() : 1;
  // Ranks without the whole state assemble what they save in a second copy.
  const std::size_t copies = kSaved * (spec.layout.cut() ? 2 : 1);
  return {
      .weights = of_floats(weights),
      .moments = of_floats(kMoments * weights / (shared_moments ? replicas : 1)),
      .gradients = of_floats(gradients_of(shards) * weights),
      .activations = Bytes(static_cast<double>(TrainableTransformer::activation_bytes(
          spec.model, spec.batch.micro, part, pipeline_slots(part, spec.batch.micro_batches())))),
      .exchange = of_floats(ReplicaPeers::room_floats(spec)),
      .checkpoint = of_floats(copies * whole / savers),
      .copies = of_floats(spec.copied_every() > 0 && savers > 1 ? 4 * kSaved * whole / savers : 0),
  };
}

}  // namespace

RankMemory rank_memory(const TrainingSpec& spec, std::uint32_t replicas) {
  RankMemory most;
  ModelPart part = spec.layout.parts();
  for (; part.stage < part.stages; ++part.stage) {
    const RankMemory memory = memory_of(spec, part, replicas);
    if (memory.total() > most.total()) most = memory;
  }
  return most;
}

}  // namespace orrery
