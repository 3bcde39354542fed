#include "twin/policy_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "twin/figures/wait_story.hpp"
#include "twin/world/arrivals.hpp"
#include "twin/world/attempt_log.hpp"
#include "twin/world/sampler.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kInputsBetweenProgress = 4096;
constexpr std::size_t kSlowestShown = 20;
constexpr std::size_t kFailuresShown = 5000;
constexpr std::size_t kCourseLines = 40;

/// Spares spread evenly over the fleet, so that one is near; then arrivals, then the stated
/// commands.
std::vector<Input> commands_of(const PolicyRunInputs& in) {
  std::vector<Input> commands;
  const std::uint32_t nodes = in.cluster.topology().node_count();
  for (std::uint32_t i = 0; i < std::min(in.spares, nodes); ++i) {
    const auto at = static_cast<std::uint32_t>((std::uint64_t{2} * i + 1) * nodes /
                                               (2 * std::uint64_t{in.spares}));
    commands.push_back({in.begin, SetSpare{NodeId(at), true}, {}});
  }
  const auto by_time = [](const Input& a, const Input& b) { return a.at < b.at; };
  const auto add = [&](std::span<const Input> more) {
    const auto middle = static_cast<std::ptrdiff_t>(commands.size());
    commands.insert(commands.end(), more.begin(), more.end());
    std::inplace_merge(commands.begin(), commands.begin() + middle, commands.end(), by_time);
  };
  add(arrival_commands(in.arrivals, in.begin));
  add(in.commands);
  return commands;
}

/// A job's kind and size, by which distributions are split.
std::string class_of(const JobOutcome& job) {
  if (job.devices <= 1) return "1 accelerator";
  if (job.devices <= 8) return "2 to 8";
  if (job.devices <= 64) return "9 to 64";
  if (job.devices <= 512) return "65 to 512";
  return "more than 512";
}

void fill_classes(PolicyReport& report, std::span<const JobOutcome> outcomes) {
  constexpr std::array<std::string_view, 5> kOrder{"1 accelerator", "2 to 8", "9 to 64",
                                                   "65 to 512", "more than 512"};
  for (const std::string_view name : kOrder) report.classes.push_back({std::string(name), {}, {}});
  for (const JobOutcome& job : outcomes) {
    if (job.end == Instant::max() || !job.measured) continue;
    const std::string name = class_of(job);
    for (JobClass& of : report.classes) {
      if (of.name != name) continue;
      of.jct_s.push_back((job.end - job.submit).count_seconds());
      of.queueing_s.push_back(job.watched.queued.count_seconds());
    }
  }
  std::erase_if(report.classes, [](const JobClass& of) { return of.jct_s.empty(); });
  for (JobClass& of : report.classes) {
    std::sort(of.jct_s.begin(), of.jct_s.end());
    std::sort(of.queueing_s.begin(), of.queueing_s.end());
  }
}

/// Fills in price and carbon of electricity at the sampled instants.
void fill_grid(FleetSamples& samples, const PolicyRunInputs& in) {
  constexpr double kJoulesPerMwh = 3.6e9;
  constexpr double kJoulesPerKwh = 3.6e6;
  for (const Instant at : samples.at) {
    if (in.electricity != nullptr) {
      samples.usd_per_mwh.push_back(in.electricity->at(at).value() * kJoulesPerMwh);
    }
    if (in.carbon != nullptr) {
      samples.g_per_kwh.push_back(in.carbon->at(at).value() * kJoulesPerKwh);
    }
  }
}

/// "too few free devices 3 h, behind other jobs 5 min; 2 preemptions, 1 fault".
std::string reason_of(const JobOutcome& job) {
  std::string reason = causes_text(job.watched);
  std::string stops;
  if (job.usage.preemptions > 0) stops = counted(job.usage.preemptions, "preemption");
  if (job.usage.faults > 0) {
    stops += (stops.empty() ? "" : ", ") + counted(job.usage.faults, "fault");
  }
  if (!reason.empty() && !stops.empty()) reason += "; ";
  return reason + stops;
}

/// The course of a job from its submission to its end, at most kCourseLines lines of it.
std::vector<std::string> course_of(const JobOutcome& job, const AttemptLog& attempts,
                                   const State& state) {
  std::vector<std::string> lines = {job.submit.text() + "  submitted"};
  const auto name = [&](JobId id) { return state.job(id).name; };
  for (std::string& line : attempts.course(job.job, name)) lines.push_back(std::move(line));
  if (lines.size() > kCourseLines) {
    const std::size_t out = lines.size() - kCourseLines;
    const auto middle = lines.begin() + static_cast<std::ptrdiff_t>(kCourseLines / 2);
    lines.erase(middle, middle + static_cast<std::ptrdiff_t>(out));
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(kCourseLines / 2),
                 fmt::format("... {} lines omitted ...", out));
  }
  return lines;
}

