#include "scheduler/forecast/timeline.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <string>

#include "base/numbers/rng.hpp"
#include "fleet/fleet.hpp"
#include "fleet/fleet_test.hpp"
#include "scheduler/place/job_placer.hpp"

namespace orrery {
namespace {

Instant at(std::int64_t seconds) { return Instant::from_ns(seconds * 1'000'000'000); }

/// Devices `first` to `first + count` of nodes of eight.
Allocation devices_of(std::uint32_t first_node, std::uint32_t nodes, std::uint64_t mask = 0xff) {
  Allocation allocation;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    allocation.ranks.push_back({NodeId(first_node + i), mask});
  }
  return allocation;
}

/// Four racks of four nodes of eight, with jobs that run until an instant.
class TimelineTest : public ::testing::Test {
 protected:
  void run(Allocation allocation, Instant end, const HostNeeds& host = {}) {
    take(fleet_, allocation, host);
    running_.push_back({std::move(allocation), host, end});
  }

  Timeline& open(std::uint32_t slices = Timeline::kSlices) {
    std::vector<Ending> endings;
    for (const Running& job : running_) endings.push_back({&job.allocation, job.host, job.end});
    timeline_.emplace(slices);
    timeline_->open(fleet_.view(), at(0), endings);
    return *timeline_;
  }

  PlaceTry gang(const GangRequest& request) {
    return {
        [this, request](const FleetView& view) -> std::optional<std::vector<PlacedGang>> {
          ++attempts_;
          AllocationOrRefusal found = placer_.place(view, request);
          if (!found) return std::nullopt;
          return std::vector<PlacedGang>{{.allocation = *std::move(found), .host = request.host}};
        },
        [this, request](const FleetView& view) {
          ++attempts_;
          return placer_.fits(view, request);
        },
        [this, request](const PlaceTry::Free& free) {
          return devices_missing(fleet_.topology(), request, free(request.type)) == 0;
        }};
  }
  PlaceTry whole_nodes(std::uint32_t nodes) {
    return gang({.type = FleetTypeId(0), .devices = nodes * 8, .node_devices = 8});
  }

  std::optional<Slot> earliest(const GangRequest& request, Duration length) {
    return timeline_->earliest(gang(request), {.length = length});
  }
  std::optional<Slot> earliest(std::uint32_t nodes, Duration length) {
    return timeline_->earliest(whole_nodes(nodes), {.length = length});
  }
  /// Reserves the earliest slot there is.
  Slot reserve(std::uint32_t nodes, Duration length) {
    std::optional<Slot> slot = earliest(nodes, length);
    EXPECT_TRUE(slot);
    if (slot) timeline_->reserve(*slot, length);
    return slot.value_or(Slot{});
  }

  struct Running {
    Allocation allocation;
    HostNeeds host;
    Instant end;
  };

  Fleet fleet_{built(small_h100())};
  PlaceTree tree_{fleet_.topology()};
  Placer placer_{tree_};
  std::deque<Running> running_;
  std::optional<Timeline> timeline_;
  int attempts_ = 0;
};

std::vector<PlacedGang> placed(Allocation allocation, const HostNeeds& host = {}) {
  return {{.allocation = std::move(allocation), .host = host}};
}

TEST_F(TimelineTest, AJobThatFitsStartsNow) {
  run(devices_of(0, 8), at(100));
  open();
  const std::optional<Slot> slot = earliest(8, Duration::seconds(10));
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->start, at(0));
}

// D. Lifka's example of EASY: the head of the queue waits for two jobs to end; what is behind it
// may go ahead if it ends before, or on nodes the head leaves over.
TEST_F(TimelineTest, TheTextBookExampleOfEasy) {
  run(devices_of(0, 6), at(100));
  run(devices_of(6, 4), at(200));
  Timeline& timeline = open();  // 6 of 16 nodes are free
  const Slot head = reserve(12, Duration::seconds(500));
  EXPECT_EQ(head.start, at(100));

  // All 6 free nodes for as long as the head waits anyhow.
  const auto short_job = whole_nodes(6).place(timeline.shadow(at(100)));
  ASSERT_TRUE(short_job);
  EXPECT_FALSE(timeline.delays(*short_job, at(100)));
  EXPECT_TRUE(timeline.delays(*short_job, at(101)));

  // Beyond that none of them: 12 of the 12 nodes free at 100 s are the head's.
  EXPECT_FALSE(whole_nodes(1).place(timeline.shadow(at(101))));
  EXPECT_EQ(reserve(4, Duration::seconds(500)).start, at(200));
  EXPECT_EQ(reserve(6, Duration::seconds(100)).start, at(0));
}

TEST_F(TimelineTest, ALaterReservationKeepsOutOnlyThoseWhoWouldMeetIt) {
  run(devices_of(0, 10), at(100));
  Timeline& timeline = open();
  EXPECT_EQ(reserve(14, Duration::seconds(100)).start, at(100));
  const auto beside = whole_nodes(2).place(timeline.shadow(at(150)));
  ASSERT_TRUE(beside);
  EXPECT_FALSE(timeline.delays(*beside, at(150)));
  EXPECT_FALSE(whole_nodes(3).place(timeline.shadow(at(150))));
  EXPECT_TRUE(whole_nodes(6).place(timeline.shadow(at(100))));
}

TEST_F(TimelineTest, AGangOfOneRackWaitsForARack) {
  for (std::uint32_t rack = 0; rack < 4; ++rack) {
    run(devices_of(rack * 4, 2), at(rack == 2 ? 300 : 500));
  }
  open();
  const GangRequest request{
      .type = FleetTypeId(0), .devices = 32, .node_devices = 8, .required = TopologyLevel::kRack};
  const std::optional<Slot> slot = earliest(request, Duration::hours(1));
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->start, at(300));
  EXPECT_EQ(slot->gangs.front().allocation, devices_of(8, 4));
  EXPECT_EQ(earliest(4, Duration::hours(1))->start, at(0)) << "anywhere it would start at once";
}

TEST_F(TimelineTest, WhatNeverEndsIsNeverFree) {
  run(devices_of(0, 10), Instant::max());
  run(devices_of(10, 2), at(50));
  open();
  EXPECT_EQ(earliest(6, Duration::hours(1))->start, at(50));
  EXPECT_FALSE(earliest(7, Duration::hours(1)));
}

TEST_F(TimelineTest, AJobBehindItsTimeIsExpectedToEndInASecond) {
  run(devices_of(0, 16), at(-100));
  open();
  EXPECT_EQ(earliest(1, Duration::hours(1))->start, at(1));
}

TEST_F(TimelineTest, AJobWithoutEndHoldsItsSlotForGood) {
  run(devices_of(0, 16), at(100));
  open();
  EXPECT_EQ(reserve(10, Duration::max()).start, at(100));
  EXPECT_TRUE(earliest(6, Duration::seconds(1)));
  EXPECT_FALSE(earliest(7, Duration::seconds(1)));
}

TEST_F(TimelineTest, SlicesAreFinerInTheNearFuture) {
  for (std::uint32_t i = 0; i < 128; ++i) {
    run(devices_of(i / 8, 1, std::uint64_t{1} << i % 8), at(1 + i));
  }
  const Timeline& timeline = open(9);
  std::vector<std::int64_t> ends;
  for (const Instant begin : timeline.slices()) ends.push_back(begin.ns() / 1'000'000'000);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{0, 2, 8, 18, 32, 50, 72, 98, 128}));
}

TEST_F(TimelineTest, AnImpossibleJobIsRefusedInAFewAttempts) {
  for (std::uint32_t i = 0; i < 16; ++i) run(devices_of(i, 1), at(10 * (i + 1)));
  Timeline& timeline = open();
  ASSERT_EQ(timeline.slices().size(), 17u);
  EXPECT_FALSE(earliest(17, Duration::hours(1)));
  EXPECT_LE(attempts_, 5);
}

// Two reservations keep all nodes but one for good, and which one makes no difference to a job of
// two nodes.
TEST_F(TimelineTest, WhereTooFewAreFreeInAllNoPlaceIsLookedFor) {
  for (std::uint32_t i = 0; i < 16; ++i) run(devices_of(i, 1), at(10 * (i + 1)));
  open();
  EXPECT_EQ(reserve(7, Duration::max()).start, at(70));
  EXPECT_EQ(reserve(8, Duration::max()).start, at(150));
  const SlotWish wish{Duration::hours(1), ClassId(7)};
  EXPECT_TRUE(timeline_->earliest(whole_nodes(1), wish));
  attempts_ = 0;
  EXPECT_FALSE(timeline_->earliest(whole_nodes(2), {Duration::hours(1), ClassId(8)}));
  EXPECT_LE(attempts_, 5) << "to learn from when on the fleet could hold it at all";
}

TEST_F(TimelineTest, AClassIsNotTriedAgainWhereItFailed) {
  for (std::uint32_t i = 0; i < 16; ++i) run(devices_of(i, 1), at(10 * (i + 1)));
  Timeline& timeline = open();
  reserve(1, Duration::max());
  reserve(15, Duration::max());
  const SlotWish wish{Duration::hours(1), ClassId(7)};
  EXPECT_FALSE(timeline.earliest(whole_nodes(1), wish));
  attempts_ = 0;
  EXPECT_FALSE(timeline.earliest(whole_nodes(1), wish));
  EXPECT_EQ(attempts_, 0);
  // A shorter job ends before the second reservation begins; its windows are others.
  EXPECT_EQ(timeline.earliest(whole_nodes(1), {Duration::seconds(10), ClassId(7)})->start, at(20));
}

TEST_F(TimelineTest, AClassIsTriedAnewInTheNextPass) {
  run(devices_of(0, 16), at(10));
  Timeline& timeline = open();
  const SlotWish wish{Duration::hours(1), ClassId(3)};
  reserve(16, Duration::max());
  EXPECT_FALSE(timeline.earliest(whole_nodes(1), wish));
  timeline.open(fleet_.view(), at(0), {});
  EXPECT_FALSE(timeline.earliest(whole_nodes(1), wish)) << "nothing runs, yet nothing is free";
  const Fleet idle(built(small_h100()));
  timeline.open(idle.view(), at(5), {});
  EXPECT_EQ(timeline.earliest(whole_nodes(16), wish)->start, at(5));
}

TEST_F(TimelineTest, HostResourcesAreReservedToo) {
  const std::uint32_t cpu = fleet_.topology().groups()[0].host.cpu;
  ASSERT_GT(cpu, 0u);
  const HostNeeds half{.cpu = cpu / 2};
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0x1), at(100), half);
  Timeline& timeline = open();
  const GangRequest one{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .host = half};
  const auto first = earliest(one, Duration::hours(1));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->start, at(0)) << "half of the cores are free";
  timeline.reserve(*first, Duration::seconds(100));
  const auto second = earliest(one, Duration::seconds(50));
  ASSERT_TRUE(second);
  EXPECT_EQ(second->start, at(100)) << "devices are free, cores are not";
  timeline.reserve(*second, Duration::seconds(50));
  const auto third = earliest(one, Duration::seconds(50));
  ASSERT_TRUE(third);
  EXPECT_EQ(third->start, at(100)) << "two halves";
  timeline.reserve(*third, Duration::seconds(50));
  EXPECT_TRUE(timeline.delays(placed(devices_of(15, 1, 0x80), {.cpu = 1000}), at(101)));
  EXPECT_FALSE(timeline.delays(placed(devices_of(15, 1, 0x80)), at(101)));
}

