// workload/trace/trace.hpp - the jobs that a cluster once ran, as the twin replays them.
//
// Built by workload/trace_input/trace_reader.hpp from a file or by
// workload/trace/trace_generator.hpp from published statistics; a plain value. What a format does
// not state keeps its default. Invariant: jobs are in the order of the file, which need not be that
// of their submits, and a duplicate row is there twice. Cost: about 350 bytes a job.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/time.hpp"

namespace orrery {

struct JobSpec;
enum class JobKind : std::uint8_t;

/// How a job ended when it was recorded. Cancelled is a normal end.
enum class TraceStatus : std::uint8_t { kUnknown, kCompleted, kCancelled, kFailed };

inline std::array<EnumWord<TraceStatus>, 4> enum_words(TraceStatus) {
  return {{{"unknown", TraceStatus::kUnknown},
           {"completed", TraceStatus::kCompleted},
           {"cancelled", TraceStatus::kCancelled},
           {"failed", TraceStatus::kFailed}}};
}

/// Limits of one job; every reader refuses more.
inline constexpr std::uint32_t kTraceAcceleratorsMax = 1u << 20;
inline constexpr std::uint32_t kTraceMillicoresMax = 1'000'000'000;
/// A hundred years of 365.25 days; the clock ends 292 years after 1970.
inline constexpr Duration kTraceRunMax = Duration::hours(24) * 36'525;
/// 4 PiB; our own format alone takes more.
inline constexpr std::uint64_t kTraceMemoryMibMax = std::uint64_t{1} << 32;

struct TraceJob {
  std::string name;  ///< as in the file, else the number of its row, from 1
  std::string user;
  std::string tenant;  ///< virtual cluster, group or class of service
  std::string model;   ///< and of Gavel the whole job type, "LM (batch size 80)"
  std::string types;   ///< requested accelerator types, as written; empty: any

  /// Since the trace's own epoch; wall-clock times are Unix time.
  Instant submit;
  /// At the speed of the recorded machine. Also zero where the format has none (gavel, sia): it
  /// then follows from steps and a throughput.
  Duration run;
  std::optional<Duration> limit;  ///< requested limit, after which the job is ended
  std::optional<Instant> deadline;

  std::uint32_t accelerators = 1;  ///< of the gang; 0: a job of CPUs alone
  /// An elastic job runs on any number between these; both 0: on `accelerators` alone.
  std::uint32_t accelerators_min = 0;
  std::uint32_t accelerators_max = 0;
  std::uint16_t share = 1000;  ///< thousandths of its accelerator; below 1000 only for one
  TraceStatus status = TraceStatus::kUnknown;
  std::optional<JobKind> kind;

  std::uint32_t cpu_millicores = 0;  ///< of the whole job; 0: unknown, as for the memory
  std::uint64_t memory_mib = 0;
  std::uint64_t batch_size = 0;
  std::int32_t priority = 0;
  double weight = 1;  ///< of a fair share
  double slo = 0;     ///< finish within this many times the run time; 0: no limit

  std::uint64_t steps = 0;                ///< iterations of the whole job
  Duration step_time;                     ///< of one, alone
  std::array<Duration, 3> stage_times{};  ///< of one step: storage, CPU, accelerator

  std::shared_ptr<const JobSpec> spec;  ///< set if the file holds a complete job spec
  int line = 0;                         ///< of the file; 0: generated
};

/// A row that could not be read and was left out.
struct SkippedRow {
  SourcePosition where;
  std::string reason;
};

/// Rows that could be read and are no job that ran, left out for one reason.
struct LeftOutRows {
  std::string reason;  ///< "without a start"
  std::size_t rows = 0;
  int first_line = 0;
};

struct Trace {
  std::vector<TraceJob> jobs;
  std::vector<SkippedRow> skipped;
  std::vector<LeftOutRows> left_out;
  std::vector<std::string> notes;  ///< assumptions where the file has no data
  std::string name;                ///< that its file states; empty: none

  /// The earliest and the latest submit; zero without jobs. O(jobs).
  [[nodiscard]] Instant first_submit() const;
  [[nodiscard]] Instant last_submit() const;

  /// Counts a row at `line` to those left out for `reason`. O(reasons).
  void leave_out(std::string_view reason, int line);

  /// Accelerator-seconds of all jobs: run time x accelerators x share. O(jobs).
  [[nodiscard]] double accelerator_seconds() const;
};

/// Accelerator-seconds of one job.
[[nodiscard]] double accelerator_seconds(const TraceJob& job);

}  // namespace orrery
