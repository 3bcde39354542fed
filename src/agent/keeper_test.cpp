#include "agent/keeper.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr AttemptId kId{JobId(1), 2};
constexpr Instant kStart = Instant::from_ns(1'000'000'000'000);

LaunchRanks launch(std::uint32_t epoch, std::uint64_t devices) {
  LaunchRanks order{.token = {kId, epoch}, .shares = {}, .delay = {}};
  order.grace = Duration::seconds(30);
  order.heard = kStart;
  RankShare share{.devices = devices};
  for (std::uint32_t rank = 8; share.ranks.size() < 64; ++rank) share.ranks.push_back(rank);
  order.shares.push_back(share);
  return order;
}

template <class Effect>
std::vector<Effect> only(const std::vector<KeeperEffect>& effects) {
  std::vector<Effect> found;
  for (const KeeperEffect& effect : effects) {
    if (const auto* one = std::get_if<Effect>(&effect)) found.push_back(*one);
  }
  return found;
}

/// Returns a keeper whose two ranks are up.
Keeper running(const LaunchRanks& order = launch(0, 0b11)) {
  Keeper keeper({1, 1}, order, kStart);
  keeper.on_process_up({{0, 0}, order.token.epoch}, kStart);
  keeper.on_process_up({{0, 1}, order.token.epoch}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kRunning);
  (void)keeper.take();
  return keeper;
}

TEST(Keeper, StartsItsRanksAfterTheDelay) {
  LaunchRanks order = launch(0, 0b11);
  order.delay = Duration::seconds(5);
  Keeper keeper({1, 1}, order, kStart);
  EXPECT_TRUE(only<StartProcesses>(keeper.take()).empty());
  EXPECT_EQ(keeper.next_due(), kStart + Duration::seconds(5));
  keeper.on_timer(keeper.next_due());
  EXPECT_EQ(only<StartProcesses>(keeper.take()).size(), 1);
}

TEST(Keeper, IsUpWhenEveryRankIs) {
  Keeper keeper({1, 1}, launch(0, 0b11), kStart);
  keeper.on_process_up({{0, 0}, 0}, kStart);
  EXPECT_FALSE(keeper.report().up_epoch);
  keeper.on_process_up({{0, 1}, 0}, kStart);
  EXPECT_EQ(keeper.report().up_epoch, 0);
}

TEST(Keeper, SaysWhenWhatAnEpochLeavesOutIsGone) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, launch(1, 0b01)}, kStart);
  EXPECT_EQ(keeper.report().shed_epoch, 0);
  keeper.on_process_up({{0, 0}, 1}, kStart);
  EXPECT_EQ(keeper.report().shed_epoch, 0) << "up, and the other still leaves";
  (void)keeper.take();
  keeper.on_process_exit({{0, 1}, 143}, kStart);
  EXPECT_EQ(only<AttemptReport>(keeper.take()).at(0).shed_epoch, 1);
}

TEST(Keeper, IsDoneThoughTheLastToGoWasToLeave) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, launch(1, 0b01)}, kStart);
  keeper.on_process_exit({{0, 0}, 0}, kStart);
  EXPECT_FALSE(keeper.report().end);
  keeper.on_process_exit({{0, 1}, 143}, kStart);
  ASSERT_TRUE(keeper.report().end);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kDone);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
}

TEST(Keeper, AClockThatIsNotHeldIsReportedAndTriedAgainWithTheNextOrder) {
  Keeper keeper = running();
  EXPECT_EQ(keeper.report().clocks, std::vector<double>{1});
  LaunchRanks slower = launch(0, 0b11);
  slower.shares[0].clock = 0.7;
  keeper.on_order({{1, 2}, slower}, kStart);
  EXPECT_EQ(only<CapClock>(keeper.take()).at(0).share.clock, 0.7);
  EXPECT_EQ(keeper.report().clocks, std::vector<double>{0.7});
  keeper.on_clock(0, 1);
  EXPECT_EQ(only<AttemptReport>(keeper.take()).at(0).clocks, std::vector<double>{1});
  keeper.on_order({{1, 3}, slower}, kStart);
  EXPECT_EQ(only<CapClock>(keeper.take()).size(), 1u);
  keeper.on_order({{1, 4}, slower}, kStart);
  EXPECT_TRUE(only<CapClock>(keeper.take()).empty()) << "it is held";
}

TEST(Keeper, DoesNotStartAgainWhatItHasNotHeardToHaveExited) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, launch(1, 0b111)}, kStart);
  EXPECT_EQ(only<StartProcesses>(keeper.take()).at(0).fresh, (std::vector<RankSlot>{{0, 2}}));
}