TEST_F(TimelineTest, JobsThatFollowEachOtherUseTheHostOneAtATime) {
  const HostNeeds half{.cpu = fleet_.topology().groups()[0].host.cpu / 2};
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0x1), at(100));
  run(devices_of(15, 1, 0x2), at(200));
  Timeline& timeline = open();
  const GangRequest one{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .host = half};
  for (const int start : {0, 100, 200}) {
    timeline.reserve({at(start), placed(devices_of(15, 1, 0x4), half)}, Duration::seconds(100));
  }
  const auto beside = earliest(one, Duration::seconds(300));
  ASSERT_TRUE(beside);
  EXPECT_EQ(beside->start, at(0)) << "three jobs in turn use half of the cores";
}

TEST_F(TimelineTest, AJobLeavesTheHostToAReservationThatBeginsBesideIt) {
  const HostNeeds most{.cpu = fleet_.topology().groups()[0].host.cpu * 3 / 5};
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0x1), at(100));
  Timeline& timeline = open();
  timeline.reserve({at(100), placed(devices_of(15, 1, 0x4), most)}, Duration::seconds(100));
  const GangRequest one{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .host = most};
  EXPECT_TRUE(earliest(one, Duration::seconds(100)));
  EXPECT_FALSE(earliest(one, Duration::seconds(101)));
}

