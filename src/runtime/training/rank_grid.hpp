// runtime/training/rank_grid.hpp - which part of the work a rank does in a generation of the group,
// and with whom it does what together.
//
// Ranks stand in rows: tp x pp of them in a row are a replica, which has the whole model, stage by
// stage, and computes some of the batch's shards; those of one column have the same part of it and
// sum its gradients.
// What no replica can be made of, at the end, has no place. Made once a generation, which it must
// not outlive; used by one thread. Invariant: a place follows from rank, number of ranks and spec
// alone.
#pragma once

#include <optional>
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
  /// Those of this rank's replica, by ModelPart::number().
  [[nodiscard]] Communicator& replica() { return replica_; }
  /// Of them, those of this rank's stage.
  [[nodiscard]] Communicator& stage() { return stage_; }
  /// Of the first and the last stage, those with this one's tensor rank. Precondition: this rank is
  /// of one of them, and they are two.
  [[nodiscard]] Communicator& ends() { return *ends_; }
  /// Those with this rank's part, by replica.
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
