// gateway/prompt/sticky_session_test.cpp - sessions over a gateway: their requests go to the
// replica that has their prompt, until it is saturated or has lost it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gateway/gateway_test.hpp"

namespace orrery {
namespace {

using nlohmann::json;

/// A conversation that grows with each request.
class Session {
 public:
  explicit Session(char name) { add(std::string(1200, name)); }

  void add(const std::string& content) {
    if (!messages_.empty()) messages_ += ",";
    messages_ += R"({"role":"user","content":")" + content + "\"}";
  }
  [[nodiscard]] std::string body(std::string_view more = "") const {
    return fmt::format(R"({{"model":"m","max_tokens":4{},"messages":[{}]}})", more, messages_);
  }

 private:
  std::string messages_;
};

class StickySessionTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    for (ScriptedReplica* each : {&first_, &second_}) {
      each->react = [](WebExchange& exchange) {
        exchange.respond(200, "application/json",
                         fmt::format(R"({{"usage":{{"prompt_tokens":{},"completion_tokens":4}}}})",
                                     exchange.request().body.size() / 4));
      };
    }
    gateway_->set_table(paced_table());
  }

  /// Two replicas with two slots each: 2000 prompt tokens a second, steps of 10 ms.
  RouteTable paced_table() {
    RouteTable table = table_of({first_.address(), second_.address()});
    table.services[0].ttft_p99_s = 1;
    for (RoutedReplica& each : table.services[0].replicas) {
      each.slots = 2;
      each.pace = {2000, 0.01, 0.011};
    }
    return table;
  }
  ScriptedReplica& other_than(const ScriptedReplica& one) {
    return &one == &first_ ? second_ : first_;
  }
  /// The replica that answers a request of the session.
  ScriptedReplica& ask_in(const Session& session, std::string_view more = "") {
    const std::size_t before = first_.seen.size();
    EXPECT_TRUE(ask(request(kChat, session.body(), more)).starts_with("HTTP/1.1 200"));
    return first_.seen.size() > before ? first_ : second_;
  }
  json explained(std::string_view id) {
    const std::string answer = ask(get(fmt::format("/explain/{}", id)));
    return json::parse(answer.substr(answer.find("\r\n\r\n") + 4))["decisions"].back();
  }
  /// The candidate of a decision with a verdict.
  static json candidate(const json& decision, std::string_view verdict) {
    for (const json& each : decision["candidates"]) {
      if (each["verdict"] == verdict) return each;
    }
    return json::object();
  }

  ScriptedReplica first_{env_->loop()};
  ScriptedReplica second_{env_->loop()};
};

TEST_F(StickySessionTest, ASessionStaysWithTheReplicaThatHasItsPrompt) {
  std::vector<Session> sessions{Session('a'), Session('b'), Session('c'), Session('d')};
  std::vector<ScriptedReplica*> homes;
  homes.reserve(sessions.size());
  for (const Session& session : sessions) homes.push_back(&ask_in(session));
  for (int turn = 0; turn < 3; ++turn) {
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      sessions[i].add("and what follows from turn " + std::to_string(turn));
      EXPECT_EQ(&ask_in(sessions[i]), homes[i]) << "session " << i << ", turn " << turn;
    }
  }
  ask_in(sessions[0], "x-request-id: r1\r\n");
  const json decision = explained("r1");
  const json chosen = candidate(decision, "chosen");
  EXPECT_GE(chosen["cached_tokens"], 256);
  EXPECT_GT(decision["prompt_tokens"], chosen["cached_tokens"]);
  EXPECT_LT(chosen["expected_ttft_s"], 0.2);
  EXPECT_NEAR(chosen["expected_tpot_s"], 0.01, 0.009);
}

TEST_F(StickySessionTest, ASaturatedReplicaLosesTheSessionToAnother) {
  const Session session('s');
  ScriptedReplica& home = ask_in(session);
  home.react = [](WebExchange&) {};  // answers no more; it has room for three
  std::vector<std::unique_ptr<RawPeer>> busy;
  for (int i = 0; i < 3; ++i) {
    busy.push_back(std::make_unique<RawPeer>(gateway_->address()));
    busy.back()->send(request(kChat, session.body(R"(,"stream":true)")));
    ASSERT_TRUE(run_until([&] { return home.kept.size() == busy.size(); }));
  }
  EXPECT_EQ(&ask_in(session, "x-request-id: r2\r\n"), &other_than(home));
  const json decision = explained("r2");
  EXPECT_EQ(candidate(decision, "chosen")["cached_tokens"], 0);
}

TEST_F(StickySessionTest, AnEngineThatCachesNothingIsNotBelieved) {
  for (ScriptedReplica* each : {&first_, &second_}) {
    each->react = [](WebExchange& exchange) {
      exchange.respond(200, "application/json",
                       R"({"usage":{"prompt_tokens":330,"completion_tokens":5,)"
                       R"("prompt_tokens_details":{"cached_tokens":0}}})");
    };
  }
  const Session session('n');
  for (int i = 0; i < 60; ++i) ask_in(session);
  ask_in(session, "x-request-id: r3\r\n");
  EXPECT_LT(candidate(explained("r3"), "chosen")["cached_tokens"], 30);
}

TEST_F(StickySessionTest, OtherPoliciesTakeNoNoteOfCaches) {
  start({.router = {.policy = RoutePolicy::kRoundRobin}});
  gateway_->set_table(paced_table());
  const Session session('r');
  for (int i = 0; i < 6; ++i) ask_in(session);
  EXPECT_EQ(first_.seen.size(), 3u);
  EXPECT_EQ(second_.seen.size(), 3u);
}

}  // namespace
}  // namespace orrery