TEST_F(TimelineTest, SharesOfADeviceAreReserved) {
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0xfe), Instant::max());
  Timeline& timeline = open();
  const GangRequest part{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .share = 400};
  for (int i = 0; i < 2; ++i) {
    const auto slot = earliest(part, Duration::hours(1));
    ASSERT_TRUE(slot);
    timeline.reserve(*slot, Duration::hours(1));
  }
  EXPECT_FALSE(earliest(part, Duration::hours(1))) << "800 of 1000 are given out";
  GangRequest small = part;
  small.share = 200;
  const auto slot = earliest(small, Duration::hours(1));
  ASSERT_TRUE(slot);
  EXPECT_FALSE(timeline.delays(slot->gangs, at(10)));
  EXPECT_FALSE(earliest({.type = FleetTypeId(0)}, Duration::hours(1))) << "no device is whole";
}

TEST_F(TimelineTest, NoShareIsGivenOfADeviceReservedWhole) {
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0xfe), Instant::max());
  Allocation shared = devices_of(15, 1, 0x1);
  shared.share = 500;
  run(shared, at(100));
  Timeline& timeline = open();
  timeline.reserve({at(100), placed(devices_of(15, 1, 0x1))}, Duration::hours(1));
  const GangRequest part{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .share = 500};
  EXPECT_EQ(earliest(part, Duration::seconds(100))->start, at(0));
  EXPECT_FALSE(earliest(part, Duration::seconds(101)));
}

