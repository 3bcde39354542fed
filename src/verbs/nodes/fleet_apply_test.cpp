#include "verbs/nodes/fleet_apply.hpp"

#include <filesystem>

#include "verbs/cluster/live_cluster_test.hpp"
#include "verbs/local/local_fleet.hpp"

namespace orrery {
namespace {

class FleetApplyTest : public LiveClusterTest {
 protected:
  void SetUp() override {
    LiveClusterTest::SetUp();
    directory_ = ::testing::TempDir() + "fleet_apply_" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(directory_);
    ASSERT_TRUE(write_local_fleet(storage_, directory_, {.nodes = 2, .accelerators = 8}));
    fleet_ = directory_ + "/fleet.yaml";
  }
  [[nodiscard]] std::string text_of_fleet() { return storage_.read_file(fleet_, 1 << 20).value(); }
  /// A change that retires n1, where job 7 is.
  [[nodiscard]] static v1::FleetChange busy_change() {
    v1::FleetChange change;
    change.add_retired("n1");
    change.add_busy()->set_node("n1");
    change.mutable_busy(0)->add_jobs(7);
    return change;
  }
  [[nodiscard]] Result<AppliedFleet> apply(const v1::FleetChange& change, BusyNodes busy) {
    const std::string fleet = "the fleet";
    return apply_fleet(session(), {.fleet = fleet, .change = change, .busy = busy}, progress());
  }

  RealStorage storage_;
  std::string directory_;
  std::string fleet_;
};

TEST_F(FleetApplyTest, AFileIsTakenAsItIsAndItsErrorsHaveItsName) {
  EXPECT_EQ(read_fleet_to_apply(fleet_, "").value(), text_of_fleet());
  ASSERT_TRUE(storage_.write_file(fleet_, "apiVersion: orrery/v1\nkind: Fleet\nsits: []\n"));
  const auto wrong = read_fleet_to_apply(fleet_, "");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().text().starts_with(fleet_ + ":")) << wrong.error().text();
}

TEST_F(FleetApplyTest, TheFirstDocumentEndsBeforeTheSecond) {
  EXPECT_EQ(first_document("a: 1\n").value(), "a: 1\n");
  const auto first = first_document("a: 1\n---\nb: 2\n---\nc: 3\n");
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_TRUE(first->starts_with("a: 1\n"));
  EXPECT_EQ(first->find("b:"), std::string::npos) << *first;
  EXPECT_FALSE(first_document("a: [\n"));
}

TEST_F(FleetApplyTest, ABusyNodeIsARefusalWhereNothingElseIsAsked) {
  const auto applied = apply(busy_change(), BusyNodes::kRefuse);
  ASSERT_TRUE(applied);
  EXPECT_TRUE(applied->refused);
  EXPECT_TRUE(heard<v1::ApplyFleetRequest>("ApplyFleet").empty());
}

TEST_F(FleetApplyTest, BusyNodesAreDrainedAndWaitedForBeforeTheFleetChanges) {
  answers<v1::DrainNodeRequest>("DrainNode", v1::NodeResponse());
  int looked = 0;
  on<v1::GetNodeRequest>("GetNode", [&looked](const v1::GetNodeRequest& request) {
    v1::Node node;
    node.set_name(request.name());
    if (++looked < 2) node.add_jobs(7);
    return answer_with(node);
  });
  v1::FleetChange done;
  done.set_applied(true);
  answers<v1::ApplyFleetRequest>("ApplyFleet", done);
  const auto applied = apply(busy_change(), BusyNodes::kEvict);
  ASSERT_TRUE(applied) << applied.error().text();
  EXPECT_FALSE(applied->refused);
  EXPECT_TRUE(applied->change.applied());
  EXPECT_EQ(applied->change.busy_size(), 0);
  EXPECT_EQ(applied->change.retired(0), "n1");
  EXPECT_TRUE(messages_.starts_with("waiting until n1 is empty: job 7 on it. ")) << messages_;
  const auto drained = heard<v1::DrainNodeRequest>("DrainNode");
  ASSERT_EQ(drained.size(), 1u);
  EXPECT_TRUE(drained[0].at_once());
  EXPECT_EQ(drained[0].why(), "retired by fleet apply");
  EXPECT_EQ(heard<v1::ApplyFleetRequest>("ApplyFleet").at(0).fleet(), "the fleet");
}

TEST_F(FleetApplyTest, AControllerThatRefusesWithoutAReasonIsAnError) {
  answers<v1::ApplyFleetRequest>("ApplyFleet", v1::FleetChange());
  EXPECT_EQ(apply({}, BusyNodes::kRefuse).error().text(),
            "the controller did not change the fleet and gave no reason");
}

TEST_F(FleetApplyTest, WhereAgentsAreNotOfOrreryUpTheirCommandsAreTold) {
  options_.cluster_directory = directory_;
  v1::FleetChange change;
  EXPECT_EQ(follow_fleet(call(), "", change).value(), "");
  change.add_added("n9");
  const auto text = follow_fleet(call(), "", change);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_NE(text->find("--node n9 --controller " + controller_.address()), std::string::npos);
}

}  // namespace
}  // namespace orrery
