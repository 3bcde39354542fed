// Isolation of ranks by the keeper: devices, processes and directories that are not theirs.
#include "node/devices/device_filter.hpp"
#include "tests/end_to_end/keeper_fixture.hpp"

namespace orrery {
namespace {

TEST_F(KeeperTest, ARankOpensItsOwnDevicesAndNoneOfOthers) {
  ASSERT_EQ(::geteuid(), 0u) << "device files are denied by root alone: run the suite as root";
  KeeperLaunch fenced = launch(
      "for file in full zero random; do "
      "if head -c 1 /dev/$file >/dev/null 2>&1; then echo $file; else echo no $file; fi; done");
  const auto number = [](const char* path) { return device_number_at(path).value(); };
  fenced.devices = {.own = {{number("/dev/full")}, {number("/dev/zero")}},
                    .others = {number("/dev/random")}};
  start(fenced);
  await_stage(RankStage::kGone);
  EXPECT_EQ(agent_->status->notes, std::vector<std::string>());
  EXPECT_EQ(output(), "full\nno zero\nno random\n");
  release();
}

TEST_F(KeeperTest, AForkBombEndsAtTheLimitOfItsAttempt) {
  ASSERT_EQ(::geteuid(), 0u) << "this test needs a control group: run the suite as root";
  KeeperLaunch limited = launch(
      "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i + 1)); done; echo all of them started");
  limited.processes_max = 20;
  start(limited);
  await_stage(RankStage::kGone);
  EXPECT_EQ(agent_->status->notes, std::vector<std::string>());
  EXPECT_EQ(output().find("all of them started"), std::string::npos) << output();
  EXPECT_NE(output().find("fork"), std::string::npos) << output();
  release();
}

TEST_F(KeeperTest, NamesTheDirectoryThatTheUserOfTheJobMayNotEnter) {
  ASSERT_EQ(::geteuid(), 0U) << "only root can run a job as another user";
  std::filesystem::permissions(files_.directory, std::filesystem::perms::others_exec,
                               std::filesystem::perm_options::add);
  const std::string closed = files_.directory + "/closed";
  std::filesystem::create_directories(closed + "/open");
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
  KeeperLaunch other = launch("true");
  other.user = ProcessUser{65534, 65533, {65532}};
  other.directory = closed + "/open";
  start(other);
  await_stage(RankStage::kGone);
  EXPECT_EQ(report().end->kind, ExitKind::kProgram);
  EXPECT_NE(report().end->blame.evidence.find("user 65534 may not enter " + closed + ")"),
            std::string::npos)
      << report().end->blame.evidence;
}

}  // namespace
}  // namespace orrery
