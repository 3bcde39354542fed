// runtime/training/rank_grid.hpp - which part of the work a rank does in a generation of the group,
// and with whom it does what together.
//
// Ranks stand in rows: tp of them in a row are a replica, which has the whole model and computes
// some of the batch's shards; those of one column have the same part of it and sum its gradients.
// What no replica can be made of, at the end, has no place. Made once a generation, which it must
// not outlive; used by one thread. Invariant: a place follows from rank, number of ranks and spec
// alone.
#pragma once

#include <vector>

#include "runtime/elastic/member_group.hpp"
#include "runtime/trainer/model_part.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

class RankGrid {
 public:
  /// How many of `ranks` have a place.
  [[nodiscard]] static std::uint32_t places(const TrainingSpec& spec, std::uint32_t ranks);

  /// Precondition: this rank has a place.
  RankGrid(const TrainingSpec& spec, MemberGroup& group);

  [[nodiscard]] const ModelPart& part() const { return part_; }
  [[nodiscard]] std::uint32_t replica_number() const { return replica_number_; }
  /// The batch's shards that each replica computes.
  [[nodiscard]] const std::vector<LeafRange>& shards() const { return shards_; }
  [[nodiscard]] const LeafRange& own_shards() const { return shards_[replica_number_]; }

  /// All ranks that have a place.
  [[nodiscard]] Communicator& all() { return all_; }
  /// Those of this rank's replica, by their part.
  [[nodiscard]] Communicator& replica() { return replica_; }
  /// Those with this rank's part, by replica.
  [[nodiscard]] Communicator& column() { return column_; }

 private:
  std::uint32_t replica_number_;
  ModelPart part_;
  std::vector<LeafRange> shards_;
  Communicator all_;
  Communicator replica_;
  Communicator column_;
};

/// The sums of a replica's ranks, in memory that they share.
class ReplicaSums final : public PartialSums {
 public:
  /// `room` is read by the other ranks of this machine; both outlive it.
  ReplicaSums(Communicator& replica, std::span<float> room) : replica_(replica), room_(room) {}

  [[nodiscard]] std::span<float> room(std::size_t floats) override;
  void sum(std::span<float> floats) override;
  /// A rank was lost: what was summed since is worth nothing.
  [[nodiscard]] bool broken() const { return broken_; }

 private:
  Communicator& replica_;
  std::span<float> room_;
  bool broken_ = false;
};

}  // namespace orrery
