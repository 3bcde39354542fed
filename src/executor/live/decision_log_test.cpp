// executor/live/decision_log_test.cpp - one line for each event, fewer in a burst.
#include "executor/live/decision_log.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"
#include "executor/lab_test.hpp"

namespace orrery {
namespace {

class DecisionLogTest : public ::testing::Test {
 protected:
  void send(const InputKind& what) { note(cluster_.send(what).events); }
  void note(const std::vector<Event>& events) {
    for (const Event& event : events) decisions_.note(event);
  }

  ScriptedCluster cluster_;
  CollectedLog lines_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  DecisionLog decisions_{real_->env(), Log(lines_), cluster_.state()};
};

TEST_F(DecisionLogTest, SaysStartsLossesDrainsAndWhy) {
  const JobId id = cluster_.submit(cluster_.job(8));
  send(Tick{});
  const NodeId node = cluster_.nodes(id).front();
  const std::string name = cluster_.topology().node_name(node);
  EXPECT_EQ(lines_.count("info job starts job=0"), 1u) << lines_.text();
  EXPECT_EQ(lines_.count(name), 1u) << lines_.text();
  send(DrainNode{node, false, "new disk"});
  EXPECT_EQ(lines_.count("state=\"draining\" why=\"new disk\""), 1u) << lines_.text();
  cluster_.up(id);
  send(NodeHeard{node, NodeHealth::kLost, 5});
  EXPECT_EQ(lines_.count("warning node fault"), 1u) << lines_.text();
  EXPECT_EQ(lines_.count("warning job lost its attempt"), 1u) << lines_.text();
  EXPECT_EQ(lines_.count("5 heartbeats missed"), 2u) << lines_.text();
}

TEST_F(DecisionLogTest, OfABurstSaysHowManyItLeftOut) {
  for (int i = 0; i < 100; ++i) {
    note({SpareSet{NodeId(0), true}});
    note({NodeChanged{NodeId(1), NodeHealth::kSuspect, {}, false, {}}});
  }
  EXPECT_EQ(lines_.count("node is a spare"), 25u);
  EXPECT_EQ(lines_.count("node fault"), 100u) << "losses are told";
  bool over = false;
  (void)real_->env().timers.call_after(Duration::milliseconds(1100), [&] { over = true; });
  real_->run_until([&] { return over; });
  EXPECT_EQ(lines_.count("lines_left_out=75"), 1u) << lines_.text();
  note({SpareSet{NodeId(0), false}});
  EXPECT_EQ(lines_.count("node is no spare any more"), 1u);
}

}  // namespace
}  // namespace orrery
