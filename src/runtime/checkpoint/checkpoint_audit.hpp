// runtime/checkpoint/checkpoint_audit.hpp - what of a directory of checkpoints is good, and what is
// wrong with the rest.
//
// Values. Cost: every byte is read.
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {

struct AuditedCheckpoint {
  std::uint64_t step = 0;
  ListedCheckpoint::State state = ListedCheckpoint::State::kCommitted;
  Incarnation by;                   ///< of a committed one
  std::uint64_t bytes = 0;          ///< of its shards
  std::vector<std::string> faults;  ///< one for each shard that is bad; none: good

  /// Whether it can be restored.
  [[nodiscard]] bool good() const {
    return state == ListedCheckpoint::State::kCommitted && faults.empty();
  }
};

/// Reads and checks everything, the newest first. Error: the directory cannot be read.
[[nodiscard]] Result<std::vector<AuditedCheckpoint>> audit_checkpoints(
    const std::string& directory);

/// For a person: a line a checkpoint, and one for each fault below it.
[[nodiscard]] std::string audit_text(const std::vector<AuditedCheckpoint>& audited);

}  // namespace orrery
