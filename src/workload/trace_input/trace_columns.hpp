// workload/trace_input/trace_columns.hpp - the columns that `where` may name in formats that are no
// tables: name, user, tenant, model, types, kind and status of a job.
#pragma once

#include <string>

#include "base/error.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_options.hpp"

namespace orrery {

/// Errors: `where` names another column; the message names the nearest.
[[nodiscard]] Status check_job_columns(const TraceOptions& options, const std::string& file);

/// Whether the job matches `where`. Precondition: check_job_columns found no error.
[[nodiscard]] bool is_wanted(const TraceJob& job, const TraceOptions& options);

}  // namespace orrery
