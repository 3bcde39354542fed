// api/agents/controller_streams_test.cpp - an agent follows the leader from one controller to the
// next over real connections.
#include "api/agents/controller_streams.hpp"

#include <future>

#include "api/agents/agent_messages.hpp"
#include "api/fake_controller_test.hpp"
#include "api/serving_test.hpp"

namespace orrery {
namespace {

/// Keeps what the agent hears, in order.
class Follower final : public ChannelEvents {
 public:
  void on_welcome(const AgentWelcome& welcome) override {
    heard += "W" + std::to_string(welcome.node.value());
  }
  void on_order(const NodeOrder&) override {}
  void on_log_question(const AttemptLogQuestion&) override {}
  void on_burn_in() override {}
  void on_command(const AttemptExecOpen&) override {}
  void on_command_input(const ExecInput&) override {}
  void on_lost(const Error&) override { heard += "L"; }

  std::string heard;
};

/// serving_ leads, until it ends; standby_ is of the same cluster.
class ControllerStreamsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    standby_ = std::make_unique<FakeController>(serving_->authority);
    standby_->on_path("/orrery.v1.AgentService/Connect", [this](const FakeController::Heard&) {
      opened_.set_value();
      leads_.get_future().wait();
      AgentWelcome welcome;
      welcome.node = NodeId(9);
      return answer_with(to_proto(ControllerMessage(welcome)));
    });
    standby_->start();
  }
  void open(const std::vector<std::string>& addresses) {
    streams_ = std::make_unique<ControllerStreams>(real_->env(), Log(sink_), addresses,
                                                   agent_tls(serving_->authority, "node1"));
    streams_->channel().open(opening("node1"), follower_);
  }
  void await(const std::string& heard) {
    real_->run_until([&] { return follower_.heard.size() >= heard.size(); });
    EXPECT_EQ(follower_.heard, heard);
  }

  const std::unique_ptr<RealEnv> real_ = RealEnv::create().value();
  SilentLog sink_;
  Follower follower_;
  std::promise<void> opened_;  ///< the standby has accepted the stream
  std::promise<void> leads_;
  std::unique_ptr<FakeController> standby_;
  std::unique_ptr<ControllerStreams> streams_;
};

TEST_F(ControllerStreamsTest, AStandbyThatLeadsIsFollowedOverTheStreamThatWasOpen) {
  open({standby_->address(), serving_->grpc});
  await("W1");
  opened_.get_future().wait();
  serving_.reset();
  await("W1L");
  leads_.set_value();
  await("W1LW9");
  streams_->channel().close();
}

TEST_F(ControllerStreamsTest, AControllerThatTakesOverFromALivingOneIsFollowed) {
  open({standby_->address(), serving_->grpc});
  await("W1");
  opened_.get_future().wait();
  leads_.set_value();
  await("W1LW9");
  // The fake leader ends the stream after its welcome; the other one is still open.
  await("W1LW9LW1");
  streams_->channel().close();
}

}  // namespace
}  // namespace orrery
