// runtime/checkpoint/checkpoint_directory.hpp - the checkpoints of one job: what is committed, by
// which incarnation, and how long it is kept.
//
//   DIRECTORY/step-000000123/rank-0-of-8.a2.e0.shard ...   written by the ranks
//   DIRECTORY/step-000000123/manifest.json                 makes them a checkpoint; comes last
//   DIRECTORY/fence.json                                   the newest incarnation that may commit
//   DIRECTORY/lock                                         held while one of the above changes
//
// Two incarnations of a job may run at once for a while (a cut network, a frozen node); only the
// newest may commit. Shards carry their incarnation in their names, so an older incarnation cannot
// touch the shards of a newer one. Newest is the order of (attempt, epoch, step): what a later
// attempt saved counts, even when it began again at an earlier step. Functions block on the disk;
// any process of any host may call them at once, on a file system with flock. Cost: O(checkpoints
// kept).
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.hpp"

namespace orrery {

/// Returns DIRECTORY/step-000000123.
[[nodiscard]] std::string step_directory(const std::string& directory, std::uint64_t step);

/// The file name of the manifest in a step directory.
inline constexpr std::string_view kManifestName = "manifest.json";

struct ListedCheckpoint {
  enum class State : std::uint8_t { kCommitted, kUncommitted, kUnreadable };

  std::uint64_t step = 0;
  State state = State::kUncommitted;
  Manifest manifest;  ///< manifest of a committed checkpoint
  std::string fault;  ///< why a checkpoint is unreadable
};

/// Lists all checkpoints: committed ones first, newest first; then the others by descending step. A
/// missing directory gives an empty list. The shards are not read.
[[nodiscard]] Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& directory);

/// Returns the incarnation that may commit: the newest that ever claimed or committed, or {0, 0} if
/// there is none. A trainer without a scheduler takes the next attempt as its own.
[[nodiscard]] Result<Incarnation> newest_incarnation(const std::string& directory);

/// Keeps all older incarnations from committing from now on; an equal one may still commit. Errors:
/// a newer one claimed before, or the directory is another job's (both ErrorKind::kInfeasible).
[[nodiscard]] Status claim_checkpoints(const std::string& directory, const CheckpointId& id);

/// Makes the directory of a step ready for a shard and returns it: what a killed writer left of the
/// same shard is removed. Error: this incarnation or a newer one has committed the step, whose
/// shards stay.
[[nodiscard]] Result<std::string> prepare_shard(const std::string& directory,
                                                const ShardName& name);

/// Makes durable shards a checkpoint, atomically. Errors: those of manifest_text(); an incarnation
/// older than the newest; a step that this incarnation or a newer one has committed already; a
/// shard that is missing or has another size. The second and third are ErrorKind::kInfeasible:
/// another incarnation of the job is running. After an error the checkpoints are unchanged.
[[nodiscard]] Status commit_checkpoint(const std::string& directory, const Manifest& manifest);

struct Retention {
  std::uint32_t newest = 3;  ///< at least 1
  std::uint64_t every = 0;   ///< also those whose step is a multiple of this; 0: none
};

/// Removes checkpoints that `retention` does not keep, and what can never be committed: shards of
/// older incarnations, and of steps before the newest of this one. A manifest is removed before its
/// shards.
[[nodiscard]] Status prune_checkpoints(const std::string& directory, const Retention& retention);

}  // namespace orrery
