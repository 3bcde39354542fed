#include "verbs/nodes/node_change.hpp"

#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

v1::NodeResponse node_that_is(const std::string& name, const std::string& health) {
  v1::NodeResponse response;
  response.mutable_node()->set_name(name);
  response.mutable_node()->set_health(health);
  return response;
}

class NodeChangeTest : public LiveClusterTest {
 protected:
  void SetUp() override {
    LiveClusterTest::SetUp();
    on<v1::DrainNodeRequest>("DrainNode", [](const v1::DrainNodeRequest& request) {
      if (request.name() == "gone") {
        return refuse(grpc::StatusCode::NOT_FOUND, "there is no node \"gone\"");
      }
      if (request.name() != "away") return answer_with(node_that_is(request.name(), "draining"));
      v1::NodeResponse absent = node_that_is("away", "absent");
      absent.mutable_node()->set_drain(true);
      return answer_with(absent);
    });
  }
  [[nodiscard]] Result<NodeChanges> drain(const std::vector<std::string>& names,
                                          const DrainOptions& options = {}) {
    return change_nodes(names, drain_by(session(), drain_request(options).value()), progress());
  }
};

TEST_F(NodeChangeTest, EachNodeIsDrainedOnceUnderARequestOfItsOwn) {
  const auto changes = drain({"n1", "n2", "n1"}, {.why = "new disk", .at_once = true});
  ASSERT_TRUE(changes) << changes.error().text();
  EXPECT_EQ(text_, "n1 is draining\nn2 is draining\n");
  EXPECT_TRUE(changes->status());
  const auto heard = this->heard<v1::DrainNodeRequest>("DrainNode");
  ASSERT_EQ(heard.size(), 2u);
  EXPECT_NE(heard[0].request_id(), heard[1].request_id());
  EXPECT_EQ(heard[1].why(), "new disk");
  EXPECT_TRUE(heard[1].at_once());
  EXPECT_EQ(answer_json(*changes->message())["nodes"][1]["name"], "n2");
}

TEST_F(NodeChangeTest, OneNodeIsAnObjectForPrograms) {
  const auto changes = drain({"n1", "n1"});
  ASSERT_TRUE(changes);
  EXPECT_EQ(answer_json(*changes->message())["name"], "n1");
}

TEST_F(NodeChangeTest, ANodeThatIsNotLentIsSaidToBeDrainedLater) {
  ASSERT_TRUE(drain({"away"}));
  EXPECT_EQ(text_, "away is absent, and drained when it is lent again\n");
}

TEST_F(NodeChangeTest, ARefusalKeepsNoOtherNodeFromItsChange) {
  const auto changes = drain({"gone", "n2"});
  ASSERT_TRUE(changes);
  EXPECT_EQ(messages_, "gone: there is no node \"gone\"\n");
  EXPECT_EQ(text_, "n2 is draining\n");
  ASSERT_FALSE(changes->status());
  EXPECT_EQ(changes->status().error().text(), "1 of 2 nodes were changed");
  EXPECT_EQ(changes->status().error().kind, ErrorKind::kInput);
  // Programs get a list, though one node alone was changed.
  EXPECT_EQ(answer_json(*changes->message())["nodes"].size(), 1u);
}

TEST_F(NodeChangeTest, TheRefusalOfTheOnlyNodeIsTheError) {
  EXPECT_EQ(drain({"gone"}).error().text(), "there is no node \"gone\"");
  EXPECT_EQ(messages_, "");
}

TEST_F(NodeChangeTest, AResumedNodeIsToldWithItsJobs) {
  v1::NodeResponse ready = node_that_is("n1\x1b", "ready");
  ready.mutable_node()->add_jobs(4);
  ready.mutable_node()->add_jobs(5);
  answers<v1::NodeRequest>("ResumeNode", ready);
  ASSERT_TRUE(change_nodes({"n1"}, resume_by(session()), progress()));
  EXPECT_EQ(text_, "n1\\x1b is ready, running 2 jobs\n");
}

TEST(DrainRequestTest, AWindowHasInstants) {
  const auto request =
      drain_request({.from = "2026-12-01T06:00:00Z", .to = "2026-12-01T08:00:00Z"});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->to().seconds() - request->from().seconds(), 7200);
  EXPECT_FALSE(drain_request({})->has_from());
  const auto wrong = drain_request({.from = "2026-12-01T06:00:00Z", .to = "8 o'clock"});
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().text().starts_with("--to: ")) << wrong.error().text();
}

}  // namespace
}  // namespace orrery
