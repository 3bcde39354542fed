#include "workload/trace_input/trace_parts.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>
#include <utility>

namespace orrery {
namespace {

constexpr std::uint64_t kWhole = 1000;

// Accelerators in thousandths, CPUs in thousandths, memory in MiB.
using PartSize = std::array<std::uint64_t, 3>;

PartSize size_of(const TraceJob& job) {
  return {thousandths_of(job), job.cpu_millicores, job.memory_mib};
}

// How much begins and ends at one time.
struct SizeStep {
  Instant at;
  bool begins;
  PartSize size;
};

// Ends come before the begins of the same time.
bool before(const SizeStep& a, const SizeStep& b) {
  return a.at != b.at ? a.at < b.at : a.begins < b.begins;
}

PartSize most_at_once(const std::vector<const TracePart*>& parts) {
  PartSize most{};
  std::vector<SizeStep> steps;
  steps.reserve(parts.size() * 2);
  for (const TracePart* part : parts) {
    const PartSize size = size_of(part->job);
    for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], size[i]);
    if (part->job.run == Duration()) continue;
    steps.push_back({part->start, true, size});
    steps.push_back({part->start + part->job.run, false, size});
  }
  std::sort(steps.begin(), steps.end(), before);
  PartSize now{};
  for (const SizeStep& step : steps) {
    for (std::size_t i = 0; i < most.size(); ++i) {
      now[i] = step.begins ? now[i] + step.size[i] : now[i] - step.size[i];
      most[i] = std::max(most[i], now[i]);
    }
  }
  return most;
}

TraceStatus worst(TraceStatus a, TraceStatus b) {
  for (const TraceStatus each :
       {TraceStatus::kFailed, TraceStatus::kCancelled, TraceStatus::kUnknown}) {
    if (a == each || b == each) return each;
  }
  return TraceStatus::kCompleted;
}

TraceJob joined(const std::vector<const TracePart*>& parts, JoinedStatus rule) {
  TraceJob job = parts.front()->job;
  Instant start = parts.front()->start;
  Instant end = start + job.run;
  if (job.accelerators == 0) job.types.clear();
  for (const TracePart* part : parts) {
    const Instant part_end = part->start + part->job.run;
    job.submit = std::min(job.submit, part->job.submit);
    start = std::min(start, part->start);
    const bool same_time = part_end == end || rule == JoinedStatus::kWorst;
    if (same_time) job.status = worst(job.status, part->job.status);
    if (!same_time && part_end > end) job.status = part->job.status;
    end = std::max(end, part_end);
    if (job.types.empty() && part->job.accelerators > 0) job.types = part->job.types;
  }
  job.run = end - start;
  const PartSize most = most_at_once(parts);
  constexpr std::uint64_t kMost = kTraceAcceleratorsMax * kWhole;
  static_cast<void>(set_thousandths(job, std::min(most[0], kMost)));
  constexpr std::uint64_t kMillicores = kTraceMillicoresMax;
  job.cpu_millicores = static_cast<std::uint32_t>(std::min(most[1], kMillicores));
  job.memory_mib = std::min(most[2], kTraceMemoryMibMax);
  return job;
}

}  // namespace

std::uint64_t thousandths_of(const TraceJob& job) {
  return std::uint64_t{job.accelerators} * job.share;
}

bool set_thousandths(TraceJob& job, std::uint64_t thousandths) {
  if (thousandths > kTraceAcceleratorsMax * kWhole) return false;
  const bool part = thousandths > 0 && thousandths < kWhole;
  job.share = static_cast<std::uint16_t>(part ? thousandths : kWhole);
  job.accelerators = static_cast<std::uint32_t>((thousandths + kWhole - 1) / kWhole);
  return true;
}

std::vector<TraceJob> join_trace_parts(const std::vector<TracePart>& parts, JoinedStatus status) {
  std::unordered_map<std::string_view, std::size_t> known;
  std::vector<std::vector<const TracePart*>> jobs;
  for (const TracePart& part : parts) {
    const auto [at, fresh] = known.emplace(part.key, jobs.size());
    if (fresh) jobs.emplace_back();
    jobs[at->second].push_back(&part);
  }
  std::vector<TraceJob> made;
  made.reserve(jobs.size());
  for (const std::vector<const TracePart*>& of_one : jobs) made.push_back(joined(of_one, status));
  return made;
}

}  // namespace orrery