void fill_gantt(PolicyRun& run, const PolicyRunInputs& in, const AttemptLog& attempts,
                const Simulation& simulation) {
  const State& state = simulation.state();
  std::map<JobId, const PlayedJob*> jobs;
  bool tenants = false;
  for (std::size_t i = 0; i < run.outcomes.size(); ++i) {
    jobs.emplace(run.outcomes[i].job, &in.jobs.jobs[i]);
    tenants = tenants || in.jobs.jobs[i].tenant != in.jobs.jobs.front().tenant;
  }
  const auto group = [&](JobId id) -> std::string {
    const PlayedJob& job = *jobs.at(id);
    return tenants ? job.tenant : std::string(word_of(job.submission.request.kind));
  };
  const GanttNames names{.job = [&](JobId id) -> std::string { return state.job(id).name; },
                         .group = group,
                         .grouped_by = tenants ? "tenant" : "kind of work"};
  run.report.gantt = attempts.chart(names, simulation.now());
  run.report.in_use = attempts.use(in.begin, simulation.now());
}

void fill_slowest(PolicyRun& run, const PolicyRunInputs& in, const AttemptLog& attempts,
                  const State& state) {
  PolicyReport& report = run.report;
  const std::vector<JobOutcome>& outcomes = run.outcomes;
  std::vector<const JobOutcome*> slowest;
  for (const JobOutcome& job : outcomes) {
    if (job.end != Instant::max() && job.measured) slowest.push_back(&job);
  }
  const auto jct = [](const JobOutcome* job) { return job->end - job->submit; };
  const std::size_t shown = std::min(kSlowestShown, slowest.size());
  std::partial_sort(slowest.begin(), slowest.begin() + static_cast<std::ptrdiff_t>(shown),
                    slowest.end(), [&](const JobOutcome* a, const JobOutcome* b) {
                      return jct(a) != jct(b) ? jct(a) > jct(b) : a->job < b->job;
                    });
  for (std::size_t i = 0; i < shown; ++i) {
    const Job& job = state.job(slowest[i]->job);
    SlowJob& row = report.slowest.emplace_back();
    row.id = job.name;
    const std::size_t at = static_cast<std::size_t>(slowest[i] - outcomes.data());
    row.tenant = in.jobs.jobs[at].tenant;
    row.kind = word_of(in.jobs.jobs[at].submission.request.kind);
    row.devices = slowest[i]->devices;
    row.queueing = slowest[i]->watched.queued;
    row.jct = jct(slowest[i]);
    row.reason = reason_of(*slowest[i]);
    row.course = course_of(*slowest[i], attempts, state);
  }
}

void fill_failures(PolicyReport& report, const World& world, Instant now) {
  for (const FeltFault& felt : world.felt()) {
    if (felt.fault.at > now || report.failures.size() == kFailuresShown) break;
    if (felt.fault.kind == FaultKind::kLinkFlap) continue;
    report.failures.push_back({felt.fault.at, std::string(word_of_fault(felt.fault.kind)),
                               felt.fault.detection, felt.fault.repair, felt.jobs});
  }
}

void fill_tenants(PolicyReport& report, const PolicyRunInputs& in, const State& state,
                  Duration span) {
  for (std::uint32_t t = 1; t < state.tenants().size(); ++t) {
    TenantUse& use = report.tenants.emplace_back();
    use.name = state.tenants().path(TenantId(t));
    use.used_hours = device_hours(state.by_tenant()[t].devices.total());
    double guaranteed = 0;
    for (std::uint32_t type = 0; type < in.cluster.topology().type_count(); ++type) {
      guaranteed += static_cast<double>(
          state.tenants().guarantee(TenantId(t), FleetTypeId(type)).value_or(0));
    }
    if (guaranteed > 0) use.guaranteed_hours = guaranteed * span.count_seconds() / 3600;
  }
}

/// Whether a price is published for the type at each site that has it.
bool has_price(const ControlFacts& cluster, FleetTypeId type) {
  const Topology& topology = cluster.topology();
  return std::all_of(topology.sites().begin(), topology.sites().end(), [&](const SiteFacts& site) {
    if (topology.device_count(site.domain, type) == 0) return true;
    const DeviceCosts* costs = cluster.costs().find(type, site.domain);
    return costs != nullptr && costs->hire.has_value();
  });
}

/// Whether the types that jobs ran on have prices.
bool priced(const PolicyRun& run) {
  return std::all_of(run.outcomes.begin(), run.outcomes.end(),
                     [&](const JobOutcome& job) { return is_priced(job.usage, run.unpriced); });
}

void fill_summary(PolicyRun& run, const PolicyRunInputs& in) {
  const SimulationSummary& s = run.summary;
  PolicySummary& out = run.report.summary;
  out.jobs = s.measured;
  out.avg_jct_s = s.avg_jct_s;
  out.avg_wait_s = s.avg_wait_s;
  out.avg_queueing_s = s.avg_queueing_s;
  out.p99_queueing_s = s.p99_queueing_s;
  out.p50_jct_s = s.p50_jct_s;
  out.p99_jct_s = s.p99_jct_s;
  out.makespan_s = s.makespan_s;
  out.utilization = s.utilization;
  out.goodput = s.goodput;
  out.energy_kwh = s.energy_kwh;
  if (priced(run)) out.cost_usd = s.cost_usd;
  out.co2_kg = s.co2_kg;
  out.preemptions = s.preemptions;
  out.faults = s.faults;
  out.corrupt = s.corrupt;
  out.oversized = in.jobs.oversized.size();
  out.events = s.events;
  out.history_hash = fmt::format("{:016x}", run.history);
}

