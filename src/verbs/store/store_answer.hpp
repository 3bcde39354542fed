// verbs/store/store_answer.hpp - the verb `store`: checks, exports, copies and compacts the durable
// log of a controller.
#pragma once

#include <functional>
#include <string>

#include "store/history.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Returns "batches 3 to 9", or why there are none.
[[nodiscard]] std::string batches_text(const StoreExtent& extent);
/// Returns what compacting did to the store with this name.
[[nodiscard]] VerbAnswer compacted_answer(const std::string& name, const CompactedLog& log);

// `path`: the directory of a store, or a backup file; to verify and export also the URL of a log
// in etcd. Errors of each: no store there, or another kind of place than expected (kInput);
// damage, with its place, and those of the files or etcd (kEnvironment).

/// Reads every record and snapshot. The verdict is an error where there is damage; then the text is
/// empty, and the JSON names the place.
[[nodiscard]] Result<JudgedAnswer> verify_store(const std::string& path);
/// Calls `show` with each event, in order; those before the first damage are shown.
[[nodiscard]] Status export_store(const std::string& path,
                                  const std::function<void(const Json&)>& show);
/// Copies the store into the new file `to`, even while it is written.
[[nodiscard]] Result<VerbAnswer> back_up_store(const std::string& path, const std::string& to);
/// Replaces the log so far with a snapshot; the controller that writes the store does it where
/// there is one, and always where the log is in etcd: that of the cluster which the options name.
/// Errors besides: nothing to compact (kInfeasible); the log in etcd is not that of the cluster
/// (kInput), and nothing was asked for.
[[nodiscard]] Result<VerbAnswer> compact_store(const CommandOptions& options,
                                               const std::string& path);

}  // namespace orrery
