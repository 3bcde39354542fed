// The servers of a controller that does not lead yet, and what becomes of their connections when it
// does.
#include <gtest/gtest.h>

#include "api/serving_test.hpp"

namespace orrery {
namespace {

class StandbyServerTest : public ServerTest {
 protected:
  void SetUp() override { serve({.lead = ServingOptions::Lead::kLater}); }
  [[nodiscard]] std::string refusal() const {
    ClientOptions options{.addresses = {serving_->grpc},
                          .authority = serving_->authority.certificate,
                          .token = "admin",
                          .retry = Duration()};
    Client once(std::move(options));
    const auto answer = once.call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
    return answer ? "" : answer.error().text();
  }
};

TEST_F(StandbyServerTest, CallsAreRefusedAndSentToTheLeader) {
  EXPECT_NE(refusal().find("this controller is a standby; no leader is known"), std::string::npos)
      << refusal();
  EXPECT_TRUE(ask("GET /v1/jobs").starts_with("HTTP/1.1 503")) << ask("GET /v1/jobs");
  EXPECT_NE(ask("GET /healthz").find("ok, a standby; the leader is not known"), std::string::npos);
  serving_->run([&](Controller&) { serving_->follow("10.0.0.7:70"); });
  const std::string sent = ask("GET /v1/jobs?name=a%20%26%C3%A9&all=true");
  EXPECT_TRUE(sent.starts_with("HTTP/1.1 307")) << sent;
  EXPECT_NE(sent.find("Location: https://10.0.0.7:70/v1/jobs?all=true&name=a%20%26%C3%A9\r\n"),
            std::string::npos)
      << sent;
  EXPECT_NE(ask("GET /healthz").find("the leader is at 10.0.0.7:70"), std::string::npos);
}

TEST_F(StandbyServerTest, ItSaysItselfHowFarItIsWithoutAToken) {
  const auto state =
      client("").call<v1::ControllerState>("GetController", v1::GetControllerRequest());
  ASSERT_TRUE(state) << state.error().text();
  EXPECT_FALSE(state->leads());
  EXPECT_EQ(state->leader(), "10.0.0.7:70");
  EXPECT_EQ(state->term(), 5u);
  EXPECT_EQ(state->batch(), 812u);
  EXPECT_EQ(state->behind_batches(), 3u);
  EXPECT_DOUBLE_EQ(state->behind_s(), 1.5);
  EXPECT_NE(ask("GET /healthz", "").find("term 5, 3 batches and 1.5 s behind"), std::string::npos);
  const std::string metrics = ask("GET /metrics", "");
  EXPECT_NE(metrics.find("\norrery_leader 0\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\norrery_standby_lag_batches 3\n"), std::string::npos) << metrics;
  EXPECT_NE(metrics.find("\norrery_standby_lag_seconds 1.5\n"), std::string::npos) << metrics;
  serving_->run([&](Controller&) { serving_->lead(); });
  const auto leads =
      client().call<v1::ControllerState>("GetController", v1::GetControllerRequest());
  ASSERT_TRUE(leads) << leads.error().text();
  EXPECT_TRUE(leads->leads());
  EXPECT_GE(leads->term(), 1u);
  EXPECT_NE(ask("GET /metrics").find("\norrery_leader 1\n"), std::string::npos);
  EXPECT_TRUE(ask("GET /metrics", "").starts_with("HTTP/1.1 401"));
}

TEST_F(StandbyServerTest, WhenItLeadsItServesAndWelcomesTheAgentsThatWait) {
  CertificateRequest request = request_certificate().value();
  const Instant now = RealClock().now_wall();
  const std::string certificate =
      certify_node(serving_->authority, {.node = "node0", .request = request.request}, now).value();
  const auto real = RealEnv::create().value();
  FirstWord first;
  AgentChannel channel(real->env().inbox,
                       {.controller = serving_->grpc,
                        .tls = {{certificate, request.key}, serving_->authority.certificate}});
  channel.open(opening("node0"), first);
  bool waited = false;
  real->env().timers.call_after(Duration::milliseconds(300), [&] { waited = true; });
  real->run_until([&] { return waited; });
  EXPECT_EQ(first.heard, "") << "a standby says nothing";
  serving_->run([&](Controller&) { serving_->lead(); });
  real->run_until([&] { return !first.heard.empty(); });
  EXPECT_EQ(first.heard, "welcome");
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(ask("GET /v1/jobs").starts_with("HTTP/1.1 200")) << ask("GET /v1/jobs");
}

}  // namespace
}  // namespace orrery
