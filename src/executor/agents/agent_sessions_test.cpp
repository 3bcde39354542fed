// executor/agents/agent_sessions_test.cpp - what an agent may say, and what is sent to it.
#include "executor/agents/agent_sessions.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

class SentMessages final : public AgentSession {
 public:
  void send(const ControllerMessage& message) override { messages.push_back(message); }
  void close(const Error& why) override { closed = why.message; }

  std::vector<ControllerMessage> messages;
  std::string closed;
};

class AgentSessionsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_agents_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name;
    const Env env = real_->env();
    sessions_.emplace(env, Log(lines_),
                      AgentSessions::Options{.cluster = 5,
                                             .state = cluster_.state(),
                                             .clock = ControlClock(env.clock, cluster_.now()),
                                             .counts = counts_,
                                             .keys = AgentKeys::open(env, directory_).value(),
                                             .step_key = {}});
    open(node_, session_);
  }
  void TearDown() override {
    sessions_.reset();
    std::filesystem::remove_all(directory_);
  }
  void open(NodeId node, SentMessages& session) {
    AgentOpening opening;
    opening.node = cluster_.topology().node_name(node);
    opening.address = "10.0.0.1";
    opening.boot = 7;
    opening.incarnation = 1;
    opening.inventory = {.accelerator = "h100", .accelerators = 8};
    sessions_->open(opening, session);
  }

  ScriptedCluster cluster_;
  LiveCounts counts_;
  CollectedLog lines_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  std::string directory_;
  std::optional<AgentSessions> sessions_;
  SentMessages session_;
  const NodeId node_{2};
  const NodeId number_{cluster_.state().node(node_).number};
};

TEST_F(AgentSessionsTest, AnAgentIsWelcomedWithTheNumberOfItsNode) {
  ASSERT_EQ(session_.messages.size(), 1U);
  const auto& welcome = std::get<AgentWelcome>(session_.messages.front());
  EXPECT_EQ(welcome.cluster, 5U);
  EXPECT_EQ(welcome.node, number_);
}

TEST_F(AgentSessionsTest, OnlyReportsOfTheOwnNodeAreTakenAndHaveItsId) {
  const Heartbeat beat{1, Instant::from_ns(5), {}};
  const std::optional<Report> own = sessions_->receive(number_, Report{{number_, 7, 1}, 0, beat});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->from.node, node_);
  const NodeId other(number_.value() + 1);
  EXPECT_FALSE(sessions_->receive(number_, Report{{other, 7, 1}, 0, beat}));
  const NodeId retired(1000);
  EXPECT_FALSE(sessions_->receive(retired, Report{{retired, 7, 1}, 0, beat}));
}

TEST_F(AgentSessionsTest, MessagesAboutRanksElsewhereAreCountedAndLoggedWithGrowingGaps) {
  const JobId job = cluster_.run(cluster_.job(8));
  ASSERT_NE(cluster_.nodes(job).front(), node_);
  lines_.lines.clear();
  for (int i = 0; i < 7; ++i) {
    EXPECT_FALSE(sessions_->receive(number_, AttemptNotes{.attempt = {job, 1}}));
  }
  EXPECT_EQ(sessions_->agents().notes_of(job), nullptr);
  EXPECT_EQ(counts_.foreign_reports, (std::map<NodeId, std::uint64_t>{{node_, 7U}}));
  EXPECT_EQ(lines_.lines.size(), 3U) << "the 1st, 2nd and 4th";
}

TEST_F(AgentSessionsTest, AnOrderLeavesWithTheNumberOfItsNodeUnlessTheAgentIsGone) {
  Order order;
  order.to = {node_, 7, 1};
  order.what = Reconcile{};
  sessions_->send(order);
  ASSERT_EQ(session_.messages.size(), 2U);
  EXPECT_EQ(std::get<NodeOrder>(session_.messages.back()).order.to.node, number_);
  sessions_->close(session_);
  sessions_->send(order);
  EXPECT_EQ(session_.messages.size(), 2U);
}

TEST_F(AgentSessionsTest, ALaunchIsSentInItsEpochOnly) {
  const std::string spec =
      "apiVersion: orrery/v1\nkind: Batch\nname: x\nroles: [{accelerators: 8}]\n"
      "launch: {command: [run]}\n";
  const JobId job = cluster_.send(SubmitJob{cluster_.elastic_job(8, 16), spec}).answer.job;
  cluster_.tick();
  cluster_.up(job);
  const NodeId lost = cluster_.nodes(job).back();
  for (std::uint32_t n = 0; n < cluster_.topology().node_count(); ++n) {
    if (NodeId(n) != lost && NodeId(n) != cluster_.nodes(job).front()) {
      cluster_.send(DrainNode{NodeId(n)});
    }
  }
  cluster_.send(NodeFault{lost, FaultLayer::kHost, "ecc", true, true});
  ASSERT_EQ(cluster_.job(job).epoch, 1U);
  const NodeId node = cluster_.nodes(job).front();
  SentMessages there;
  open(node, there);

  Order order;
  order.to = {node, 7, 1};
  for (const FenceToken& other :
       {FenceToken{{job, 1}, 0}, FenceToken{{job, 1}, 2}, FenceToken{{job, 2}, 1}}) {
    order.what = LaunchRanks{.token = other};
    sessions_->send(order);
  }
  EXPECT_EQ(there.messages.size(), 1U) << "the welcome alone";
  order.what = LaunchRanks{.token = {{job, 1}, 1}};
  sessions_->send(order);
  ASSERT_EQ(there.messages.size(), 2U);
  const NodeProgram& program = std::get<NodeOrder>(there.messages.back()).program;
  EXPECT_EQ(program.command, std::vector<std::string>{"run"});
  ASSERT_EQ(program.gangs.size(), 1U);
  EXPECT_EQ(program.gangs.front().nodes.size(), 1U);
}

}  // namespace
}  // namespace orrery
