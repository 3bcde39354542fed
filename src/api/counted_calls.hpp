// api/counted_calls.hpp - the same methods, counted by how their calls end.
#pragma once

#include "api/method_table.hpp"
#include "executor/live_counts.hpp"

namespace orrery {

/// `counts` outlives the table and every call. What is refused before a method runs is not counted.
[[nodiscard]] MethodTable counted(const MethodTable& methods, LiveCounts& counts);

}  // namespace orrery
