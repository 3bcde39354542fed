// runtime/ranks/rank_grid.hpp - which part of the work a rank does in a generation of the group,
// and with which other ranks.
//
// Ranks form rows: tp x pp consecutive ranks are a replica, which has the whole model, stage by
// stage, and computes some of the batch's shards; the ranks of a column have the same part of the
// model and sum its gradients. Ranks at the end that do not make a replica have no place. Made once
// a generation, which it must not outlive; used by one thread. Invariant: a place follows from
// rank, number of ranks and spec alone.
#pragma once

#include <optional>
#include <vector>

#include "runtime/elastic/member_group.hpp"
#include "runtime/trainer/model_part.hpp"
#include "runtime/training/training_spec.hpp"

namespace orrery {

class RankGrid {
 public:
  /// Returns how many of `ranks` have a place.
  [[nodiscard]] static std::uint32_t places(const TrainingSpec& spec, std::uint32_t ranks);

  /// Precondition: this rank has a place.
  RankGrid(const TrainingSpec& spec, MemberGroup& group);

  [[nodiscard]] const ModelPart& part() const { return part_; }
  [[nodiscard]] std::uint32_t replica_number() const { return replica_number_; }
  /// The batch's shards that each replica computes, by replica.
  [[nodiscard]] const std::vector<LeafRange>& shards() const { return shards_; }
  [[nodiscard]] const LeafRange& own_shards() const { return shards_[replica_number_]; }

  /// All ranks that have a place.
  [[nodiscard]] Communicator& all() { return all_; }
  /// The ranks of this rank's replica, by ModelPart::number().
  [[nodiscard]] Communicator& replica() { return replica_; }
  /// The ranks of this rank's stage within its replica.
  [[nodiscard]] Communicator& stage() { return stage_; }
  /// The ranks of the first and the last stage with this rank's tensor rank. Precondition: this
  /// rank is on one of these stages, and they differ.
  [[nodiscard]] Communicator& ends() { return *ends_; }
  /// The ranks with this rank's part, by replica.
  [[nodiscard]] Communicator& column() { return column_; }

 private:
  std::uint32_t replica_number_;
  ModelPart part_;
  std::vector<LeafRange> shards_;
  Communicator all_;
  Communicator replica_;
  Communicator stage_;
  std::optional<Communicator> ends_;
  Communicator column_;
};

}  // namespace orrery
