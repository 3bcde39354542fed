#include "executor/holds/live_holds.hpp"

#include <gtest/gtest.h>

#include "executor/live/live_host_test.hpp"
#include "executor/managers/hold_token.hpp"

namespace orrery {
namespace {

class KeptLog final : public LogSink {
 public:
  void write_line(std::string_view line) override { text += line; }
  std::string text;
};

/// A manager that keeps its orders, and answers when its test says.
class KeptManager final : public ResourceManager {
 public:
  KeptManager(std::vector<ManagerOrder>& orders, Reported reported, Reported& out)
      : orders_(orders) {
    out = std::move(reported);
  }
  void carry_out(const ManagerOrder& order) override { orders_.push_back(order); }

 private:
  std::vector<ManagerOrder>& orders_;
};

/// Node node0 is lent by a manager, which also names a node that the fleet does not have.
class LiveHoldsTest : public LiveHostFixture {
 protected:
  void SetUp() override {
    make_host();
    holds_ = std::make_unique<LiveHolds>(
        Log(sink_), LiveHolds::Options{.host = *host_, .cluster = 7, .term = 3, .key = "key"});
  }
  [[nodiscard]] ManagersSpec managers(std::uint32_t keep = 1) const {
    ManagerSpec spec{.name = name_, .nodes = "node[0,7]", .slurm = {.partition = partition_}};
    spec.pilots = PilotSpec{.keep = keep};
    spec.agent.emplace();
    return {.managers = {spec}};
  }
  void begin(std::uint32_t keep = 1) {
    holds_->begin(managers(keep), [this](const ManagerSpec&, std::uint64_t cluster,
                                         ResourceManager::Reported reported) {
      EXPECT_EQ(cluster, 7u);
      return std::make_unique<KeptManager>(orders_, std::move(reported), report_);
    });
  }
  /// A new controller leads while hpc lends node0; begin() has not named its managers yet.
  void lead_with_a_loan() {
    ask_for_a_hold();
    ASSERT_TRUE(admit(0, "pilot-3-1", "70"));
    host_->control().durable(appended_);
    holds_ = std::make_unique<LiveHolds>(
        Log(sink_), LiveHolds::Options{.host = *host_, .cluster = 7, .term = 4, .key = "key"});
  }
  /// Lets what is due happen; everything is durable at once.
  void wait(Duration time) {
    time_.run_until(time_.now + time);
    holds_->advance(host_->now());
    host_->control().durable(appended_);
  }
  /// Answers the newest question for a list: nothing is held.
  void answer_list() {
    for (auto at = orders_.rbegin(); at != orders_.rend(); ++at) {
      const auto* list = std::get_if<ListHolds>(&at->what);
      if (list == nullptr) continue;
      report_({0, ManagerListing{.asked = list->asked, .complete = true}});
      host_->control().durable(appended_);
      return;
    }
    FAIL() << "no list was asked for";
  }
  /// The orders of a kind so far.
  template <class Order>
  [[nodiscard]] std::vector<Order> asked() const {
    std::vector<Order> found;
    for (const ManagerOrder& order : orders_) {
      if (const auto* one = std::get_if<Order>(&order.what)) found.push_back(*one);
    }
    return found;
  }
  void ask_for_a_hold() {
    begin();
    wait(Duration::seconds(1));
    answer_list();
    wait(Duration::seconds(3));
    ASSERT_EQ(asked<EnsureHold>().size(), 1u);
  }
  [[nodiscard]] Status admit(std::uint32_t node, const std::string& key, const std::string& id) {
    AgentOpening opening;
    opening.hold = {key, id};
    return holds_->lent_nodes().admit(NodeId(node), opening);
  }

  /// Answers the newest question for a list: the hold "70" waits.
  void show_waiting(const HoldKey& key) {
    const Instant listed = asked<ListHolds>().back().asked;
    report_({0, ManagerListing{
                    .asked = listed, .complete = true, .holds = {{.key = key, .id = "70"}}}});
    host_->control().durable(appended_);
  }

