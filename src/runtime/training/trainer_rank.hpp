// runtime/training/trainer_rank.hpp - one rank of a training job from its first step to its last:
// computes its shards' gradients, sums them with its peers', steps, saves, and goes on when peers
// die or come.
//
// Made once a process and run on one thread (checkpoints are written by one of their own). What is
// trained depends on the spec alone: not on how many ranks there are, who dies, when, or how often.
// Where each rank has the whole state, a change of ranks costs the step in progress; where the
// state is shared out (TrainingLayout::cut), all take new places and read the newest copy of it
// that they have kept between them, or the newest checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "runtime/elastic/member_group.hpp"
#include "runtime/training/gradient_check.hpp"
#include "runtime/training/gradient_length.hpp"
#include "runtime/training/peer_copies.hpp"
#include "runtime/training/rank_grid.hpp"
#include "runtime/training/replica_peers.hpp"
#include "runtime/training/shard_gradient.hpp"
#include "runtime/training/shared_checkpoint.hpp"
#include "runtime/training/training_reports.hpp"
#include "runtime/training/training_spec.hpp"
#include "runtime/training/training_state.hpp"

namespace orrery {

/// Where a rank stands, from the launch contract; by itself it is a job of one rank.
struct TrainingSeat {
  std::string job = "training";
  std::uint32_t attempt = 1;
  std::uint32_t epoch = 0;  ///< of the membership it was started in; above 0 others are at work
  std::string progress;     ///< path of the stream of progress lines; "": none
  GroupSettings group;      ///< but for the workspace
  /// Rehearses a broken machine: ShardGradient::flip_in().
  std::optional<std::uint64_t> flip_in;
};

struct TrainingOutcome {
  /// kWrong: this machine computes what others do not; they go on without it.
  enum class End { kDone, kStopped, kWrong } end = End::kDone;
  std::uint64_t steps = 0;
};

class TrainerRank {
 public:
  /// Opens text and checkpoints, and meets the others. `spec`, `stream`, `env` outlive it. Errors:
  /// data or checkpoints that cannot be used, peers that do not come.
  [[nodiscard]] static Result<std::unique_ptr<TrainerRank>> start(const TrainingSpec& spec,
                                                                  const TextStream& stream, Env env,
                                                                  TrainingSeat seat);
  TrainerRank(const TrainingSpec& spec, const TextStream& stream, Env env, TrainingSeat seat);

  /// Until the last step is done and saved, or `stop` says so at a step's end: then all leave
  /// together after saving, or this rank leaves the others to go on.
  [[nodiscard]] Result<TrainingOutcome> run(const std::function<bool()>& stop);

 private:
  /// What ranks tell each other with each gradient, summed.
  enum Tail : std::size_t { kLoss, kRouterLoss, kJoin, kLeave, kSaved, kUnsaved, kTailSize = 16 };

  /// The newest good checkpoint into the state, or none.
  [[nodiscard]] Status restore();
  [[nodiscard]] Status meet();
  [[nodiscard]] Result<bool> take_place();
  [[nodiscard]] Result<bool> compare_specs();
  [[nodiscard]] Status wait_for_place();
  [[nodiscard]] Result<bool> take_share();
  [[nodiscard]] Result<bool> read_share();
  [[nodiscard]] Result<bool> read_saved_share();
  [[nodiscard]] Status claim();
  /// Steps of the newest checkpoint.
  [[nodiscard]] std::uint64_t saved_steps() const;
  /// The last step is saved: who comes now has nothing to do.
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool leads() const { return group_->rank() == 0; }
  /// Of the group's workspace: the gradient and the tail, then room for what a replica says.
  [[nodiscard]] std::span<float> gradient();
  [[nodiscard]] std::span<float> tail() { return gradient().subspan(gradient_floats_); }
  /// One step done by all; nothing: a peer was lost and the rest have regrouped.
  [[nodiscard]] Result<bool> step(const std::function<bool()>& stop);
  [[nodiscard]] bool sum_gradient(const std::function<bool()>& stop);
  [[nodiscard]] bool exchange_gradient();
  [[nodiscard]] Result<bool> verify();
  [[nodiscard]] Shared<std::vector<GradientOpinion>> opinions(const GradientOpinion& own);
  [[nodiscard]] Result<bool> apply();
  [[nodiscard]] Status go_on_without();
  [[nodiscard]] Status regroup();
  [[nodiscard]] bool feed_those_behind();
  [[nodiscard]] Status check_source() const;
  [[nodiscard]] Status after_step();
  [[nodiscard]] Status commit_when_written();
  [[nodiscard]] Status change_ranks();
  [[nodiscard]] Result<bool> finish();
  [[nodiscard]] SharedCheckpoint::Makers makers() {
    return {grid_->all(), group_->roster().generation};
  }
  void evaluate();

  const TrainingSpec& spec_;
  const TextStream& stream_;
  Env env_;
  TrainingSeat seat_;
  std::size_t gradient_floats_;  ///< of the largest part, and of this rank's once it is known
  AdamW optimizer_;
  CosineSchedule schedule_;
  std::unique_ptr<MemberGroup> group_;
  std::optional<RankGrid> grid_;         ///< of the present generation
  std::optional<ReplicaPeers> peers_;    ///< none: each rank has the whole model
  std::optional<ShardGradient> shards_;  ///< once its part is known
  std::optional<TrainingState> state_;   ///< with it
  TrainingReports reports_;
  SharedCheckpoint checkpoint_;
  PeerCopies copies_;
  Instant begun_;                 ///< of the step in progress
  bool has_state_ = false;        ///< whole, and of one step
  Duration longest_;              ///< step so far
  Instant computed_;              ///< when its own gradient was there
  std::optional<Instant> lost_;   ///< when the loss of a peer was seen, until a step ends
  std::uint32_t some_leave_ = 0;  ///< steps in a row that some, but not all, were asked to end
  bool too_late_ = false;         ///< it came when all was done
  bool asked_ = false;            ///< this rank was
  bool leaving_ = false;          ///< and goes now
  bool wrong_ = false;            ///< it was found to compute what others do not
};

}  // namespace orrery