TEST(Keeper, AsksThenKillsAndAskingAgainNeverLengthensTheGrace) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, EndRanks{{kId, 0}, Duration::seconds(30)}}, kStart);
  const auto asked = only<SignalProcesses>(keeper.take());
  ASSERT_EQ(asked.size(), 1);
  EXPECT_EQ(asked[0].signal, ProcessSignal::kTerm);
  keeper.on_order({{1, 3}, EndRanks{{kId, 0}, Duration::hours(1)}}, kStart + Duration::seconds(1));
  EXPECT_TRUE(only<SignalProcesses>(keeper.take()).empty());
  EXPECT_EQ(keeper.next_due(), kStart + Duration::seconds(30));
  keeper.on_timer(keeper.next_due());
  const auto killed = only<SignalProcesses>(keeper.take());
  ASSERT_EQ(killed.size(), 1);
  EXPECT_EQ(killed[0].signal, ProcessSignal::kKill);
  EXPECT_EQ(killed[0].slots.size(), 2);
  EXPECT_EQ(keeper.stage(), RankStage::kKilled);
  keeper.on_process_exit({{0, 0}, 137}, kStart);
  keeper.on_process_exit({{0, 1}, 137}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
  EXPECT_FALSE(keeper.report().end) << "it did not end by itself";
}

TEST(Keeper, TheFirstRankThatFailsNamesTheEnd) {
  Keeper keeper = running();
  keeper.on_process_exit({{0, 1}, 3}, kStart);
  ASSERT_TRUE(keeper.report().end);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kProgram);
  EXPECT_EQ(keeper.report().end->blame.evidence, "exit status 3 of rank 9");
  EXPECT_EQ(keeper.stage(), RankStage::kEnding);
  keeper.on_process_exit({{0, 0}, 143}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
  EXPECT_EQ(keeper.report().end->blame.evidence, "exit status 3 of rank 9");
}

TEST(Keeper, AHangEndsTheRanksAsAFaultOfTheProgram) {
  Keeper keeper = running();
  keeper.on_hang("no progress", kStart);
  EXPECT_EQ(only<SignalProcesses>(keeper.take()).at(0).signal, ProcessSignal::kTerm);
  keeper.on_process_exit({{0, 0}, 143}, kStart);
  keeper.on_process_exit({{0, 1}, 3}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kProgram);
  EXPECT_EQ(keeper.report().end->blame.evidence, "no progress") << "not how they then ended";
}

TEST(Keeper, ASignalEndsTheRanksAsAFaultOfTheMachine) {
  Keeper keeper = running();
  keeper.on_signal(kStart);
  EXPECT_EQ(only<SignalProcesses>(keeper.take()).at(0).signal, ProcessSignal::kKill);
  keeper.on_process_exit({{0, 0}, 137}, kStart);
  keeper.on_process_exit({{0, 1}, 137}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
  ASSERT_TRUE(keeper.report().end);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kInfra);
  EXPECT_EQ(keeper.report().end->blame.layer, FaultLayer::kHost);
}

TEST(Keeper, ASignalDoesNotReplaceTheReasonOfAnEnd) {
  Keeper keeper = running();
  keeper.on_process_exit({{0, 1}, 3}, kStart);
  keeper.on_signal(kStart);
  keeper.on_process_exit({{0, 0}, 137}, kStart);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kProgram);
}

TEST(Keeper, IsDoneWhenEveryRankIs) {
  Keeper keeper = running();
  keeper.on_process_exit({{0, 1}, 0}, kStart);
  EXPECT_FALSE(keeper.report().end);
  keeper.on_process_exit({{0, 0}, 0}, kStart);
  EXPECT_EQ(keeper.report().end->kind, ExitKind::kDone);
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
}

TEST(Keeper, ANewEpochEndsTheRanksItDoesNotNameAndKeepsTheOthers) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, launch(1, 0b101)}, kStart);
  const std::vector<KeeperEffect> effects = keeper.take();
  const auto signals = only<SignalProcesses>(effects);
  ASSERT_EQ(signals.size(), 1);
  EXPECT_EQ(signals[0].slots, (std::vector<RankSlot>{{0, 1}}));
  EXPECT_EQ(only<StartProcesses>(effects).size(), 1);
  keeper.on_process_up({{0, 0}, 1}, kStart);
  keeper.on_process_up({{0, 2}, 0}, kStart);
  EXPECT_EQ(keeper.report().up_epoch, 0) << "of the older epoch";
  keeper.on_process_up({{0, 2}, 1}, kStart);
  EXPECT_EQ(keeper.report().up_epoch, 1);
  keeper.on_process_exit({{0, 1}, 143}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kRunning);
}

