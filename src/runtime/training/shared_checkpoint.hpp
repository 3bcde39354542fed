// runtime/training/shared_checkpoint.hpp - the checkpoint that ranks make together: each writes its
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
  /// Who makes it, in a generation of the group.
  struct Makers {
    Communicator& ranks;
    std::uint32_t generation = 0;
  };

  /// `spec` and `reports` outlive it.
  SharedCheckpoint(const TrainingSpec& spec, std::string job, std::uint32_t attempt,
                   TrainingReports& reports);

  /// Gets the memory of a rank's part before the first one needs it.
  [[nodiscard]] Status reserve(std::uint64_t bytes) { return writer_.reserve(bytes); }

  /// One is being made.
  [[nodiscard]] bool making() const { return saving_.has_value(); }
  /// Of it, this rank's part is durable; it cannot be.
  [[nodiscard]] bool saved() const { return saved_.has_value(); }
  [[nodiscard]] bool unsaved() const { return unsaved_; }

  /// Copies this rank's part and begins to write it. False: a peer was lost meanwhile.
  [[nodiscard]] bool begin(const Makers& makers, const TrainingState& state);
  /// Looks whether its part is written.
  void poll();
  /// Once all ranks have saved theirs. False: a peer was lost meanwhile; the caller regroups, as
  /// all others do, once. Errors: as of commit_checkpoint(), where it is tried.
  [[nodiscard]] Result<bool> commit(const Makers& makers, std::string_view when);
  /// begin() to commit() of what there is now, at once. Error also: a rank could not write.
  [[nodiscard]] Result<bool> make_now(const Makers& makers, const TrainingState& state,
                                      std::string_view when);
  /// What was begun is nobody's, even while it is still being written.
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
  bool unsaved_ = false;                 ///< it failed
};

}  // namespace orrery
