// runtime/training/trainer_rank.hpp - one rank of a training job from its first step to its last:
// computes its shards' gradients, sums them with its peers', steps, saves, and goes on when peers
// die or come.
//
// Made once a process and run on one thread (checkpoints are written by one of their own). What is
// trained depends on the spec alone: not on how many ranks there are, who dies, when, or how often.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/env.hpp"
#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/elastic/member_group.hpp"
#include "runtime/training/gradient_check.hpp"
#include "runtime/training/shard_gradient.hpp"
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
  enum Tail : std::size_t { kLoss, kJoin, kLeave, kSaved, kUnsaved, kTailSize = 16 };

  [[nodiscard]] Status restore();
  [[nodiscard]] Status meet();
  [[nodiscard]] Status claim();
  /// The last step is saved: who comes now has nothing to do.
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool leads() const { return group_->rank() == 0; }
  [[nodiscard]] std::span<float> gradient();
  /// One step done by all; nothing: a peer was lost and the rest have regrouped.
  [[nodiscard]] Result<bool> step(const std::function<bool()>& stop);
  [[nodiscard]] bool sum_gradient(const std::function<bool()>& stop);
  [[nodiscard]] Result<bool> verify();
  [[nodiscard]] Shared<std::vector<GradientOpinion>> opinions(const GradientOpinion& own);
  [[nodiscard]] Status apply();
  [[nodiscard]] Status go_on_without();
  [[nodiscard]] Status regroup();
  [[nodiscard]] bool feed_those_behind();
  [[nodiscard]] Status check_source() const;
  [[nodiscard]] Status after_step();
  [[nodiscard]] Status begin_checkpoint();
  [[nodiscard]] Result<bool> commit_checkpoint(std::string_view when);
  [[nodiscard]] Shared<std::vector<ShardRecord>> gather_records();
  [[nodiscard]] Result<bool> save_last();
  void evaluate();

  const TrainingSpec& spec_;
  Env env_;
  TrainingSeat seat_;
  ShardGradient shards_;
  TrainingState state_;
  AdamW optimizer_;
  CosineSchedule schedule_;
  CheckpointWriter writer_;
  std::unique_ptr<MemberGroup> group_;
  TrainingReports reports_;
  Instant begun_;                        ///< of the step in progress
  bool has_state_ = false;               ///< whole, and of one step
  Duration longest_;                     ///< step so far
  Instant computed_;                     ///< when its own gradient was there
  std::optional<Instant> lost_;          ///< when the loss of a peer was seen, until a step ends
  std::optional<std::uint64_t> saving_;  ///< step of the snapshot that is being written
  std::optional<WrittenShard> saved_;    ///< this rank's part of it, once durable
  bool unsaved_ = false;                 ///< it failed
  std::uint32_t some_leave_ = 0;  ///< steps in a row that some, but not all, were asked to end
  bool too_late_ = false;         ///< it came when all was done
  bool asked_ = false;            ///< this rank was
  bool leaving_ = false;          ///< and goes now
  bool wrong_ = false;            ///< it was found to compute what others do not
};

}  // namespace orrery
