// runtime/checkpoint/checkpoint_audit.hpp - which checkpoints of a directory are good, and what is
// wrong with the others.
//
// Plain values. Cost: reads every byte.
#pragma once

#include <string>
#include <vector>

#include "runtime/checkpoint/checkpoint_directory.hpp"

namespace orrery {

struct AuditedCheckpoint {
  std::uint64_t step = 0;
  ListedCheckpoint::State state = ListedCheckpoint::State::kCommitted;
  Incarnation by;                   ///< incarnation that committed it
  std::uint64_t bytes = 0;          ///< size of all its shards
  std::vector<std::string> faults;  ///< one for each bad shard; empty: the checkpoint is good

  /// Whether it can be restored.
  [[nodiscard]] bool good() const {
    return state == ListedCheckpoint::State::kCommitted && faults.empty();
  }
};

/// Reads and checks every checkpoint, newest first. Error: the directory cannot be read.
[[nodiscard]] Result<std::vector<AuditedCheckpoint>> audit_checkpoints(
    const std::string& directory);

/// Returns a readable report: one line per checkpoint, with one line per fault below it.
[[nodiscard]] std::string audit_text(const std::vector<AuditedCheckpoint>& audited);

}  // namespace orrery
