#include "executor/jobs/launch_program.hpp"

#include <gtest/gtest.h>

#include <set>

#include "base/format/document.hpp"
#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

JobSpec spec() {
  const Result<Document> text = Document::parse(
      "apiVersion: orrery/v1\nkind: Batch\nname: x\nroles: [{accelerators: 16}]\n"
      "launch: {command: [run, --fast]}\n",
      "job.yaml");
  return *read_job_spec(*text);
}

std::string address_of(NodeId node) { return "10.0.0." + std::to_string(node.value()); }

class LaunchProgramTest : public testing::Test {
 protected:
  [[nodiscard]] const State& state() const { return cluster_.state(); }

  ScriptedCluster cluster_;
  JobId job_ = cluster_.run(cluster_.job(16));
};

TEST_F(LaunchProgramTest, IsTheSameOnAllNodesButForThePlace) {
  const LaunchProgram launch(state(), spec(), job_, address_of);
  EXPECT_TRUE(launch.complete());
  const std::vector<NodeId> nodes = cluster_.nodes(job_);
  ASSERT_EQ(nodes.size(), 2U);
  for (std::uint32_t place = 0; place < 2; ++place) {
    const std::optional<NodeProgram> program = launch.at(nodes[place]);
    ASSERT_TRUE(program);
    EXPECT_EQ(program->command, (std::vector<std::string>{"run", "--fast"}));
    ASSERT_EQ(program->gangs.size(), 1U);
    const GangLayout& gang = program->gangs.front();
    EXPECT_EQ(gang.here, place);
    EXPECT_GE(gang.master_port, 20'000);
    ASSERT_EQ(gang.nodes.size(), 2U);
    EXPECT_EQ(gang.nodes[1].address, address_of(nodes[1]));
  }
}

TEST_F(LaunchProgramTest, WaitsForTheAddressOfEachNode) {
  const NodeId last = cluster_.nodes(job_).back();
  bool known = false;
  const auto addresses = [&](NodeId node) {
    return node == last && !known ? std::string() : address_of(node);
  };
  LaunchPrograms launches;
  EXPECT_FALSE(launches.part(state(), spec(), {job_, last}, addresses));
  known = true;
  EXPECT_TRUE(launches.part(state(), spec(), {job_, last}, addresses));
}

TEST_F(LaunchProgramTest, IsMadeOnceAnEpoch) {
  int asked = 0;
  const auto addresses = [&](NodeId node) {
    ++asked;
    return address_of(node);
  };
  LaunchPrograms launches;
  const std::vector<NodeId> nodes = cluster_.nodes(job_);
  for (const NodeId node : nodes) {
    EXPECT_TRUE(launches.part(state(), spec(), {job_, node}, addresses));
  }
  EXPECT_EQ(asked, 2);
  launches.forget();
  EXPECT_TRUE(launches.part(state(), spec(), {job_, nodes[0]}, addresses));
  EXPECT_EQ(asked, 4);
  const LaunchProgram launch(state(), spec(), job_, addresses);
  Job later = state().job(job_);
  EXPECT_TRUE(launch.is_of(later));
  ++later.epoch;
  EXPECT_FALSE(launch.is_of(later));
}

}  // namespace
}  // namespace orrery
