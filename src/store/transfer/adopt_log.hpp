// store/transfer/adopt_log.hpp - goes on with a log in etcd that lacks what this machine has seen,
// because etcd was restored from a backup.
//
// Called by `orrery store adopt` on each controller's machine, while no controller runs. The order:
//   1. The log is claimed with a term above every term that this machine has seen, so that agents
//      take the orders of the next leader. The claim succeeds only if nothing was written
//      meanwhile.
//   2. The given texts are put: they name the lost job numbers, for whichever controller leads.
//   3. The mark of this machine is lowered to the log's newest batch. Until then the same call may
//      be repeated.
// Invariant: the mark's term and next job number never fall.
#pragma once

#include <string>

#include "store/etcd_api/etcd_location.hpp"
#include "store/shared_store.hpp"
#include "store/sqlite/high_water.hpp"
#include "store/transfer/quiet_log.hpp"

namespace orrery {

struct AdoptableLog {
  HighWater marked;  ///< what this machine has seen
  WriterSeen seen;   ///< what the log has
};

/// Error kInput: no log there; this machine has no mark. Error kInfeasible: the log has all that
/// this machine has seen.
[[nodiscard]] Result<AdoptableLog> find_adoptable(const EtcdLocation& location,
                                                  const std::string& local);

struct AdoptOrder {
  std::string local;  ///< STATE/store
  StoreTexts texts;
  Duration watch = kQuietWatch;
};
/// Returns the claimed term. Errors: a controller of this machine runs, or another one writes the
/// log (kInfeasible); of the files and of etcd.
[[nodiscard]] Result<StoreTerm> adopt_log(const EtcdLocation& location, const AdoptableLog& found,
                                          const AdoptOrder& order);

}  // namespace orrery
