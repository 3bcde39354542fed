#include "workload/trace_input/trace_sacct.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {
namespace {

using Need = TraceColumn::Need;

enum Column : std::size_t {
  kJob,
  kState,
  kSubmit,
  kStart,
  kEnd,
  kAsked,
  kHad,
  kUser,
  kAccount,
  kElapsed,
  kLimit
};
constexpr std::array<TraceColumn, 11> kColumns = {{
    {{"JobID"}, Need::kRequired},
    {{"State"}, Need::kRequired},
    {{"Submit"}, Need::kRequired},
    {{"Start"}, Need::kRequired},
    {{"End"}, Need::kRequired},
    {{"ReqTRES"}, Need::kRequired},
    {{"AllocTRES"}, Need::kRequired},
    {{"User"}},
    {{"Account"}},
    {{"ElapsedRaw"}},
    {{"TimelimitRaw"}},
}};

struct NamedState {
  std::string_view word;
  TraceStatus status;
};
// A job that was requeued has another row for its next run.
constexpr std::string_view kRequeued = "REQUEUED";
// A sibling in another cluster of a federation ran, and has the job's data there.
constexpr std::string_view kRevoked = "REVOKED";
// Jobs with unknown states still run, or wait: whether a row has a start decides.
constexpr std::array<NamedState, 25> kStates = {
    {{"COMPLETED", TraceStatus::kCompleted},  {"CANCELLED", TraceStatus::kCancelled},
     {kRevoked, TraceStatus::kCancelled},     {"FAILED", TraceStatus::kFailed},
     {"TIMEOUT", TraceStatus::kFailed},       {"NODE_FAIL", TraceStatus::kFailed},
     {"OUT_OF_MEMORY", TraceStatus::kFailed}, {"BOOT_FAIL", TraceStatus::kFailed},
     {"DEADLINE", TraceStatus::kFailed},      {"LAUNCH_FAILED", TraceStatus::kFailed},
     {"PREEMPTED", TraceStatus::kUnknown},    {"RUNNING", TraceStatus::kUnknown},
     {"COMPLETING", TraceStatus::kUnknown},   {"PENDING", TraceStatus::kUnknown},
     {"SUSPENDED", TraceStatus::kUnknown},    {"RESIZING", TraceStatus::kUnknown},
     {"CONFIGURING", TraceStatus::kUnknown},  {"STOPPED", TraceStatus::kUnknown},
     {"SIGNALING", TraceStatus::kUnknown},    {"STAGE_OUT", TraceStatus::kUnknown},
     {"REQUEUE_HOLD", TraceStatus::kUnknown}, {"REQUEUE_FED", TraceStatus::kUnknown},
     {"SPECIAL_EXIT", TraceStatus::kUnknown}, {"RESV_DEL_HOLD", TraceStatus::kUnknown},
     {kRequeued, TraceStatus::kUnknown}}};

// Slurm's words for an absent time.
bool has_time(const TraceRow& row, std::size_t column) {
  const std::string_view text = row.text(column);
  return !text.empty() && text != "Unknown" && text != "None";
}

// "CANCELLED by 1000" counts as cancelled.
void read_state(TraceRow& row, TraceJob& job) {
  const std::string_view text = row.text(kState);
  const std::string_view word = text.substr(0, text.find_first_of(" +"));
  const auto known = std::find_if(kStates.begin(), kStates.end(),
                                  [&](const NamedState& each) { return each.word == word; });
  if (known == kStates.end()) {
    std::string words;
    for (const NamedState& each : kStates) {
      if (!words.empty()) words += ", ";
      words += each.word;
    }
    return row.fail(kState, "a state of Slurm, \"CANCELLED by 1000\" or one of " + words);
  }
  job.status = known->status;
  if (word == kRequeued) row.leave_out("of a run that was requeued");
  if (word == kRevoked) row.leave_out("of jobs that another cluster ran");
}

/// The resources of a job, "cpu=16,gres/gpu:h100=8,gres/gpu=8,mem=64G,node=1".
struct Tres {
  double gpus = 0;
  std::string types;
  double cpus = 0;
  double mebibytes = 0;
};

// "64G", "1.50T", "2048000K"; without a letter it is MiB.
std::optional<double> amount_of(std::string_view text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
  const std::string_view letter = text.substr(static_cast<std::size_t>(end - text.data()));
  if (letter.empty() || letter == "M") return value;
  if (letter == "K") return value / 1024;
  if (letter == "G") return value * 1024;
  if (letter == "T") return value * 1024 * 1024;
  if (letter == "P") return value * 1024 * 1024 * 1024;
  return std::nullopt;
}

Tres tres_of(TraceRow& row, std::size_t column) {
  constexpr std::string_view kGpu = "gres/gpu";
  Tres tres;
  double typed = 0;
  for (std::string_view left = row.text(column); !left.empty();) {
    const std::size_t comma = std::min(left.find(','), left.size());
    const std::string_view entry = left.substr(0, comma);
    left.remove_prefix(std::min(comma + 1, left.size()));
    const std::size_t equals = std::min(entry.find('='), entry.size());
    const std::string_view name = entry.substr(0, equals);
    const bool of_type = name.starts_with(kGpu) && name.substr(kGpu.size()).starts_with(':');
    if (name != "cpu" && name != "mem" && name != kGpu && !of_type) continue;
    const std::optional<double> amount =
        equals < entry.size() ? amount_of(entry.substr(equals + 1)) : std::nullopt;
    if (!amount) {
      row.fail(column, "resources such as \"cpu=16,gres/gpu:h100=8,mem=64G,node=1\"");
      return {};
    }
    if (name == "cpu") tres.cpus = *amount;
    if (name == "mem") tres.mebibytes = *amount;
    if (name == kGpu) tres.gpus = *amount;
    if (!of_type) continue;
    typed += *amount;
    if (!tres.types.empty()) tres.types += '|';
    tres.types += name.substr(kGpu.size() + 1);
  }
  tres.gpus = std::max(tres.gpus, typed);
  return tres;
}

// What the job had; if it never ran, what it requested. Types are requests, so those it requested.
void read_size(TraceRow& row, TraceJob& job) {
  constexpr double kCpusMax = 1e6;
  constexpr double kMebibytesMax = 0x1p32;
  const std::size_t column = row.has(kHad) ? kHad : kAsked;
  const Tres tres = tres_of(row, column);
  job.types = tres_of(row, kAsked).types;
  if (tres.gpus > kTraceAcceleratorsMax || tres.cpus > kCpusMax || tres.mebibytes > kMebibytesMax) {
    return row.fail(column, "at most 1048576 GPUs, a million CPUs and 4 PiB");
  }
  job.accelerators = static_cast<std::uint32_t>(tres.gpus);
  job.cpu_millicores = static_cast<std::uint32_t>(std::lround(tres.cpus)) * 1000;
  job.memory_mib = static_cast<std::uint64_t>(tres.mebibytes);
}

void read_times(TraceRow& row, TraceJob& job) {
  job.submit = row.instant(kSubmit);
  if (!has_time(row, kStart)) {
    if (job.status != TraceStatus::kCancelled) row.leave_out("without a start");
    return;
  }
  static_cast<void>(row.time_between(kSubmit, kStart));
  if (has_time(row, kEnd)) {
    job.run = row.time_between(kStart, kEnd);
  } else if (row.has(kElapsed)) {
    job.run = row.duration(kElapsed);  // it still ran
  } else {
    row.leave_out("without an end");
  }
}

void read(TraceRow& row, TraceJob& job) {
  const std::string_view id = row.text(kJob);
  if (id.empty()) row.fail(kJob, "the number of a job");
  if (id.find('.') != id.npos) return row.leave_out("of a step");
  if (id.find('[') != id.npos) return row.leave_out("of tasks of an array that never started");
  job.name = id.substr(0, id.find('+'));  // "12+1" is the second component of job 12
  job.user = row.text(kUser);
  job.tenant = row.text(kAccount);
  read_state(row, job);
  read_size(row, job);
  read_times(row, job);
  const std::string_view limit = row.text(kLimit);
  if (!limit.empty() && limit != "UNLIMITED" && limit != "Partition_Limit") {
    constexpr std::int64_t kMinutesMax = std::int64_t{100} * 366 * 24 * 60;
    job.limit = Duration::minutes(row.integer(kLimit, 0, kMinutesMax));
  }
}

}  // namespace

const TraceTable& sacct_table() {
  static constexpr TraceTable kTable = {.columns = kColumns,
                                        .separator = '|',
                                        .unit = TimeUnit::kSeconds,
                                        .read = read,
                                        .rows = TraceTable::Rows::kParts};
  return kTable;
}

}  // namespace orrery
