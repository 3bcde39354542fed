// node/agent/node_clocks_test.cpp - which clocks are requested, what the next agent finds, and what
// reports and readings say.
#include "node/agent/node_clocks.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

constexpr AttemptId kAttempt{JobId(5), 1};

class NodeClocksTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    file_ = directory_ + "/clocks";
  }
  enum class Setter { kDriver, kKeeper };
  [[nodiscard]] NodeClocks make(Setter setter = Setter::kDriver) {
    return {real_->env(),
            log_,
            {.file = file_, .devices = 4, .by_driver = setter == Setter::kDriver},
            {.set =
                 [this](const DeviceClocks::Change& change, Telemetry::ClockSetting then) {
                   asked_.push_back(fmt::format("{} {}", change.device, change.clock));
                   files_.push_back(read(file_));
                   answers_.push_back(std::move(then));
                 },
             .answered = [this] { ++answered_; }}};
  }
  [[nodiscard]] static std::vector<RankShare> share(std::uint64_t devices, double clock) {
    return {{.gang = 0, .devices = devices, .ranks = {0}, .clock = clock}};
  }
  [[nodiscard]] static AttemptReport report() { return {.token = {kAttempt, 1}}; }
  /// Answers all requests.
  void answer(const Status& outcome) {
    for (auto& then : std::exchange(answers_, {})) then(outcome);
  }

  std::string file_;
  std::vector<std::string> asked_;
  std::vector<std::string> files_;  ///< the file's text at each request
  std::vector<Telemetry::ClockSetting> answers_;
  int answered_ = 0;
};

TEST_F(NodeClocksTest, AChangeIsWrittenDownBeforeADriverIsAsked) {
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(0b1010, 0.5));
  EXPECT_EQ(asked_, (std::vector<std::string>{"1 0.5", "3 0.5"}));
  for (const std::string& text : files_) EXPECT_EQ(text, "1 0.5\n3 0.5\n");
  ASSERT_EQ(answers_.size(), 2u);
  answer({});
  EXPECT_EQ(answered_, 2);
  clocks.request();
  EXPECT_EQ(asked_.size(), 2u) << "each change once";
}

TEST_F(NodeClocksTest, TheReportHoldsTheClockThatADriverHasSet) {
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(1, 0.5));
  AttemptReport before = report();
  clocks.add_to(before);
  EXPECT_EQ(before.clocks, std::vector<double>{1}) << "asked for is not yet set";
  answer({});
  AttemptReport after = report();
  clocks.add_to(after);
  EXPECT_EQ(after.clocks, std::vector<double>{0.5});
}

TEST_F(NodeClocksTest, WithoutItsAttemptADeviceRunsAtItsFullClock) {
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(1, 0.5));
  answer({});
  asked_.clear();
  clocks.forget(kAttempt);
  EXPECT_EQ(asked_, std::vector<std::string>{"0 1"});
  answer({});
  EXPECT_EQ(read(file_), "") << "nothing is left to lift";
}

TEST_F(NodeClocksTest, TheNextAgentLiftsWhatNoAttemptOrders) {
  {
    NodeClocks clocks = make();
    clocks.want(kAttempt, share(0b11, 0.5));
    answer({});
  }
  asked_.clear();
  NodeClocks next = make();
  EXPECT_TRUE(asked_.empty()) << "not before it knows which attempts live";
  next.request();
  EXPECT_EQ(asked_, (std::vector<std::string>{"0 1", "1 1"}));
}

TEST_F(NodeClocksTest, TheNextAgentLeavesClocksOfAnAttemptThatItAdopts) {
  {
    NodeClocks clocks = make();
    clocks.want(kAttempt, share(1, 0.5));
    answer({});
  }
  asked_.clear();
  NodeClocks next = make();
  next.adopt(kAttempt);
  next.request();
  EXPECT_TRUE(asked_.empty()) << "its order is not known yet";
}

TEST_F(NodeClocksTest, ARefusalIsLoggedOnceAndSentWithReadings) {
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(0b11, 0.5));
  answer(environment_error("no permission"));
  EXPECT_EQ(answered_, 2);
  EXPECT_TRUE(lines_.has("a clock is not set device=0 clock=0.5 why=\"no permission\""))
      << lines_.text;
  EXPECT_FALSE(lines_.has("device=1")) << "the same refusal is no news";
  NodeReading reading{.accelerators = std::vector<AcceleratorReading>(2)};
  clocks.add_to(reading);
  EXPECT_NE(reading.clock_refusal.find("no permission"), std::string::npos);
  EXPECT_EQ(reading.accelerators[0].clock, std::nullopt) << "it runs at its full clock";
}

TEST_F(NodeClocksTest, AReadingHasOnlyClocksBelowTheFullOne) {
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(0b10, 0.7));
  answer({});
  NodeReading reading{.accelerators = std::vector<AcceleratorReading>(3)};
  reading.accelerators[0].clock = 0.1;
  clocks.add_to(reading);
  EXPECT_EQ(reading.accelerators[0].clock, std::nullopt);
  EXPECT_EQ(reading.accelerators[1].clock, 0.7);
  EXPECT_EQ(reading.accelerators[2].clock, std::nullopt);
  EXPECT_EQ(reading.clock_refusal, "");
}

TEST_F(NodeClocksTest, WhereKeepersSetClocksNothingIsRequestedAndReportsAreLeft) {
  NodeClocks clocks = make(Setter::kKeeper);
  clocks.want(kAttempt, share(1, 0.5));
  EXPECT_TRUE(asked_.empty());
  AttemptReport kept = report();
  kept.clocks = {0.25};
  clocks.add_to(kept);
  EXPECT_EQ(kept.clocks, std::vector<double>{0.25});
}

TEST_F(NodeClocksTest, AFileThatCannotBeWrittenIsLoggedAndTheClockIsSet) {
  file_ = directory_ + "/none/clocks";
  NodeClocks clocks = make();
  clocks.want(kAttempt, share(1, 0.5));
  EXPECT_TRUE(lines_.has("clocks are not written down")) << lines_.text;
  EXPECT_EQ(asked_, std::vector<std::string>{"0 0.5"});
}

}  // namespace
}  // namespace orrery
