#include "twin/faults/failure_model.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "twin/faults/failure_test.hpp"

namespace orrery {
namespace {

double per_1000_node_days(std::size_t faults, const Topology& topology, int days) {
  return 1000.0 * static_cast<double>(faults) / (topology.node_count() * static_cast<double>(days));
}

std::map<FaultKind, double> shares_of_kinds(const std::vector<Fault>& faults) {
  std::map<FaultKind, double> shares;
  for (const Fault& fault : faults) {
    shares[fault.kind] += 1 / static_cast<double>(faults.size());
  }
  return shares;
}

TEST(FailureModel, GivesFaultsInTheOrderOfTimeAndTheSameForTheSameSeed) {
  const std::vector<Fault> faults = faults_of(supplied_fleet(), failure_spec("measured"), 100);
  ASSERT_GT(faults.size(), 300u);
  EXPECT_TRUE(std::is_sorted(faults.begin(), faults.end(),
                             [](const Fault& a, const Fault& b) { return a.at < b.at; }));
  EXPECT_EQ(faults, faults_of(supplied_fleet(), failure_spec("measured"), 100));
  EXPECT_NE(faults, faults_of(supplied_fleet(), failure_spec("measured"), 100, 2));
}

TEST(FailureModel, GivesTheSameWhateverThePiecesItIsAskedIn) {
  const std::vector<Fault> whole = faults_of(supplied_fleet(), failure_spec("measured"), 100);
  Result<FailureModel> model =
      FailureModel::make(supplied_fleet(), failure_spec("measured"), {.seed = 1});
  ASSERT_TRUE(model);
  std::vector<Fault> pieces;
  std::vector<Fault> forked;
  for (int day = 1; day <= 100; ++day) {
    if (day == 51) {
      FailureModel fork = *model;
      forked = pieces;
      while (const auto fault = fork.next(Instant() + kDay * 100)) forked.push_back(*fault);
    }
    while (const auto fault = model->next(Instant() + kDay * day)) {
      EXPECT_LT(fault->at, Instant() + kDay * day);
      pieces.push_back(*fault);
    }
  }
  EXPECT_EQ(pieces, whole);
  EXPECT_EQ(forked, whole) << "a copy goes on by itself";
}

TEST(FailureModel, LeavesANodesFaultsAsTheyAreWhenTheFleetGrows) {
  const Topology small = built(racks_of_h100(2));
  const Topology large = built(racks_of_h100(5));
  FailureSpec spec = nodes_only("infinitehbd", 100);
  spec.bursts = {{.scope = BurstScope::kRack, .share = 0.5, .size = 2, .spread = Seconds(60)}};
  const std::vector<Fault> before = faults_of(small, spec, 300);
  std::vector<Fault> after = faults_of(large, spec, 300);
  std::erase_if(after, [&](const Fault& fault) {
    return node_of(large, fault).value() >= small.node_count();
  });
  ASSERT_GT(before.size(), 100u);
  EXPECT_EQ(after, before);
}

TEST(FailureModel, MeetsTheRateOfEveryProfile) {
  const Topology topology = built(racks_of_h100(100));
  const std::pair<const char*, double> profiles[] = {
      {"llama3", 3.79}, {"rsc1", 6.5}, {"rsc2", 2.34}, {"all-causes", 22}};
  for (const auto& [name, rate] : profiles) {
    FailureSpec spec = failure_spec(name);
    EXPECT_DOUBLE_EQ(spec.failures_per_1000_node_days, rate) << name;
    spec.network = spec.facility = 0;
    const std::vector<Fault> faults = faults_of(topology, spec, 1500);
    // The deviation of a Poisson count of 1,400 is 2.7 %; a node out for repair cannot fail.
    EXPECT_NEAR(per_1000_node_days(faults.size(), topology, 1500) / rate, 1, 0.08) << name;
  }
}

TEST(FailureModel, HasNothingToSayWhereNothingFails) {
  EXPECT_TRUE(faults_of(supplied_fleet(), failure_spec("none"), 100000).empty());
}

TEST(FailureModel, DrawsKindsAsTheComponentsOfTheCatalogFail) {
  const Topology topology = built(racks_of_h100(100));
  auto shares = shares_of_kinds(faults_of(topology, nodes_only("llama3", 50), 400));
  // 8.053, 3.391, ... per million hours of 8 accelerators, and those of the node, over their sum.
  constexpr double kSum =
      8 * (8.053 + 3.391 + 0.895 + 0.283) + 5.275 + 2.637 + 12.056 + 23.736 + 13.187;
  EXPECT_NEAR(shares[FaultKind::kAccelerator], 8 * 8.053 / kSum, 0.02);
  EXPECT_NEAR(shares[FaultKind::kHbm], 8 * 3.391 / kSum, 0.02);
  EXPECT_NEAR(shares[FaultKind::kSoftware], 23.736 / kSum, 0.02);
  EXPECT_NEAR(shares[FaultKind::kMaintenance], 12.056 / kSum, 0.02);
  EXPECT_NEAR(shares[FaultKind::kNic], 2.637 / kSum, 0.01);
}

TEST(FailureModel, StrikesOneAcceleratorOfANodeOrTheWholeOfIt) {
  const Topology topology = built(racks_of_h100(10));
  std::set<DeviceId> struck;
  for (const Fault& fault : faults_of(topology, nodes_only("llama3", 500), 400)) {
    const auto* device = std::get_if<DeviceId>(&fault.scope);
    EXPECT_EQ(device != nullptr, strikes_accelerator(fault.kind));
    EXPECT_EQ(fault.slowdown, 1);
    if (device == nullptr) continue;
    EXPECT_LT(device->value(), topology.device_count());
    struck.insert(*device);
  }
  EXPECT_EQ(struck.size(), topology.device_count()) << "each is struck in time";
}

TEST(FailureModel, HitsSeveralNodesOfOneRackAtOnceInABurst) {
  const Topology topology = built(racks_of_h100(100));
  FailureSpec spec = nodes_only("llama3", 4);
  spec.bursts = {{.scope = BurstScope::kRack, .share = 1, .size = 3, .spread = Seconds(1)}};
  const std::vector<Fault> faults = faults_of(topology, spec, 2000);
  EXPECT_NEAR(per_1000_node_days(faults.size(), topology, 2000) / 4, 1, 0.08)
      << "sizes are cut to the rack, the rate stays";
  std::size_t groups = 1;
  std::set<NodeId> group{node_of(topology, faults[0])};
  for (std::size_t i = 1; i < faults.size(); ++i) {
    const NodeId node = node_of(topology, faults[i]);
    if (faults[i].at - faults[i - 1].at > Duration::minutes(1)) {
      group.clear();
      ++groups;
    } else {
      EXPECT_EQ(topology.place(node).rack, topology.place(*group.begin()).rack);
    }
    EXPECT_TRUE(group.insert(node).second) << "a burst takes a node once";
  }
  // A geometric size with mean 3 cut to 4 has the mean 3 (1 - (2/3)^4).
  EXPECT_NEAR(static_cast<double>(faults.size()) / static_cast<double>(groups),
              3 * (1 - std::pow(2.0 / 3, 4)), 0.1);
}

TEST(FailureModel, GivesABurstsOwnKindToItsFaults) {
  const Topology topology = built(racks_of_h100(20));
  FailureSpec spec = nodes_only("llama3", 20);
  spec.bursts = {{.scope = BurstScope::kPod,
                  .share = 1,
                  .size = 4,
                  .spread = Seconds(60),
                  .fault = FaultKind::kNetwork}};
  for (const Fault& fault : faults_of(topology, spec, 100)) {
    EXPECT_EQ(fault.kind, FaultKind::kNetwork);
  }
}

TEST(FailureModel, LetsLemonsFailMoreAndTheFleetAsMuch) {
  const Topology topology = built(racks_of_h100(100));
  FailureSpec spec = nodes_only("llama3", 10);
  spec.lemons = {.share = 0.1, .factor = 10};
  const std::vector<Fault> faults = faults_of(topology, spec, 2000);
  EXPECT_NEAR(per_1000_node_days(faults.size(), topology, 2000) / 10, 1, 0.25)
      << "as many lemons as 400 draws of a tenth give";
  std::vector<int> counts(topology.node_count(), 0);
  for (const Fault& fault : faults) ++counts[node_of(topology, fault).value()];
  std::sort(counts.rbegin(), counts.rend());
  int worst = 0;
  for (int i = 0; i < 40; ++i) worst += counts[static_cast<std::size_t>(i)];
  // A tenth of the nodes with 10 of 19 parts of the rate; without lemons they had 0.15.
  EXPECT_NEAR(static_cast<double>(worst) / static_cast<double>(faults.size()), 10.0 / 19, 0.1);
}

TEST(FailureModel, SlowsNodesDown) {
  const Topology topology = built(racks_of_h100(50));
  FailureSpec spec = nodes_only("none", 0);
  spec.fail_slow = {.per_1000_node_days = 30, .slowdown = 1.25};
  const std::vector<Fault> faults = faults_of(topology, spec, 300);
  EXPECT_NEAR(per_1000_node_days(faults.size(), topology, 300), 30, 3);
  for (const Fault& fault : faults) {
    EXPECT_EQ(fault.kind, FaultKind::kFailSlow);
    EXPECT_EQ(fault.slowdown, 1.25);
    EXPECT_TRUE(std::holds_alternative<NodeId>(fault.scope));
  }
}

TEST(FailureModel, BreaksLinksSwitchesAndWhatSuppliesTheRacks) {
  const Topology& topology = supplied_fleet();
  FailureSpec spec = failure_spec("none");
  spec.network = 300;
  spec.facility = 300;
  spec.link_flaps_per_million_hours = 1;
  std::map<FaultKind, std::size_t> counts;
  const Fabric& graph = topology.fabrics()[0].graph;
  for (const Fault& fault : faults_of(topology, spec, 2000)) {
    ++counts[fault.kind];
    if (const auto* link = std::get_if<LinkId>(&fault.scope)) {
      const FabricLinkId local(link->value() - topology.fabrics()[0].first_link);
      ASSERT_LT(local.value(), graph.link_count());
      EXPECT_TRUE(fault.kind == FaultKind::kLinkFlap ||
                  graph.is_port_link(local) == (fault.kind == FaultKind::kLinkDown));
    } else if (const auto* at = std::get_if<SwitchPlace>(&fault.scope)) {
      EXPECT_LT(at->at.value(), graph.switches().size());
    } else if (const auto* rack = std::get_if<DomainId>(&fault.scope)) {
      EXPECT_EQ(topology.domain(*rack).level, Level::kRack);
    } else {
      const PowerKind kind = topology.power(std::get<PowerDomainId>(fault.scope)).kind;
      EXPECT_EQ(kind, fault.kind == FaultKind::kUps ? PowerKind::kUps : PowerKind::kCoolingLoop);
    }
  }
  const auto expected = [](double per_million_hours, std::size_t things) {
    return per_million_hours * 1e-6 * 300 * 48000 * static_cast<double>(things);
  };
  const std::size_t ports = std::size_t{graph.node_count()} * graph.ports_per_node();
  const auto near = [&](FaultKind kind, double count) {
    EXPECT_NEAR(static_cast<double>(counts[kind]), count, 4 * std::sqrt(count) + 1)
        << word_of_fault(kind);
  };
  near(FaultKind::kLinkDown, expected(0.781, ports));
  near(FaultKind::kSwitchDown, expected(0.699, graph.switches().size()));
  near(FaultKind::kOptics, expected(1, graph.cables(0) + graph.cables(1)));
  near(FaultKind::kLinkFlap, expected(1, graph.link_count()));
  near(FaultKind::kPdu, expected(2.283, 8));
  near(FaultKind::kUps, expected(5.708, 1));
  near(FaultKind::kCoolingUnit, expected(11.416, 2));
}

TEST(FailureModel, SaysHowAFaultIsNoticedAndHowLongItLasts) {
  const Topology topology = built(racks_of_h100(20));
  FailureSpec spec = nodes_only("llama3", 100);
  spec.detections = {{.path = "heartbeat", .time = Seconds(7)}};
  spec.repairs = {{FaultKind::kSoftware,
                   {.transient_share = 0, .median = Seconds(3600), .mean = Seconds(3600)}}};
  int transient = 0;
  int accelerators = 0;
  for (const Fault& fault : faults_of(topology, spec, 400)) {
    EXPECT_EQ(fault.over_at() - fault.known_at(), fault.repair);
    if (fault.kind == FaultKind::kHost) {
      EXPECT_EQ(fault.evidence, "heartbeat");
      EXPECT_EQ(fault.detection, Duration::seconds(7));
    } else if (fault.kind == FaultKind::kSoftware) {
      EXPECT_EQ(fault.evidence, "process exit / CUDA error");
      EXPECT_EQ(fault.detection, Duration::seconds(10));
      EXPECT_EQ(fault.remedy, Remedy::kRepair);
      EXPECT_NEAR(fault.repair.count_seconds(), 3600, 1e-6) << "mean and median are one value";
    } else if (fault.kind == FaultKind::kAccelerator) {
      ++accelerators;
      if (fault.remedy == Remedy::kTransient) ++transient;
    }
  }
  EXPECT_NEAR(static_cast<double>(transient) / accelerators, 0.73, 0.04);
}

TEST(FailureModel, CountsSilentCorruptionByTheAccelerator) {
  const Topology topology = built(racks_of_h100(20));
  FailureSpec spec = nodes_only("none", 0);
  spec.silent_corruptions_per_million_hours = 100;
  const std::vector<Fault> faults = faults_of(topology, spec, 1000);
  const double expected = 100e-6 * 24000 * topology.device_count();
  EXPECT_NEAR(static_cast<double>(faults.size()), expected, 0.1 * expected);
  EXPECT_EQ(faults[0].kind, FaultKind::kSdc);
  EXPECT_EQ(faults[0].detection, Duration::hours(1));
}

TEST(FailureModel, NeverStrikesANodeThatIsOutByItsOwnFault) {
  const Topology topology = built(racks_of_h100(5));
  std::map<NodeId, Instant> over;
  for (const Fault& fault : faults_of(topology, nodes_only("llama3", 2000), 300)) {
    Instant& until = over[node_of(topology, fault)];
    EXPECT_GE(fault.at, until);
    until = fault.over_at();
  }
}

}  // namespace
}  // namespace orrery
