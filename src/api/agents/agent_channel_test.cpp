// What is gRPC's ends on the loop: a thread of gRPC that lets go of the last channel of a process
// would wait for itself.
#include "api/agents/agent_channel.hpp"

#include <gtest/gtest.h>

#include "api/serving_test.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_env.hpp"

namespace orrery {
namespace {

class Unheard final : public ChannelEvents {
 public:
  void on_welcome(const AgentWelcome&) override {}
  void on_order(const NodeOrder&) override {}
  void on_log_question(const AttemptLogQuestion&) override {}
  void on_burn_in() override {}
  void on_command(const AttemptExecOpen&) override {}
  void on_command_input(const ExecInput&) override {}
  void on_lost(const Error& why) override { lost.push_back(why.kind); }

  std::vector<ErrorKind> lost;
};

/// Closes the channel as soon as it hears anything.
class Leaver final : public ChannelEvents {
 public:
  explicit Leaver(AgentChannel& channel) : channel_(channel) {}
  void on_welcome(const AgentWelcome&) override { leave(); }
  void on_order(const NodeOrder&) override { leave(); }
  void on_log_question(const AttemptLogQuestion&) override { leave(); }
  void on_burn_in() override { leave(); }
  void on_command(const AttemptExecOpen&) override { leave(); }
  void on_command_input(const ExecInput&) override { leave(); }
  void on_lost(const Error&) override { leave(); }

  int heard = 0;

 private:
  void leave() {
    ++heard;
    channel_.close();
  }
  AgentChannel& channel_;
};

TEST(AgentChannel, IsOpenedAndClosedAgainAndAgainWhereNobodyListens) {
  const auto real = RealEnv::create().value();
  const TlsIdentity authority = make_authority(RealClock().now_wall()).value();
  const CertificateRequest request = request_certificate().value();
  const std::string certificate =
      certify_node(authority, {"n0", request.request}, RealClock().now_wall()).value();
  constexpr int kTimes = 200;
  for (int i = 0; i < kTimes; ++i) {
    Unheard events;
    AgentChannel channel(
        real->env().inbox,
        {.controller = "127.0.0.1:1", .tls = {{certificate, request.key}, authority.certificate}});
    channel.open({.node = "n0", .version = "test"}, events);
    if (i % 2 == 0) continue;  // Closed at once.
    real->run_until([&] { return !events.lost.empty(); });
    EXPECT_EQ(events.lost, std::vector<ErrorKind>{ErrorKind::kEnvironment});
  }
}

TEST_F(ServerTest, AnAgentMayCloseItsChannelInsideAnEvent) {
  const auto real = RealEnv::create().value();
  const AgentTls tls = agent_tls(serving_->authority, "node1");
  for (const std::string& controller : {serving_->grpc, std::string("127.0.0.1:1")}) {
    AgentChannel channel(real->env().inbox, {.controller = controller, .tls = tls});
    Leaver leaver(channel);
    channel.open(opening("node1"), leaver);
    real->run_until([&] { return leaver.heard > 0; });
    channel.open(opening("node1"), leaver);
    real->run_until([&] { return leaver.heard > 1; });
    EXPECT_EQ(leaver.heard, 2) << controller;
  }
}

}  // namespace
}  // namespace orrery
