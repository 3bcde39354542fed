// node/agent/node_readings_test.cpp - what a reading holds when it leaves, and when it leaves
// again.
#include "node/agent/node_readings.hpp"

#include "base/set_time_test.hpp"
#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class NodeReadingsTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    clocks_ = std::make_unique<NodeClocks>(
        real_->env(), log_, NodeClocks::Setup{.file = directory_ + "/clocks", .devices = 2},
        NodeClocks::Events{.set = [](const DeviceClocks::Change&,
                                     const Telemetry::ClockSetting& then) { then({}); },
                           .answered = [] {}});
    fitness_ = std::make_unique<NodeFitness>(
        *real_, log_, NodeFitness::Setup{{}, {"n3", directory_ + "/burn-in", {}}},
        NodeFitness::Events{.fault = [](const HealthFault&) {},
                            .mended = [] {},
                            .changed = [this] { readings_->send(); },
                            .idle = [] { return false; }});
    readings_ = std::make_unique<NodeReadings>(*session_, agent_, *clocks_, *fitness_);
  }
  [[nodiscard]] static NodeReading reading() {
    NodeReading reading{.cpu_busy = 0.5, .accelerators = std::vector<AcceleratorReading>(2)};
    reading.accelerators[0].power_w = 300;
    return reading;
  }

  SetTime time_;
  AgentDriver agent_{time_, [this](const AgentEffect& effect, const NodeProgram*) {
                       session_->send(std::get<Report>(effect));
                     }};
  std::unique_ptr<NodeClocks> clocks_;
  std::unique_ptr<NodeFitness> fitness_;
  std::unique_ptr<NodeReadings> readings_;
};

TEST_F(NodeReadingsTest, AReadingLeavesWithWhatChecksAndClocksAdd) {
  clocks_->want({JobId(5), 1}, {{.gang = 0, .devices = 0b10, .ranks = {0}, .clock = 0.5}});
  fitness_->note_hook_failed("the prologue failed: signal 9");
  fitness_->run_burn_in();
  readings_->note(reading());
  const std::vector<NodeReading> sent = channel_.all<NodeReading>();
  ASSERT_EQ(sent.size(), 1u) << "without a reading there was nothing to send";
  EXPECT_EQ(sent[0].cpu_busy, 0.5);
  EXPECT_EQ(sent[0].unwell, "the prologue failed: signal 9");
  EXPECT_EQ(sent[0].burn_in, "not begun: work is here");
  EXPECT_EQ(sent[0].accelerators[0].clock, std::nullopt);
  EXPECT_EQ(sent[0].accelerators[1].clock, 0.5);
}

TEST_F(NodeReadingsTest, TheNewestReadingLeavesAgainWhenSomethingIsAdded) {
  readings_->note(reading());
  fitness_->note_hook_failed("the epilogue failed: signal 9");
  fitness_->note_prologue_passed();
  readings_->send();
  const std::vector<NodeReading> sent = channel_.all<NodeReading>();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].unwell, "");
  EXPECT_EQ(sent[1].unwell, "the epilogue failed: signal 9");
  EXPECT_EQ(sent[1].cpu_busy, 0.5);
  EXPECT_EQ(sent[2].unwell, "") << "what is no longer so does not stay";
}

TEST_F(NodeReadingsTest, WithoutAStreamTheReadingWaits) {
  session_->leave();
  readings_->note(reading());
  EXPECT_TRUE(channel_.sent.empty());
  ASSERT_TRUE(session_->accept({.cluster = kCluster, .node = kNode}));
  readings_->send();
  EXPECT_EQ(channel_.all<NodeReading>().size(), 1u);
}

TEST_F(NodeReadingsTest, HeartbeatsHoldTheSignalsOfTheNewestReading) {
  readings_->note(reading());
  agent_.begin({.cluster = kCluster, .identity = {kNode, 1, 1}}, {});
  readings_->note(reading());
  agent_.act();
  time_.run_until(time_.now);
  const std::vector<Heartbeat> beats = channel_.reports<Heartbeat>();
  ASSERT_FALSE(beats.empty());
  EXPECT_EQ(beats.back().signals.power_w, 300u);
}

}  // namespace
}  // namespace orrery
