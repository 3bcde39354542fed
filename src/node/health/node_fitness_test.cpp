// node/health/node_fitness_test.cpp - what makes a node unwell, and what makes it well again.
#include "node/health/node_fitness.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

constexpr AttemptId kAttempt{JobId(5), 1};

class NodeFitnessTest : public AgentPartTest {
 protected:
  void SetUp() override {
    AgentPartTest::SetUp();
    make();
  }
  /// Makes the node's state as an agent that starts does. The burn-in passes while DIR/sound is
  /// there.
  void make(const std::optional<HealthSpec>& check = std::nullopt) {
    const std::string script = "echo $ORRERY_NODE; test -e " + directory_ + "/sound";
    fitness_ = std::make_unique<NodeFitness>(
        *real_, log_,
        NodeFitness::Setup{check,
                           {"n3", directory_ + "/burn-in", {.command = {"/bin/sh", "-c", script}}}},
        NodeFitness::Events{.fault = [this](const HealthFault& fault) { faults_.push_back(fault); },
                            .mended = [this] { ++mended_; },
                            .changed = [this] { states_.push_back(fitness_->burn_in_state()); },
                            .idle = [this] { return idle_; }});
  }
  [[nodiscard]] HealthSpec check() const {
    return {.command = {"/bin/sh", "-c", "test -e " + directory_ + "/well"},
            .interval = Seconds(1e6),
            .failures = 1};
  }
  void touch(const std::string& name) {
    ASSERT_TRUE(real_->env().storage.write_file(directory_ + "/" + name, ""));
  }
  [[nodiscard]] std::string state() const { return fitness_->burn_in_state(); }
  [[nodiscard]] std::string complaint() const { return fitness_->complaint(); }
  /// Runs a burn-in to its end.
  void burn_in() {
    fitness_->run_burn_in();
    ASSERT_EQ(state(), "runs");
    await([&] { return state() != "runs"; });
  }

  bool idle_ = true;
  std::vector<HealthFault> faults_;
  std::vector<std::string> states_;
  int mended_ = 0;
  std::unique_ptr<NodeFitness> fitness_;
};

TEST_F(NodeFitnessTest, AFailedHookTakesTheNodeOutOfServiceUntilOneWorksAgain) {
  fitness_->note_hook_failed("the prologue failed: exit status 1");
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].layer, FaultLayer::kHost);
  EXPECT_EQ(faults_[0].evidence, "the prologue failed: exit status 1");
  EXPECT_TRUE(faults_[0].repair);
  EXPECT_FALSE(faults_[0].stops_jobs);
  EXPECT_EQ(complaint(), "the prologue failed: exit status 1");
  fitness_->begin_mending();
  EXPECT_EQ(mended_, 0) << "an operator has to look at it";
  fitness_->note_prologue_passed();
  EXPECT_EQ(mended_, 1);
  EXPECT_EQ(complaint(), "");
}

TEST_F(NodeFitnessTest, WithoutAComplaintItIsMendedAtOnceAndOnce) {
  fitness_->note_prologue_passed();
  EXPECT_EQ(mended_, 0) << "the controller does not wait for it";
  fitness_->begin_mending();
  EXPECT_EQ(mended_, 1);
  fitness_->note_prologue_passed();
  EXPECT_EQ(mended_, 1);
}

TEST_F(NodeFitnessTest, AHealthCheckThatPassesMendsWhatAHookHasBroken) {
  make(check());
  fitness_->begin();
  await([&] { return !faults_.empty(); });
  EXPECT_EQ(faults_[0].evidence, "health check failed 1 times: exit status 1");
  EXPECT_EQ(complaint(), faults_[0].evidence);
  fitness_->note_hook_failed("the epilogue failed: signal 9");
  touch("well");
  fitness_->begin_mending();
  EXPECT_EQ(mended_, 0) << "not before the check has run";
  await([&] { return mended_ == 1; });
  EXPECT_EQ(complaint(), "");
}