  std::string partition_;
  KeptLog sink_;
  std::string name_ = "hpc";  ///< of the manager
  std::vector<ManagerOrder> orders_;
  ResourceManager::Reported report_;
  std::unique_ptr<LiveHolds> holds_;
};

TEST_F(LiveHoldsTest, AsksWithATokenThatAdmitsTheAgentsOfTheHold) {
  ask_for_a_hold();
  const EnsureHold hold = asked<EnsureHold>()[0];
  EXPECT_EQ(hold_of_token("key", hold.join_token), hold.key);
  EXPECT_TRUE(holds_->may_join(hold.join_token, NodeId(0)).value());
  const Status other = holds_->may_join(hold.join_token, NodeId(1)).value();
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().message, "hpc lends no such node, according to managers.yaml");
  EXPECT_FALSE(holds_->may_join(hold.join_token, NodeId()).value());
  EXPECT_FALSE(holds_->may_join("some token of a node", NodeId(0)).has_value());
  const Status unknown =
      holds_->may_join(hold_token("key", {.id = 9, .epoch = 3}), NodeId(0)).value();
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().kind, ErrorKind::kEnvironment) << "its agent tries again";
}

TEST_F(LiveHoldsTest, OrdersLeaveOnlyWhenWhatTheyRestOnIsDurable) {
  begin();
  wait(Duration::seconds(1));
  const ListHolds list = asked<ListHolds>().at(0);
  report_({0, ManagerListing{.asked = list.asked, .complete = true}});
  EXPECT_EQ(host_->state().node(NodeId(0)).health, NodeHealth::kAbsent);
  time_.run_until(time_.now + Duration::seconds(3));
  holds_->advance(host_->now());
  EXPECT_TRUE(asked<EnsureHold>().empty()) << "that the node is absent is not durable yet";
  host_->control().durable(appended_);
  EXPECT_EQ(asked<EnsureHold>().size(), 1u);
}

TEST_F(LiveHoldsTest, LetsAgentsOfLentNodesInWithinTheirHoldOnly) {
  EXPECT_TRUE(admit(0, "", "")) << "no manager has ever lent it";
  EXPECT_EQ(admit(0, "pilot-3-1", "70").error().kind, ErrorKind::kEnvironment);
  ask_for_a_hold();
  EXPECT_TRUE(admit(1, "", "")) << "the node is the cluster's own";
  EXPECT_EQ(admit(0, "", "").error().message,
            "a resource manager lends the node: its agent runs within a hold only");
  EXPECT_EQ(admit(1, "pilot-3-1", "70").error().message,
            "no resource manager lends the node, according to managers.yaml");
  EXPECT_TRUE(admit(0, "pilot-3-1", "70"));
  EXPECT_EQ(host_->state().node(NodeId(0)).loan.hold, "hpc/pilot-3-1:70");
  EXPECT_FALSE(admit(0, "pilot-3-1", "71"));
  holds_->lent_nodes().ends(NodeId(0), {"scancel"});
  EXPECT_EQ(holds_->link()->holds()[0].state, HoldState::kReleasing);
}

TEST_F(LiveHoldsTest, ANewLeaderLetsAgentsOfLentNodesWaitUntilItsManagersAreKnown) {
  lead_with_a_loan();
  EXPECT_EQ(admit(0, "pilot-3-1", "70").error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(admit(0, "", "").error().kind, ErrorKind::kEnvironment) << "it runs in no hold";
  EXPECT_TRUE(admit(1, "", "")) << "the node is the cluster's own";
  begin();
  EXPECT_TRUE(admit(0, "pilot-3-1", "70"));
}

TEST_F(LiveHoldsTest, ANodeWhoseManagerIsMissingStaysLentAndItsAgentWaits) {
  lead_with_a_loan();
  const auto agent_waits = [&] {
    const Status admitted = admit(0, "pilot-3-1", "70");
    ASSERT_FALSE(admitted);
    EXPECT_EQ(admitted.error().kind, ErrorKind::kEnvironment) << admitted.error().message;
    EXPECT_NE(admitted.error().message.find("hpc/pilot-3-1:70"), std::string::npos);
    EXPECT_EQ(host_->state().node(NodeId(0)).loan.hold, "hpc/pilot-3-1:70");
  };
  holds_->begin({}, {});
  agent_waits();
  name_ = "renamed";
  begin();
  wait(Duration::seconds(1));
  answer_list();
  wait(Duration::seconds(30));
  answer_list();
  agent_waits();
  name_ = "hpc";
  begin();
  EXPECT_TRUE(admit(0, "pilot-3-1", "70")) << "its manager is back";
}

TEST_F(LiveHoldsTest, ManagersMustLendWhatTheStateSaysIsLentUntilItsTimeIsOver) {
  lead_with_a_loan();
  EXPECT_TRUE(holds_->may_change_to(managers()));
  const Status missing = holds_->may_change_to({});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message,
            "hpc/pilot-3-1:70 lends node0 now, so the manager \"hpc\" must lend it here, too: put "
            "it back, or drain the node before it is left out");
  name_ = "renamed";
  EXPECT_FALSE(holds_->may_change_to(managers()));
  time_.run_until(time_.now + Duration::hours(25));
  EXPECT_TRUE(holds_->may_change_to({})) << "a manager that is gone for good is no obstacle";
}

