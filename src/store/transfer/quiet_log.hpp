// store/transfer/quiet_log.hpp - waits to see whether a controller writes a log in etcd.
//
// For commands of an operator that need the controllers stopped. Blocks for the time it watches;
// any thread. Cost: one read of the log's state.
#pragma once

#include "base/time.hpp"
#include "store/etcd/etcd_reader.hpp"

namespace orrery {

/// A controller that leads writes at least every half second, also when it has nothing to do.
inline constexpr Duration kQuietWatch = Duration::seconds(3);

/// Waits for `watch`. Error (kInfeasible): the log was written since `seen`.
[[nodiscard]] Status watch_quiet(EtcdReader& log, const WriterSeen& seen, Duration watch);

}  // namespace orrery
