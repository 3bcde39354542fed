// workload/trace_input/trace_kubernetes.hpp - pods and Jobs of a Kubernetes cluster as a trace.
//
// Pods of one Job, JobSet, job of the training operator, of Volcano or Ray cluster are one gang; a
// Job counts only where the list has none of its pods. docs/formats.md has the rules. Memory: the
// text, one item, and about 400 bytes a pod.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_options.hpp"

namespace orrery {

/// `options.where` may compare name, tenant (the namespace), types and status. Errors, with
/// file:line:column: no List in JSON, a list without pods and Jobs, and, unless they are to be
/// skipped, pods that read_kubernetes_pod refuses.
[[nodiscard]] Result<Trace> read_kubernetes_trace(std::string_view text, const std::string& file,
                                                  const TraceOptions& options);

}  // namespace orrery
