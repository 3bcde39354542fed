// executor/live/decision_log_test.cpp - one line for each event, fewer in a burst.
#include "executor/live/decision_log.hpp"

#include <gtest/gtest.h>

#include "base/system/real_env.hpp"
#include "control/scripted_cluster_test.hpp"

namespace orrery {
namespace {

class KeptLines final : public LogSink {
 public:
  void write_line(std::string_view line) override { text += line; }
  [[nodiscard]] std::size_t count(std::string_view part) const {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++found;
    return found;
  }
  std::string text;
};

class DecisionLogTest : public ::testing::Test {
 protected:
  void send(const InputKind& what) { note(cluster_.send(what).events); }
  void note(const std::vector<Event>& events) {
    for (const Event& event : events) decisions_.note(event);
  }

  ScriptedCluster cluster_;
  KeptLines lines_;
  std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  DecisionLog decisions_{real_->env(), Log(lines_), cluster_.state()};
};

TEST_F(DecisionLogTest, SaysStartsLossesDrainsAndWhy) {
  const JobId id = cluster_.submit(cluster_.job(8));
  send(Tick{});
  const NodeId node = cluster_.nodes(id).front();
  const std::string name = cluster_.topology().node_name(node);
  EXPECT_NE(lines_.text.find("info job starts job=0"), std::string::npos) << lines_.text;
  EXPECT_NE(lines_.text.find(name), std::string::npos);
  send(DrainNode{node, false, "new disk"});
  EXPECT_NE(lines_.text.find("state=\"draining\" why=\"new disk\""), std::string::npos)
      << lines_.text;
  cluster_.up(id);
  send(NodeHeard{node, NodeHealth::kLost, 5});
  EXPECT_NE(lines_.text.find("warning node fault"), std::string::npos) << lines_.text;
  EXPECT_NE(lines_.text.find("warning job lost its attempt"), std::string::npos) << lines_.text;
  EXPECT_EQ(lines_.count("5 heartbeats missed"), 2u) << lines_.text;
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
  EXPECT_NE(lines_.text.find("lines_left_out=75"), std::string::npos) << lines_.text;
  note({SpareSet{NodeId(0), false}});
  EXPECT_EQ(lines_.count("node is no spare any more"), 1u);
}

}  // namespace
}  // namespace orrery
