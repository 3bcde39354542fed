// runtime/checkpoint/checkpoint_directory.hpp - the checkpoints of one job: what is committed, by
// whom, and for how long it is kept.
//
//   DIRECTORY/step-000000123/rank-0-of-8.a2.e0.shard ...   written by the ranks
//   DIRECTORY/step-000000123/manifest.json                 makes them a checkpoint; comes last
//   DIRECTORY/fence.json                                   the newest incarnation that may commit
//   DIRECTORY/lock                                         held while one of the above changes
//
// Two lives of a job may run at once for a while (a cut network, a frozen node); only the newest
// may commit. Shards carry their incarnation in their names, so an older life cannot touch those of
// a newer. Newest is the order of (attempt, epoch, step): what a later attempt saved counts, even
// when it began again at an earlier step. Functions block on the disk; any process of any host may
// call them at once, on a file system with flock. Cost: O(checkpoints kept).
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/manifest.hpp"

namespace orrery {

/// DIRECTORY/step-000000123
[[nodiscard]] std::string step_directory(const std::string& directory, std::uint64_t step);

/// The name of the manifest in it.
inline constexpr std::string_view kManifestName = "manifest.json";

struct ListedCheckpoint {
  enum class State : std::uint8_t { kCommitted, kUncommitted, kUnreadable };

  std::uint64_t step = 0;
  State state = State::kUncommitted;
  Manifest manifest;  ///< of a committed one
  std::string fault;  ///< why an unreadable one is none
};

/// All there is: committed ones first, the newest first; then the others by falling step. No
/// directory is an empty list. The shards are not looked at.
[[nodiscard]] Result<std::vector<ListedCheckpoint>> list_checkpoints(const std::string& directory);

/// Who may commit: the newest that ever claimed or committed. {0, 0}: nobody did. A trainer without
/// a scheduler takes the attempt after this one as its own.
[[nodiscard]] Result<Incarnation> newest_incarnation(const std::string& directory);

/// Keeps all older incarnations from committing from now on; equal ones pass. Errors: a newer one
/// claimed before, the directory is another job's (both ErrorKind::kInfeasible).
[[nodiscard]] Status claim_checkpoints(const std::string& directory, const CheckpointId& id);

/// Makes the directory of a step ready for a shard and returns it: what a killed writer left of the
/// same shard is removed. Error: this incarnation or a newer one committed the step, whose shards
/// stay.
[[nodiscard]] Result<std::string> prepare_shard(const std::string& directory,
                                                const ShardName& name);

/// Makes shards that are durable a checkpoint, in one step. Errors: those of manifest_text(); an
/// older incarnation than the newest; a step this incarnation or a newer one committed already; a
/// shard that is not there in its size. The second and third are ErrorKind::kInfeasible: another
/// life of the job goes on. After an error the checkpoints are those before.
[[nodiscard]] Status commit_checkpoint(const std::string& directory, const Manifest& manifest);

struct Retention {
  std::uint32_t newest = 3;  ///< at least 1
  std::uint64_t every = 0;   ///< also those whose step is a multiple of this; 0: none
};

/// Removes what is kept no longer, and what can never be committed: shards of older incarnations,
/// and of steps before the newest of this one. A manifest goes before its shards.
[[nodiscard]] Status prune_checkpoints(const std::string& directory, const Retention& retention);

}  // namespace orrery
