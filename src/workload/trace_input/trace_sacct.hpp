// workload/trace_input/trace_sacct.hpp - jobs of a Slurm cluster as `sacct -X -P` prints them.
#pragma once

#include "workload/trace_input/trace_table.hpp"

namespace orrery {

/// Columns under the names that sacct gives them, in any order, separated by '|'. The table lives
/// as long as the program.
[[nodiscard]] const TraceTable& sacct_table();

}  // namespace orrery
