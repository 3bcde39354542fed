// Who joins, is heard and gets another certificate, by the one it shows.
#include "api/serving_test.hpp"

namespace orrery {
namespace {

TEST_F(ServerTest, AnAgentIsHeardOnlyForTheNodeOfItsCertificate) {
  const TlsIdentity& authority = serving_->authority;
  EXPECT_EQ(agent_hears(agent_tls(authority, "node1"), "node1"), "welcome");
  EXPECT_EQ(agent_hears(agent_tls(authority, "node1"), "node0"),
            "lost: a certificate of node \"node1\" opens no stream of \"node0\"");
  EXPECT_EQ(agent_hears({{}, authority.certificate}, "node0"),
            "lost: an agent shows a certificate of its node");
  // Another authority: the server does not believe the agent.
  AgentTls foreign = agent_tls(make_authority(RealClock().now_wall()).value(), "node0");
  foreign.authority = authority.certificate;
  EXPECT_TRUE(agent_hears(foreign, "node0").starts_with("lost: ")) << "a foreign certificate";
  // The server does not accept its own certificate for one of an agent.
  const ServerTls own = certify_server(authority, {"node0"}, RealClock().now_wall()).value();
  EXPECT_TRUE(agent_hears({own.identity, authority.certificate}, "node0").starts_with("lost: "));
}

TEST_F(ServerTest, ATokenLetsOneAgentJoinOnceAndAsItsNodeAlone) {
  v1::MakeJoinTokenRequest asked;
  asked.set_node("node9");
  const auto unknown = client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", asked);
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("did you mean"), std::string::npos);
  asked.set_node("node1");
  const auto made = client().call<v1::MakeJoinTokenResponse>("MakeJoinToken", asked);
  ASSERT_TRUE(made) << made.error().text();
  const CertificateRequest own = request_certificate().value();
  v1::JoinRequest join;
  join.set_token(made->token());
  join.set_certificate_request("nothing");
  Client nobody = client("");
  // What is wrong with the request uses nothing up.
  EXPECT_FALSE(nobody.call<v1::JoinResponse>("Join", join));
  join.set_certificate_request(own.request);
  const auto joined = nobody.call<v1::JoinResponse>("Join", join);
  ASSERT_TRUE(joined) << joined.error().text();
  EXPECT_EQ(joined->node(), "node1");
  const std::string& authority = serving_->authority.certificate;
  EXPECT_EQ(agent_hears({{joined->certificate(), own.key}, authority}, "node1"), "welcome");
  const auto again = nobody.call<v1::JoinResponse>("Join", join);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().text().find("lets no node join"), std::string::npos);
}

TEST_F(ServerTest, ACertificateIsRenewedForItsNodeWhileItsStreamGoesOn) {
  AgentTls tls = agent_tls(serving_->authority, "node1", 300);
  const auto real = RealEnv::create().value();
  FirstWord first;
  AgentChannel channel(real->env().inbox, {.controller = serving_->grpc, .tls = tls});
  channel.open(opening("node1"), first);
  real->run_until([&] { return !first.heard.empty(); });
  ASSERT_EQ(first.heard, "welcome");
  const Result<std::string> renewed = renew(tls);
  ASSERT_TRUE(renewed) << renewed.error().text();
  const CertificateTerm before = term_of(tls.identity).value();
  tls.identity.certificate = *renewed;
  EXPECT_GE(term_of(tls.identity).value().until - before.until, Duration::hours(24) * 299);
  channel.show(tls);
  const std::string node = ask("GET /v1/nodes/node1");
  EXPECT_NE(node.find("\"connected\":true"), std::string::npos) << node;
  EXPECT_EQ(agent_hears(tls, "node0"),
            "lost: a certificate of node \"node1\" opens no stream of \"node0\"");
  // The next stream shows the new one.
  FirstWord again;
  channel.open(opening("node1"), again);
  real->run_until([&] { return !again.heard.empty(); });
  EXPECT_EQ(again.heard, "welcome");
  std::ifstream lines(directory_ + "/audit.log");
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_NE(line.find(R"("method":"RenewCertificate","node":"node1")"), std::string::npos) << line;
  EXPECT_EQ(line.find("CERTIFICATE"), std::string::npos) << line;
}

TEST_F(ServerTest, ACertificateIsRenewedByOneThatIsGoodAlone) {
  const TlsIdentity& authority = serving_->authority;
  EXPECT_FALSE(renew(agent_tls(authority, "node1", 366))) << "it has ended";
  AgentTls foreign = agent_tls(make_authority(RealClock().now_wall()).value(), "node1");
  foreign.authority = authority.certificate;
  EXPECT_FALSE(renew(foreign)) << "of another authority";
  const Result<std::string> gone = renew(agent_tls(authority, "node9"));
  ASSERT_FALSE(gone) << "the fleet has no such node";
  EXPECT_NE(gone.error().text().find("node9"), std::string::npos) << gone.error().text();
  // A token is no certificate.
  v1::RenewCertificateRequest asked;
  asked.set_certificate_request(request_certificate().value().request);
  const auto admin = client().call<v1::RenewCertificateResponse>("RenewCertificate", asked);
  ASSERT_FALSE(admin);
  EXPECT_NE(admin.error().text().find("shows the certificate"), std::string::npos);
}

TEST_F(ServerTest, TheNewestCertificateOfANodeHoldsItForGood) {
  const AgentTls before = agent_tls(serving_->authority, "node1", 10);
  const AgentTls after = agent_tls(serving_->authority, "node1", 5);
  EXPECT_EQ(agent_hears(before, "node1"), "welcome");
  EXPECT_TRUE(renew(before));
  EXPECT_EQ(agent_hears(after, "node1"), "welcome");
  const std::string refused = agent_hears(before, "node1");
  EXPECT_NE(refused.find("another agent joined as \"node1\""), std::string::npos) << refused;
  const Result<std::string> renewed = renew(before);
  ASSERT_FALSE(renewed);
  EXPECT_NE(renewed.error().text().find("not accepted any more"), std::string::npos)
      << renewed.error().text();
  EXPECT_TRUE(renew(after));
  EXPECT_EQ(agent_hears(after, "node1"), "welcome");
  v1::GetNodeRequest which;
  which.set_name("node1");
  const auto node = client().call<v1::Node>("GetNode", which);
  ASSERT_TRUE(node) << node.error().text();
  EXPECT_NE(node->refused_agent().find("127.0.0.1 refused once"), std::string::npos)
      << node->refused_agent();
}

}  // namespace
}  // namespace orrery
