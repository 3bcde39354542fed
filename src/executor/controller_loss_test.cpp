// A controller whose files or log are not as expected: what is refused, what halts it, and how an
// operator continues.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "executor/controller_test.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

class LossSession final : public AgentSession {
 public:
  void send(const ControllerMessage& message) override {
    if (const auto* order = std::get_if<NodeOrder>(&message)) orders.push_back(order->order.what);
    if (const auto* welcome = std::get_if<AgentWelcome>(&message)) node = welcome->node;
    if (const auto* order = std::get_if<NodeOrder>(&message)) {
      if (std::holds_alternative<Reconcile>(order->order.what)) question = order->order.stamp;
    }
  }
  void close(const Error& /*why*/) override {}

  template <class What>
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(
        std::count_if(orders.begin(), orders.end(),
                      [](const OrderKind& each) { return std::holds_alternative<What>(each); }));
  }

  NodeId node;
  std::optional<OrderStamp> question;
  std::vector<OrderKind> orders;
};

class ControllerLossTest : public ControllerFixture {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "orrery_loss_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    scratch_ = name;
    directory_ = scratch_ + "/cluster";
  }
  void TearDown() override {
    stop();
    fs::remove_all(scratch_);
  }
  /// Starts a controller and returns its error; empty: it starts.
  std::string start(const SetupTexts& setup = lab_setup(),
                    ControlHost::LostJobs lost_jobs = ControlHost::LostJobs::kAsk) {
    real_ = RealEnv::create().value();
    auto made = Controller::open(
        real_->env(), Log(sink_),
        {.directory = directory_,
         .setup = setup,
         .facts = lab_facts(),
         .archived_form = [](const EndedJob& job) { return job.state.job(job.job).name; },
         .lost_jobs = lost_jobs,
         .failed = [](const Error& error) { FAIL() << error.text(); }});
    if (!made) return made.error().text();
    controller_ = *std::move(made);
    return {};
  }
  Result<std::vector<JobId>> submit(const std::string& name) {
    std::optional<Result<std::vector<JobId>>> answer;
    controller_->submissions().submit(
        {"apiVersion: orrery/v1\nkind: Batch\nname: " + name +
             "\nroles: [{accelerators: 8}]\nlaunch: {command: [sh, -c, \"exit 0\"]}\n",
         "job.yaml"},
        "", [&](Result<std::vector<JobId>> jobs) { answer = std::move(jobs); });
    await([&] { return answer.has_value(); });
    return *answer;
  }
  /// Lets the agent of "node0" report that these attempts run there.
  void join(LossSession& session, const std::vector<AttemptId>& running) {
    controller_->sessions().open({.node = "node0",
                                  .address = "10.0.0.1",
                                  .boot = 7,
                                  .incarnation = 1,
                                  .version = "test",
                                  .inventory = {.accelerator = "h100", .accelerators = 8}},
                                 session);
    const AgentIdentity self{session.node, 7, 1};
    controller_->receive(session.node, Report{self, 0, Heartbeat{1, Instant::from_ns(5), {}}});
    await([&] { return session.question.has_value(); });
    Hello hello{*session.question, Instant::from_ns(6), {}};
    for (const AttemptId& id : running) {
      hello.attempts.push_back({1, {.token = {id, 0}, .stage = RankStage::kRunning}});
    }
    controller_->receive(session.node, Report{self, 0, hello});
  }
  /// Copies the present files of the store into another directory.
  void keep_copy(const std::string& name) const {
    fs::remove_all(scratch_ + "/" + name);
    fs::copy(directory_, scratch_ + "/" + name, fs::copy_options::recursive);
  }
  void put_back(const std::string& name) const {
    fs::remove_all(directory_);
    fs::copy(scratch_ + "/" + name, directory_, fs::copy_options::recursive);
    fs::remove(directory_ + "/store/lock");
  }

  std::string scratch_;
  std::string directory_;
};

TEST_F(ControllerLossTest, AFileThatIsRefusedAtTheFirstStartCanBeMended) {
  SetupTexts fleet = lab_setup();
  fleet.fleet.replace(fleet.fleet.find("- name: here"), 12, "- name: here\n  power_cap: 1 kW");
  EXPECT_NE(start(fleet), "");
  stop();
  SetupTexts tenants = lab_setup("apiVersion: orrery/v1\nkind: Tenants\ntenants: [{frob: 1}]\n");
  EXPECT_NE(start(tenants).find("tenants.yaml"), std::string::npos);
  stop();
  SetupTexts policy = lab_setup();
  policy.policy += "frob: 1\n";
  EXPECT_NE(start(policy), "");
  stop();
  EXPECT_EQ(start(), "");
  EXPECT_TRUE(submit("one"));
  // The setup of the log is used, whatever the files say now.
  stop();
  EXPECT_EQ(start(fleet), "");
  EXPECT_EQ(controller_->state().jobs(), 1U);
}

