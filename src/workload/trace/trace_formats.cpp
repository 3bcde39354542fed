#include "workload/trace/trace_formats.hpp"

#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <string>

#include "base/assert.hpp"
#include "base/text/nearest_name.hpp"
#include "workload/job_spec.hpp"
#include "workload/trace_input/trace_parts.hpp"
#include "workload/trace_input/trace_sacct.hpp"

namespace orrery {
namespace {

using Need = TraceColumn::Need;

constexpr std::int64_t kCountMax = std::int64_t{1} << 53;
constexpr std::int64_t kMillicoresMax = kTraceMillicoresMax;
constexpr std::int64_t kMemoryMibMax = kTraceMemoryMibMax;

std::uint32_t accelerators(TraceRow& row, std::size_t column, std::int64_t low) {
  return static_cast<std::uint32_t>(row.integer(column, low, kTraceAcceleratorsMax));
}

std::uint64_t count(TraceRow& row, std::size_t column) {
  return row.has(column) ? static_cast<std::uint64_t>(row.integer(column, 0, kCountMax)) : 0;
}

/// Whole cores as thousandths.
std::uint32_t cores(TraceRow& row, std::size_t column) {
  return static_cast<std::uint32_t>(row.integer(column, 0, kMillicoresMax / 1000) * 1000);
}

// The words of the Philly and Helios releases and of Slurm; other words have no meaning.
TraceStatus status_of(std::string_view word) {
  const std::string lower = lower_case(word);
  if (lower == "completed" || lower == "pass" || lower == "passed") return TraceStatus::kCompleted;
  if (lower == "cancelled" || lower == "canceled" || lower == "killed") {
    return TraceStatus::kCancelled;
  }
  if (lower == "failed" || lower == "timeout" || lower == "node_fail") return TraceStatus::kFailed;
  return TraceStatus::kUnknown;
}

namespace philly {

enum Column : std::size_t { kSubmit, kRun, kGpus, kCluster, kName, kUser, kStatus, kModel, kCpus };
constexpr std::array<TraceColumn, 9> kColumns = {{
    {{"timestamp", "submit_time", "submit", "submitted_time"}, Need::kRequired},
    {{"duration", "run_time"}, Need::kRequired},
    {{"num_gpus", "gpu_num", "num_gpu", "gpus"}, Need::kRequired},
    {{"cluster", "vc"}},
    {{"job_id", "jobid", "job"}},
    {{"user"}},
    {{"state", "status"}},
    {{"model_name", "model"}},
    {{"cpu_num"}},
}};

void read(TraceRow& row, TraceJob& job) {
  job.submit = row.instant(kSubmit);
  job.run = row.duration(kRun);
  job.accelerators = accelerators(row, kGpus, 0);
  job.tenant = row.text(kCluster);
  job.name = row.text(kName);
  job.user = row.text(kUser);
  job.status = status_of(row.text(kStatus));
  job.model = row.text(kModel);
  if (row.has(kCpus)) job.cpu_millicores = cores(row, kCpus);
}

constexpr TraceTable kTable = {.columns = kColumns, .read = read};

}  // namespace philly

namespace acme {

// The column `duration` is not read: in Seren's file it counts from the start of a job, in Kalos's
// from its submit.
enum Column : std::size_t {
  kName,
  kUser,
  kNodes,
  kGpus,
  kCpus,
  kMemory,
  kKind,
  kStatus,
  kSubmit,
  kStart,
  kEnd
};
constexpr std::array<TraceColumn, 11> kColumns = {{
    {{"job_id"}, Need::kRequired},
    {{"user"}},
    {{"node_num"}},
    {{"gpu_num"}, Need::kRequired},
    {{"cpu_num"}},
    {{"mem_per_pod_GB"}},
    {{"type"}, Need::kRequired},
    {{"state"}, Need::kRequired},
    {{"submit_time"}, Need::kRequired},
    {{"start_time"}, Need::kRequired},
    {{"end_time"}, Need::kRequired},
}};

// "Debug" and "Other" do not determine a kind.
std::optional<JobKind> kind_of_type(std::string_view type) {
  if (type == "Pretrain" || type == "MLLM") return JobKind::kTrain;
  if (type == "SFT") return JobKind::kFineTune;
  if (type == "Eval") return JobKind::kBatch;
  return std::nullopt;
}

void read_times(TraceRow& row, TraceJob& job) {
  job.submit = row.instant(kSubmit);
  if (!row.has(kStart)) {
    job.status = TraceStatus::kCancelled;  // taken back before it ran
    return;
  }
  static_cast<void>(row.time_between(kSubmit, kStart));
  job.run = row.time_between(kStart, kEnd);
}

// A pod has a node.
std::uint64_t memory_of(TraceRow& row) {
  constexpr std::int64_t kGigabyte = 1'000'000'000;
  const std::int64_t pods = row.has(kNodes) ? row.integer(kNodes, 0, kTraceAcceleratorsMax) : 1;
  const double gigabytes = row.number(kMemory);
  const double mebibytes = gigabytes * kGigabyte / (1 << 20) * static_cast<double>(pods);
  if (gigabytes >= 0 && mebibytes <= double{kMemoryMibMax}) {
    return static_cast<std::uint64_t>(mebibytes);
  }
  row.fail(kMemory, "0 or more, and at most 4 PiB for all pods");
  return 0;
}

void read(TraceRow& row, TraceJob& job) {
  job.name = row.text(kName);
  job.user = row.text(kUser);
  job.accelerators = accelerators(row, kGpus, 0);
  if (row.has(kCpus)) job.cpu_millicores = cores(row, kCpus);
  if (row.has(kMemory)) job.memory_mib = memory_of(row);
  job.kind = kind_of_type(row.text(kKind));
  job.status = status_of(row.text(kStatus));
  read_times(row, job);
}

constexpr TraceTable kTable = {.columns = kColumns, .read = read};

}  // namespace acme

namespace pai {

enum Column : std::size_t {
  kJob,
  kTask,
  kInstances,
  kStatus,
  kStart,
  kEnd,
  kCpu,
  kMemory,
  kGpu,
  kType
};
constexpr std::array<TraceColumn, 10> kColumns = {{
    {{"job_name"}},
    {{"task_name"}},
    {{"inst_num"}},
    {{"status"}},
    {{"start_time"}},
    {{"end_time"}},
    {{"plan_cpu"}},
    {{"plan_mem"}},
    {{"plan_gpu"}},
    {{"gpu_type"}},
}};

constexpr std::string_view kInBounds =
    "0 or more, and at most what a job may have for all instances";

// The value of `column` for one instance, in units of which a job may have `most`, times all
// instances.
std::uint64_t of_all(TraceRow& row, std::size_t column, double unit, double most) {
  const std::size_t instances_column = kInstances;
  const std::int64_t instances =
      row.has(instances_column) ? row.integer(instances_column, 1, kTraceAcceleratorsMax) : 1;
  const double of_one = row.has(column) ? row.number(column) : 0;
  const double all = std::round(of_one * unit) * static_cast<double>(instances);
  if (of_one >= 0 && all <= most) return static_cast<std::uint64_t>(all);
  row.fail(column, kInBounds);
  return 0;
}

// Jobs without GPUs have the type "CPU"; "MISC" are older ones of several types.
std::string types_of(std::string_view type) {
  return std::string(type == "CPU" || type == "MISC" ? std::string_view() : type);
}

void read_size(TraceRow& row, TraceJob& job) {
  constexpr double kGpusMax = kTraceAcceleratorsMax * 1000.0;
  static_cast<void>(set_thousandths(job, of_all(row, kGpu, 10, kGpusMax)));  // of per cent
  job.cpu_millicores = static_cast<std::uint32_t>(of_all(row, kCpu, 10, kMillicoresMax));
  job.memory_mib = of_all(row, kMemory, 1024, kMemoryMibMax);
}

void read(TraceRow& row, TraceJob& job) {
  job.name = row.text(kJob);
  if (job.name.empty()) row.fail(kJob, "the name of a job");
  const std::string_view status = row.text(kStatus);
  if (status == "Terminated") job.status = TraceStatus::kCompleted;
  if (status == "Failed") job.status = TraceStatus::kFailed;
  job.types = types_of(row.text(kType));
  read_size(row, job);
  if (!row.has(kStart)) return row.leave_out("without a start");
  if (!row.has(kEnd)) return row.leave_out("without an end");
  job.submit = row.instant(kStart);
  job.run = row.time_between(kStart, kEnd);
}

constexpr TraceTable kTable = {.columns = kColumns,
                               .header = TraceTable::Header::kFixed,
                               .unit = TimeUnit::kSeconds,
                               .read = read,
                               .rows = TraceTable::Rows::kParts};

// The simulator beside the tables: GPUs and CPUs of an instance as numbers, not in per cent.
enum JobColumn : std::size_t { kName, kUser, kCount, kSubmit, kGpus, kCpus, kRun, kGpuType };
constexpr std::array<TraceColumn, 8> kJobColumns = {{
    {{"job_id"}, Need::kRequired},
    {{"user"}},
    {{"num_inst"}, Need::kRequired},
    {{"submit_time"}, Need::kRequired},
    {{"num_gpu"}, Need::kRequired},
    {{"num_cpu"}, Need::kRequired},
    {{"duration"}, Need::kRequired},
    {{"gpu_type"}},
}};
static_assert(std::size_t{kCount} == std::size_t{kInstances});

void read_job(TraceRow& row, TraceJob& job) {
  constexpr double kGpusMax = kTraceAcceleratorsMax * 1000.0;
  job.name = row.text(kName);
  job.user = row.text(kUser);
  job.submit = row.instant(kSubmit);
  job.run = row.duration(kRun);
  static_cast<void>(set_thousandths(job, of_all(row, kGpus, 1000, kGpusMax)));
  job.cpu_millicores = static_cast<std::uint32_t>(of_all(row, kCpus, 1000, kMillicoresMax));
  job.types = types_of(row.text(kGpuType));
}

constexpr TraceTable kJobTable = {
    .columns = kJobColumns, .unit = TimeUnit::kSeconds, .read = read_job};

}  // namespace pai

namespace muri {

// The column `priority` is not read: 1 marks the jobs that AntMan may slow for others, and no other
// scheduler of the simulator uses it.
enum Column : std::size_t {
  kName,
  kGpus,
  kSubmit,
  kSteps,
  kModel,
  kRun,
  kStepTime,
  kBatch,
  kStage0,
  kStage1,
  kStage2
};
constexpr std::array<TraceColumn, 11> kColumns = {{
    {{"job_id"}, Need::kRequired},
    {{"num_gpu"}, Need::kRequired},
    {{"submit_time"}, Need::kRequired},
    {{"iterations"}, Need::kRequired},
    {{"model_name"}, Need::kRequired},
    {{"duration"}, Need::kRequired},
    {{"iteration_time"}, Need::kRequired},
    {{"batch_size"}},
    {{"resource_time_0"}},
    {{"resource_time_1"}},
    {{"resource_time_2"}},
}};

void read(TraceRow& row, TraceJob& job) {
  job.name = row.text(kName);
  job.accelerators = accelerators(row, kGpus, 1);
  job.submit = row.instant(kSubmit);
  job.steps = count(row, kSteps);
  job.model = row.text(kModel);
  job.run = row.duration(kRun);
  if (row.has(kStepTime)) job.step_time = row.duration(kStepTime);
  job.batch_size = count(row, kBatch);
  for (std::size_t stage = 0; stage < job.stage_times.size(); ++stage) {
    if (row.has(kStage0 + stage)) job.stage_times[stage] = row.duration(kStage0 + stage);
  }
}

constexpr TraceTable kTable = {.columns = kColumns, .unit = TimeUnit::kMilliseconds, .read = read};

// The simulator on which Muri's is based: its columns in seconds, and none for one iteration.
constexpr std::span<const TraceColumn> kTiresiasColumns = std::span(kColumns).first(6);

void read_tiresias(TraceRow& row, TraceJob& job) {
  job.name = row.text(kName);
  job.accelerators = accelerators(row, kGpus, 1);
  job.submit = row.instant(kSubmit);
  job.steps = count(row, kSteps);
  job.model = row.text(kModel);
  job.run = row.duration(kRun);
}

constexpr TraceTable kTiresiasTable = {
    .columns = kTiresiasColumns, .unit = TimeUnit::kSeconds, .read = read_tiresias};

}  // namespace muri

namespace sia {

enum Column : std::size_t { kName, kSubmit, kModel, kReplicas, kBatch };
constexpr std::array<TraceColumn, 5> kColumns = {{
    {{"name"}, Need::kRequired},
    {{"time"}, Need::kRequired},
    {{"application"}, Need::kRequired},
    {{"num_replicas"}, Need::kRequired},
    {{"batch_size"}},
}};

void read(TraceRow& row, TraceJob& job) {
  job.name = row.text(kName);
  job.submit = row.instant(kSubmit);
  job.model = row.text(kModel);
  job.accelerators = accelerators(row, kReplicas, 1);
  job.batch_size = count(row, kBatch);
}

constexpr TraceTable kTable = {.columns = kColumns, .unit = TimeUnit::kSeconds, .read = read};

}  // namespace sia

namespace openb {

enum Column : std::size_t {
  kName,
  kGpus,
  kMilli,
  kCreated,
  kDeleted,
  kScheduled,
  kCpu,
  kMemory,
  kTypes,
  kQos,
  kPhase
};
constexpr std::array<TraceColumn, 11> kColumns = {{
    {{"name"}, Need::kRequired},
    {{"num_gpu"}, Need::kRequired},
    {{"gpu_milli"}, Need::kRequired},
    {{"creation_time"}, Need::kRequired},
    {{"deletion_time"}, Need::kRequired},
    {{"scheduled_time"}, Need::kRequired},
    {{"cpu_milli"}},
    {{"memory_mib"}},
    {{"gpu_spec"}},
    {{"qos"}},
    {{"pod_phase"}},
}};

// Running pods were still there when the trace ended, so how they would have ended is unknown.
TraceStatus status_of_phase(std::string_view phase) {
  if (phase == "Succeeded") return TraceStatus::kCompleted;
  if (phase == "Failed") return TraceStatus::kFailed;
  return TraceStatus::kUnknown;
}

void read_times(TraceRow& row, TraceJob& job) {
  job.submit = row.instant(kCreated);
  if (!row.has(kScheduled)) {
    job.status = TraceStatus::kCancelled;  // taken back before it ran
    return;
  }
  job.run = row.time_between(kScheduled, kDeleted);
}

void read(TraceRow& row, TraceJob& job) {
  constexpr std::int64_t kWhole = 1000;
  job.name = row.text(kName);
  job.accelerators = accelerators(row, kGpus, 0);
  if (job.accelerators > 0) {
    const std::int64_t low = job.accelerators == 1 ? 1 : kWhole;
    job.share = static_cast<std::uint16_t>(row.integer(kMilli, low, kWhole));
  }
  if (row.has(kCpu)) {
    job.cpu_millicores = static_cast<std::uint32_t>(row.integer(kCpu, 0, kMillicoresMax));
  }
  if (row.has(kMemory)) {
    job.memory_mib = static_cast<std::uint64_t>(row.integer(kMemory, 0, kMemoryMibMax));
  }
  job.types = row.text(kTypes);
  job.tenant = row.text(kQos);
  job.status = status_of_phase(row.text(kPhase));
  read_times(row, job);
}

constexpr TraceTable kTable = {.columns = kColumns, .unit = TimeUnit::kSeconds, .read = read};

}  // namespace openb

namespace gavel {

enum Column : std::size_t {
  kType,
  kCommand,
  kDirectory,
  kStepsArgument,
  kNeedsData,
  kSteps,
  kScale,
  kWeight,
  kSlo,
  kArrival
};
constexpr std::array<TraceColumn, 10> kColumns = {{
    {{"job_type"}},
    {{"command"}},
    {{"working_directory"}},
    {{"num_steps_arg"}},
    {{"needs_data_dir"}},
    {{"total_steps"}},
    {{"scale_factor"}},
    {{"priority_weight"}},
    {{"SLO"}},
    {{"arrival_time"}},
}};

// "LM (batch size 80)" contains it; "A3C" does not.
std::uint64_t batch_of(std::string_view type) {
  constexpr std::string_view kBefore = "(batch size ";
  const std::size_t at = type.find(kBefore);
  if (at == type.npos) return 0;
  std::uint64_t batch = 0;
  const char* const begin = type.data() + at + kBefore.size();
  const auto [end, code] = std::from_chars(begin, type.data() + type.size(), batch);
  return code == std::errc() ? batch : 0;
}

void read(TraceRow& row, TraceJob& job) {
  job.model = row.text(kType);
  if (job.model.empty()) row.fail(kType, "the type of a job");
  job.batch_size = batch_of(job.model);
  job.steps = static_cast<std::uint64_t>(row.integer(kSteps, 1, kCountMax));
  job.accelerators = accelerators(row, kScale, 1);
  job.weight = row.number(kWeight);
  if (!(job.weight >= 0)) row.fail(kWeight, "a weight that is not negative");
  job.slo = row.number(kSlo);
  if (job.slo < 0) job.slo = 0;  // -1.000000: none
  job.submit = row.instant(kArrival);
}

constexpr TraceTable kTable = {.columns = kColumns,
                               .header = TraceTable::Header::kFixed,
                               .separator = '\t',
                               .unit = TimeUnit::kSeconds,
                               .read = read};

}  // namespace gavel

namespace swf {

enum Column : std::size_t {
  kJob,
  kSubmit,
  kWait,
  kRun,
  kAllocated,
  kCpuTime,
  kMemoryUsed,
  kProcessors,
  kLimit,
  kMemory,
  kStatus,
  kUser,
  kGroup,
  kProgram,
  kQueue,
  kPartition,
  kAfter,
  kThink
};
constexpr std::array<TraceColumn, 18> kColumns = {{
    {{"job"}},
    {{"submit"}},
    {{"wait"}},
    {{"run"}},
    {{"allocated_processors"}},
    {{"cpu_time"}},
    {{"used_memory"}},
    {{"requested_processors"}},
    {{"requested_time"}},
    {{"requested_memory"}},
    {{"status"}},
    {{"user"}},
    {{"group"}},
    {{"program"}},
    {{"queue"}},
    {{"partition"}},
    {{"preceding_job"}},
    {{"think_time"}},
}};

// 0 failed, 1 completed, 5 cancelled before or while it ran; 2 to 4 are parts of a job that was
// taken off the machine.
TraceStatus status_of_code(std::string_view code) {
  if (code == "1") return TraceStatus::kCompleted;
  if (code == "0") return TraceStatus::kFailed;
  if (code == "5") return TraceStatus::kCancelled;
  return TraceStatus::kUnknown;
}

void read(TraceRow& row, TraceJob& job) {
  job.name = row.text(kJob);
  job.submit = row.instant(kSubmit);
  job.status = status_of_code(row.text(kStatus));
  const bool never_ran = job.status == TraceStatus::kCancelled && !row.has(kRun);
  if (!never_ran) job.run = row.duration(kRun);
  const Column processors = row.has(kProcessors) ? kProcessors : kAllocated;
  job.accelerators = accelerators(row, processors, 1);
  if (row.has(kLimit)) job.limit = row.duration(kLimit);
  const Column memory = row.has(kMemory) ? kMemory : kMemoryUsed;
  if (row.has(memory)) {  // KiB of one processor
    const std::int64_t kib = row.integer(memory, 0, kMemoryMibMax * 1024);
    const std::int64_t mib = kib * job.accelerators / 1024;
    job.memory_mib = static_cast<std::uint64_t>(mib);
    if (mib > kMemoryMibMax) row.fail(memory, "at most 4 PiB for all its processors");
  }
  job.user = row.text(kUser);
  job.tenant = row.text(kGroup);
}

constexpr TraceTable kTable = {.columns = kColumns,
                               .header = TraceTable::Header::kFixed,
                               .separator = ' ',
                               .comment = ';',
                               .missing = "-1",
                               .unit = TimeUnit::kSeconds,
                               .read = read};

}  // namespace swf

}  // namespace

const TraceTable& trace_table(TraceFormat format) {
  ORRERY_ASSERT(format != TraceFormat::kOrrery && format != TraceFormat::kKubernetes,
                "documents are no tables");
  switch (format) {
    case TraceFormat::kPhilly:
      return philly::kTable;
    case TraceFormat::kSwf:
      return swf::kTable;
    case TraceFormat::kGavel:
      return gavel::kTable;
    case TraceFormat::kOpenb:
      return openb::kTable;
    case TraceFormat::kMuri:
      return muri::kTable;
    case TraceFormat::kTiresias:
      return muri::kTiresiasTable;
    case TraceFormat::kAcme:
      return acme::kTable;
    case TraceFormat::kPai:
      return pai::kTable;
    case TraceFormat::kPaiJobs:
      return pai::kJobTable;
    case TraceFormat::kSacct:
      return sacct_table();
    case TraceFormat::kSia:
    case TraceFormat::kKubernetes:
    case TraceFormat::kOrrery:
      break;
  }
  return sia::kTable;
}

}  // namespace orrery