TEST_F(LiveHoldsTest, NamesNodesThatTheFleetDoesNotHave) {
  begin(0);
  EXPECT_NE(sink_.text.find("the fleet does not have all nodes of a manager"), std::string::npos);
  EXPECT_NE(sink_.text.find("node7"), std::string::npos) << sink_.text;
  EXPECT_EQ(holds_->link()->pools()[0].unknown, std::vector<std::string>{"node7"});
}

TEST_F(LiveHoldsTest, GivesNodesBackToTheClusterThatNoManagerHasAnyMore) {
  begin(0);
  host_->control().durable(appended_);
  wait(Duration::seconds(1));
  answer_list();
  ASSERT_EQ(host_->state().node(NodeId(0)).health, NodeHealth::kAbsent);
  LiveHolds none(Log(sink_), {.host = *host_, .cluster = 7, .term = 4, .key = "key"});
  none.begin({}, {});
  EXPECT_EQ(host_->state().node(NodeId(0)).health, NodeHealth::kJoining);
  EXPECT_FALSE(host_->state().node(NodeId(0)).loan.managed);
  EXPECT_EQ(none.next_due(), Instant::max());
}

// A wrong partition was mended, and the holds that waited there were taken over for ever.
TEST_F(LiveHoldsTest, GivesBackHoldsThatWaitAndWouldNowBeAskedForInAnotherWay) {
  ask_for_a_hold();
  const HoldKey key = asked<EnsureHold>()[0].key;
  partition_ = "batch";
  begin();
  wait(Duration::seconds(1));
  show_waiting(key);
  ASSERT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
  EXPECT_TRUE(holds_->link()->holds().empty());
  wait(Duration::seconds(3));
  ASSERT_EQ(asked<EnsureHold>().size(), 2u);
  const HoldKey other = asked<EnsureHold>()[1].key;
  EXPECT_NE(other, key);
  show_waiting(other);
  holds_->take_up_fleet();
  wait(Duration::seconds(1));
  show_waiting(other);
  EXPECT_EQ(holds_->link()->holds().size(), 1u) << "it was asked for in the new way";
}

TEST_F(LiveHoldsTest, TakesOverHoldsThatWaitIfOnlyTheNumberOfNodesHeldChanges) {
  ask_for_a_hold();
  begin(0);
  wait(Duration::seconds(1));
  show_waiting(asked<EnsureHold>()[0].key);
  EXPECT_TRUE(asked<ReleaseHold>().empty());
  EXPECT_EQ(holds_->link()->holds().size(), 1u);
}

TEST_F(LiveHoldsTest, ReleasesTheWaitingHoldsOfAManagerThatIsRenamed) {
  ask_for_a_hold();
  show_waiting(asked<EnsureHold>()[0].key);
  name_ = "hpc2";
  begin();
  ASSERT_EQ(asked<ReleaseHold>().size(), 1u);
  EXPECT_EQ(asked<ReleaseHold>()[0].id, "70");
}

}  // namespace
}  // namespace orrery