TEST(Keeper, ADeviceWantedAgainWaitsForTheRankThatLeavesIt) {
  Keeper keeper = running();
  keeper.on_order({{1, 2}, launch(1, 0b01)}, kStart);
  keeper.on_order({{1, 3}, launch(2, 0b11)}, kStart);
  for (const StartProcesses& start : only<StartProcesses>(keeper.take())) {
    EXPECT_EQ(start.token.epoch, 1);
  }
  keeper.on_process_exit({{0, 1}, 143}, kStart);
  const auto started = only<StartProcesses>(keeper.take());
  ASSERT_EQ(started.size(), 1);
  EXPECT_EQ(started[0].token.epoch, 2);
}

TEST(Keeper, OrdersOfAnOlderEpochHaveNoEffect) {
  Keeper keeper = running(launch(4, 0b11));
  keeper.on_order({{1, 2}, launch(3, 0b1)}, kStart);
  keeper.on_order({{1, 3}, KillRanks{{kId, 3}}}, kStart);
  EXPECT_EQ(keeper.stage(), RankStage::kRunning);
  EXPECT_EQ(keeper.report().applied, (OrderStamp{1, 1}));
  EXPECT_TRUE(only<SignalProcesses>(keeper.take()).empty());
}

TEST(Keeper, ABindingLeaseCountsFromWhenTheControllerWasHeardNotFromWhenItsWordArrived) {
  LaunchRanks order = launch(0, 0b11);
  order.lease = {Lease::Kind::kBinding, Duration::minutes(10)};
  Keeper keeper = running(order);
  EXPECT_EQ(keeper.next_due(), kStart + Duration::minutes(9));
  const Instant late = kStart + Duration::minutes(8);
  keeper.on_order({{1, 2}, RenewLease{kId, kStart + Duration::minutes(2)}}, late);
  EXPECT_EQ(keeper.next_due(), kStart + Duration::minutes(11));
  keeper.on_order({{1, 2}, RenewLease{kId, late + Duration::hours(9)}}, late);
  EXPECT_EQ(keeper.next_due(), kStart + Duration::minutes(11)) << "not of this boot";
  keeper.on_timer(keeper.next_due());
  const auto signals = only<SignalProcesses>(keeper.take());
  ASSERT_EQ(signals.size(), 1);
  EXPECT_EQ(signals[0].signal, ProcessSignal::kKill);
  EXPECT_EQ(keeper.report().end->blame.layer, FaultLayer::kController);
}

TEST(Keeper, ThatSleptThroughItsLeaseStartsNothingWhenItWakes) {
  LaunchRanks order = launch(0, 0b11);
  order.lease = {Lease::Kind::kBinding, Duration::minutes(10)};
  order.delay = Duration::seconds(5);
  Keeper keeper({1, 1}, order, kStart);
  keeper.on_timer(kStart + Duration::hours(1));
  EXPECT_TRUE(only<StartProcesses>(keeper.take()).empty());
  EXPECT_EQ(keeper.stage(), RankStage::kGone);
}

TEST(Keeper, LeavesOnlyWhenReleasedAndGone) {
  Keeper keeper = running();
  keeper.on_order({{}, ReleaseKeeper{}}, kStart);
  EXPECT_TRUE(keeper.take().empty());
  keeper.on_process_exit({{0, 0}, 0}, kStart);
  keeper.on_process_exit({{0, 1}, 0}, kStart);
  (void)keeper.take();
  keeper.on_order({{}, AdoptKeeper{}}, kStart);
  EXPECT_EQ(only<AttemptReport>(keeper.take()).size(), 1) << "a new agent is told again";
  keeper.on_order({{}, ReleaseKeeper{}}, kStart);
  EXPECT_EQ(only<ExitKeeper>(keeper.take()).size(), 1);
}

TEST(Keeper, PassesOnWhatAReplicaReportsWhenItIsNew) {
  Keeper keeper = running();
  const ReplicaReport loading{.phase = ReplicaPhase::kLoading};
  keeper.on_replica({kId, 0}, loading);
  EXPECT_EQ(only<AttemptReport>(keeper.take()).at(0).replica, loading);
  keeper.on_replica({kId, 0}, loading);
  EXPECT_TRUE(only<AttemptReport>(keeper.take()).empty());
  keeper.on_order({{1, 2}, launch(1, 0b11)}, kStart);
  keeper.on_replica({kId, 0}, {.phase = ReplicaPhase::kReady});
  EXPECT_EQ(keeper.report().replica, loading) << "of an earlier epoch";
}

}  // namespace
}  // namespace orrery
