// workload/trace/trace_file.hpp - our own format of traces: YAML or JSON, `kind: Trace`.
//
// The only format that holds everything a TraceJob can, so whatever was read or generated can be
// written and read again. docs/formats.md describes the keys. A file has at most 8 MiB
// (base/format/document.hpp), which is about 60,000 jobs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_options.hpp"

namespace orrery {

/// `options.where` may compare name, user, tenant, model, types, kind and status. Errors with
/// file:line:column: of YAML, of a key, of a value; in a job's `spec` those of read_job_spec.
[[nodiscard]] Result<Trace> read_trace_file(std::string_view text, const std::string& file,
                                            const TraceOptions& options);

/// YAML that read_trace_file reads back to equal jobs, except for their lines. Submits are exact;
/// other times are exact up to 104 days, beyond that to the nearest double. `name` is that of the
/// trace.
[[nodiscard]] std::string write_trace(const Trace& trace, const std::string& name);

}  // namespace orrery
