// verbs/store/store_transfer_answer.hpp - the verbs `store adopt` and `store copy`: what an
// operator does with a log in etcd while its controllers are stopped.
#pragma once

#include <string>

#include "store/transfer/quiet_log.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

struct AdoptStoreRequest {
  std::string url;
  std::string state;  ///< directory of this machine's controller
  Duration watch = kQuietWatch;
};
/// Goes on with a log that was restored from a backup, and says what is lost. Errors: the URL, or
/// no log there (kInput); nothing is lost, or a controller runs (kInfeasible); damage; etcd.
[[nodiscard]] Result<VerbAnswer> adopt_store(const CommandOptions& options,
                                             const AdoptStoreRequest& request);

struct CopyStoreRequest {
  std::string from;   ///< directory of a store, or URL of a log in etcd
  std::string to;     ///< likewise; nothing may be there
  std::string state;  ///< directory of a controller; empty: that of the cluster (--dir)
  Duration watch = kQuietWatch;
};
/// Copies a log, and checks that both have the same history; then closes `from`, if one of the two
/// is in etcd. A copy from a directory into etcd also has the cluster's files beside the directory,
/// sealed, if a cluster.key is in --dir, beside the directory or in `state`. Errors: no log at
/// `from`, or `to` is the same log (kInput); something at `to`; a controller runs; damage of the
/// log, with its place; of the files, the key and etcd. A log that was not copied whole stays open.
[[nodiscard]] Result<VerbAnswer> copy_store(const CommandOptions& options,
                                            const CopyStoreRequest& request);

}  // namespace orrery
