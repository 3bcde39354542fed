// What is gRPC's ends on the loop: a thread of gRPC that lets go of the last channel of a process
// would wait for itself.
#include "api/agents/agent_channel.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace orrery
