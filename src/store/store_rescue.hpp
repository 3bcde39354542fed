// store/store_rescue.hpp - restores a store from a copy, and copies the good parts of a damaged
// store into a new one.
//
// Called by `orrery store restore` and `salvage` while no daemon writes; each takes the lock of the
// store. Nothing is deleted: the previous store is kept beside the new one under another name. Both
// keep the mark's term and next job number, so that neither is given out twice. Cost: that of
// reading and writing the whole log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/history.hpp"
#include "store/sqlite/high_water.hpp"

namespace orrery {

struct RestoreRequest {
  std::string from;            ///< a backup, or the directory of a store
  std::string directory;       ///< directory of the cluster: its store is DIR/store
  bool force = false;          ///< also replaces a whole store that is as new as the copy, or newer
  std::uint64_t next_job = 0;  ///< numbers below it are not given out again; 0: use the mark's
};

struct RestoredStore {
  StoreExtent extent;
  std::string kept;            ///< where the previous store is now; empty: there was none
  std::uint64_t next_job = 0;  ///< that of the request, or of the previous store's mark
};

/// Verifies the copy, then puts it in place in one step. Errors: damage of the copy; the copy is a
/// store that is closed; another process writes the store; force is off, and the store is closed,
/// or is whole and reaches as far as the copy; of the files.
[[nodiscard]] Result<RestoredStore> restore_store(const RestoreRequest& request);

struct SalvagedStore {
  StoreExtent extent;                     ///< batches that were written
  std::uint64_t batches = 0;              ///< number of batches written
  std::optional<std::uint64_t> snapshot;  ///< batch up to which a snapshot replaces the log
  std::uint64_t archived = 0;             ///< archived jobs
  std::uint64_t history_hash = 0;
  std::string damage;           ///< first damage, with its place; empty: none was found
  std::uint64_t lost_from = 0;  ///< first acknowledged batch that is missing; 0: none
  std::uint64_t lost_to = 0;
  std::optional<HighWater> mark;  ///< mark of the damaged store; none: it is missing or damaged
};

/// Copies everything good in the store of `from`, up to the first damage, into the new directory
/// `to`. Errors: another process writes there; the store is closed; `to` exists; nothing can be
/// read, or neither the first batch nor a snapshot is good; of the files.
[[nodiscard]] Result<SalvagedStore> salvage_store(const std::string& from, const std::string& to);

}  // namespace orrery