TEST_F(NodeFitnessTest, ABurnInRunsWhereNoWorkIs) {
  idle_ = false;
  fitness_->run_burn_in();
  EXPECT_EQ(state(), "not begun: work is here");
  EXPECT_EQ(states_.size(), 1u) << "the controller hears of it";
  idle_ = true;
  touch("sound");
  burn_in();
  EXPECT_TRUE(state().starts_with("passed, in ")) << state();
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].layer, FaultLayer::kNone) << "a finding, no fault";
  EXPECT_EQ(faults_[0].evidence, "the burn-in " + state());
  EXPECT_FALSE(faults_[0].repair);
}

TEST_F(NodeFitnessTest, OneBurnInRunsAtATime) {
  touch("sound");
  fitness_->run_burn_in();
  fitness_->run_burn_in();
  EXPECT_EQ(states_, std::vector<std::string>{"runs"});
}

TEST_F(NodeFitnessTest, WorkStopsABurnIn) {
  fitness_->run_burn_in();
  fitness_->leave_burn_in();
  EXPECT_TRUE(state().starts_with("stopped after ")) << state();
  EXPECT_TRUE(state().ends_with(": work came")) << state();
  EXPECT_TRUE(faults_.empty());
  const std::size_t told = states_.size();
  fitness_->leave_burn_in();
  EXPECT_EQ(states_.size(), told) << "none runs";
}

TEST_F(NodeFitnessTest, AFailedBurnInOutlastsTheAgent) {
  burn_in();
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].evidence, "the burn-in failed: exit status 1: n3");
  EXPECT_TRUE(faults_[0].repair);
  make();
  EXPECT_EQ(complaint(), "the burn-in failed: exit status 1: n3");
  EXPECT_EQ(state(), "the burn-in failed: exit status 1: n3");
  fitness_->begin_mending();
  EXPECT_EQ(mended_, 0);
  EXPECT_EQ(faults_.size(), 1u) << "nor does it run again by itself";
  touch("sound");
  burn_in();
  EXPECT_EQ(mended_, 1);
  EXPECT_EQ(complaint(), "");
  make();
  EXPECT_EQ(complaint(), "") << "nor does the next agent complain";
}

TEST_F(NodeFitnessTest, AClaimOfRanksCountsOnceTheControllerBelievesIt) {
  fitness_->note_claim(kAttempt, "job 5 says that it computes wrong results here: rank 2");
  ASSERT_EQ(faults_.size(), 1u);
  EXPECT_EQ(faults_[0].layer, FaultLayer::kAccelerator);
  EXPECT_EQ(faults_[0].claimed_by, kAttempt);
  EXPECT_TRUE(faults_[0].repair);
  EXPECT_EQ(complaint(), "") << "it is a claim as yet";
  idle_ = false;
  fitness_->begin_mending();
  EXPECT_EQ(complaint(), faults_[0].evidence);
  EXPECT_EQ(state(), "") << "work is here, which a burn-in would disturb";
  touch("sound");
  idle_ = true;
  fitness_->note_attempt_ended();
  EXPECT_EQ(state(), "runs");
  EXPECT_EQ(mended_, 0);
  await([&] { return mended_ == 1; });
  EXPECT_EQ(complaint(), "");
}

TEST_F(NodeFitnessTest, AClaimDoesNotReplaceAFailedBurnIn) {
  burn_in();
  fitness_->note_claim(kAttempt, "job 5 says so");
  EXPECT_EQ(complaint(), "the burn-in failed: exit status 1: n3");
  fitness_->begin_mending();
  EXPECT_NE(state(), "runs") << "an operator has to run it";
}

TEST_F(NodeFitnessTest, AClaimOutlastsTheAgentAndIsTriedByTheNextOne) {
  fitness_->note_claim(kAttempt, "job 5 says so");
  make();
  touch("sound");
  fitness_->begin_mending();
  EXPECT_EQ(state(), "runs");
  await([&] { return mended_ == 1; });
}

TEST_F(NodeFitnessTest, AnEndOfAnAttemptStartsNoBurnInWithoutAClaim) {
  fitness_->begin_mending();
  fitness_->note_attempt_ended();
  EXPECT_EQ(state(), "");
}

}  // namespace
}  // namespace orrery
