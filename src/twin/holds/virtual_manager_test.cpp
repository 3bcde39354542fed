#include "twin/holds/virtual_manager.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "twin/holds/manager_commands.hpp"
#include "twin/protocol/protocol_site.hpp"

namespace orrery {
namespace {

/// A manager that lends two of three nodes, without faults unless a test names some.
class VirtualManagerTest : public testing::Test {
 protected:
  void begin(const ManagerFaults& faults = {}) {
    Result<std::unique_ptr<ProtocolSite>> site = ProtocolSite::make(builtin_facts(), 3);
    ASSERT_TRUE(site) << site.error().text();
    site_ = *std::move(site);
    manager_ = std::make_unique<VirtualManager>(
        context_, site_->topology(), ManagerRules{.nodes = 2, .faults = faults},
        VirtualManager::Outside{.begin = [this](NodeId, const ManagerStep& step,
                                                AgentComes) { begun_.push_back(step); },
                                .warn = [](NodeId) {},
                                .end_agent = [](NodeId) {},
                                .end = [this](NodeId) { ++ended_; },
                                .freeze = [](NodeId, Frozen) {},
                                .wrong = [this](const std::string& what) { wrong_ = what; }});
  }
  void pass(int seconds) {
    VirtualTime& time = context_.time();
    for (int n = 0; n < seconds; ++n) {
      const Instant until = time.now() + Duration::seconds(1);
      while (time.next() <= until) {
        time.move_to(time.next());
        time.run_next();
      }
      time.move_to(until);
      manager_->tick();
    }
  }
  std::string submit(std::uint64_t number, std::uint32_t nodes = 1) {
    const auto id = manager_->submit(
        {.key = {number, 1}, .nodes = nodes, .time = Duration::minutes(30), .join_token = {}});
    return std::to_string(std::get<std::uint64_t>(id));
  }
  /// The phases of the listed holds.
  [[nodiscard]] std::vector<HoldPhase> phases() const {
    std::vector<HoldPhase> found;
    for (const HoldSeen& seen : manager_->list().holds) found.push_back(seen.phase);
    return found;
  }

  ProtocolContext context_{{}, 1, {}};
  std::unique_ptr<ProtocolSite> site_;
  std::unique_ptr<VirtualManager> manager_;
  std::vector<ManagerStep> begun_;
  int ended_ = 0;
  std::string wrong_;
};

TEST_F(VirtualManagerTest, LendsNodesUntilTheHoldIsReleasedByItsKeyAndId) {
  begin();
  const std::string id = submit(1);
  pass(150);
  ASSERT_EQ(phases(), std::vector{HoldPhase::kRunning});
  ASSERT_EQ(begun_.size(), 1u);
  EXPECT_EQ(begun_[0].hold->id, id);
  manager_->cancel({{2, 1}, id});
  manager_->cancel({{1, 1}, "99"});
  pass(2);
  EXPECT_EQ(phases(), std::vector{HoldPhase::kRunning}) << "another hold, another id";
  manager_->cancel({{1, 1}, id});
  EXPECT_EQ(phases(), std::vector{HoldPhase::kEnding});
  pass(62);
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(phases().empty() || phases() == std::vector{HoldPhase::kEnded});
}

TEST_F(VirtualManagerTest, RunsOneHoldOfAKeyAtATime) {
  begin();
  (void)submit(1);
  (void)submit(1);
  (void)submit(2);
  pass(200);
  EXPECT_EQ(phases(), (std::vector{HoldPhase::kRunning, HoldPhase::kWaiting, HoldPhase::kRunning}));
}

TEST_F(VirtualManagerTest, EndsAHoldWhenItsTimeIsOver) {
  begin();
  (void)submit(1);
  pass(1800 + 130);
  EXPECT_NE(phases(), std::vector{HoldPhase::kRunning});
}

TEST_F(VirtualManagerTest, ForgetsWhatItHasNotSavedAndGivesItsIdsOutAgain) {
  begin({.crash = 1});  // at its first tick
  EXPECT_EQ(submit(1), "1");
  pass(1);
  EXPECT_TRUE(manager_->list().holds.empty());
  manager_->make_calm();
  EXPECT_EQ(submit(2), "1");
}

TEST_F(VirtualManagerTest, NoticesAReleaseByIdAloneThatHitsTheWorkOfOthers) {
  begin({.foreign = 1});
  pass(1);
  manager_->cancel({{1, 1}, "1"});
  EXPECT_TRUE(wrong_.empty());
  manager_->cancel({{}, "1"});
  EXPECT_EQ(wrong_, "a release ends the work of others");
}

// HoldLink takes two complete lists for proof.
TEST_F(VirtualManagerTest, ItsCommandsNeverHideAHoldTwiceInARow) {
  begin();
  (void)submit(1);
  std::vector<bool> hidden;
  ManagerCommands commands(context_, *manager_, {.empty = 0.9},
                           {.term = [] { return std::uint64_t{1}; },
                            .report =
                                [&](const ManagerReport& report) {
                                  const auto& list = std::get<ManagerListing>(report.what);
                                  EXPECT_TRUE(list.complete);
                                  hidden.push_back(list.holds.empty());
                                }});
  for (int n = 0; n < 100; ++n) {
    commands.carry_out({0, ListHolds{context_.now()}});
    pass(1);
  }
  ASSERT_EQ(hidden.size(), 100u);
  EXPECT_NE(std::find(hidden.begin(), hidden.end(), true), hidden.end());
  for (std::size_t n = 1; n < hidden.size(); ++n) EXPECT_FALSE(hidden[n - 1] && hidden[n]) << n;
}

}  // namespace
}  // namespace orrery