TEST_F(TimelineTest, NoShareIsGivenBesideOneThatMakesWayForAWholeGang) {
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0xfc), Instant::max());
  run(devices_of(15, 1, 0x2), at(100));
  Timeline& timeline = open();
  timeline.reserve({at(100), placed(devices_of(15, 1, 0x1))}, Duration::hours(1));
  Allocation shared = devices_of(15, 1, 0x1);
  shared.share = 500;
  timeline.reserve({at(0), placed(shared)}, Duration::seconds(100));
  const GangRequest part{.type = FleetTypeId(0), .devices = 1, .node_devices = 1, .share = 500};
  EXPECT_EQ(earliest(part, Duration::seconds(100))->start, at(0));
  EXPECT_EQ(earliest(part, Duration::seconds(101))->start, at(100)) << "on the other device";
}

TEST_F(TimelineTest, IdleDevicesOfAnExclusiveGangAreItsOwn) {
  run(devices_of(0, 15), Instant::max());
  run(devices_of(15, 1, 0x1), at(100));
  Timeline& timeline = open();
  const GangRequest alone{
      .type = FleetTypeId(0), .devices = 4, .node_devices = 4, .exclusive = TopologyLevel::kNode};
  const auto slot = earliest(alone, Duration::hours(1));
  ASSERT_TRUE(slot);
  EXPECT_EQ(slot->start, at(100));
  timeline.reserve(*slot, Duration::hours(1));
  EXPECT_FALSE(earliest({.type = FleetTypeId(0)}, Duration::seconds(101)));
  EXPECT_EQ(earliest({.type = FleetTypeId(0)}, Duration::seconds(100))->start, at(0));
}

TEST_F(TimelineTest, GangsOfOneJobAreWeighedTogether) {
  const std::uint32_t cpu = fleet_.topology().groups()[0].host.cpu;
  const HostNeeds most{.cpu = cpu * 3 / 5};
  Timeline& timeline = open();
  timeline.reserve({at(0), placed(devices_of(0, 1, 0x1))}, Duration::hours(1));
  std::vector<PlacedGang> gangs = placed(devices_of(0, 1, 0x2), most);
  EXPECT_FALSE(timeline.delays(gangs, at(10)));
  gangs.push_back({.allocation = devices_of(0, 1, 0x4), .host = most});
  EXPECT_TRUE(timeline.delays(gangs, at(10)));
}

// A random fleet of small nodes, jobs and wishes, compared with the simplest model of the same:
// each device has a list of the times at which it is held.
class NaiveFuture {
 public:
  explicit NaiveFuture(std::uint32_t nodes) : taken_(nodes * 8) {}

