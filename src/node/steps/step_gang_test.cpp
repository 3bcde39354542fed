// node/steps/step_gang_test.cpp - what a script's processes find in their environment, and the
// addresses that their nodes have for each other.
#include "node/steps/step_gang.hpp"

#include "node/agent/agent_parts_test.hpp"
#include "node/steps/step_secret.hpp"

namespace orrery {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

class StepGangTest : public AgentPartTest {
 protected:
  /// Returns the environment of a process on the second of two nodes.
  [[nodiscard]] Environment environment() {
    const std::string file = directory_ + "/secret";
    EXPECT_TRUE(real_->env().storage.write_file(file, "a1b2\n"));
    return {{"SLURM_JOB_ID", "17"},
            {"ORRERY_STEP_NODES", "n[1-2]"},
            {"ORRERY_STEP_NODE", "1"},
            {"ORRERY_STEP_PORT", "7000"},
            {std::string(kStepSecretFileVariable), file}};
  }
};

TEST_F(StepGangTest, IsReadFromTheEnvironmentAndTheFileOfTheSecret) {
  const Result<StepGang> gang = StepGang::read(environment());
  ASSERT_TRUE(gang) << gang.error().message;
  EXPECT_EQ(gang->job, "17");
  EXPECT_EQ(gang->addresses, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(gang->here, 1u);
  EXPECT_EQ(gang->port, 7000u);
  EXPECT_EQ(gang->secret, "a1b2");
}

TEST_F(StepGangTest, EachVariableIsNeeded) {
  for (const char* name : {"ORRERY_STEP_NODES", "ORRERY_STEP_PORT"}) {
    Environment without = environment();
    std::erase_if(without, [&](const auto& each) { return each.first == name; });
    const Result<StepGang> gang = StepGang::read(without);
    ASSERT_FALSE(gang) << name;
    EXPECT_EQ(gang.error().message, "not inside a job that began as a script");
  }
  Environment beyond = environment();
  beyond[2].second = "2";
  EXPECT_FALSE(StepGang::read(beyond)) << "there are two nodes";
}

TEST_F(StepGangTest, ASecretThatCannotBeReadIsAnErrorWithItsFile) {
  const Environment variables = environment();
  std::filesystem::remove(directory_ + "/secret");
  const Result<StepGang> gang = StepGang::read(variables);
  ASSERT_FALSE(gang);
  EXPECT_EQ(gang.error().message,
            directory_ + "/secret: cannot read the secret of the job's steps");
}

TEST(StepGang, ASingleNodeListensToItselfOnAnyPort) {
  const StepGang gang{.job = "17", .addresses = {"n1"}, .port = 7000, .secret = ""};
  EXPECT_EQ(gang.listening_address(), "tcp:127.0.0.1:0");
}

TEST(StepGang, NodesOfOneMachineCountTheirPorts) {
  const StepGang gang{
      .job = "17", .addresses = {"n1", "n1", "n1"}, .here = 2, .port = 7000, .secret = ""};
  EXPECT_EQ(gang.listening_address(), "tcp:127.0.0.1:7002");
  EXPECT_EQ(gang.address_of(0).value(), "tcp:127.0.0.1:7000");
  EXPECT_EQ(gang.address_of(1).value(), "tcp:127.0.0.1:7001");
}

TEST(StepGang, NodesOfSeveralMachinesListenToAllAndCountPortsByAddress) {
  const StepGang gang{.job = "17",
                      .addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.1"},
                      .here = 2,
                      .port = 7000,
                      .secret = ""};
  EXPECT_EQ(gang.listening_address(), "tcp:0.0.0.0:7001");
  EXPECT_EQ(gang.address_of(0).value(), "tcp:10.0.0.1:7000");
  EXPECT_EQ(gang.address_of(1).value(), "tcp:10.0.0.2:7000");
  EXPECT_EQ(gang.address_of(2).value(), "tcp:10.0.0.1:7001");
}

TEST(StepGang, AddressesOfTheSixthVersionAreInBrackets) {
  const StepGang gang{
      .job = "17", .addresses = {"fd00::1", "fd00::2"}, .here = 0, .port = 7000, .secret = ""};
  EXPECT_EQ(gang.listening_address(), "tcp:[::]:7000");
  EXPECT_EQ(gang.address_of(1).value(), "tcp:[fd00::2]:7000");
}

}  // namespace
}  // namespace orrery
