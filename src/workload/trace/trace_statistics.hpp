// workload/trace/trace_statistics.hpp - published statistics of how three kinds of clusters are
// used: the constants for generated traces. Fixed before anything was tuned on them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "base/format/field_reader.hpp"

namespace orrery {

enum class TraceStyle : std::uint8_t { kPhilly, kHelios, kAcme };

inline std::array<EnumWord<TraceStyle>, 3> enum_words(TraceStyle) {
  return {{{"philly", TraceStyle::kPhilly},
           {"helios", TraceStyle::kHelios},
           {"acme", TraceStyle::kAcme}}};
}

struct SizeShare {
  std::uint32_t accelerators;
  double share;  ///< of jobs
};

/// One part of a mixture of lognormals.
struct RunPart {
  double share;
  double median_s;
  double sigma;  ///< of the logarithm
};

struct TraceStatistics {
  std::span<const SizeShare> sizes;
  std::span<const RunPart> runs;  ///< of jobs of one accelerator
  /// The run times of a job of n accelerators are n^exponent times those of one: the larger a job,
  /// the longer it runs, or the accelerator-seconds would not be what they are.
  double size_exponent;
  double run_max_s;
  /// Shares of completed, cancelled and failed, among jobs and among accelerator-seconds.
  std::array<double, 3> ends;
  std::array<double, 3> ends_by_time;
};

/// The constants live as long as the program. Sources are beside them.
[[nodiscard]] const TraceStatistics& trace_statistics(TraceStyle style);

/// How often jobs are submitted in an hour of a week that begins on Monday, 00:00; relative.
[[nodiscard]] double submit_rate(std::uint64_t hour_of_week);

}  // namespace orrery
