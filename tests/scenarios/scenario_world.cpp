#include "tests/scenarios/scenario_world.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fleet/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "scheduler/gang_power.hpp"
#include "scheduler/queue_order.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

/// The facts that are compiled in, loaded once.
struct Facts {
  Catalog catalog = *Catalog::load(builtin_catalog(), "");
  Calibration calibration = *Calibration::load(builtin_calibration(), {});
  ModelCatalog models = *ModelCatalog::load(builtin_models(), "");
};

const Facts& facts() {
  static const Facts kFacts;
  return kFacts;
}

PlanSources sources_of(const Topology& topology) {
  return {{facts().catalog, facts().calibration}, topology, {}};
}

Result<TenantTree> tenants_of(const ScenarioSpec& spec, const std::string& yaml,
                              const Topology& topology) {
  if (yaml.empty()) return default_tenant_tree(topology);
  const Result<Document> document = Document::parse(
      "apiVersion: orrery/v1\nkind: Tenants\nname: scenario\ntenants:\n" + yaml, "tenants");
  if (!document) return tl::unexpected(document.error());
  Result<TenantsSpec> tenants = read_tenants_spec(*document);
  if (!tenants) return forward_error(tenants);
  tenants->half_life = spec.half_life;
  return build_tenant_tree(*tenants, topology);
}

template <class Q>
Result<std::optional<StepSeries<Q>>> series_of(const ScenarioSpec& spec,
                                               const std::vector<ScenarioStep<Q>>& steps) {
  if (steps.empty()) return std::optional<StepSeries<Q>>();
  std::vector<typename StepSeries<Q>::Step> made;
  for (const ScenarioStep<Q>& step : steps) {
    Result<Instant> from = time_of(spec, step.from);
    if (!from) return forward_error(from);
    made.push_back({*from, step.is});
  }
  Result<StepSeries<Q>> series = StepSeries<Q>::make(std::move(made));
  if (!series) return forward_error(series);
  return std::optional(*std::move(series));
}

}  // namespace

ScenarioWorld::ScenarioWorld(const ScenarioSpec& spec, Topology topology)
    : spec_(spec),
      fleet_(std::move(topology)),
      pristine_(std::make_unique<PristineFleet>(fleet_.topology())),
      sizes_(std::make_unique<PlanSizes>(sources_of(fleet_.topology()))),
      power_tree_(fleet_.topology()) {}

Result<std::unique_ptr<ScenarioWorld>> ScenarioWorld::make(const ScenarioSpec& spec,
                                                           const std::string& root) {
  Result<FleetSpec> fleet = load_fleet_spec(root + "/" + spec.fleet);
  if (!fleet) return forward_error(fleet);
  Result<Topology> topology = build_topology(*fleet, facts().catalog);
  if (!topology) return forward_error(topology);
  auto world = std::make_unique<ScenarioWorld>(spec, *std::move(topology));
  Result<FleetCosts> costs =
      FleetCosts::make(sources_of(world->topology()).facts, world->topology(), {});
  if (!costs) return forward_error(costs);
  world->costs_ = *std::move(costs);
  world->caps_.emplace(world->power_tree_);
  if (spec.power == PowerRule::kHeld) world->power_.emplace(world->power_tree_);
  Status status = world->set_tenants(spec.tenants, {});
  if (status) status = world->set_series();
  if (status) status = world->set_risk();
  if (!status) return forward_error(status);
  return world;
}

Status ScenarioWorld::set_series() {
  auto electricity = series_of(spec_, spec_.electricity);
  if (!electricity) return forward_error(electricity);
  electricity_ = *std::move(electricity);
  auto carbon = series_of(spec_, spec_.carbon);
  if (!carbon) return forward_error(carbon);
  carbon_ = *std::move(carbon);
  return {};
}

Status ScenarioWorld::set_risk() {
  if (spec_.risk.empty()) return {};
  risk_.assign(topology().node_count(), 1);
  for (const ScenarioRisk& risk : spec_.risk) {
    Result<std::vector<NodeId>> nodes = nodes_named(risk.nodes);
    if (!nodes) return forward_error(nodes);
    for (const NodeId node : *nodes) risk_[node.value()] = static_cast<float>(risk.times);
  }
  return {};
}

Situation ScenarioWorld::situation(Instant now) const {
  Situation s{.now = now, .fleet = fleet_.view()};
  s.tenants = tenants_.get();
  s.usage = &*usage_;
  s.power = power_ ? &*power_ : nullptr;
  s.caps = power_ ? &*caps_ : nullptr;
  s.plans = &plans_;
  s.costs = &*costs_;
  s.electricity = electricity_ ? &*electricity_ : nullptr;
  s.carbon = carbon_ ? &*carbon_ : nullptr;
  s.node_risk = risk_;
  constexpr double kYear = 365.0 * 86400;
  s.failures_per_node_second = spec_.failures_per_node_year / kYear;
  s.changes = changes_;
  return s;
}

