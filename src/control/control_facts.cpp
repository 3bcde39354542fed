#include "control/control_facts.hpp"

#include "fleet/spec/builder.hpp"
#include "scheduler/plans/plan_work.hpp"

namespace orrery {
namespace {

/// How many plans are kept for a key.
constexpr std::size_t kPlansKept = 3;

}  // namespace

ControlFacts::ControlFacts(const FactsView& facts, const Topology& topology)
    : facts_(facts),
      pristine_(topology),
      power_(pristine_.topology()),
      sizes_(PlanSources{{facts.catalog, facts.calibration}, pristine_.topology()}) {}

Result<std::unique_ptr<ControlFacts>> ControlFacts::make(const FactsView& facts,
                                                         const FleetSpec& fleet,
                                                         const TenantsSpec* tenants) {
  const Result<Topology> topology = build_topology(fleet, facts.catalog);
  if (!topology) return tl::unexpected(topology.error());
  auto cluster = std::make_unique<ControlFacts>(facts, *topology);
  Result<FleetCosts> costs =
      FleetCosts::make({facts.catalog, facts.calibration}, cluster->topology(), {});
  if (!costs) return forward_error(costs);
  cluster->costs_ = *std::move(costs);
  if (tenants == nullptr) {
    cluster->tenants_ = default_tenant_tree(cluster->topology());
  } else {
    Result<TenantTree> tree = build_tenant_tree(*tenants, cluster->topology());
    if (!tree) return forward_error(tree);
    cluster->tenants_ = *std::move(tree);
  }
  return cluster;
}

ControlSetup ControlFacts::setup(const Policy& policy, Instant begin) {
  ControlSetup setup;
  setup.topology = &pristine_.topology();
  setup.tree = &pristine_.tree();
  setup.tenants = &*tenants_;
  setup.costs = &*costs_;
  if (!topology().power_domains().empty()) setup.power = &power_;
  setup.plans = [this](const PlanKey& key) { return plan(key); };
  setup.policy = policy;
  setup.begin = begin;
  return setup;
}

ResolveContext ControlFacts::resolve_context(Instant now) {
  return {.fleet = pristine_,
          .models = facts_.models,
          .tenants = *tenants_,
          .works = works_,
          .sizes = &sizes_,
          .now = now};
}

ControlFacts::PlanSearch ControlFacts::search(const PlanKey& key) const {
  if (const auto known = plans_.find(key); known != plans_.end()) {
    return [found = known->second] { return found; };
  }
  if (key.work.value() >= works_.size()) {
    return [] {
      return std::make_shared<const PlanEntry>(tl::unexpected(
          Rejection{.kind = RejectionKind::kNever, .reason = "the work is not registered"}));
    };
  }
  return [this, work = works_[key.work], piece = FleetPiece{key.type, key.devices}] {
    return std::make_shared<const PlanEntry>(plan_work(sizes_.sources(), work, piece, kPlansKept));
  };
}

void ControlFacts::keep(const PlanKey& key, std::shared_ptr<const PlanEntry> found) {
  plans_.insert_or_assign(key, std::move(found));
}

std::shared_ptr<const PlanEntry> ControlFacts::plan(const PlanKey& key) {
  std::shared_ptr<const PlanEntry> found = search(key)();
  keep(key, found);
  return found;
}

}  // namespace orrery
