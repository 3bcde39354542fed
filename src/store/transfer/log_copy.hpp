// store/transfer/log_copy.hpp - copies a log from one backend to another.
//
// The whole history of the source is checked before anything is written. Then come the texts, the
// good snapshots and every batch that exists, and the archive; a log whose first batches were
// dropped begins with a snapshot. The copy has the same batch numbers and the same history hash,
// and a term above that of the source, so that agents follow it. One thread. Cost: the source is
// read twice, and each batch is one durable write.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "store/history.hpp"
#include "store/transfer/copy_source.hpp"
#include "store/transfer/copy_target.hpp"

namespace orrery {

/// A log that can be copied.
struct CopyPlan {
  HistoryStart start;                    ///< what comes before the first batch that is copied
  std::vector<std::uint64_t> snapshots;  ///< good ones from the start on, ascending
  std::vector<std::string> passed_over;  ///< why others are not copied
  std::uint64_t newest = 0;              ///< newest batch
  std::uint64_t history_hash = 0;
};

/// Reads the whole log. Errors: damage with its place; neither the first batch nor a good snapshot
/// of what came before it exists.
[[nodiscard]] Result<CopyPlan> plan_copy(StoreReader& from);

/// Whether a text, by its name, belongs into the copy.
using TextChoice = std::function<bool(const std::string&)>;

struct CopiedLog {
  std::uint64_t batches = 0;
  std::uint64_t archived = 0;  ///< jobs of the archive
  std::uint64_t sealed = 0;    ///< texts besides those of the log
  std::uint64_t term = 0;      ///< that of the copy
  std::uint64_t next_job = 0;  ///< numbers below it are not given out again
};

/// Writes the copy and closes it. Errors: of the target, which is incomplete then.
[[nodiscard]] Result<CopiedLog> copy_log(CopySource& from, const CopyPlan& plan, CopyTarget& to,
                                         const TextChoice& belongs);

}  // namespace orrery
