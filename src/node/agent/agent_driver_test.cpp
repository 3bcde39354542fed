// node/agent/agent_driver_test.cpp - effects are carried out in order, and the agent is woken.
#include "node/agent/agent_driver.hpp"

#include <algorithm>
#include <array>

#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

constexpr AgentIdentity kIdentity{NodeId(3), 1, 1};
constexpr AttemptId kFound{JobId(5), 1};

class AgentDriverTest : public ::testing::Test {
 protected:
  void begin(std::span<const AttemptId> found = {}) {
    driver_.begin({.cluster = 7, .identity = kIdentity}, found);
  }
  [[nodiscard]] static NodeOrder order(OrderKind what, std::uint64_t sequence) {
    return {{7, {1, sequence}, kIdentity, std::move(what)}, {.job = "train", .command = {"x"}}};
  }
  [[nodiscard]] static LaunchRanks launch() {
    LaunchRanks ranks;
    ranks.token = {kFound, 1};
    ranks.shares = {{.gang = 0, .devices = 1, .ranks = {0}}};
    return ranks;
  }
  void note(const AgentEffect& effect, const NodeProgram* program) {
    std::string name = "start";
    if (const auto* report = std::get_if<Report>(&effect)) {
      name = std::visit([](const auto& what) { return name_of(what); }, report->what);
    } else if (std::holds_alternative<TellKeeper>(effect)) {
      name = "tell";
    } else if (std::holds_alternative<BeginMending>(effect)) {
      name = "mend";
    }
    done_.push_back(program == nullptr ? name : name + " of " + program->job);
    if (during_) std::exchange(during_, nullptr)();
  }
  static std::string name_of(const Hello&) { return "hello"; }
  static std::string name_of(const Heartbeat&) { return "beat"; }
  static std::string name_of(const AttemptReport&) { return "report"; }
  static std::string name_of(const Refused&) { return "refused"; }
  static std::string name_of(const HealthFault&) { return "fault"; }
  static std::string name_of(const Mended&) { return "mended"; }

  SetTime time_;
  std::vector<std::string> done_;  ///< names of effects, in the order in which they came
  std::function<void()> during_;   ///< runs once, inside the next effect
  AgentDriver driver_{time_, [this](const AgentEffect& effect, const NodeProgram* program) {
                        note(effect, program);
                      }};
};

/// An agent in a hold, which reports failures a second later.
class FailureDelayTest : public AgentDriverTest {
 protected:
  void SetUp() override {
    in_hold_.begin({.cluster = 7, .identity = kIdentity}, std::array{kFound});
    in_hold_.act();
    done_.clear();
  }
  static AttemptReport report(ExitKind kind) {
    return {.token = {kFound, 1}, .stage = RankStage::kGone, .end = AttemptEnd{kind, {}}};
  }
  void keeper_says(ExitKind kind) {
    in_hold_.keeper_report(report(kind));
    in_hold_.act();
  }
  [[nodiscard]] std::ptrdiff_t reports() const {
    return std::count(done_.begin(), done_.end(), "report");
  }

  AgentDriver in_hold_{
      time_,
      [this](const AgentEffect& effect, const NodeProgram* program) { note(effect, program); },
      Duration::seconds(1)};
};

TEST_F(FailureDelayTest, OnlyAFailureIsReportedLaterAndThenOnce) {
  keeper_says(ExitKind::kInfra);
  keeper_says(ExitKind::kInfra);
  EXPECT_EQ(reports(), 0);
  time_.run_until(time_.now + Duration::seconds(1));
  EXPECT_EQ(reports(), 1);
  keeper_says(ExitKind::kInfra);
  EXPECT_EQ(reports(), 2) << "what is known is not delayed again";
}

TEST_F(FailureDelayTest, ASuccessIsReportedAtOnce) {
  keeper_says(ExitKind::kDone);
  EXPECT_EQ(reports(), 1);
}

TEST_F(FailureDelayTest, AFailureIsReportedBeforeTheExitOfItsKeeper) {
  keeper_says(ExitKind::kInfra);
  in_hold_.keeper_exit(kFound);
  in_hold_.act();
  EXPECT_EQ(reports(), 1);
  EXPECT_EQ(time_.waiting(), 1u) << "the heartbeat alone";
}

TEST_F(AgentDriverTest, AnAgentThatHasBegunIsWokenForItsHeartbeats) {
  EXPECT_FALSE(driver_.begun());
  begin();
  EXPECT_TRUE(driver_.begun());
  driver_.act();
  ASSERT_EQ(time_.waiting(), 1u);
  time_.run_until(time_.now);
  EXPECT_EQ(done_, std::vector<std::string>{"beat"}) << "the first is due at once";
  EXPECT_EQ(time_.waiting(), 1u) << "and the next one is awaited";
}

TEST_F(AgentDriverTest, AnOrderIsCarriedOutWithItsProgram) {
  begin();
  driver_.obey(order(launch(), 1));
  ASSERT_FALSE(done_.empty());
  EXPECT_EQ(done_.front(), "start of train");
  done_.clear();
  driver_.fault({.evidence = "hot"});
  driver_.act();
  EXPECT_EQ(done_, std::vector<std::string>{"fault"}) << "the program is that of the order alone";
}

TEST_F(AgentDriverTest, InputsWaitUntilItActs) {
  begin({&kFound, 1});
  driver_.act();
  done_.clear();
  driver_.fault({.evidence = "hot"});
  driver_.mended();
  EXPECT_TRUE(done_.empty());
  driver_.act();
  EXPECT_EQ(done_, (std::vector<std::string>{"fault", "mended"}));
}

TEST_F(AgentDriverTest, EffectsOfAnInputInsideAnEffectFollowThoseThatWait) {
  begin();
  driver_.act();
  done_.clear();
  driver_.fault({.layer = FaultLayer::kHost, .evidence = "hot"});
  driver_.fault({.layer = FaultLayer::kNetwork, .evidence = "slow"});
  during_ = [&] {
    driver_.mended();
    driver_.act();
    EXPECT_EQ(done_, std::vector<std::string>{"fault"}) << "not before the second fault";
  };
  driver_.act();
  EXPECT_EQ(done_, (std::vector<std::string>{"fault", "fault", "mended"}));
  EXPECT_EQ(time_.waiting(), 1u);
}

TEST_F(AgentDriverTest, ADriverThatEndsWakesNobody) {
  {
    AgentDriver driver(time_, [](const AgentEffect&, const NodeProgram*) {});
    driver.begin({.cluster = 7, .identity = kIdentity}, {});
    driver.act();
    EXPECT_EQ(time_.waiting(), 1u);
  }
  EXPECT_EQ(time_.waiting(), 0u);
}

}  // namespace
}  // namespace orrery
