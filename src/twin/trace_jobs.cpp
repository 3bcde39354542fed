#include "twin/trace_jobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"
#include "control/spec_submission.hpp"

namespace orrery {
namespace {

/// Whether the trace states a job's length, as a time or as steps.
bool lasts(const TraceJob& job) { return job.run > Duration() || job.steps > 0; }

/// Everything about a trace's job that decides what it may be placed on, and how fast it is there.
std::string shape_of(const TraceJob& job) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {} {}", lasts(job), job.run == Duration(),
                     job.step_time == Duration(), job.accelerators, job.accelerators_min,
                     job.accelerators_max, job.share, job.types, job.cpu_millicores, job.memory_mib,
                     job.kind ? static_cast<int>(*job.kind) : -1, job.tenant, job.model);
}

/// Run times refer to `accelerators`; the work of an elastic job counts on the most it may have.
double of_most(const TraceJob& job) {
  if (job.accelerators_max == 0) return 1;
  return static_cast<double>(job.accelerators) / job.accelerators_max;
}

/// Steps of training by a plan, whose work counts a second a step (World); none: its run time is
/// given.
std::optional<double> planned_steps(const JobRequest& request) {
  std::optional<double> most;
  for (const RoleRequest& role : request.roles) {
    if (role.work && role.steps) most = std::max(most.value_or(0), *role.steps);
  }
  return most;
}

/// The names in "v100|p100".
std::vector<std::string> named_types(const TraceJob& job) {
  std::vector<std::string> names;
  std::string_view left = job.types;
  while (!left.empty()) {
    const std::size_t bar = std::min(left.find('|'), left.size());
    names.emplace_back(left.substr(0, bar));
    left.remove_prefix(std::min(bar + 1, left.size()));
  }
  return names;
}

class Maker {
 public:
  Maker(const ResolveContext& context, ClassTable& classes, const TraceJobOptions& options)
      : context_(context), classes_(classes), options_(options) {}

  [[nodiscard]] Status add(const TraceJob& job, std::uint32_t row, TraceJobs& made);

 private:
  /// How fast a job is on the types of the fleet.
  struct Speeds {
    std::vector<std::pair<FleetTypeId, double>> types;  ///< where it runs; 1: as its run time says
    double steps_per_second = 0;  ///< where that is 1; only for jobs given by steps alone
    std::string without;          ///< types on which it does not run, for want of a rate
  };

  [[nodiscard]] Result<JobRequest> request_of(const TraceJob& job, const Speeds& speeds) const;
  [[nodiscard]] Submission submission_of(const TraceJob& job, const JobRequest& request) const;
  [[nodiscard]] std::string tenant_of(const TraceJob& job, const JobRequest& request) const;
  [[nodiscard]] JobSpec spec_of(const TraceJob& job, const Speeds& speeds) const;
  /// A request, and the speeds it was made with.
  struct Known {
    Result<JobRequest> request;
    Speeds speeds;
  };
  [[nodiscard]] Known known_of(const TraceJob& job);
  /// Whether its run time follows from its steps and a throughput.
  [[nodiscard]] bool steps_alone(const TraceJob& job) const;
  [[nodiscard]] std::vector<FleetTypeId> may_have(const TraceJob& job) const;
  [[nodiscard]] Result<Speeds> speeds_of(const TraceJob& job) const;
  [[nodiscard]] std::optional<Speeds> measured(const TraceJob& job,
                                               std::span<const FleetTypeId> types) const;
  [[nodiscard]] std::string names_of(std::span<const FleetTypeId> types) const;
  [[nodiscard]] std::vector<TypeSpeed> types_of(const TraceJob& job, const Speeds& speeds) const;
  [[nodiscard]] Result<TrueJob> truth_of(const TraceJob& job, const Speeds& speeds) const;
  /// The length by the best plans on the fleet's own pieces; none: it cannot be planned.
  [[nodiscard]] std::optional<Duration> planned_length(const JobRequest& request) const;
  [[nodiscard]] std::optional<Duration> told(const TraceJob& job, Duration truth) const;

  const ResolveContext& context_;
  ClassTable& classes_;
  const TraceJobOptions& options_;
  std::map<std::string, Known> known_;
};

bool Maker::steps_alone(const TraceJob& job) const {
  const bool timed = options_.rules.work_from_steps && job.step_time > Duration();
  return job.steps > 0 && job.run == Duration() && !timed;
}

