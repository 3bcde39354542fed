#include "verbs/nodes/node_answer.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

class NodeAnswerTest : public LiveClusterTest {
 protected:
  /// A cluster with a node that is lost while two jobs, one of them unknown, are on it.
  void has_lost_node() {
    v1::Node node;
    node.set_name("n3");
    node.set_health("lost");
    node.add_jobs(7);
    node.add_jobs(8);
    answers<v1::GetNodeRequest>("GetNode", node);
    v1::NodeResponse fenced;
    fenced.mutable_node()->set_name("n3");
    answers<v1::NodeRequest>("FenceNode", fenced);
    on<v1::GetJobRequest>("GetJob", [](const v1::GetJobRequest& request) {
      if (request.id() == 8) return refuse(grpc::StatusCode::NOT_FOUND, "there is no job 8");
      return answer_with(job_named(7, "tr\nain", "queued"));
    });
  }
};

TEST_F(NodeAnswerTest, NodesThatTheFileAloneNamesAreTold) {
  v1::Cluster cluster;
  EXPECT_EQ(unknown_nodes_text(cluster), "");
  cluster.add_unknown_nodes("n8");
  cluster.add_unknown_nodes("n\x1b");
  answers<v1::GetClusterRequest>("GetCluster", cluster);
  EXPECT_EQ(unknown_nodes_note(session()).value(),
            "note: fleet.yaml names n8, n\\x1b, which this cluster does not have: `orrery fleet "
            "apply DIR/fleet.yaml` adds them\n");
}

TEST_F(NodeAnswerTest, AListAndOneNodeAreShown) {
  v1::ListNodesResponse nodes;
  nodes.add_nodes()->set_name("n1");
  answers<v1::ListNodesRequest>("ListNodes", nodes);
  EXPECT_NE(answer_nodes(call())->text.find("n1"), std::string::npos);
  answers<v1::GetNodeRequest>("GetNode", nodes.nodes(0));
  EXPECT_TRUE(answer_node(call(), "n1")->text.starts_with("node "));
  EXPECT_EQ(answer_node(call(), "").error().text(),
            "node: expected the name of a node, or fence, burn-in or token and the name of a node");
}

TEST_F(NodeAnswerTest, ALostNodeIsFencedOnceThatIsConfirmed) {
  has_lost_node();
  std::string asked;
  const auto answer = fence_node(call(), "n3", [&](const FenceWarning& warning) {
    asked = warning.question();
    return Status();
  });
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(asked,
            "n3 must be switched off, so that no process runs on it any more; these jobs will "
            "restart on other nodes: 7, 8.\nIs it switched off? [y/N] ");
  EXPECT_EQ(answer->text,
            "n3 is fenced: its jobs no longer count as running, and it accepts jobs again when its "
            "agent reconnects\njob 7 (tr\\nain) is queued\n");
}

TEST_F(NodeAnswerTest, WhatIsNotConfirmedIsNotFenced) {
  has_lost_node();
  const auto answer = fence_node(call(), "n3", [](const FenceWarning&) { return confirmed("no"); });
  EXPECT_EQ(answer.error().text(), "fence: nothing was changed");
  EXPECT_TRUE(heard<v1::NodeRequest>("FenceNode").empty());
  EXPECT_TRUE(fence_node(call(), "n3", {}));
}

TEST(FenceWarningTest, OnlyAPlainYesConfirms) {
  for (const char* yes : {"y", "Y", "yes"}) EXPECT_TRUE(confirmed(yes)) << yes;
  for (const char* no : {"", "n", "yep", "y ", "YES"}) EXPECT_FALSE(confirmed(no)) << no;
  v1::Node node;
  node.set_name("n1");
  EXPECT_EQ(fence_warning(node).without_terminal().text(),
            "fence: n1 must be switched off, so that no process runs on it any more; no job waits "
            "for the node. Expected --yes, which confirms that it is");
}

TEST_F(NodeAnswerTest, ABurnInSaysWhereItsResultIs) {
  v1::NodeResponse begun;
  begun.mutable_node()->set_name("n1");
  answers<v1::NodeRequest>("BurnInNode", begun);
  EXPECT_EQ(burn_in_node(call(), "n1")->text,
            "burn-in started on n1; `orrery node n1` shows the result\n");
  EXPECT_FALSE(heard<v1::NodeRequest>("BurnInNode").at(0).request_id().empty());
}

TEST(JoinAnswerTest, TheTokenStandsAloneAndWhatToDoIsSaidBeside) {
  v1::MakeJoinTokenResponse made;
  made.set_token("abc");
  const LiveAnswer first = join_answer(made, {"n1", "10.0.0.1:7000", "/lab"});
  EXPECT_EQ(first.text, "abc\n");
  EXPECT_EQ(first.before,
            "Within one hour, run on n1, with a copy of /lab/tls/ca.pem and this token in FILE:\n"
            "  orrery-agent --node n1 --controller 10.0.0.1:7000 --ca ca.pem --dir "
            "/var/lib/orrery/agent --join @FILE\n");
  made.set_connected_agent("10.0.0.9:1");
  const LiveAnswer second = join_answer(made, {"n1", "10.0.0.1:7000", "/lab"});
  EXPECT_TRUE(second.before.starts_with("note: n1 already has an agent, at 10.0.0.9:1: "));
  EXPECT_TRUE(second.before.ends_with(first.before));
}

TEST_F(NodeAnswerTest, AnAgentIsTaughtEachControllerThatTheClientKnows) {
  v1::MakeJoinTokenResponse made;
  made.set_token("abc");
  answers<v1::MakeJoinTokenRequest>("MakeJoinToken", made);
  LiveSession session(ClientOptions{.addresses = {controller_.address(), "10.0.0.2:7000"},
                                    .authority = controller_.authority()});
  const Result<LiveAnswer> answer =
      make_join_token({session, {.colour = Colour::kOff, .now = now_}, options_}, "n1");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_NE(answer->before.find("--controller " + controller_.address() + ",10.0.0.2:7000 "),
            std::string::npos)
      << answer->before;
}

}  // namespace
}  // namespace orrery
