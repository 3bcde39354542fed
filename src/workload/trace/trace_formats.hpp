// workload/trace/trace_formats.hpp - the columns of every trace format that is a table, and what
// they mean for a job.
#pragma once

#include "workload/trace/trace_options.hpp"
#include "workload/trace_input/trace_table.hpp"

namespace orrery {

/// Precondition: the format is neither kOrrery nor kKubernetes, which are no tables. The table
/// lives as long as the program.
[[nodiscard]] const TraceTable& trace_table(TraceFormat format);

}  // namespace orrery