/// The facts of the world for this run.
Result<World::Facts> world_of(const PolicyRunInputs& in, const ControlSetup& setup) {
  World::Facts world{in.rules, in.timing, setup.plans};
  const Calibration& calibration = in.cluster.facts().calibration;
  world.calibration = &calibration;
  if (!world.timing.warm_restart) {
    world.timing.warm_restart =
        Duration::from_seconds(calibration.first_of({"restart.warm.seconds"}));
  }
  world.arrivals = in.arrivals;
  world.scripted = in.faults;
  if (!in.rules.costs) {
    world.timing.launch = world.timing.plan_search = world.timing.scheduler_latency = Duration();
  }
  if (in.failures) {
    Result<FailureModel> model =
        FailureModel::make(in.cluster.topology(), *in.failures, {in.seed, in.begin});
    if (!model) return forward_error(model);
    world.failures = *std::move(model);
  }
  return world;
}

}  // namespace

bool is_priced(const JobUsage& usage, std::span<const FleetTypeId> unpriced) {
  return std::none_of(unpriced.begin(), unpriced.end(),
                      [&](FleetTypeId type) { return usage.devices.of(type) > 0; });
}

ControlSetup control_setup(const PolicyRunInputs& in) {
  ControlSetup setup = in.cluster.setup(in.policy, in.begin);
  setup.series.electricity = in.electricity;
  setup.series.carbon = in.carbon;
  setup.timing.launch = in.timing.launch;
  if (!in.rules.costs) setup.timing.grace = setup.timing.launch = Duration();
  if (in.failures) {
    constexpr double kDay = 86400;
    setup.failures_per_node_second = in.failures->failures_per_1000_node_days / 1000 / kDay;
  }
  return setup;
}

Result<PolicyRun> run_policy(const PolicyRunInputs& in) {
  const ControlSetup setup = control_setup(in);
  Result<World::Facts> world = world_of(in, setup);
  if (!world) return forward_error(world);
  Journal journal({.writer = "orrery", .setup = in.setup, .sink = in.events});
  std::optional<InputJournal> inputs;
  if (in.inputs != nullptr) {
    inputs.emplace(JournalOptions{.writer = "orrery", .setup = in.setup, .sink = in.inputs});
  }
  Sampler sampler(in.cluster.topology());
  AttemptLog attempts(in.cluster.topology());
  WaitStory story(in.explain);
  PowerWatch power;
  const Simulation* running = nullptr;
  std::uint64_t seen = 0;
  SimulationHooks hooks;
  hooks.input = [&](const Input& input) {
    if (inputs) inputs->append(input);
    if (in.progress && ++seen % kInputsBetweenProgress == 0) in.progress(input.at, *running);
  };
  hooks.events = [&](Instant at, std::span<const Event> events) {
    for (const Event& event : events) journal.append(at, event);
    attempts.look(at, events);
    power.look(at, running->state(), events);
    if (in.explain.valid()) story.look(at, *running, events);
  };
  hooks.tick = [&](Instant at, const State& state) { sampler.look(at, state); };
  const std::vector<Input> commands = commands_of(in);
  Simulation simulation(
      {setup, *std::move(world), in.jobs.jobs, std::move(hooks), commands, in.measure});
  running = &simulation;
  simulation.run(in.until);

  PolicyRun run;
  run.summary = simulation.summary();
  run.outcomes = simulation.outcomes();
  run.end = simulation.now();
  run.history = journal.history_hash();
  run.story = story.text();
  run.limits = power.limits(run.end);
  run.report.name = in.label;
  run.report.information = in.information;
  run.report.samples = sampler.samples();
  run.report.fragmentation = sampler.fragmentation();
  fill_classes(run.report, run.outcomes);
  run.report.use = simulation.use_hours();
  fill_grid(run.report.samples, in);
  run.report.power = sampler.power();
  fill_gantt(run, in, attempts, simulation);
  fill_slowest(run, in, attempts, simulation.state());
  fill_failures(run.report, simulation.world(), simulation.now());
  fill_tenants(run.report, in, simulation.state(), simulation.now() - in.begin);
  for (std::uint32_t t = 0; t < in.cluster.topology().type_count(); ++t) {
    if (!has_price(in.cluster, FleetTypeId(t))) run.unpriced.emplace_back(t);
  }
  run.report.fairness = fairness_of({run.outcomes, in.jobs.jobs, in.cluster.topology(),
                                     simulation.state().tenants(), simulation.now() - in.begin});
  fill_summary(run, in);
  return run;
}

}  // namespace orrery
