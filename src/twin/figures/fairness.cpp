#include "twin/figures/fairness.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <queue>

#include "base/format/field_writer.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

/// Simulates the jobs of one tenant on its share alone.
class AloneQueue {
 public:
  AloneQueue(std::span<const AloneJob> jobs, std::uint32_t devices)
      : jobs_(jobs), devices_(std::max(devices, 1U)), free_(devices_), completions_(jobs.size()) {}

  std::vector<double> play() {
    std::size_t next = 0;
    while (next < jobs_.size() || !ends_.empty()) {
      const double submit = next < jobs_.size() ? jobs_[next].submit_s : kNever;
      const double end = ends_.empty() ? kNever : ends_.top().at;
      now_ = std::min(submit, end);
      while (!ends_.empty() && ends_.top().at <= now_) {
        free_ += ends_.top().devices;
        ends_.pop();
      }
      while (next < jobs_.size() && jobs_[next].submit_s <= now_) {
        waiting_[std::min(jobs_[next].devices, devices_)].push_back(next);
        ++next;
      }
      start_what_fits();
    }
    return std::move(completions_);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct End {
    double at = 0;
    std::uint32_t devices = 0;
    bool operator>(const End& other) const { return at > other.at; }
  };

  /// Starts the earliest job that has room, repeatedly.
  void start_what_fits() {
    while (true) {
      std::deque<std::size_t>* first = nullptr;
      for (auto& [devices, jobs] : waiting_) {
        if (devices > free_) break;
        if (!jobs.empty() && (first == nullptr || jobs.front() < first->front())) first = &jobs;
      }
      if (first == nullptr) return;
      const std::size_t job = first->front();
      first->pop_front();
      const std::uint32_t devices = std::min(jobs_[job].devices, devices_);
      const double longer = static_cast<double>(jobs_[job].devices) / devices;
      const double end = now_ + jobs_[job].run_s * longer;
      free_ -= devices;
      ends_.push({end, devices});
      completions_[job] = end - jobs_[job].submit_s;
    }
  }

  std::span<const AloneJob> jobs_;
  std::uint32_t devices_;
  std::uint32_t free_;
  double now_ = 0;
  std::map<std::uint32_t, std::deque<std::size_t>> waiting_;  ///< by devices
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::vector<double> completions_;
};

bool counts(const JobOutcome& job) { return job.measured && job.end != Instant::max(); }

double completion_s(const JobOutcome& job) { return (job.end - job.submit).count_seconds(); }

/// Adds the job to the sums that finish() turns into means.
void add(GroupFigures& group, const JobOutcome& job) {
  ++group.jobs;
  group.avg_jct_s += completion_s(job);
  group.avg_queueing_s += job.watched.queued.count_seconds();
  group.avg_stretch += stretch_of(job);
}

void finish(GroupFigures& group) {
  const double jobs = std::max<double>(static_cast<double>(group.jobs), 1);
  for (double* sum : {&group.avg_jct_s, &group.avg_queueing_s, &group.avg_stretch, &group.rho}) {
    *sum /= jobs;
  }
}

struct TenantJobs {
  GroupFigures figures;
  double weight = 1;
  std::vector<std::size_t> jobs;
  TypeTimes held;
};

double dominant_share(const TypeTimes& held, const FairnessInputs& in) {
  double most = 0;
  for (std::uint32_t t = 0; t < in.topology.type_count(); ++t) {
    const double all =
        in.topology.device_count(Topology::root(), FleetTypeId(t)) * in.time.count_seconds() / 3600;
    if (all > 0) most = std::max(most, device_hours(held.of(FleetTypeId(t))) / all);
  }
  return most;
}

/// Adds the rho of a tenant's jobs to its figures.
void add_rho(TenantJobs& tenant, const FairnessInputs& in, std::uint32_t devices) {
  std::vector<AloneJob> alone;
  alone.reserve(tenant.jobs.size());
  for (const std::size_t at : tenant.jobs) {
    const JobOutcome& job = in.outcomes[at];
    alone.push_back(
        {(job.submit - Instant()).count_seconds(), run_seconds(job), std::max(job.devices, 1U)});
  }
  const std::vector<double> completions = completions_alone(alone, devices);
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const JobOutcome& job = in.outcomes[tenant.jobs[i]];
    if (counts(job)) tenant.figures.rho += completion_s(job) / std::max(completions[i], 1.0);
  }
}

double jain_of(std::span<const GroupFigures> tenants) {
  double sum = 0;
  double squares = 0;
  double count = 0;
  for (const GroupFigures& tenant : tenants) {
    sum += tenant.rho;
    squares += tenant.rho * tenant.rho;
    ++count;
  }
  return squares > 0 ? sum * sum / (count * squares) : 1;
}

}  // namespace

double run_seconds(const JobOutcome& job) {
  if (job.work_hours > 0 && job.whole_devices > 0) return job.work_hours * 3600 / job.whole_devices;
  const Instant end = job.end == Instant::max() ? job.submit + job.usage.waited : job.end;
  return std::max((end - job.submit - job.usage.waited).count_seconds(), 0.0);
}

double stretch_of(const JobOutcome& job) {
  constexpr double kShortest = 10;
  return std::max(completion_s(job) / std::max(run_seconds(job), kShortest), 1.0);
}

std::vector<double> completions_alone(std::span<const AloneJob> jobs, std::uint32_t devices) {
  return AloneQueue(jobs, devices).play();
}

FairnessFigures fairness_of(const FairnessInputs& in) {
  std::map<std::string, TenantJobs> tenants;
  std::map<std::string, GroupFigures> kinds;
  GroupFigures all;
  for (std::size_t i = 0; i < in.outcomes.size(); ++i) {
    const JobOutcome& job = in.outcomes[i];
    TenantJobs& tenant = tenants[in.jobs[i].tenant];
    tenant.weight = in.tenants.weight(in.jobs[i].submission.request.tenant);
    tenant.held += job.usage.devices;
    if (job.work_hours > 0 || job.end != Instant::max()) tenant.jobs.push_back(i);
    if (!counts(job)) continue;
    add(tenant.figures, job);
    add(kinds[std::string(word_of(in.jobs[i].submission.request.kind))], job);
    add(all, job);
  }
  double weights = 0;
  for (const auto& [name, tenant] : tenants) weights += tenant.weight;
  FairnessFigures figures;
  for (auto& [name, tenant] : tenants) {
    tenant.figures.name = name;
    tenant.figures.dominant_share = dominant_share(tenant.held, in);
    const double share = in.topology.device_count() * tenant.weight / weights;
    add_rho(tenant, in, static_cast<std::uint32_t>(std::llround(std::max(share, 1.0))));
    if (tenant.figures.jobs == 0) continue;
    all.rho += tenant.figures.rho;
    finish(tenant.figures);
    figures.tenants.push_back(tenant.figures);
  }
  for (auto& [name, kind] : kinds) {
    kind.name = name;
    finish(kind);
    figures.kinds.push_back(kind);
  }
  finish(all);
  figures.avg_stretch = all.avg_stretch;
  figures.rho = all.rho;
  figures.jain = jain_of(figures.tenants);
  return figures;
}

}  // namespace orrery
