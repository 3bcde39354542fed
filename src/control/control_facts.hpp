// control/control_facts.hpp - a fleet with all facts that control needs: places, tenants, prices,
// power, plans. Built once, from the texts of a cluster, by the daemon or the twin.
//
// Keeps the results of plan searches, so that consecutive runs on one cluster search only once. One
// thread. Cost: that of building the fleet.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "control/setup.hpp"
#include "perf/facts.hpp"
#include "scheduler/place/pristine_fleet.hpp"
#include "scheduler/plans/class_table.hpp"
#include "scheduler/plans/plan_sizes.hpp"
#include "scheduler/plans/work.hpp"
#include "scheduler/request/resolve.hpp"
#include "scheduler/tenants/tenants_spec.hpp"

namespace orrery {

class ControlFacts {
 public:
  /// The facts must outlive it. Errors: those of the specs, with their positions.
  [[nodiscard]] static Result<std::unique_ptr<ControlFacts>> make(const FactsView& facts,
                                                                  const FleetSpec& fleet,
                                                                  const TenantsSpec* tenants);

  /// Builds facts without tenants and prices; make() adds them.
  ControlFacts(const FactsView& facts, const Topology& topology);

  [[nodiscard]] const Topology& topology() const { return pristine_.topology(); }
  [[nodiscard]] const FleetCosts& costs() const { return *costs_; }
  [[nodiscard]] const TenantTree& tenants() const { return *tenants_; }
  [[nodiscard]] const FactsView& facts() const { return facts_; }

  /// The setup of one run; refers to this object. Power limits apply where the fleet has any.
  [[nodiscard]] ControlSetup setup(const Policy& policy, Instant begin);
  [[nodiscard]] ResolveContext resolve_context(Instant now);
  /// Takes over the numbers of the work that other facts know. Precondition: they know all that is
  /// known here.
  void take_works(const ControlFacts& from) {
    if (this != &from) works_ = from.works_;
  }
  [[nodiscard]] ClassTable& classes() { return classes_; }
  /// Returns a plan that was found before, or searches it.
  [[nodiscard]] std::shared_ptr<const PlanEntry> plan(const PlanKey& key);
  /// A plan search that any thread may run while this object is in use; keep() takes its result.
  using PlanSearch = std::function<std::shared_ptr<const PlanEntry>()>;
  [[nodiscard]] PlanSearch search(const PlanKey& key) const;
  void keep(const PlanKey& key, std::shared_ptr<const PlanEntry> found);

 private:
  FactsView facts_;
  PristineFleet pristine_;
  std::optional<TenantTree> tenants_;
  std::optional<FleetCosts> costs_;
  PowerTree power_;
  PlanSizes sizes_;
  WorkTable works_;
  ClassTable classes_;
  std::map<PlanKey, std::shared_ptr<const PlanEntry>> plans_;
};

}  // namespace orrery