  struct Span {
    Instant begin;
    Instant end;
  };

  void take(std::span<const NodeDevices> nodes, const Span& span) {
    for (const NodeDevices& node : nodes) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        if ((node.devices >> i & 1) != 0) taken_[node.node.value() * 8 + i].push_back(span);
      }
    }
  }
  [[nodiscard]] bool free(std::span<const NodeDevices> nodes, const Span& span) const {
    for (const NodeDevices& node : nodes) {
      for (std::uint32_t i = 0; i < 8; ++i) {
        if ((node.devices >> i & 1) != 0 && !free(node.node.value() * 8 + i, span)) return false;
      }
    }
    return true;
  }
  /// Whether `units` times `unit` devices of a node are free throughout, all in one rack or
  /// anywhere.
  [[nodiscard]] bool fits(const GangRequest& request, const Span& span) const {
    const std::size_t group = request.required == TopologyLevel::kRack ? 32 : taken_.size();
    for (std::size_t first = 0; first < taken_.size(); first += group) {
      std::uint32_t units = 0;
      for (std::size_t node = first; node < first + group; node += 8) {
        std::uint32_t available = 0;
        for (std::size_t i = node; i < node + 8; ++i) available += free(i, span) ? 1 : 0;
        units += available / request.node_devices;
      }
      if (units >= request.devices / request.node_devices) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] bool free(std::size_t device, const Span& span) const {
    return std::none_of(taken_[device].begin(), taken_[device].end(), [&](const Span& other) {
      return other.begin < span.end && span.begin < other.end;
    });
  }

  std::vector<std::vector<Span>> taken_;
};

class RandomFuture : public TimelineTest {
 protected:
  GangRequest any_request() {
    const std::uint32_t unit = 1u << rng_.below(4);
    const std::uint32_t units = 1 + static_cast<std::uint32_t>(rng_.below(rng_.below(2) * 8 + 4));
    GangRequest request{.type = FleetTypeId(0), .devices = unit * units, .node_devices = unit};
    if (rng_.below(3) == 0) request.required = TopologyLevel::kRack;
    return request;
  }
  Duration any_length() { return Duration::seconds(1 + static_cast<std::int64_t>(rng_.below(60))); }

  /// Fills the fleet with jobs that end at random.
  void run_jobs() {
    for (std::uint64_t i = 0, jobs = rng_.below(40); i < jobs; ++i) {
      const GangRequest request = any_request();
      AllocationOrRefusal found = placer_.place(fleet_.view(), request);
      if (!found) continue;
      const Instant end = rng_.below(8) == 0 ? Instant::max() : at(0) + any_length();
      run(*std::move(found), end);
    }
  }

  /// The future as the timeline should show it: running jobs hold their devices up to a slice.
  NaiveFuture future_on(const Timeline& timeline) const {
    NaiveFuture future(16);
    for (const Running& job : running_) {
      const auto slice =
          std::lower_bound(timeline.slices().begin(), timeline.slices().end(), job.end);
      future.take(job.allocation.ranks,
                  {at(0), slice == timeline.slices().end() ? Instant::max() : *slice});
    }
    return future;
  }

  static std::optional<Instant> naive_earliest(const NaiveFuture& future,
                                               const GangRequest& request, const Timeline& timeline,
                                               Duration length) {
    for (const Instant begin : timeline.slices()) {
      if (future.fits(request, {begin, begin + length})) return begin;
    }
    return std::nullopt;
  }

  Rng rng_{0};
};

class RandomFutureOf : public RandomFuture, public ::testing::WithParamInterface<int> {
 protected:
  void SetUp() override { rng_ = Rng(static_cast<std::uint64_t>(GetParam())); }
};

