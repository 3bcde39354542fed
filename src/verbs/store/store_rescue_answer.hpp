// verbs/store/store_rescue_answer.hpp - the verbs `store restore` and `store salvage`.
#pragma once

#include <cstdint>
#include <string>

#include "store/store_rescue.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Says what restoring put into the store of `directory`.
[[nodiscard]] VerbAnswer restored_answer(const std::string& directory,
                                         const RestoredStore& restored);
/// Says what was saved into the new store `to`, and which batches and jobs are lost. `next_job`:
/// the first number that the new store has not given out.
[[nodiscard]] VerbAnswer salvaged_answer(const std::string& to, const SalvagedStore& salvaged,
                                         std::uint64_t next_job);

/// Replaces the store of the cluster (`request.directory` is ignored). Errors: those of
/// restore_store().
[[nodiscard]] Result<VerbAnswer> restore_backup(const CommandOptions& options,
                                                RestoreRequest request);

struct SalvageRequest {
  std::string from;  ///< directory of the damaged store
  std::string to;    ///< directory to create
};
/// Errors: those of salvage_store(); a salvaged log that a controller could not read.
[[nodiscard]] Result<VerbAnswer> salvage_damaged(const CommandOptions& options,
                                                 const SalvageRequest& request);

}  // namespace orrery
