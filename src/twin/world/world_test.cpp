#include "twin/world/world.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "twin/world/faulty_world_test.hpp"

namespace orrery {
namespace {

class WorldTest : public FaultyWorldTest {};

TEST_F(WorldTest, AFaultOfEveryScopeIsFelt) {
  struct Case {
    FaultKind kind;
    FaultScope scope;
    std::uint32_t faults;  ///< faults that stop a job on the first two nodes
    std::size_t links;     ///< links that change, counted when they fail and when they return
    std::size_t supplies;
  };
  const SwitchIndex leaf = fabric().graph.leaf_of({0, 0});
  const std::size_t cables =
      std::size_t{4} * fabric().graph.ports_per_node() + fabric().graph.uplinks(leaf).uppers.size();
  for (const Case& each :
       {Case{FaultKind::kHost, NodeId(0), 1, 0, 0},
        Case{FaultKind::kAccelerator, DeviceId(3), 1, 0, 0},
        Case{FaultKind::kLinkDown, port(0, 0), 0, 2, 0},
        Case{FaultKind::kSwitchDown, SwitchPlace{FabricId(0), leaf}, 1, 2 * cables, 0},
        Case{FaultKind::kPdu, DomainId(4), 1, 0, 0}, Case{FaultKind::kUps, ups(), 0, 0, 2}}) {
    SCOPED_TRACE(word_of_fault(each.kind));
    trace_ = {};
    faults_.clear();
    history_.clear();
    add(1000, 16);
    strike(100, each.kind, each.scope, {.detection = kMinute, .repair = kMinute});
    play();
    EXPECT_EQ(jobs_[0].phase, JobPhase::kFinished);
    EXPECT_EQ(jobs_[0].usage.faults, each.faults);
    EXPECT_EQ(count<LinkChanged>(), each.links);
    EXPECT_EQ(count<PowerLimitSet>(), each.supplies);
  }
}

// Under any faults but silent nodes, in any order, the useful time of a job is exactly what its
// work takes, and the rest of its time has another cause.
TEST_F(WorldTest, TimeThatCountsAsUsefulIsThatOfTheWorkDone) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng = Rng::stream(seed, "faults");
    trace_ = {};
    faults_.clear();
    options_.checkpoint_interval = kMinute * 10;
    options_.restart = Duration::seconds(static_cast<std::int64_t>(rng.below(60)));
    for (const std::uint32_t devices : {8U, 16U, 24U, 48U, 64U}) {
      const auto run = static_cast<std::int64_t>(1000 + rng.below(8000));
      devices == 16 ? add_elastic(run, devices) : void(add(run, devices));
    }
    const std::size_t switches = fabric().graph.switches().size();
    for (std::int64_t from = 0; from < 9000; from += static_cast<std::int64_t>(rng.below(1500))) {
      const NodeId node(static_cast<std::uint32_t>(rng.below(16)));
      const std::vector<std::pair<FaultKind, FaultScope>> any{
          {FaultKind::kNic, node},
          {FaultKind::kSoftware, node},
          {FaultKind::kSdc, DeviceId(node.value() * 8)},
          {FaultKind::kHbm, DeviceId(node.value() * 8)},
          {FaultKind::kLinkDown, port(node.value(), 0)},
          {FaultKind::kSwitchDown, SwitchPlace{FabricId(0), SwitchIndex::at(rng.below(switches))}},
          {FaultKind::kUps, ups()}};
      const auto& [kind, scope] = any[rng.below(any.size())];
      strike(from, kind, scope,
             {.remedy = rng.below(2) == 0 ? Remedy::kTransient : Remedy::kRepair,
              .detection = Duration::seconds(static_cast<std::int64_t>(rng.below(600))),
              .repair = Duration::seconds(static_cast<std::int64_t>(rng.below(3600)))});
    }
    play();
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      EXPECT_EQ(jobs_[i].phase, JobPhase::kFinished) << i;
      if (jobs_[i].usage.resizes > 0) continue;
      const JobUsage& usage = jobs_[i].usage;
      const double useful = device_hours(usage.devices.total() - usage.lost - usage.idle);
      const double work = trace_.jobs[i].run.count_seconds() * trace_.jobs[i].accelerators / 3600;
      EXPECT_NEAR(useful, work, 1e-6 * work) << i;
    }
  }
}

}  // namespace
}  // namespace orrery