// Types that may run the job; those of groups with count 0 have no nodes. CPUs are left out: their
// speed on a model says nothing of a job that was recorded on accelerators.
std::vector<FleetTypeId> Maker::may_have(const TraceJob& job) const {
  const Topology& topology = context_.fleet.topology();
  const auto has_nodes = [&](FleetTypeId type) {
    return topology.device_count(Topology::root(), type) > 0;
  };
  std::vector<FleetTypeId> types;
  for (const std::string& name : named_types(job)) {
    const std::optional<FleetTypeId> type = topology.find_type(name);
    if (type && has_nodes(*type) && std::find(types.begin(), types.end(), *type) == types.end())
      types.push_back(*type);
  }
  for (std::uint32_t i = 0; i < topology.type_count() && job.types.empty(); ++i) {
    const bool cpu = topology.accelerator(FleetTypeId(i)).kind == AcceleratorKind::kCpu;
    if (!cpu && has_nodes(FleetTypeId(i))) types.emplace_back(i);
  }
  return types;
}

std::string Maker::names_of(std::span<const FleetTypeId> types) const {
  std::vector<std::string_view> names;
  for (const FleetTypeId type : types) {
    names.push_back(context_.fleet.topology().accelerator(type).id);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

// Measured speeds over the rate on the reference; for jobs given by steps alone, over the first
// type with a rate if the reference has none.
std::optional<Maker::Speeds> Maker::measured(const TraceJob& job,
                                             std::span<const FleetTypeId> types) const {
  if (!options_.throughput) return std::nullopt;
  Speeds speeds;
  std::vector<FleetTypeId> without;
  for (const FleetTypeId type : types) {
    const double rate = options_.throughput(type, job).value_or(0);
    if (rate > 0) speeds.types.emplace_back(type, rate);
    if (rate <= 0) without.push_back(type);
  }
  double base = options_.throughput(options_.reference, job).value_or(0);
  if (base <= 0 && steps_alone(job) && !speeds.types.empty()) base = speeds.types.front().second;
  if (base <= 0 || speeds.types.empty()) return std::nullopt;
  for (auto& [type, speed] : speeds.types) speed /= base;
  speeds.steps_per_second = base;
  speeds.without = names_of(without);
  return speeds;
}

Result<Maker::Speeds> Maker::speeds_of(const TraceJob& job) const {
  const std::vector<FleetTypeId> types = may_have(job);
  if (std::optional<Speeds> found = measured(job, types)) return *std::move(found);
  if (steps_alone(job)) {
    return input_error(
        {"", job.line, 0},
        fmt::format("job \"{}\" states {} steps of \"{}\" and no run time: expected --throughputs "
                    "with a rate for {} of {}",
                    job.name, job.steps, job.model, job.accelerators, names_of(types)));
  }
  Speeds speeds;
  if (!options_.speed && lasts(job) && types.size() > 1) {
    return input_error(
        {"", job.line, 0},
        fmt::format(
            "job \"{}\" may run on {}, but its rate on each is unknown: expected --throughputs "
            "with its rates, --map to assume them, or a single type of accelerator",
            job.name, names_of(types)));
  }
  std::vector<FleetTypeId> without;
  for (const FleetTypeId type : types) {
    double speed = options_.speed ? options_.speed(job.model, type) : 1;
    if (speed <= 0 && type == options_.reference) speed = 1;
    if (speed > 0) speeds.types.emplace_back(type, speed);
    if (speed <= 0) without.push_back(type);
  }
  speeds.without = names_of(without);
  if (!without.empty() && speeds.types.empty()) {
    return infeasible("never: no rate is known for " + speeds.without);
  }
  return speeds;
}

// Fastest first where the trace names no types, as options are tried in this order. A name that the
// fleet lacks is left for the resolver to refuse.
std::vector<TypeSpeed> Maker::types_of(const TraceJob& job, const Speeds& speeds) const {
  const Topology& topology = context_.fleet.topology();
  std::vector<TypeSpeed> types;
  types.reserve(speeds.types.size());
  for (const auto& [type, speed] : speeds.types) {
    types.push_back({topology.accelerator(type).id, speed, {}});
  }
  for (const std::string& name : named_types(job)) {
    if (!topology.find_type(name)) types.push_back({name, 1, {}});
  }
  if (!job.types.empty()) return types;
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeSpeed& a, const TypeSpeed& b) { return a.speed > b.speed; });
  return types;
}

JobSpec Maker::spec_of(const TraceJob& job, const Speeds& speeds) const {
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
  role.types = types_of(job, speeds);
  const double ranks = std::max<double>(job.accelerators, 1);
  role.host.cpu = job.cpu_millicores / 1000.0 / ranks;
  role.host.memory = Bytes(static_cast<double>(job.memory_mib) * 1024 * 1024 / ranks);
  spec.roles.push_back(std::move(role));
  spec.checkpoint.interval = Seconds(options_.checkpoint_interval.count_seconds());
  spec.checkpoint.cost = Seconds(options_.checkpoint_cost.count_seconds());
  spec.checkpoint.restart = Seconds(options_.restart.count_seconds());
  return spec;
}

