#include "scheduler/price/fleet_costs.hpp"

#include <gtest/gtest.h>

#include "fleet/spec/builder.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog kCatalog = *Catalog::load(builtin_catalog(), {});
  return kCatalog;
}

PlannerFacts facts() {
  static const Calibration kCalibration = *Calibration::load(builtin_calibration(), {});
  return {catalog(), kCalibration};
}

Topology example(const std::string& name) {
  return *build_topology(
      *load_fleet_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/fleets/" + name + ".yaml"),
      catalog());
}

TEST(FleetCosts, EachSiteHasItsOwnPricesAndGrid) {
  const Topology topology = example("two-regions");
  const Result<FleetCosts> costs = FleetCosts::make(facts(), topology, {});
  ASSERT_TRUE(costs) << costs.error().text();
  const FleetTypeId type = *topology.find_type("h100");
  const DeviceCosts* stockholm = costs->find(type, topology.sites()[0].domain);
  const DeviceCosts* ashburn = costs->find(type, topology.sites()[1].domain);
  ASSERT_TRUE(stockholm != nullptr && ashburn != nullptr);
  EXPECT_NEAR(*stockholm->hire / *ashburn->hire, 1.1 / 0.9, 1e-9);
  EXPECT_EQ(stockholm->pue, 1.12);
  EXPECT_NEAR(stockholm->electricity.value() * 3.6e6, 0.07, 1e-12);
  EXPECT_LT(stockholm->carbon, ashburn->carbon);
  EXPECT_FALSE(stockholm->owned);
  EXPECT_EQ(*stockholm->price(Watts(1000)), *stockholm->hire);
  EXPECT_LT(*stockholm->idle(), *stockholm->training());
  EXPECT_TRUE(costs->missing().empty());
}

TEST(FleetCosts, OwnedMachinesPayForWhatTheyDraw) {
  const Topology topology = example("two-regions");
  EconomicsOptions owned;
  owned.basis = PriceBasis::kOwned;
  const Result<FleetCosts> costs = FleetCosts::make(facts(), topology, owned);
  ASSERT_TRUE(costs);
  const DeviceCosts& here = *costs->find(*topology.find_type("h100"), topology.sites()[0].domain);
  EXPECT_TRUE(here.owned);
  const DollarsPerSecond more = *here.price(Watts(1000)) - *here.price(Watts(0));
  EXPECT_NEAR(more.value() * 3600, 1.12 * 0.07, 1e-9);
}

/// Two DGX H100 of the site's ownership, then one node with its own ownership.
Topology half_owned(const std::string& site, const std::string& last) {
  const std::string text =
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  pue: 1.5\n"
      "  electricity: $0.20/kWh\n  price_factor: 2\n" +
      site +
      "  halls:\n  - pods:\n    - racks:\n      - cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 2},\n"
      "                {type: dgx-h100" +
      last + "}]\n";
  return *build_topology(*read_fleet_spec(*Document::parse(text, "fleet.yaml")), catalog());
}

TEST(FleetCosts, ASiteSaysWhatIsOwnedAndANodeGroupSaysOtherwise) {
  const Topology topology = half_owned("  ownership: owned\n", ", ownership: rented");
  const Result<FleetCosts> costs = FleetCosts::make(facts(), topology, {});
  ASSERT_TRUE(costs) << costs.error().text();
  const DeviceCosts& owned = *costs->at(topology, NodeId(1));
  const DeviceCosts& rented = *costs->at(topology, NodeId(2));
  EXPECT_TRUE(owned.owned);
  EXPECT_FALSE(rented.owned);
  EXPECT_FALSE(costs->uniform());
  EXPECT_EQ(costs->find(FleetTypeId(0), topology.sites()[0].domain), &owned) << "most are owned";
  const DollarsPerJoule price(0.2 / 3.6e6);
  EXPECT_NEAR(owned.electricity_beside(Watts(1000), price).value() * 3600, 1.5 * 0.2, 1e-9);
  EXPECT_EQ(rented.electricity_beside(Watts(1000), price), DollarsPerSecond(0));
  const Topology plain = half_owned("", "");
  const Result<FleetCosts> usual = FleetCosts::make(facts(), plain, {});
  ASSERT_TRUE(usual);
  EXPECT_TRUE(usual->uniform());
  EXPECT_FALSE(usual->at(plain, NodeId(0))->owned) << "rented, unless it is said";
  EXPECT_EQ(*usual->at(plain, NodeId(0))->hire, *rented.hire);
}

TEST(FleetCosts, TheFactorOfASiteIsOnRentsAlone) {
  const Topology topology = half_owned("  ownership: owned\n", "");
  EconomicsOptions owned;
  owned.basis = PriceBasis::kOwned;
  const Result<FleetCosts> one = FleetCosts::make(facts(), topology, {});
  const Result<FleetCosts> two = FleetCosts::make(facts(), example("two-regions"), owned);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(*one->at(topology, NodeId(0))->hire, *two->find(FleetTypeId(0), DomainId(1))->hire);
}

TEST(FleetCosts, FiguresNobodyPublishedAreListedNotGuessed) {
  const Topology topology = example("scarce-mixed");
  const Result<FleetCosts> costs = FleetCosts::make(facts(), topology, {});
  ASSERT_TRUE(costs) << costs.error().text();
  std::size_t unknown = 0;
  for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
    for (const SiteFacts& site : topology.sites()) {
      const DeviceCosts* here = costs->find(FleetTypeId(t), site.domain);
      if (here == nullptr) continue;
      EXPECT_EQ(here->hire.has_value(), here->price(Watts(100)).has_value());
      unknown += here->hire && here->power ? 0 : 1;
    }
  }
  EXPECT_EQ(unknown == 0, costs->missing().empty());
}

TEST(FleetCosts, ASiteWithoutATypeHasNoFigures) {
  const Topology topology = example("two-regions");
  const Result<FleetCosts> costs = FleetCosts::make(facts(), topology, {});
  ASSERT_TRUE(costs);
  EXPECT_EQ(costs->find(FleetTypeId(5), topology.sites().back().domain), nullptr);
  EconomicsOptions wrong;
  wrong.site.pue = 0.5;
  EXPECT_FALSE(FleetCosts::make(facts(), topology, wrong));
}

}  // namespace
}  // namespace orrery
