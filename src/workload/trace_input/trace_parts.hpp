// workload/trace_input/trace_parts.hpp - joins tasks and pods of a trace to the jobs that they are
// parts of.
//
// Free functions over plain values. Cost: O(n log n) for n parts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "workload/trace/trace.hpp"

namespace orrery {

/// Thousandths of an accelerator that a job or part of one requests.
[[nodiscard]] std::uint64_t thousandths_of(const TraceJob& job);

/// Sets `accelerators` and `share` to so many thousandths: below 1000 a part of one accelerator,
/// from there on whole accelerators, rounded up. False: more than kTraceAcceleratorsMax.
[[nodiscard]] bool set_thousandths(TraceJob& job, std::uint64_t thousandths);

struct TracePart {
  std::string key;  ///< parts with the same key are one job
  TraceJob job;     ///< data of the part itself; `run` begins at `start`
  Instant start;
};

/// How a job of several parts ended. kWorst: it failed if any part did, else was cancelled if any
/// was. kLast: as the part that ended last.
enum class JoinedStatus : std::uint8_t { kWorst, kLast };

/// A job for each key, in the order of first parts and with what the first part says. It is
/// submitted with its first part, runs from the first start to the last end, and has the most
/// accelerators, CPUs and memory that its parts had at one time; a part that starts when another
/// ends takes its place. Of each it has at most what a reader takes of one job. `types` are those
/// of the first part with accelerators.
[[nodiscard]] std::vector<TraceJob> join_trace_parts(const std::vector<TracePart>& parts,
                                                     JoinedStatus status);

}  // namespace orrery
