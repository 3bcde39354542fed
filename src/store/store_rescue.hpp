// store/store_rescue.hpp - a store put back from a copy, and what is good of a damaged one written
// into a new one.
//
// Called by `orrery store restore` and `salvage` while no daemon writes; each takes the lock of the
// store. Nothing is deleted: what was there is kept beside it under another name. Both keep the
// mark's term and next job number, so that neither is given out twice. Cost: that of reading and
// writing the whole log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/high_water.hpp"
#include "store/history.hpp"

namespace orrery {

struct RestoreRequest {
  std::string from;            ///< a backup, or the directory of a store
  std::string directory;       ///< of the cluster: its store is DIR/store
  bool force = false;          ///< also in place of a store that is whole and as new, or newer
  std::uint64_t next_job = 0;  ///< numbers below it are not given out again; 0: as the mark says
};

struct RestoredStore {
  StoreExtent extent;
  std::string kept;            ///< where the store that was there is now; empty: there was none
  std::uint64_t next_job = 0;  ///< as in the request, or of the mark that was there
};

/// Verifies the copy, then puts it in place in one step. Errors: damage of the copy; another
/// process writes the store; it is whole and reaches as far as the copy, and force is off; of the
/// files.
[[nodiscard]] Result<RestoredStore> restore_store(const RestoreRequest& request);

struct SalvagedStore {
  StoreExtent extent;                     ///< of what was written
  std::uint64_t batches = 0;              ///< written
  std::optional<std::uint64_t> snapshot;  ///< batch up to which one stands for the log
  std::uint64_t archived = 0;             ///< jobs of the archive
  std::uint64_t history_hash = 0;
  std::string damage;           ///< the first, with its place; empty: none was found
  std::uint64_t lost_from = 0;  ///< batches that were acknowledged and are not there; 0: none
  std::uint64_t lost_to = 0;
  std::optional<HighWater> mark;  ///< of the damaged store; none: it is missing or damaged
};

/// Writes into the new directory `to` all that is good in the store of `from` up to the first
/// damage. Errors: another process writes there; `to` exists; nothing can be read, or neither the
/// first batch nor a snapshot is good; of the files.
[[nodiscard]] Result<SalvagedStore> salvage_store(const std::string& from, const std::string& to);

}  // namespace orrery
