// gateway/peers/peer_link_test.cpp - gateways that tell each other their charges, and datagrams
// that none of them has sent.
#include "gateway/peers/peer_link.hpp"

#include "gateway/gateway_test.hpp"
#include "gateway/peers/peer_seal.hpp"
#include "serving/peers/peer_message.hpp"

namespace orrery {
namespace {

constexpr const char* kKey = "0123456789abcdef0123456789abcdef";

/// The gateway g1 of the fixture, g2 beside it, and a socket that the table calls g3.
class PeerLinkTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    g2_ = make("g2");
    third_ = *DatagramSocket::bind(env_->loop(), "127.0.0.1:0",
                                   [this](std::string_view bytes) { heard_ = std::string(bytes); });
  }

  std::unique_ptr<Gateway> make(const std::string& name) {
    GatewayOptions options;
    options.name = name;
    Result<std::unique_ptr<Gateway>> gateway = Gateway::start(*env_, Log(sink_), options);
    EXPECT_TRUE(gateway) << gateway.error().message;
    return *std::move(gateway);
  }

  void set_tables(const RouteTable& without) {
    RouteTable table = without;
    table.peers = RoutedPeers{.key = kKey,
                              .gateways = {{"g1", gateway_->report().peer_address},
                                           {"g2", g2_->report().peer_address},
                                           {"g3", third_->address()}}};
    gateway_->set_table(table);
    g2_->set_table(table);
  }

  /// The value of a metric of a gateway.
  std::string metric(const Gateway& gateway, const std::string& name) {
    RawPeer peer(gateway.address());
    std::string text = get("/metrics");
    text.insert(text.find("\r\n") + 2, "Connection: close\r\n");
    peer.send(text);
    EXPECT_TRUE(run_until([&] {
      peer.read();
      return peer.ended();
    }));
    const std::string line = "\norrery_gateway_" + name + " ";
    const std::size_t begin = peer.received().find(line);
    if (begin == std::string::npos) return "none";
    const std::size_t value = begin + line.size();
    return peer.received().substr(value, peer.received().find('\n', value) - value);
  }
  std::string others_at(const Gateway& gateway) {
    return metric(gateway,
                  R"(peer_requests_in_flight{service="chat",tenant="org/a",job="1",attempt="1"})");
  }
  std::string refused(const std::string& reason) {
    return metric(*gateway_, "peer_messages_refused_total{reason=\"" + reason + "\"}");
  }
  /// A message of g3 with one request at replica 1.
  [[nodiscard]] GatewayCharges message() const {
    const auto now = env_->env().clock.now_wall() - Instant();
    return {.gateway = "g3",
            .process = 3,
            .sent_us = static_cast<std::uint64_t>(now.count_ns() / 1000),
            .charges = {{{1, 1}, {.in_flight = 1}}}};
  }
  void send(const GatewayCharges& message, std::string_view key = kKey) {
    const Instant now = env_->env().clock.now_monotonic();
    third_->send(*SocketAddress::parse("tcp:" + gateway_->report().peer_address),
                 sealed(write_peer_message(message, now), key));
  }

  std::unique_ptr<Gateway> g2_;
  std::unique_ptr<DatagramSocket> third_;
  std::string heard_;
};

TEST_F(PeerLinkTest, AGatewayKnowsWhatTheOtherHasSentUntilItEnds) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  set_tables(table_of({replica.address()}));
  RawPeer client(gateway_->address());
  client.send(request(kChat, R"({"model":"m"})"));
  EXPECT_TRUE(run_until([&] { return others_at(*g2_) == "1"; })) << others_at(*g2_);
  EXPECT_EQ(others_at(*gateway_), "0");
  EXPECT_EQ(metric(*g2_, "peers"), "1");
  RawPeer explained(g2_->address());
  explained.send(request(kChat, R"({"model":"m"})", "X-Request-Id: r2\r\n"));
  ASSERT_TRUE(run_until([&] { return replica.kept.size() == 2; }));
  RawPeer why(g2_->address());
  why.send(get("/explain/r2"));
  EXPECT_TRUE(receives(why, R"("in_flight":1,"others_in_flight":1)")) << why.received();
  replica.kept.clear();
  EXPECT_TRUE(run_until([&] { return others_at(*g2_) == "0" && others_at(*gateway_) == "0"; }));
}