Result<JobRequest> ScenarioWorld::resolve(const JobSpec& job, Instant now) {
  Result<JobRequest> request = resolve_job(job, {.fleet = *pristine_,
                                                 .models = facts().models,
                                                 .tenants = *tenants_,
                                                 .works = works_,
                                                 .sizes = sizes_.get(),
                                                 .now = now});
  if (request) request->class_id = classes_.of(*request);
  return request;
}

const PlanEntry& ScenarioWorld::plan(const PlanKey& key) {
  constexpr std::size_t kBest = 3;
  plans_.put(key,
             plan_work(sources_of(topology()), works_[key.work], {key.type, key.devices}, kBest));
  ++changes_.plans;
  return *plans_.find(key);
}

void ScenarioWorld::enter(const RunningJob& job) {
  take(fleet_, std::span<const PlacedGang>(job.gangs));
  count(job, 1);
  draw(job, 1);
}

void ScenarioWorld::leave(const RunningJob& job) {
  draw(job, -1);
  count(job, -1);
  give_back(fleet_, std::span<const PlacedGang>(job.gangs));
  ++changes_.freed;
}

void ScenarioWorld::set_terms(RunningJob& job, std::uint32_t gang, const GangTerms& terms) {
  draw(job, -1);
  job.terms[gang].clock = terms.clock;
  job.terms[gang].draw = terms.draw;
  draw(job, 1);
  ++changes_.freed;
}

void ScenarioWorld::count(const RunningJob& job, std::int64_t sign) {
  for (const PlacedGang& placed : job.gangs) {
    const GangRequest& gang = job.request->roles[placed.role].options[placed.option].gang;
    usage_->apply({job.request->tenant, gang.type, rank_of(*job.request),
                   sign * static_cast<std::int64_t>(gang.devices)});
  }
}

void ScenarioWorld::draw(const RunningJob& job, std::int64_t sign) {
  if (!power_) return;
  for (std::size_t i = 0; i < job.gangs.size(); ++i) {
    const auto draws = draws_of_gang(power_tree_, job.gangs[i], job.terms[i].draw);
    if (sign > 0) {
      power_->add(draws);
    } else {
      power_->remove(draws);
    }
  }
}

Result<std::vector<NodeId>> ScenarioWorld::nodes_named(const std::string& name) const {
  std::vector<NodeId> nodes;
  for (std::uint32_t i = 0; i < topology().node_count(); ++i) {
    if (topology().node_name(NodeId(i)) == name) nodes.push_back(NodeId(i));
  }
  for (std::uint32_t i = 0; i < topology().domains().size(); ++i) {
    const Domain& domain = topology().domain(DomainId(i));
    if (topology().path(DomainId(i)) != name || !nodes.empty()) continue;
    for (std::uint32_t n = 0; n < domain.nodes; ++n) {
      nodes.push_back(NodeId(domain.first_node.value() + n));
    }
  }
  if (nodes.empty()) return input_error(spec_.where, fmt::format("no node or domain {}", name));
  return nodes;
}

void ScenarioWorld::set_health(NodeId node, NodeHealth health) {
  fleet_.set_health(node, health);
  if (health == NodeHealth::kReady) ++changes_.freed;
}

Status ScenarioWorld::set_uplinks(const ScenarioEvent& event) {
  Result<std::vector<NodeId>> nodes = nodes_named(*event.uplinks_of);
  if (!nodes) return forward_error(nodes);
  const LinkState state{static_cast<float>(event.bandwidth), static_cast<float>(event.load)};
  for (const FabricInstance& fabric : topology().fabrics()) {
    for (std::uint32_t n = 0; n < fabric.nodes.size(); ++n) {
      if (!std::binary_search(nodes->begin(), nodes->end(), fabric.nodes[n])) continue;
      for (std::uint32_t port = 0; port < fabric.graph.ports_per_node(); ++port) {
        const Fabric::Uplinks up = fabric.graph.uplinks(fabric.graph.leaf_of({n, port}));
        for (std::uint32_t i = 0; i < up.uppers.size(); ++i) {
          fleet_.set_link(LinkId(fabric.first_link + up.first.value() + i), state);
        }
      }
    }
  }
  ++changes_.freed;
  return {};
}

Status ScenarioWorld::set_power(const ScenarioEvent& event) {
  std::string names;
  for (std::uint32_t i = 0; i < topology().power_domains().size(); ++i) {
    const PowerDomainId id(i);
    names += " " + topology().power_name(id);
    if (topology().power_name(id) != *event.power) continue;
    caps_->set_cap(id, event.cap);
    caps_->set_supply(id, event.supply);
    ++changes_.freed;
    return {};
  }
  return input_error(event.where, fmt::format("no power domain {} among{}", *event.power, names));
}

Status ScenarioWorld::set_tenants(const std::string& yaml, std::span<const RunningJob> running) {
  Result<TenantTree> tree = tenants_of(spec_, yaml, topology());
  if (!tree) return forward_error(tree);
  usage_.reset();
  tenants_ = std::make_unique<TenantTree>(*std::move(tree));
  usage_.emplace(*tenants_);
  for (const RunningJob& job : running) count(job, 1);
  ++changes_.freed;
  return {};
}

}  // namespace orrery
