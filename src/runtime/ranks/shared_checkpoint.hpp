// runtime/ranks/shared_checkpoint.hpp - the checkpoint that ranks make together: each writes its
// part while training goes on, and the first commits it once all of them are durable.
//
// Owned by a TrainerRank, used on its thread; one checkpoint at a time. Invariant: what was begun
// in one generation of the group is never committed in another.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/checkpoint_writer.hpp"
#include "runtime/training/training_reports.hpp"
#include "runtime/training/training_state.hpp"

namespace orrery {

class SharedCheckpoint {
 public:
  /// The ranks that make it, in a generation of the group.
  struct Makers {
    Communicator& ranks;
    std::uint32_t generation = 0;
  };

  /// `spec` and `reports` outlive it.
  SharedCheckpoint(const TrainingSpec& spec, std::string job, std::uint32_t attempt,
                   TrainingReports& reports);

  /// Allocates the memory of a rank's part before the first checkpoint needs it.
  [[nodiscard]] Status reserve(std::uint64_t bytes) { return writer_.reserve(bytes); }

  /// Whether a checkpoint is being made.
  [[nodiscard]] bool making() const { return saving_.has_value(); }
  /// Whether this rank's part of it is durable, or has failed.
  [[nodiscard]] bool saved() const { return saved_.has_value(); }
  [[nodiscard]] bool unsaved() const { return unsaved_; }

  /// Copies this rank's part and begins to write it. False: a peer was lost meanwhile.
  [[nodiscard]] bool begin(const Makers& makers, const TrainingState& state);
  /// Checks whether this rank's part is written.
  void poll();
  /// Commits, once all ranks have saved their parts. False: a peer was lost meanwhile; the caller
  /// regroups once, as all others do. Errors: those of commit_checkpoint() on the rank that
  /// commits.
  [[nodiscard]] Result<bool> commit(const Makers& makers, std::string_view when);
  /// Runs begin() to commit() for the present state at once. Further error: a rank could not write.
  [[nodiscard]] Result<bool> make_now(const Makers& makers, const TrainingState& state,
                                      std::string_view when);
  /// Abandons the checkpoint in progress, even while it is still being written.
  void forget();

 private:
  [[nodiscard]] CheckpointId id(const Makers& makers, std::uint64_t step) const;
  [[nodiscard]] Shared<std::vector<ShardRecord>> gather_records(Communicator& ranks) const;

  const TrainingSpec& spec_;
  std::string job_;
  std::uint32_t attempt_;
  TrainingReports& reports_;
  CheckpointWriter writer_;
  std::optional<std::uint64_t> saving_;  ///< step of the snapshot that is being written
  std::optional<WrittenShard> saved_;    ///< this rank's part of it, once durable
  bool unsaved_ = false;                 ///< it could not be written
};

}  // namespace orrery
