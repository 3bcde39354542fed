// workload/trace_file.hpp - our own format of traces: YAML or JSON, `kind: Trace`.
//
// The one format that tells all a TraceJob can hold, so whatever was read or generated can be
// written and read again. docs/formats.md describes the keys. A file has at most 8 MiB
// (base/document.hpp), which is about 60,000 jobs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workload/trace.hpp"
#include "workload/trace_options.hpp"

namespace orrery {

/// `options.where` may compare name, user, tenant, model, types, kind and status. Errors with
/// file:line:column: of YAML, of a key, of a value; in a job's `spec` those of read_job_spec.
[[nodiscard]] Result<Trace> read_trace_file(std::string_view text, const std::string& file,
                                            const TraceOptions& options);

/// YAML that read_trace_file reads back to the same jobs, but for their lines. Submits are exact;
/// other times are too up to 104 days, beyond that to the nearest double. `name` is the trace's.
[[nodiscard]] std::string write_trace(const Trace& trace, const std::string& name);

}  // namespace orrery
