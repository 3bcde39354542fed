#include "twin/trace_jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/distribution.hpp"
#include "base/math.hpp"
#include "control/spec_submission.hpp"

namespace orrery {
namespace {

/// Everything about a trace's job that decides what it may be placed on, and how fast it is there.
std::string shape_of(const TraceJob& job) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", job.accelerators, job.accelerators_min,
                     job.accelerators_max, job.share, job.types, job.cpu_millicores, job.memory_mib,
                     job.kind ? static_cast<int>(*job.kind) : -1, job.tenant, job.model);
}

/// A run time is that on `accelerators`; the work of an elastic job counts on the most it may have.
double of_most(const TraceJob& job) {
  if (job.accelerators_max == 0) return 1;
  return static_cast<double>(job.accelerators) / job.accelerators_max;
}

/// Of training by a plan, whose work counts a second a step (World); none: its run time is given.
std::optional<double> planned_steps(const JobRequest& request) {
  std::optional<double> most;
  for (const RoleRequest& role : request.roles) {
    if (role.work && role.steps) most = std::max(most.value_or(0), *role.steps);
  }
  return most;
}

class Maker {
 public:
  Maker(const ResolveContext& context, ClassTable& classes, const TraceJobOptions& options)
      : context_(context), classes_(classes), options_(options) {}

  [[nodiscard]] Status add(const TraceJob& job, std::uint32_t row, TraceJobs& made);

 private:
  [[nodiscard]] Result<JobRequest> request_of(const TraceJob& job);
  [[nodiscard]] Submission submission_of(const TraceJob& job, const JobRequest& request) const;
  [[nodiscard]] JobSpec spec_of(const TraceJob& job) const;
  [[nodiscard]] std::vector<TypeSpeed> types_of(const TraceJob& job) const;
  [[nodiscard]] Result<TrueJob> truth_of(const TraceJob& job) const;
  /// By the best plans on the fleet's own pieces; none: nobody can plan it.
  [[nodiscard]] std::optional<Duration> planned_length(const JobRequest& request) const;
  [[nodiscard]] std::optional<Duration> told(const TraceJob& job, Duration truth) const;

  const ResolveContext& context_;
  ClassTable& classes_;
  const TraceJobOptions& options_;
  std::map<std::string, Result<JobRequest>> known_;
};

// The fastest first where the trace names none, which is the order in which they are asked; CPUs,
// whose speed on a model says nothing of a job that was recorded on accelerators, are not asked.
std::vector<TypeSpeed> Maker::types_of(const TraceJob& job) const {
  const Topology& topology = context_.fleet.topology();
  std::vector<TypeSpeed> types;
  std::string_view named = job.types;
  while (!named.empty()) {
    const std::size_t bar = std::min(named.find('|'), named.size());
    types.push_back({std::string(named.substr(0, bar)), 1, {}});
    named.remove_prefix(std::min(bar + 1, named.size()));
  }
  if (!options_.speed || job.model.empty()) return types;
  if (!types.empty()) {
    for (TypeSpeed& each : types) {
      const std::optional<FleetTypeId> type = topology.find_type(each.type);
      const double speed = type ? options_.speed(job.model, *type) : 0;
      if (speed > 0) each.speed = speed;
    }
    return types;
  }
  for (std::uint32_t i = 0; i < topology.type_count(); ++i) {
    const Accelerator& accelerator = topology.accelerator(FleetTypeId(i));
    if (accelerator.kind == AcceleratorKind::kCpu) continue;
    const double speed = options_.speed(job.model, FleetTypeId(i));
    if (speed > 0) types.push_back({accelerator.id, speed, {}});
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeSpeed& a, const TypeSpeed& b) { return a.speed > b.speed; });
  return types;
}

