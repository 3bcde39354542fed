// node/keeper/keeper_wire_test.cpp - messages and launch files come back as they were, or not at
// all.
#include "node/keeper/keeper_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/format/checksum.hpp"
#include "base/system/real_storage.hpp"
#include "control/codec/encoder.hpp"
#include "node/keeper/keeper_launch.hpp"

namespace orrery {
namespace {

KeeperLaunch sample() {
  KeeperLaunch launch;
  launch.stamp = {4, 9};
  launch.ranks.token = {{JobId(5), 3}, 2};
  launch.ranks.shares = {{.gang = 1, .devices = 0b101, .ranks = {4, 2}, .clock = 0.8}};
  launch.ranks.lease = {Lease::Kind::kBinding, Duration::seconds(60)};
  launch.ranks.heard = Instant::from_ns(-5);
  launch.facts.job = "j";
  launch.facts.attempt = launch.ranks.token.id;
  launch.facts.style = LaunchStyle::kJax;
  launch.facts.per = LaunchUnit::kNode;
  launch.facts.command = {"a", "b c"};
  launch.facts.environment = {{"X", ""}, {"Y", "z"}};
  launch.gangs = {{.gang = 1, .nodes = {{"n", {4, 2}}}, .master_port = 65535, .restarts = 1}};
  launch.user = ProcessUser{1000, 100, {27}};
  launch.devices = {.own = {{{.major = 195, .minor = 1}}, {}},
                    .others = {{DeviceNumber::Kind::kBlock, 8, 0}}};
  launch.processes_max = 100;
  launch.copies = {"out.%t", "err"};
  return launch;
}

TEST(KeeperWire, MessagesComeBackAsTheyWere) {
  KeeperStatus status;
  status.report.token = sample().ranks.token;
  status.report.stage = RankStage::kKilled;
  status.report.end = AttemptEnd{ExitKind::kInfra, {FaultLayer::kStorage, NodeId(7), "full"}};
  status.progress = {.step = 7, .saved_step = 6, .tokens = 5, .loss = 0.5, .checkpoint = "c"};
  status.notes = {"a", ""};
  const std::string frame = encode(KeeperOutput(status));
  const Result<KeeperOutput> back = decode_keeper_output(frame);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(encode(*back), frame);
  EXPECT_EQ(std::get<KeeperStatus>(*back).report.end->blame.evidence, "full");
  const std::string order =
      encode(KeeperInput(AgentOrder{{{1, 2}, sample().ranks}, sample().gangs}));
  const Result<KeeperInput> ordered = decode_keeper_input(order);
  ASSERT_TRUE(ordered) << ordered.error().text();
  EXPECT_EQ(encode(*ordered), order);
  const auto& launch = std::get<LaunchRanks>(std::get<AgentOrder>(*ordered).order.what);
  EXPECT_EQ(launch.shares, sample().ranks.shares);
}

TEST(KeeperWire, MessagesOfCommandsComeBackAsTheyWere) {
  const ExecOpen open{1ull << 63, 1, 2, {"a", "b c"}, TerminalSize{90, 30}, "xterm"};
  const auto opened = decode_keeper_input(encode(KeeperInput(open)));
  ASSERT_TRUE(opened) << opened.error().text();
  EXPECT_EQ(encode(*opened), encode(KeeperInput(open)));
  EXPECT_EQ(std::get<ExecOpen>(*opened).terminal, open.terminal);
  const ExecInput input{4, std::string("\0x", 2), true, TerminalSize{1, 2}, 77, true};
  const auto more = decode_keeper_input(encode(KeeperInput(input)));
  ASSERT_TRUE(more) << more.error().text();
  EXPECT_EQ(std::get<ExecInput>(*more).bytes, input.bytes);
  EXPECT_EQ(std::get<ExecInput>(*more).taken, 77u);
  const KeeperOutput output = ExecOutput{4, "out", "err", 3};
  EXPECT_EQ(std::get<ExecOutput>(*decode_keeper_output(encode(output))),
            std::get<ExecOutput>(output));
  const KeeperOutput end = ExecEnd{4, 137, "why"};
  EXPECT_EQ(std::get<ExecEnd>(*decode_keeper_output(encode(end))), std::get<ExecEnd>(end));
}

TEST(KeeperWire, NoPartOfAMessageAndNoOtherVersionIsOne) {
  const std::string order =
      encode(KeeperInput(AgentOrder{{{1, 2}, sample().ranks}, sample().gangs}));
  for (std::size_t size = 0; size < order.size(); ++size) {
    EXPECT_FALSE(decode_keeper_input(order.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_keeper_input(order + "x"));
  EXPECT_EQ(decode_keeper_input("\x07" + order.substr(1)).error().message,
            "a message of version 7, expected 1");
}

class LaunchFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_launch_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    files_ = {name};
  }
  void TearDown() override { std::filesystem::remove_all(files_.directory); }
  [[nodiscard]] std::string refusal() {
    const Result<KeeperLaunch> launch = read_keeper_launch(storage_, files_);
    EXPECT_FALSE(launch);
    return launch ? "" : launch.error().message;
  }

  RealStorage storage_;
  KeeperFiles files_;
};

TEST_F(LaunchFile, ComesBackWhole) {
  ASSERT_TRUE(write_keeper_launch(storage_, files_, sample()));
  const Result<KeeperLaunch> launch = read_keeper_launch(storage_, files_);
  ASSERT_TRUE(launch) << launch.error().text();
  EXPECT_EQ(launch->facts.command, sample().facts.command);
  EXPECT_EQ(launch->facts.environment, sample().facts.environment);
  EXPECT_EQ(launch->devices.own, sample().devices.own);
  EXPECT_EQ(launch->devices.others, sample().devices.others);
  EXPECT_EQ(launch->processes_max, 100u);
  EXPECT_EQ(launch->copies.output, "out.%t");
  EXPECT_EQ(launch->copies.errors, "err");
  EXPECT_EQ(launch->ranks.lease, sample().ranks.lease);
  EXPECT_EQ(launch->gangs[0].nodes[0].ranks, sample().gangs[0].nodes[0].ranks);
  EXPECT_EQ(launch->user->groups, sample().user->groups);
}

TEST_F(LaunchFile, OfTheVersionBeforeHasNoCopies) {
  KeeperLaunch launch = sample();
  launch.copies = {};
  ASSERT_TRUE(write_keeper_launch(storage_, files_, launch));
  std::string whole = storage_.read_file(files_.launch(), 1 << 20).value();
  const std::string magic = "orrery-launch-5\n";
  ASSERT_TRUE(whole.starts_with(magic));
  whole.replace(0, magic.size(), "orrery-launch-4\n");
  whole.resize(whole.size() - sizeof(std::uint64_t) - 2);
  Encoder sum;
  sum.fixed(checksum(whole, 0));
  whole += sum.bytes();
  ASSERT_TRUE(storage_.write_file(files_.launch(), whole));
  const Result<KeeperLaunch> back = read_keeper_launch(storage_, files_);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(back->processes_max, 100u);
  EXPECT_EQ(back->copies.output, "");
}

TEST_F(LaunchFile, SaysWhatIsWrongWithIt) {
  EXPECT_NE(refusal().find(files_.launch()), std::string::npos);
  ASSERT_TRUE(write_keeper_launch(storage_, files_, sample()));
  const std::string whole = storage_.read_file(files_.launch(), 1 << 20).value();
  const std::string torn = files_.launch() + ": torn or changed: its checksum is another";
  ASSERT_TRUE(storage_.write_file(files_.launch(), whole.substr(0, whole.size() - 1)));
  EXPECT_EQ(refusal(), torn);
  std::string changed = whole;
  changed[changed.size() / 2] ^= 1;
  ASSERT_TRUE(storage_.write_file(files_.launch(), changed));
  EXPECT_EQ(refusal(), torn);
  ASSERT_TRUE(storage_.write_file(files_.launch(), "x"));
  EXPECT_EQ(refusal(), files_.launch() + ": no launch file of this version");
  KeeperLaunch odd = sample();
  odd.ranks.shares[0].ranks.pop_back();
  ASSERT_TRUE(write_keeper_launch(storage_, files_, odd));
  EXPECT_EQ(refusal(), files_.launch() + ": 1 ranks of gang 1 for 2 devices");
  odd = sample();
  odd.gangs.clear();
  ASSERT_TRUE(write_keeper_launch(storage_, files_, odd));
  EXPECT_EQ(refusal(), files_.launch() + ": no layout of gang 1");
}

/// Removes the byte that says whether `with` has what `bytes` has not.
void remove_mark(std::string& bytes, const KeeperStatus& with) {
  const std::string other = encode(KeeperOutput(with));
  const auto [mark, there] = std::mismatch(bytes.begin(), bytes.end(), other.begin());
  ASSERT_NE(mark, bytes.end());
  bytes.erase(mark);
}

TEST(KeeperWire, AReplicaIsReadFromKeepersThatDoNotKnowItsCache) {
  KeeperStatus status;
  status.report.replica = ReplicaReport{ReplicaPhase::kReady, "h:1", 12, 8, {2400, 0.004, 0.01}};
  std::string bytes = encode(KeeperOutput(status));
  KeeperStatus cached = status;
  cached.report.replica->kv_tokens = 1;
  remove_mark(bytes, cached);
  remove_mark(bytes, cached);  // behind the tokens, that it tells of them nowhere
  bytes[0] = 3;
  const Result<KeeperOutput> read = decode_keeper_output(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<KeeperStatus>(*read).report.replica, status.report.replica);
}

/// A keeper outlives the release that it was started by.
TEST(KeeperWire, AStatusIsReadFromKeepersOfTheReleasesBefore) {
  KeeperStatus status;
  status.report.end = AttemptEnd{ExitKind::kProgram, {.evidence = "exit status 3"}};
  std::string bytes = encode(KeeperOutput(status));
  KeeperStatus serves = status;
  serves.report.replica = ReplicaReport{};
  remove_mark(bytes, serves);
  bytes[0] = 2;
  EXPECT_TRUE(decode_keeper_output(bytes)) << "without a replica";
  bytes = encode(KeeperOutput(status));
  remove_mark(bytes, serves);
  KeeperStatus exits = status;
  exits.report.end->exit = RankExit{0, 0};
  remove_mark(bytes, exits);
  bytes[0] = 1;
  const Result<KeeperOutput> read = decode_keeper_output(bytes);
  ASSERT_TRUE(read) << read.error().message;
  const AttemptReport& report = std::get<KeeperStatus>(*read).report;
  ASSERT_TRUE(report.end);
  EXPECT_EQ(report.end->blame.evidence, "exit status 3");
  EXPECT_FALSE(report.end->exit);
}

}  // namespace
}  // namespace orrery