TEST_F(ControllerLossTest, FlippedBytesOfTheLogRefuseTheStart) {
  ASSERT_EQ(start(), "");
  for (int i = 0; i < 31; ++i) ASSERT_TRUE(submit("job-" + std::to_string(i)));
  keep_copy("killed");
  stop();
  put_back("killed");
  EXPECT_EQ(start(), "");
  EXPECT_EQ(controller_->state().jobs(), 31U);
  stop();
  put_back("killed");
  const std::string wal = directory_ + "/store/store.db-wal";
  std::fstream file(wal, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(fs::file_size(wal) / 2));
  file.write("\x5a\x5a\x5a\x5a\x5a\x5a\x5a\x5a", 8);
  file.close();
  const std::string why = start();
  EXPECT_NE(why.find(wal + ": byte "), std::string::npos) << why;
  EXPECT_NE(why.find("orrery store restore BACKUP --dir " + directory_), std::string::npos) << why;
}

TEST_F(ControllerLossTest, RanksOfAJobThatTheLogNeverHadHaltItAndAreNotEnded) {
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(submit("zero"));
  LossSession session;
  join(session, {{JobId(0), 4}});
  const std::string why = controller_->host().halted();
  EXPECT_NE(why.find("node0 runs attempt 4 of job 0, which the log never had"), std::string::npos)
      << why;
  EXPECT_NE(why.find("--accept-lost-jobs"), std::string::npos) << why;
  const Result<std::vector<JobId>> refused = submit("one");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, why);
  EXPECT_EQ(controller_->submissions().admission("").error().message, why);
  EXPECT_EQ(session.count<KillRanks>() + session.count<EndRanks>() + session.count<LaunchRanks>(),
            0U);
  EXPECT_EQ(controller_->state().jobs(), 1U);
}

// Jobs are not archived then: a timer for that would fire again and again.
TEST_F(ControllerLossTest, AHaltedControllerIsNotWokenToArchiveJobs) {
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(submit("zero"));
  ASSERT_TRUE(submit("one"));
  bool cancelled = false;
  controller_->command(CancelJob{JobId(1)}, "", [&](const Result<JobId>&) { cancelled = true; });
  await([&] { return cancelled; });
  const LiveArchive& archive = controller_->store().archive();
  EXPECT_LT(archive.next_due(), Instant::max());
  LossSession session;
  join(session, {{JobId(0), 4}});
  ASSERT_NE(controller_->host().halted(), "");
  EXPECT_EQ(archive.next_due(), Instant::max());
}

TEST_F(ControllerLossTest, AcceptedTheLostRanksAreEndedAndTheirNumbersAreNotGivenOutAgain) {
  ASSERT_EQ(start(lab_setup(), ControlHost::LostJobs::kEnd), "");
  ASSERT_TRUE(submit("zero"));
  LossSession session;
  join(session, {{JobId(30), 1}});
  EXPECT_EQ(controller_->host().halted(), "");
  await([&] { return session.count<KillRanks>() > 0; });
  EXPECT_EQ(submit("one").value(), std::vector{JobId(31)});
  stop();
  ASSERT_EQ(start(), "");
  EXPECT_EQ(submit("two").value(), std::vector{JobId(32)});
  EXPECT_EQ(controller_->state().jobs() - controller_->state().ended_jobs(), 3U);
  // The number is still one that is not in the log.
  LossSession again;
  join(again, {{JobId(30), 1}});
  EXPECT_NE(controller_->host().halted(), "");
}

/// A part of the log is lost, and an operator has continued without it.
TEST_F(ControllerLossTest, NumbersThatTheMarkKnowsAreNotGivenOutAgain) {
  ASSERT_EQ(start(), "");
  ASSERT_TRUE(submit("zero"));
  stop();
  const HighWater before = **read_high_water(directory_ + "/store");
  ASSERT_EQ(before.next_job, 1U);
  ASSERT_TRUE(HighWaterFile::put(directory_ + "/store",
                                 {.batch = before.batch, .term = before.term, .next_job = 31}));
  ASSERT_EQ(start(), "");
  EXPECT_EQ(submit("one").value(), std::vector{JobId(31)});
  stop();
  ASSERT_EQ(start(), "");
  EXPECT_FALSE(controller_->state().has(JobId(15)));
  EXPECT_EQ(submit("two").value(), std::vector{JobId(32)});
}

}  // namespace
}  // namespace orrery
