#include "twin/design/design_rehearsal.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "twin/policy_run.hpp"

namespace orrery {
namespace {

/// Jobs without an end outlast the rehearsal by this factor.
constexpr double kOutlasts = 4;
/// Successors of jobs that end are submitted this early, as a share of their length, so that a job
/// always waits.
constexpr double kFollows = 0.95;
constexpr Seconds kAnswered{60};

/// The jobs of a mix: at the start as many as the design has at a time; those that end are followed
/// by as many again.
class MixMaker {
 public:
  MixMaker(const Design& design, Duration span) : design_(design), span_(span) {}

  Trace make() {
    for (const DesignedWork& work : design_.works) add(work);
    return std::move(trace_);
  }

 private:
  void add(const DesignedWork& work) {
    const double span = span_.count_seconds();
    const double effective = work.goodput.parts.effective;
    const double endless = span * kOutlasts;
    const double length = work.asked->duration ? work.asked->duration->value() : endless;
    const std::shared_ptr<const JobSpec> spec = spec_of(work, length * effective);
    double at = 0;
    while (at < span) {
      for (std::uint32_t i = 0; i < work.jobs; ++i) {
        TraceJob& job = trace_.jobs.emplace_back();
        job.name = fmt::format("{}-{}", work.asked->name, trace_.jobs.size());
        job.submit = Instant() + Duration::from_seconds(at);
        job.accelerators = work.rate.accelerators;
        job.spec = spec;
        // For training, a second of work is a step.
        const double seconds = length * effective;
        job.run = Duration::from_seconds(
            work.asked->serves() ? seconds : std::ceil(seconds / work.rate.step_seconds));
      }
      at += length * kFollows;
    }
  }

  [[nodiscard]] std::shared_ptr<const JobSpec> spec_of(const DesignedWork& work,
                                                       double seconds) const {
    JobSpec spec;
    spec.kind = work.asked->kind;
    spec.name = work.asked->name;
    spec.priority = priority_of(work.asked->kind);
    spec.preemptible = false;
    spec.estimate = Seconds(seconds);
    RoleSpec role;
    role.accelerators = work.rate.accelerators;
    role.types = {{design_.groups[work.group].candidate->accelerator->id, 1, {}}};
    if (!work.asked->serves()) {
      role.work = work.asked->work;
      role.work->tokens.reset();
      role.work->steps = static_cast<std::uint64_t>(std::ceil(seconds / work.rate.step_seconds));
      spec.checkpoint.cost = work.goodput.stall;
      if (work.goodput.parts.interval > Seconds(0)) {
        spec.checkpoint.interval = work.goodput.parts.interval;
      }
    }
    // The answers of a service are not lost with its node.
    if (work.asked->serves()) spec.checkpoint.interval = kAnswered;
    spec.checkpoint.restart = work.goodput.restart;
    // As in the prediction, a job restarts once its loss is noticed.
    spec.restart.policy = RestartPolicy::kAtOnce;
    spec.roles.push_back(std::move(role));
    return std::make_shared<const JobSpec>(std::move(spec));
  }

  /// Long-running jobs are placed before jobs that come and go.
  static std::int32_t priority_of(JobKind kind) {
    switch (kind) {
      case JobKind::kServe:
        return 30;
      case JobKind::kTrain:
        return 20;
      case JobKind::kFineTune:
      case JobKind::kBatch:
        return 10;
    }
    return 0;
  }

  const Design& design_;
  Duration span_;
  Trace trace_;
};

DesignUse use_of(const PolicyReport& report, double all_hours) {
  DesignUse use;
  double busy = 0;
  for (const UseHours& hours : report.use) {
    const auto part = [&](DeviceUse what) {
      const double share = hours[static_cast<std::size_t>(what)] / all_hours;
      busy += share;
      return share;
    };
    use.useful += part(DeviceUse::kUseful);
    use.checkpoints += part(DeviceUse::kSaving);
    use.lost += part(DeviceUse::kLost);
    use.undetected += part(DeviceUse::kUndetected);
    use.starting += part(DeviceUse::kStarting) + part(DeviceUse::kStopping);
  }
  use.unused = 1 - busy;
  return use;
}

}  // namespace

double difference(const Design& design, const Rehearsal& rehearsal) {
  return rehearsal.use.useful / design.predicted.useful - 1;
}

bool confirmed(const Design& design, const Rehearsal& rehearsal) {
  return std::abs(difference(design, rehearsal)) <= kConfirmedWithin;
}

Result<Rehearsal> rehearse(const FactsView& facts, const Design& design,
                           const RehearsalOptions& options) {
  Result<std::unique_ptr<ControlFacts>> cluster =
      ControlFacts::make(facts, design.site.fleet, nullptr);
  if (!cluster) return forward_error(cluster);
  Result<ReplayRules> rules = replay_rules("orrery");
  if (!rules) return forward_error(rules);
  Result<Policy> policy = policy_under(*rules, "hardware-aware");
  if (!policy) return forward_error(policy);
  const Trace trace = MixMaker(design, options.span).make();
  TraceJobOptions job_options;
  job_options.rules = *rules;
  Result<TraceJobs> jobs =
      trace_jobs(trace, (*cluster)->resolve_context(Instant()), (*cluster)->classes(), job_options);
  if (!jobs) return forward_error(jobs);
  if (!jobs->oversized.empty()) {
    return infeasible(fmt::format("the twin cannot place {}: {}", jobs->oversized.front().name,
                                  jobs->oversized.front().why));
  }
  PolicyRunInputs inputs{.cluster = **cluster,
                         .jobs = *jobs,
                         .label = "hardware-aware",
                         .policy = *std::move(policy),
                         .rules = *std::move(rules)};
  inputs.failures = *design.failures;
  inputs.timing.warm_restart = Duration::max();  // as in the prediction: on any nodes
  inputs.seed = options.seed;
  inputs.until = Instant() + options.span;
  for (const DesignGroup& group : design.groups) inputs.spares += group.spares;
  Result<PolicyRun> run = run_policy(inputs);
  if (!run) return forward_error(run);
  const double hours = design.accelerators() * options.span.count_seconds() / 3600;
  return Rehearsal{.use = use_of(run->report, hours),
                   .span = options.span,
                   .faults = run->summary.faults,
                   .jobs = jobs->jobs.size(),
                   .history = run->history};
}

}  // namespace orrery
