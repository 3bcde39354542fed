#include "tests/scenarios/scenario_parts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/document.hpp"
#include "control/spec_submission.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/named_places.hpp"
#include "perf/facts.hpp"

namespace orrery {
namespace {

constexpr Duration kLongest = Duration::hours(720);

/// The facts that are compiled in, loaded once.
const Facts& facts() {
  static const Facts kFacts = *Facts::load({});
  return kFacts;
}

/// A job's text, as a block or as a flow mapping, with the key that every file has.
std::string with_version(const std::string& job) {
  if (job.starts_with('{')) return "{apiVersion: orrery/v1, " + job.substr(1);
  return "apiVersion: orrery/v1\n" + job;
}

/// The tenants of a scenario as a file of its own.
std::string tenants_file(const ScenarioSpec& spec, const std::string& tenants) {
  return fmt::format(
      "apiVersion: orrery/v1\nkind: Tenants\nname: scenario\nhalf_life: {} s\ntenants:\n{}",
      spec.half_life.value(), tenants);
}

template <class Q>
Result<std::optional<StepSeries<Q>>> series_of(const ScenarioSpec& spec,
                                               const std::vector<ScenarioStep<Q>>& steps) {
  if (steps.empty()) return std::optional<StepSeries<Q>>();
  std::vector<typename StepSeries<Q>::Step> made;
  made.reserve(steps.size());
  for (const ScenarioStep<Q>& step : steps) {
    Result<Instant> from = time_of(spec, step.from);
    if (!from) return forward_error(from);
    made.push_back({*from, step.is});
  }
  Result<StepSeries<Q>> series = StepSeries<Q>::make(std::move(made));
  if (!series) return forward_error(series);
  return std::optional(*std::move(series));
}

Result<std::unique_ptr<ControlFacts>> cluster_of(const ScenarioSpec& spec,
                                                 const std::string& root) {
  const Result<FleetSpec> fleet = load_fleet_spec(root + "/" + spec.fleet);
  if (!fleet) return tl::unexpected(fleet.error());
  const FactsView known = facts().view();
  if (spec.tenants.empty()) return ControlFacts::make(known, *fleet, nullptr);
  const Result<Document> document = Document::parse(tenants_file(spec, spec.tenants), "tenants");
  if (!document) return tl::unexpected(document.error());
  const Result<TenantsSpec> tenants = read_tenants_spec(*document);
  if (!tenants) return tl::unexpected(tenants.error());
  return ControlFacts::make(known, *fleet, &*tenants);
}

bool passes_by_itself(FaultKind kind) {
  return kind == FaultKind::kSoftware || kind == FaultKind::kNetwork;
}

/// Run time on the first of its options: of steps a second each, since the world's speed is that of
/// a step then.
Duration true_work(const JobRequest& request, const ScenarioJob& entry) {
  if (entry.runs) return Duration::from_seconds(entry.runs->value());
  for (const RoleRequest& role : request.roles) {
    if (role.steps) return Duration::from_seconds(*role.steps);
  }
  if (request.estimate) return *request.estimate;
  return request.time_limit.value_or(Duration::max());
}

}  // namespace

ScenarioParts::ScenarioParts(const ScenarioSpec& spec, std::unique_ptr<ControlFacts> cluster)
    : spec_(spec), cluster_(std::move(cluster)), until_(spec.start + kLongest) {}

Result<std::unique_ptr<ScenarioParts>> ScenarioParts::make(const ScenarioSpec& spec,
                                                           const std::string& root) {
  auto cluster = cluster_of(spec, root);
  if (!cluster) return forward_error(cluster);
  auto parts = std::make_unique<ScenarioParts>(spec, *std::move(cluster));
  Status status = parts->set_up();
  for (const ScenarioJob& entry : spec.jobs) {
    if (status) status = parts->add_jobs(entry);
  }
  const auto sooner = [](const auto& a, const auto& b) { return a.submit < b.submit; };
  std::stable_sort(parts->jobs_.begin(), parts->jobs_.end(), sooner);
  for (const ScenarioEvent& event : spec.events) {
    if (status) status = parts->add_event(event);
  }
  if (!status) return forward_error(status);
  const auto earlier = [](const auto& a, const auto& b) { return a.at < b.at; };
  std::stable_sort(parts->commands_.begin(), parts->commands_.end(), earlier);
  std::stable_sort(parts->faults_.begin(), parts->faults_.end(), earlier);
  std::stable_sort(parts->refused_.begin(), parts->refused_.end(), earlier);
  return parts;
}

Status ScenarioParts::set_up() {
  Result<Policy> policy = policy_named(spec_.policy);
  if (!policy) return forward_error(policy);
  if (policy->full_interval > Seconds()) policy->full_interval = spec_.full_every;
  setup_ = cluster_->setup(*policy, spec_.start);
  if (spec_.power == PowerRule::kIgnored) setup_.power = nullptr;
  constexpr double kYear = 365.0 * 86400;
  setup_.failures_per_node_second = spec_.failures_per_node_year / kYear;
  for (const auto& [text, to] :
       {std::pair{&spec_.until, &until_}, {&spec_.quiet_from, &quiet_from_}}) {
    if (!*text) continue;
    const Result<Instant> at = time_of(spec_, **text);
    if (!at) return tl::unexpected(at.error());
    *to = *at;
  }
  return set_series();
}

Status ScenarioParts::set_series() {
  auto electricity = series_of(spec_, spec_.electricity);
  if (!electricity) return forward_error(electricity);
  electricity_ = *std::move(electricity);
  auto carbon = series_of(spec_, spec_.carbon);
  if (!carbon) return forward_error(carbon);
  carbon_ = *std::move(carbon);
  setup_.series.electricity = electricity_ ? &*electricity_ : nullptr;
  setup_.series.carbon = carbon_ ? &*carbon_ : nullptr;
  return {};
}

World::Facts ScenarioParts::world() const {
  const Duration search = Duration::from_seconds(spec_.plan_time.value());
  return {.rules = {},
          .timing = {.launch = Duration(), .plan_search = search, .scheduler_latency = Duration()},
          .plans = setup_.plans,
          .failures = std::nullopt,
          .scripted = faults_};
}

Status ScenarioParts::add_jobs(const ScenarioJob& entry) {
  const Result<Document> document = Document::parse(with_version(entry.job), entry.where.file);
  if (!document) return tl::unexpected(document.error());
  Result<JobSpec> job = read_job_spec(*document);
  if (!job) return forward_error(job);
  const Result<Instant> at = time_of(spec_, entry.at);
  if (!at) return tl::unexpected(at.error());
  const std::string name = job->name;
  for (std::uint32_t i = 1; i <= entry.count; ++i) {
    if (entry.count > 1) job->name = fmt::format("{}-{}", name, i);
    if (Status status = add_job(*job, entry, *at); !status) return status;
  }
  return {};
}

Status ScenarioParts::add_job(const JobSpec& spec, const ScenarioJob& entry, Instant at) {
  Result<JobRequest> request = resolve_job(spec, cluster_->resolve_context(at));
  if (!request && request.error().kind != ErrorKind::kInfeasible) return forward_error(request);
  if (!request) {
    refused_.push_back({at, spec.name, request.error().message});
    return {};
  }
  request->class_id = cluster_->classes().of(*request);
  const Duration work = true_work(*request, entry);
  const Submission each = submission_of(spec, *std::move(request));
  const ArrayId array = ArrayId::at(jobs_.size());
  for (Submission& submission : jobs_of(spec, each, array, cluster_->classes())) {
    PlayedJob& job = jobs_.emplace_back();
    job.submit = at;
    job.truth.work = work;
    job.submission = std::move(submission);
  }
  return {};
}

Status ScenarioParts::add_event(const ScenarioEvent& event) {
  const Result<Instant> at = time_of(spec_, event.at);
  if (!at) return tl::unexpected(at.error());
  Status status;
  if (event.fault) status = add_faults(event, *at);
  if (status) {
    status = add_nodes(event.drain, *at, [](NodeId node) { return DrainNode{node, false, ""}; });
  }
  if (status) {
    status = add_nodes(event.evacuate, *at, [](NodeId node) { return DrainNode{node, true, ""}; });
  }
  if (status) status = add_nodes(event.resume, *at, [](NodeId node) { return ResumeNode{node}; });
  if (status)
    status = add_nodes(event.spare, *at, [](NodeId node) { return SetSpare{node, true}; });
  if (status && event.uplinks_of) status = add_links(event, *at);
  if (status && event.power) status = add_power(event, *at);
  if (status && event.cancel) status = add_cancel(event, *at);
  if (status && event.tenants) add(*at, SetTenants{tenants_file(spec_, *event.tenants)});
  return status;
}

template <class Command>
Status ScenarioParts::add_nodes(const std::optional<std::string>& nodes, Instant at,
                                Command&& command) {
  if (!nodes) return {};
  Result<std::vector<NodeId>> named = nodes_named(topology(), *nodes, spec_.where);
  if (!named) return forward_error(named);
  for (const NodeId node : *named) add(at, command(node));
  return {};
}

Status ScenarioParts::add_faults(const ScenarioEvent& event, Instant at) {
  Result<std::vector<NodeId>> nodes = nodes_named(topology(), *event.fault, event.where);
  if (!nodes) return forward_error(nodes);
  Fault fault;
  fault.kind = event.kind;
  fault.remedy = passes_by_itself(event.kind) ? Remedy::kTransient : Remedy::kRepair;
  fault.detection = Duration::from_seconds(event.detection.value());
  fault.repair = event.repair ? Duration::from_seconds(event.repair->value()) : Duration::max();
  fault.evidence = "as told";
  for (std::uint32_t i = 0; i < event.times; ++i) {
    for (const NodeId node : *nodes) {
      fault.at = at + Duration::minutes(i);
      fault.scope = node;
      faults_.push_back(fault);
    }
  }
  return {};
}

Status ScenarioParts::add_links(const ScenarioEvent& event, Instant at) {
  Result<std::vector<NodeId>> nodes = nodes_named(topology(), *event.uplinks_of, event.where);
  if (!nodes) return forward_error(nodes);
  const LinkState state{static_cast<float>(event.bandwidth), static_cast<float>(event.load)};
  for (const LinkId link : uplinks_of(topology(), *nodes)) add(at, LinkObserved{link, state});
  return {};
}

Status ScenarioParts::add_power(const ScenarioEvent& event, Instant at) {
  auto domain = power_domain_named(topology(), *event.power, event.where);
  if (!domain) return forward_error(domain);
  if (event.supply) {
    add(at, SupplyObserved{*domain, event.supply});
  } else {
    add(at, SetPowerCap{*domain, event.cap});
  }
  return {};
}

Status ScenarioParts::add_cancel(const ScenarioEvent& event, Instant at) {
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].submission.request.name != *event.cancel) continue;
    add(at, CancelJob{JobId::at(i)});
    return {};
  }
  return input_error(event.where, fmt::format("no job {}", *event.cancel));
}

}  // namespace orrery
