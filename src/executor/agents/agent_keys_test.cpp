// executor/agents/agent_keys_test.cpp - the newest key that joined holds its node in all cases.
#include "executor/agents/agent_keys.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/real_env.hpp"

namespace orrery {
namespace {

class AgentKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_keys_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] AgentKeys open() const { return AgentKeys::open(real_->env(), directory_).value(); }

  std::string directory_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
};

ShownKey key(const std::string& hash, std::int64_t second) {
  return {hash, Instant() + Duration::seconds(second)};
}

TEST_F(AgentKeysTest, TheNewestCertificateThatConnectedHoldsTheNodeForGood) {
  AgentKeys keys = open();
  ASSERT_TRUE(keys.admit("n1", key("a", 10)));
  EXPECT_TRUE(keys.may_renew("n1", "a"));
  EXPECT_TRUE(keys.admit("n1", key("b", 20)));
  for (AgentKeys each : {keys, open()}) {
    const Status refused = each.admit("n1", key("a", 10));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, ErrorKind::kInput);
    EXPECT_NE(refused.error().text().find("another agent joined as \"n1\" with a certificate of "
                                          "1970-01-01T00:00:20Z"),
              std::string::npos)
        << refused.error().text();
    EXPECT_FALSE(each.may_renew("n1", "a"));
    EXPECT_TRUE(each.admit("n1", key("b", 20)));
    EXPECT_TRUE(each.admit("n2", key("a", 10))) << "of a node that nothing is known of";
  }
}

TEST_F(AgentKeysTest, ARenewedCertificateIsOfTheSameKeyAndNewerThanOthers) {
  AgentKeys keys = open();
  ASSERT_TRUE(keys.admit("n1", key("a", 10)));
  ASSERT_TRUE(keys.admit("n1", key("a", 30)));
  EXPECT_FALSE(open().admit("n1", key("b", 20)));
}

TEST_F(AgentKeysTest, OfOneSecondOneOfTwoWinsWhicheverComesFirst) {
  for (const bool first : {true, false}) {
    std::filesystem::remove(directory_ + "/agents");
    AgentKeys keys = open();
    ASSERT_TRUE(keys.admit("n1", key(first ? "a" : "b", 10)));
    EXPECT_EQ(keys.admit("n1", key(first ? "b" : "a", 10)).has_value(), first);
    EXPECT_FALSE(keys.admit("n1", key("a", 10)));
  }
}

TEST_F(AgentKeysTest, WhatATokenIssuedCountsAsNewestWhateverItsClock) {
  AgentKeys keys = open();
  ASSERT_TRUE(keys.admit("n1", key("a", 1000)));
  ASSERT_TRUE(keys.issue("n1", key("b", 10)));
  AgentKeys again = open();
  EXPECT_TRUE(again.admit("n1", key("a", 1000))) << "the new one has not connected yet";
  EXPECT_TRUE(again.admit("n1", key("b", 10)));
  EXPECT_FALSE(again.admit("n1", key("a", 999)));
}

TEST_F(AgentKeysTest, AFileThatIsNoneIsNamedWithItsLine) {
  ASSERT_TRUE(real_->env().storage.write_file(directory_ + "/agents", "n1 holds 5 x\nn1 has y\n"));
  const Result<AgentKeys> keys = AgentKeys::open(real_->env(), directory_);
  ASSERT_FALSE(keys);
  EXPECT_NE(keys.error().text().find("/agents:2:1: expected NODE holds|issued"), std::string::npos)
      << keys.error().text();
}

}  // namespace
}  // namespace orrery
