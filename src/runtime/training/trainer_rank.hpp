// runtime/training/trainer_rank.hpp - one rank of a training job from its first step to its last:
// computes its shards' gradients, sums them with its peers', steps, saves, and continues when peers
// die or join.
//
// Made once a process and run on one thread (checkpoints are written by one of their own). The
// trained weights depend on the spec alone: not on how many ranks there are, or which ranks die,
// when, or how often. If each rank has the whole state, a change of ranks costs the step in
// progress; if the state is divided (TrainingLayout::cut), all take new places and read its newest
// copy in their memory (PeerCopies), or the newest checkpoint.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "runtime/elastic/member_group.hpp"
#include "runtime/ranks/peer_copies.hpp"
#include "runtime/ranks/rank_grid.hpp"
#include "runtime/ranks/replica_peers.hpp"
#include "runtime/ranks/shard_gradient.hpp"
#include "runtime/ranks/shared_checkpoint.hpp"
#include "runtime/training/gradient_check.hpp"
#include "runtime/training/gradient_length.hpp"
#include "runtime/training/training_reports.hpp"
#include "runtime/training/training_spec.hpp"
#include "runtime/training/training_state.hpp"

namespace orrery {

/// A rank's place in the job, from the launch contract; the default is a job of one rank.
struct TrainingSeat {
  std::string job = "training";
  std::uint32_t attempt = 1;
  std::uint32_t epoch = 0;  ///< membership it was started in; above 0: joins running ranks
  std::string progress;     ///< path of the stream of progress lines; "": none
  GroupSettings group;      ///< without the workspace
  /// Step in which to rehearse a broken machine: ShardGradient::flip_in().
  std::optional<std::uint64_t> flip_in;
};

struct TrainingOutcome {
  /// kWrong: this machine's results differ from the others', which continue without it.
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

  /// Runs until the last step is done and saved, or `stop` returns true at a step's end: then all
  /// ranks save and leave together, or this rank leaves and the others continue.
  [[nodiscard]] Result<TrainingOutcome> run(const std::function<bool()>& stop);

 private:
  /// Values that ranks sum together with each gradient.
  enum Tail : std::size_t { kLoss, kRouterLoss, kJoin, kLeave, kSaved, kUnsaved, kTailSize = 16 };

  /// Restores the newest good checkpoint, if there is one.
  [[nodiscard]] Status restore();
  [[nodiscard]] Status meet();
  [[nodiscard]] Result<bool> take_place();
  [[nodiscard]] Result<bool> compare_specs();
  [[nodiscard]] Status wait_for_place();
  [[nodiscard]] Result<bool> take_share();
  [[nodiscard]] Result<bool> read_share();
  [[nodiscard]] Result<bool> read_saved_share();
  [[nodiscard]] Status claim();
  /// Number of steps of the newest checkpoint.
  [[nodiscard]] std::uint64_t saved_steps() const;
  /// Whether the last step is saved, so that a new rank has nothing to do.
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool leads() const { return group_->rank() == 0; }
  /// The gradient and the tail in the group's workspace; the messages of ReplicaPeers come after
  /// them.
  [[nodiscard]] std::span<float> gradient();
  [[nodiscard]] std::span<float> tail() { return gradient().subspan(gradient_floats_); }
  /// Does one step. False: a peer was lost and the other ranks have regrouped.
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
  std::size_t gradient_floats_;  ///< size of the largest part; of its own once known
  AdamW optimizer_;
  CosineSchedule schedule_;
  std::unique_ptr<MemberGroup> group_;
  std::optional<RankGrid> grid_;         ///< grid of the present generation
  std::optional<ReplicaPeers> peers_;    ///< none: each rank has the whole model
  std::optional<ShardGradient> shards_;  ///< set once its part is known
  std::optional<TrainingState> state_;   ///< set together with shards_
  TrainingReports reports_;
  SharedCheckpoint checkpoint_;
  PeerCopies copies_;
  Instant begun_;                 ///< begin of the step in progress
  bool has_state_ = false;        ///< whether state_ is complete and of one step
  Duration longest_;              ///< longest step so far
  Instant computed_;              ///< when its own gradient was complete
  std::optional<Instant> lost_;   ///< when the loss of a peer was seen, until a step ends
  std::uint32_t some_leave_ = 0;  ///< steps in a row in which some, not all, were asked to end
  bool too_late_ = false;         ///< it joined after the last step
  bool asked_ = false;            ///< this rank was asked to end
  bool leaving_ = false;          ///< this rank leaves now
  bool wrong_ = false;            ///< its results were found to differ from the others'
};

}  // namespace orrery
