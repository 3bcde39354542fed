// workload/trace/trace_generator.hpp - traces of any length and load that look like published ones.
//
// Drawn from workload/trace/trace_statistics.hpp: sizes, run times that grow with the size, how
// jobs end, users that submit in bursts and by the hours of a week. Equal shape and seed give the
// same trace everywhere. Cost: O(n log n), about 1 us a job.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "base/time.hpp"
#include "workload/trace/trace.hpp"
#include "workload/trace/trace_statistics.hpp"

namespace orrery {

struct TraceShape {
  TraceStyle style = TraceStyle::kPhilly;
  /// Accelerators of the cluster; larger jobs than that are left out of the mix.
  std::uint32_t accelerators = 1024;
  /// Requested accelerator-seconds over those that the cluster has in the span.
  double utilisation = 0.8;
  /// Either the number of jobs, which determines the span, or the span, which determines that
  /// number.
  std::optional<std::uint32_t> jobs;
  std::optional<Duration> span;
  Instant start;  ///< of the first hour; hours and days are those of this time, in UTC
  std::uint32_t users = 200;
  std::uint32_t tenants = 10;
};

/// Errors (without position): not exactly one of jobs and span, a count of zero, a utilisation
/// outside (0, 10], a span under an hour; over ten years or 20 million jobs to expect.
[[nodiscard]] Status check_trace_shape(const TraceShape& shape);

/// Jobs in the order of their submits, within the span, named job-1, job-2, ...; their accelerator-
/// seconds are utilisation x accelerators x span. Of a stated span the number of jobs follows from
/// the mean work and is the same for every seed, no job runs for more than about half of it or asks
/// for more than about 5 % of the work, and sizes and run times are spread evenly over what is left
/// of their distributions; the work is exact within 1 % from a hundred jobs on. Precondition:
/// check_trace_shape has no error.
[[nodiscard]] Trace generate_trace(const TraceShape& shape, std::uint64_t seed);

}  // namespace orrery