JobSpec Maker::spec_of(const TraceJob& job) const {
  JobSpec spec;
  spec.kind = job.kind.value_or(JobKind::kTrain);
  spec.name = job.name;
  spec.tenant = job.tenant;
  spec.priority = job.priority;
  spec.preemptible = true;
  RoleSpec role;
  role.accelerators = job.accelerators;
  if (job.accelerators_max > 0) {
    role.accelerators.reset();
    role.accelerators_min = job.accelerators_min;
    role.accelerators_max = job.accelerators_max;
  }
  if (job.share < kWholeDevice) role.share = job.share / double{kWholeDevice};
  role.types = types_of(job);
  const double ranks = std::max<double>(job.accelerators, 1);
  role.host.cpu = job.cpu_millicores / 1000.0 / ranks;
  role.host.memory = Bytes(static_cast<double>(job.memory_mib) * 1024 * 1024 / ranks);
  spec.roles.push_back(std::move(role));
  spec.checkpoint.interval = Seconds(options_.checkpoint_interval.count_seconds());
  spec.checkpoint.cost = Seconds(options_.checkpoint_cost.count_seconds());
  spec.checkpoint.restart = Seconds(options_.restart.count_seconds());
  return spec;
}

Result<JobRequest> Maker::request_of(const TraceJob& job) {
  JobSpec spec = job.spec != nullptr ? *job.spec : spec_of(job);
  if (!context_.tenants.find(spec.tenant)) spec.tenant = "default";
  return resolve_job(spec, context_);
}

Result<TrueJob> Maker::truth_of(const TraceJob& job) const {
  TrueJob truth;
  truth.work = job.run;
  if (options_.rules.work_from_steps && job.steps > 0) {
    truth.work = job.step_time * static_cast<std::int64_t>(job.steps);
  }
  if (job.spec != nullptr && truth.work == Duration() && job.spec->kind != JobKind::kServe) {
    return input_error({"", job.line, 0},
                       fmt::format("job \"{}\" tells neither how long it runs nor how much it "
                                   "trains: give `run` beside `spec`, or steps or tokens in its "
                                   "work",
                                   job.name));
  }
  if (truth.work > Duration() || job.steps == 0) {
    truth.fails = job.status == TraceStatus::kFailed && options_.rules.costs;
    return truth;
  }
  const std::string type = options_.type;
  const std::optional<double> speed =
      options_.throughput ? options_.throughput(type, job) : std::nullopt;
  if (!speed) {
    return input_error({"", job.line, 0},
                       fmt::format("job \"{}\" tells {} steps of \"{}\" and no run time: give "
                                   "--throughputs with a rate for {} of {}",
                                   job.name, job.steps, job.model, job.accelerators, type));
  }
  truth.steps = job.steps;
  truth.steps_per_second = *speed;
  truth.work = Duration::from_seconds(static_cast<double>(job.steps) / *speed);
  return truth;
}

std::optional<Duration> Maker::planned_length(const JobRequest& request) const {
  double longest = 0;
  for (const RoleRequest& role : request.roles) {
    const std::optional<PlanKey>& key = role.options.front().plan;
    if (!key || !role.steps || !options_.plans) continue;
    const std::shared_ptr<const PlanEntry> entry = options_.plans(*key);
    if (entry == nullptr || !*entry) return std::nullopt;
    longest = std::max(longest, *role.steps * entry->value().front().step_seconds);
  }
  return longest > 0 ? std::optional(Duration::from_seconds(longest)) : std::nullopt;
}

// By the job's name alone, so that neither order nor selection shifts anybody's estimate.
std::optional<Duration> Maker::told(const TraceJob& job, Duration truth) const {
  switch (options_.information) {
    case Information::kOracle:
      return truth;
    case Information::kBlind:
      return std::nullopt;
    case Information::kEstimate: {
      Rng rng = Rng::stream(options_.seed, "estimate " + job.name);
      const double error = Lognormal{0, options_.estimate_sigma}.sample(rng);
      return Duration::from_seconds(truth.count_seconds() * error);
    }
  }
  return truth;
}