TEST_P(RandomFutureOf, ASlotIsTheFirstThatTheNaiveModelFinds) {
  run_jobs();
  Timeline& timeline = open(2 + static_cast<std::uint32_t>(rng_.below(20)));
  NaiveFuture future = future_on(timeline);
  for (int ask = 0; ask < 40; ++ask) {
    const GangRequest request = any_request();
    const Duration length = any_length();
    const auto expected = naive_earliest(future, request, timeline, length);
    const auto slot = earliest(request, length);
    ASSERT_EQ(slot.has_value(), expected.has_value()) << "ask " << ask;
    if (!slot) continue;
    ASSERT_EQ(slot->start, *expected) << "ask " << ask;
    const std::vector<NodeDevices>& ranks = slot->gangs.front().allocation.ranks;
    const NaiveFuture::Span span{slot->start, slot->start + length};
    ASSERT_TRUE(future.free(ranks, span)) << "the slot's devices are free throughout, ask " << ask;
    if (rng_.below(4) == 0) continue;
    timeline.reserve(*slot, length);
    future.take(ranks, span);
  }
}

TEST_P(RandomFutureOf, ASlotIsAtMostASliceLaterThanTheFirstPossible) {
  run_jobs();
  const Timeline& timeline = open(2 + static_cast<std::uint32_t>(rng_.below(20)));
  NaiveFuture future(16);
  std::set<Instant> instants{at(0)};
  for (const Running& job : running_) {
    future.take(job.allocation.ranks, {at(0), job.end});
    if (job.end != Instant::max()) instants.insert(job.end);
  }
  for (int ask = 0; ask < 20; ++ask) {
    const GangRequest request = any_request();
    const auto slot = earliest(request, Duration::hours(1));
    const auto possible = std::find_if(instants.begin(), instants.end(), [&](Instant begin) {
      return future.fits(request, {begin, begin + Duration::hours(1)});
    });
    ASSERT_EQ(slot.has_value(), possible != instants.end());
    if (!slot) continue;
    EXPECT_EQ(slot->start,
              *std::lower_bound(timeline.slices().begin(), timeline.slices().end(), *possible));
  }
}

TEST_P(RandomFutureOf, WhatClassesRememberChangesNoAnswer) {
  run_jobs();
  Timeline& timeline = open(2 + static_cast<std::uint32_t>(rng_.below(20)));
  std::vector<GangRequest> classes;
  for (int i = 0; i < 4; ++i) classes.push_back(any_request());
  for (int ask = 0; ask < 60; ++ask) {
    const auto which = static_cast<std::uint32_t>(rng_.below(classes.size()));
    const Duration length = any_length();
    const auto slot = timeline.earliest(gang(classes[which]), {length, ClassId(which)});
    const auto fresh = earliest(classes[which], length);
    ASSERT_EQ(slot.has_value(), fresh.has_value());
    if (!slot) continue;
    ASSERT_EQ(slot->start, fresh->start);
    ASSERT_EQ(slot->gangs.front().allocation, fresh->gangs.front().allocation);
    timeline.reserve(*slot, length);
  }
}

// A job that starts now, on the shadow or where no delay is reported, meets no reservation; a job
// that is reported to delay one does meet it.
TEST_P(RandomFutureOf, NoBackfilledJobDelaysAReservation) {
  run_jobs();
  Timeline& timeline = open(2 + static_cast<std::uint32_t>(rng_.below(20)));
  NaiveFuture future = future_on(timeline);
  FleetOverlay now(fleet_.view());
  for (int job = 0; job < 40; ++job) {
    const GangRequest request = any_request();
    const Duration length = any_length();
    const NaiveFuture::Span span{at(0), at(0) + length};
    if (rng_.below(2) == 0) {
      const auto slot = earliest(request, length);
      if (!slot || slot->start == at(0)) continue;
      timeline.reserve(*slot, length);
      future.take(slot->gangs.front().allocation.ranks, {slot->start, slot->start + length});
      continue;
    }
    auto gangs = gang(request).place(now.view());
    if (gangs) {
      ASSERT_EQ(timeline.delays(*gangs, span.end),
                !future.free(gangs->front().allocation.ranks, span));
    }
    if (!gangs || timeline.delays(*gangs, span.end))
      gangs = gang(request).place(timeline.shadow(span.end));
    ASSERT_EQ(gangs.has_value(), future.fits(request, span));
    if (!gangs) continue;
    ASSERT_TRUE(future.free(gangs->front().allocation.ranks, span));
    take(now, std::span<const PlacedGang>(*gangs));
    timeline.reserve({at(0), *gangs}, length);
    future.take(gangs->front().allocation.ranks, span);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomFutureOf, ::testing::Range(0, 40));

}  // namespace
}  // namespace orrery