Result<JobRequest> Maker::request_of(const TraceJob& job, const Speeds& speeds) const {
  JobSpec spec = job.spec != nullptr ? *job.spec : spec_of(job, speeds);
  if (!context_.tenants.find(spec.tenant)) spec.tenant = "default";
  return resolve_job(spec, context_);
}

// A spec states itself how fast its types are.
Maker::Known Maker::known_of(const TraceJob& job) {
  Speeds speeds;
  if (job.spec == nullptr) {
    Result<Speeds> found = speeds_of(job);
    if (!found) return {forward_error(found), {}};
    speeds = *std::move(found);
  }
  Result<JobRequest> request = request_of(job, speeds);
  if (request) request->class_id = classes_.of(*request);
  return {std::move(request), std::move(speeds)};
}

Result<TrueJob> Maker::truth_of(const TraceJob& job, const Speeds& speeds) const {
  TrueJob truth;
  truth.work = job.run;
  if (options_.rules.work_from_steps && job.steps > 0) {
    truth.work = job.step_time * static_cast<std::int64_t>(job.steps);
  }
  if (job.spec != nullptr && truth.work == Duration() && job.spec->kind != JobKind::kServe) {
    return input_error(
        {"", job.line, 0},
        fmt::format("job \"{}\" states neither a run time nor an amount of training: expected "
                    "`run` next to `spec`, or steps or tokens in its work",
                    job.name));
  }
  if (truth.work > Duration() || job.steps == 0) {
    truth.fails = job.status == TraceStatus::kFailed && options_.rules.costs;
    return truth;
  }
  truth.steps = job.steps;
  truth.steps_per_second = speeds.steps_per_second;
  truth.work = Duration::from_seconds(static_cast<double>(job.steps) / truth.steps_per_second);
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

// Depends on the job's name alone, so that neither order nor selection shifts the estimate of any
// job.
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
  auto found = known_.find(shape);
  if (found == known_.end()) found = known_.emplace(shape, known_of(job)).first;
  const auto& [known, speeds] = found->second;
  if (!known) {
    if (known.error().kind != ErrorKind::kInfeasible) return tl::unexpected(known.error());
    made.oversized.push_back({job.name, job.line, known.error().message});
    return {};
  }
  if (!speeds.without.empty() && ++made.fewer_types == 1) {
    made.first_of_fewer = fmt::format("{} (not on {})", job.name, speeds.without);
  }
  const std::optional<double> steps = planned_steps(*known);
  Result<TrueJob> truth = steps ? Result<TrueJob>(TrueJob{.work = Duration::from_seconds(*steps)})
                                : truth_of(job, speeds);
  if (!truth) return forward_error(truth);
  PlayedJob played;
  played.row = row;
  played.truth = *truth;
  played.truth.peer_copy = job.spec != nullptr && job.spec->checkpoint.peer_copy;
  played.submit = options_.rules.all_at_start ? Instant() : job.submit;
  played.tenant = tenant_of(job, *known);
  played.submission = submission_of(job, *known);
  JobRequest& request = played.submission.request;
  request.name = job.name;
  request.priority = job.priority;
  if (job.deadline) request.deadline = job.deadline;
  if (!steps && truth->work > Duration()) {
    played.truth.work = Duration::from_seconds(truth->work.count_seconds() * of_most(job));
    played.truth.steps_per_second /= of_most(job);
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
  for (Submission& each : jobs_of(*job.spec, played.submission, ArrayId(row), classes_)) {
    made.jobs.push_back({std::move(each), played.truth, played.submit, row, played.tenant});
  }
  return {};
}

// Without a file of tenants all jobs are submitted for one, whatever the trace states.
std::string Maker::tenant_of(const TraceJob& job, const JobRequest& request) const {
  std::string named = job.tenant;
  if (job.spec != nullptr) named = job.spec->tenant;
  if (named.empty() || context_.tenants.find(named)) return context_.tenants.path(request.tenant);
  return context_.tenants.size() > 2 ? context_.tenants.path(request.tenant) : named;
}

// A spec's own settings hold; a bare row of a trace takes those of the options.
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
    if (job.submission.request.array.valid()) submitted[job.submission.request.name] = {JobId(i)};
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
  const bool timeless = std::all_of(made.jobs.begin(), made.jobs.end(), [](const PlayedJob& job) {
    return job.truth.work == Duration() && job.truth.steps == 0;
  });
  if (timeless && !made.jobs.empty()) {
    return input_error({},
                       "no job of the trace states a run time above 0 s or a number of steps, so "
                       "that no job can be simulated");
  }
  std::stable_sort(made.jobs.begin(), made.jobs.end(),
                   [](const PlayedJob& a, const PlayedJob& b) { return a.submit < b.submit; });
  if (Status ordered = order_jobs(trace, made); !ordered) return forward_error(ordered);
  return made;
}

}  // namespace orrery