Status Maker::add(const TraceJob& job, std::uint32_t row, TraceJobs& made) {
  if (job.accelerators == 0 && job.spec == nullptr) {
    ++made.cpu_jobs;
    return {};
  }
  const std::string shape = job.spec != nullptr ? fmt::format("spec {}", row) : shape_of(job);
  auto known = known_.find(shape);
  if (known == known_.end()) {
    Result<JobRequest> request = request_of(job);
    if (request) request->class_id = classes_.of(*request);
    known = known_.emplace(shape, std::move(request)).first;
  }
  if (!known->second) {
    if (known->second.error().kind != ErrorKind::kInfeasible) {
      return tl::unexpected(known->second.error());
    }
    made.oversized.push_back({job.name, job.line, known->second.error().message});
    return {};
  }
  const std::optional<double> steps = planned_steps(*known->second);
  Result<TrueJob> truth =
      steps ? Result<TrueJob>(TrueJob{.work = Duration::from_seconds(*steps)}) : truth_of(job);
  if (!truth) return forward_error(truth);
  PlayedJob played;
  played.row = row;
  played.truth = *truth;
  played.truth.peer_copy = job.spec != nullptr && job.spec->checkpoint.peer_copy;
  played.submit = options_.rules.all_at_start ? Instant() : job.submit;
  played.submission = submission_of(job, *known->second);
  JobRequest& request = played.submission.request;
  request.name = job.name;
  request.priority = job.priority;
  if (job.deadline) request.deadline = job.deadline;
  if (!steps && truth->work > Duration()) {
    played.truth.work = Duration::from_seconds(truth->work.count_seconds() * of_most(job));
  }
  const std::optional<Duration> length = steps ? planned_length(request) : played.truth.work;
  if (!request.estimate && length) request.estimate = told(job, *length);
  if (options_.rules.costs) request.time_limit = job.limit;
  if (truth->work == Duration() && request.kind == JobKind::kServe) {
    played.truth.work = Duration::max();
  }
  if (!options_.rules.costs) request.checkpoint_interval = Duration::max();
  played.submission.choose_interval = played.submission.choose_interval && options_.rules.costs;
  if (truth->fails) played.submission.restart_max = 0;
  if (job.spec == nullptr) {
    made.jobs.push_back(std::move(played));
    return {};
  }
  for (Submission& each : jobs_of(*job.spec, played.submission, ArrayId(row))) {
    made.jobs.push_back({std::move(each), played.truth, played.submit, row});
  }
  return {};
}

// What a person has written holds; of a bare row of a trace what the options say does.
Submission Maker::submission_of(const TraceJob& job, const JobRequest& request) const {
  if (job.spec != nullptr) return orrery::submission_of(*job.spec, request);
  Submission submission{.request = request, .restart = options_.restart_policy};
  submission.choose_interval = options_.interval == CheckpointInterval::kBest;
  return submission;
}

/// Names the jobs that each comes after, which are submitted in the order of `made`: of a name the
/// newest before it, of an array all.
Status order_jobs(const Trace& trace, TraceJobs& made) {
  std::map<std::string, std::vector<JobId>> submitted;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < made.jobs.size(); ++i) {
    PlayedJob& job = made.jobs[i];
    const TraceJob& row = trace.jobs[job.row];
    if (row.spec == nullptr) continue;
    for (const AfterSpec& spec : row.spec->after) {
      const auto before = submitted.find(spec.job);
      if (before == submitted.end()) {
        return input_error(spec.where,
                           fmt::format("after: no job \"{}\" is submitted before", spec.job));
      }
      std::vector<JobId>& after = dependencies_of(job.submission, spec.when);
      after.insert(after.end(), before->second.begin(), before->second.end());
    }
    std::vector<JobId>& mine = submitted[row.spec->name];
    if (job.row != last) mine.clear();
    last = job.row;
    mine.push_back(JobId(i));
    if (row.spec->array) submitted[job.submission.request.name] = {JobId(i)};
  }
  return {};
}

}  // namespace

Result<TraceJobs> trace_jobs(const Trace& trace, const ResolveContext& context, ClassTable& classes,
                             const TraceJobOptions& options) {
  TraceJobs made;
  made.jobs.reserve(trace.jobs.size());
  Maker maker(context, classes, options);
  for (std::uint32_t row = 0; row < trace.jobs.size(); ++row) {
    if (Status added = maker.add(trace.jobs[row], row, made); !added) return forward_error(added);
  }
  std::stable_sort(made.jobs.begin(), made.jobs.end(),
                   [](const PlayedJob& a, const PlayedJob& b) { return a.submit < b.submit; });
  if (Status ordered = order_jobs(trace, made); !ordered) return forward_error(ordered);
  return made;
}

}  // namespace orrery
