#include "executor/live/config_drift.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "executor/lab_test.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/spec/spec.hpp"

namespace orrery {
namespace {

/// Returns the fleet of the lab with other names of its two nodes.
Topology lab_with(const std::string& names) {
  std::string yaml = kLabFleet;
  yaml.replace(yaml.find("node[0-1]"), 9, names);
  return build_topology(read_fleet_file(yaml, "fleet.yaml").value().spec, lab_facts().catalog())
      .value();
}

class ConfigDriftTest : public ::testing::Test {
 protected:
  SilentLog sink_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  ConfigDrift drift_{real_->env(), Log(sink_)};
};

TEST_F(ConfigDriftTest, NamesTheNodesOfOneSideAloneUntilTheFleetChanges) {
  drift_.compare(lab_with("node[1-2]"), lab_with("node[0-1]"));
  EXPECT_EQ(drift_.nodes().unknown, std::vector<std::string>{"node2"});
  EXPECT_EQ(drift_.nodes().missing, std::vector<std::string>{"node0"});
  drift_.forget_nodes();
  EXPECT_TRUE(drift_.nodes().unknown.empty() && drift_.nodes().missing.empty());
}

TEST_F(ConfigDriftTest, KeepsTheFirstLines) {
  for (std::size_t i = 0; i <= ConfigDrift::kLinesMax; ++i) {
    drift_.note_line("line " + std::to_string(i));
  }
  ASSERT_EQ(drift_.lines().size(), ConfigDrift::kLinesMax);
  EXPECT_EQ(drift_.lines().front(), "line 0");
}

TEST_F(ConfigDriftTest, KeepsALineOnce) {
  for (const char* line : {"a", "b", "a"}) drift_.note_line(line);
  EXPECT_EQ(drift_.lines(), (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace orrery
