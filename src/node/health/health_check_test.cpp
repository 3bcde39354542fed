// node/health/health_check_test.cpp - after how many failures a node is unwell, and when it is
// well.
#include "node/health/health_check.hpp"

#include "node/agent/agent_parts_test.hpp"

namespace orrery {
namespace {

class HealthCheckTest : public AgentPartTest {
 protected:
  /// Begins a check that passes while DIR/well is there; the next run comes after `interval`.
  void begin(Seconds interval, std::uint32_t failures) {
    HealthSpec spec{.command = {"/bin/sh", "-c", "test -e " + directory_ + "/well"},
                    .interval = interval,
                    .failures = failures};
    check_ = std::make_unique<HealthCheck>(
        *real_, spec,
        HealthCheck::Events{.passed = [this] { ++passed_; },
                            .failed = [this](const std::string& why) { failed_.push_back(why); }});
  }
  void make_well() { ASSERT_TRUE(real_->env().storage.write_file(directory_ + "/well", "")); }
  void make_unwell() { std::filesystem::remove(directory_ + "/well"); }

  int passed_ = 0;
  std::vector<std::string> failed_;
  std::unique_ptr<HealthCheck> check_;
};

TEST_F(HealthCheckTest, ItFailsAfterSoManyFailuresInARowAndOnce) {
  begin(Seconds(0.001), 2);
  await([&] { return check_->complaint().starts_with("health check failed 4 times"); });
  EXPECT_EQ(failed_, std::vector<std::string>{"health check failed 2 times: exit status 1"});
  EXPECT_EQ(passed_, 0);
}

TEST_F(HealthCheckTest, ARunThatPassesStartsTheCountAgain) {
  begin(Seconds(0.001), 1);
  await([&] { return failed_.size() == 1; });
  make_well();
  await([&] { return passed_ > 0; });
  EXPECT_EQ(check_->complaint(), "");
  make_unwell();
  await([&] { return failed_.size() == 2; });
  EXPECT_EQ(failed_[1], "health check failed 1 times: exit status 1");
}

TEST_F(HealthCheckTest, ARunThatIsAskedForDoesNotWaitForTheInterval) {
  make_well();
  begin(Seconds(1e6), 1);
  await([&] { return passed_ == 1; });
  check_->run();
  check_->run();
  await([&] { return passed_ == 2; });
  EXPECT_TRUE(failed_.empty());
}

}  // namespace
}  // namespace orrery