TEST_F(PeerLinkTest, TheChargesOfAGatewayThatIsGoneAreForgotten) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  set_tables(table_of({replica.address()}));
  RawPeer client(gateway_->address());
  client.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return others_at(*g2_) == "1"; }));
  gateway_.reset();
  EXPECT_TRUE(run_until([&] { return others_at(*g2_) == "0"; }));
  EXPECT_EQ(metric(*g2_, "peers"), "0");
}

TEST_F(PeerLinkTest, OnlyASealedNewMessageOfAGatewayOfTheTableCounts) {
  set_tables(table_of({"127.0.0.1:9"}));
  send(message(), std::string(32, 'x'));
  EXPECT_TRUE(run_until([&] { return refused("seal") == "1"; }));
  GatewayCharges of_none = message();
  of_none.gateway = "g9";
  send(of_none);
  EXPECT_TRUE(run_until([&] { return refused("unknown") == "1"; }));
  GatewayCharges late = message();
  late.sent_us -= 11'000'000;
  send(late);
  EXPECT_TRUE(run_until([&] { return refused("clock") == "1"; }));
  EXPECT_EQ(others_at(*gateway_), "0");
  const GatewayCharges good = message();
  send(good);
  EXPECT_TRUE(run_until([&] { return others_at(*gateway_) == "1"; }));
  send(good);
  EXPECT_TRUE(run_until([&] { return refused("old") == "1"; }));
  ASSERT_TRUE(run_until([&] { return others_at(*gateway_) == "0"; })) << "it is silent";
  send(good);
  EXPECT_TRUE(run_until([&] { return refused("old") == "2"; }));
  EXPECT_EQ(others_at(*gateway_), "0");
}

TEST_F(PeerLinkTest, ATableWithoutAGatewayForgetsIt) {
  const RouteTable alone = table_of({"127.0.0.1:9"});
  set_tables(alone);
  send(message());
  ASSERT_TRUE(run_until([&] { return others_at(*gateway_) == "1"; }));
  gateway_->set_table(alone);
  EXPECT_EQ(others_at(*gateway_), "0");
  send(message());
  run_for(Duration::milliseconds(20));
  EXPECT_EQ(others_at(*gateway_), "0");
}

TEST_F(PeerLinkTest, ASecondGatewayOfANameChangesNothing) {
  set_tables(table_of({"127.0.0.1:9"}));
  ASSERT_TRUE(run_until([&] { return metric(*gateway_, "peers") == "1"; }));
  const std::unique_ptr<Gateway> second = make("g2");
  second->set_table(gateway_->table());
  EXPECT_TRUE(run_until([&] { return refused("second") != "0"; }));
  EXPECT_EQ(metric(*gateway_, "peers"), "1");
  const std::unique_ptr<Gateway> namesake = make("g1");
  namesake->set_table(gateway_->table());
  EXPECT_TRUE(run_until(
      [&] { return metric(*g2_, R"(peer_messages_refused_total{reason="second"})") != "0"; }));
}

TEST_F(PeerLinkTest, AMessageIsReadByWhoeverHasTheKey) {
  set_tables(table_of({"127.0.0.1:9"}));
  ASSERT_TRUE(run_until([&] { return !heard_.empty(); }));
  const std::string_view bytes = opened(heard_, kKey);
  const auto read = read_peer_message(bytes, env_->env().clock.now_monotonic());
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->charges.empty());
  for (std::size_t i = 0; i < heard_.size(); ++i) {
    std::string changed = heard_;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    ASSERT_TRUE(opened(changed, kKey).empty()) << i;
  }
}

TEST(PeerSeal, IsHmacSha256) {
  // RFC 4231, test case 2.
  const std::string made = sealed("what do ya want for nothing?", "Jefe");
  constexpr std::string_view kTag =
      "\x5b\xdc\xc1\x46\xbf\x60\x75\x4e\x6a\x04\x24\x26\x08\x95\x75\xc7"
      "\x5a\x00\x3f\x08\x9d\x27\x39\x83\x9d\xec\x58\xb9\x64\xec\x38\x43";
  EXPECT_EQ(made.substr(made.size() - 32).compare(0, 32, kTag.data(), 32), 0);
  EXPECT_EQ(opened(made, "Jefe"), "what do ya want for nothing?");
}

}  // namespace
}  // namespace orrery
