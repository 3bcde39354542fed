// api/grpc/counted_calls.hpp - wraps methods to count how their calls end.
#pragma once

#include "api/grpc/method_table.hpp"
#include "executor/live/live_counts.hpp"

namespace orrery {

/// `counts` outlives the table and every call. Calls that are refused before a method runs are not
/// counted.
[[nodiscard]] MethodTable counted(const MethodTable& methods, LiveCounts& counts);

}  // namespace orrery
