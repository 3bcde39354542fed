// gateway/gateway_test.cpp - real sockets on loopback: clients that write raw HTTP, and replicas
// that are scripted.
#include "gateway/gateway.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/system/real_env.hpp"
#include "gateway/access_keys.hpp"
#include "http/loop_test.hpp"

namespace orrery {
namespace {

constexpr std::string_view kChat = "/v1/chat/completions";

class NoLog final : public LogSink {
 public:
  void write_line(std::string_view) override {}
};

/// A replica: keeps the requests it gets; `react` answers them, or leaves them in `kept`.
class ScriptedReplica final : public WebHandler {
 public:
  explicit ScriptedReplica(RealLoop& loop) : server_(*WebServer::listen(loop, {}, *this)) {
    react = [](WebExchange& exchange) {
      exchange.respond(200, "application/json",
                       R"({"id":"x","usage":{"prompt_tokens":3,)"
                       R"("completion_tokens":5,"total_tokens":8}})");
    };
  }

  void on_request(WebExchange exchange) override {
    seen.push_back(exchange.request());
    kept.push_back(std::move(exchange));
    kept.back().on_gone([this] { ++gone; });
    react(kept.back());
    if (!kept.back().open()) kept.pop_back();
  }

  [[nodiscard]] const std::string& address() const { return server_->address(); }
  void close() { server_.reset(); }

  std::function<void(WebExchange&)> react;
  std::vector<WebRequest> seen;
  std::deque<WebExchange> kept;
  int gone = 0;

 private:
  std::unique_ptr<WebServer> server_;
};

void begin_stream(WebExchange& exchange) {
  const WebHeader type{"Content-Type", "text/event-stream; charset=utf-8"};
  exchange.begin(200, {&type, 1});
}

class GatewayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tick();
    start({.wait = Duration::milliseconds(150)});
  }

  void start(GatewayOptions options) {
    gateway_.reset();
    options.name = "g1";
    Result<std::unique_ptr<Gateway>> gateway = Gateway::start(*env_, Log(sink_), options);
    ASSERT_TRUE(gateway) << gateway.error().message;
    gateway_ = *std::move(gateway);
  }

  void tick() {
    env_->loop().call_after(Duration::milliseconds(2), [this] { tick(); });
  }

  bool run_until(const std::function<bool()>& condition) {
    const RealClock clock;
    const Instant limit = clock.now_monotonic() + Duration::seconds(20);
    while (!condition()) {
      if (clock.now_monotonic() > limit) return false;
      env_->loop().run_round();
    }
    return true;
  }
  void run_for(Duration duration) {
    const RealClock clock;
    const Instant end = clock.now_monotonic() + duration;
    run_until([&] { return clock.now_monotonic() >= end; });
  }

  /// A table with the service "chat" of model "m" at these endpoints, jobs from 1, and three keys.
  RouteTable table_of(const std::vector<std::string>& endpoints) {
    RouteTable table{.epoch = ++epoch_};
    table.services.push_back({.id = 1, .name = "chat", .model = "m", .tenant = "org/a"});
    std::uint64_t job = 1;
    for (const std::string& endpoint : endpoints) {
      table.services[0].replicas.push_back({.job = job++, .attempt = 1, .endpoint = endpoint});
    }
    table.keys = {{.sha256 = sha256_hex("all"), .name = "root", .tenant = ""},
                  {.sha256 = sha256_hex("org"), .name = "org", .tenant = "org"},
                  {.sha256 = sha256_hex("b"), .name = "other", .tenant = "org/b"}};
    return table;
  }

  static std::string request(std::string_view path, std::string_view body,
                             std::string_view more = "") {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer all\r\nContent-Length: "
        "{}\r\n{}\r\n{}",
        path, body.size(), more, body);
  }
  static std::string get(std::string_view path, std::string_view key = "all") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {}\r\n\r\n", path, key);
  }

  /// Sends a request on a connection of its own, which says that it is the last, and returns the
  /// whole answer.
  std::string ask(std::string text) {
    text.insert(text.find("\r\n") + 2, "Connection: close\r\n");
    RawPeer peer(gateway_->address());
    peer.send(text);
    EXPECT_TRUE(run_until([&] {
      peer.read();
      return peer.ended();
    })) << peer.received();
    return peer.received();
  }
  bool receives(RawPeer& peer, std::string_view text) {
    return run_until([&] {
      peer.read();
      return peer.received().find(text) != std::string::npos;
    });
  }

  /// Has a client ask for a stream, which the replica begins and keeps.
  RawPeer stream_of(ScriptedReplica& replica) {
    replica.react = begin_stream;
    gateway_->set_table(table_of({replica.address()}));
    RawPeer peer(gateway_->address());
    peer.send(request(kChat, R"({"model":"m","stream":true})"));
    EXPECT_TRUE(run_until([&] { return replica.kept.size() == 1; }));
    return peer;
  }

  ServiceCounts counts() { return gateway_->report().services.at(0).counts; }

  NoLog sink_;
  std::unique_ptr<RealEnv> env_ = *RealEnv::create();
  std::unique_ptr<Gateway> gateway_;
  std::uint64_t epoch_ = 0;
};

TEST_F(GatewayTest, PassesAWholeAnswerOn) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  const std::string body = R"({"model":"m","messages":[{"role":"user","content":"hi"}]})";
  const std::string answer =
      ask(request(kChat, body, "x-request-id: mine\r\ntraceparent: 00-1-2-3\r\nX-Other: kept\r\n"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK\r\n")) << answer;
  EXPECT_NE(answer.find("x-request-id: mine"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\"total_tokens\":8}}"));
  ASSERT_EQ(replica.seen.size(), 1u);
  const WebRequest& seen = replica.seen[0];
  EXPECT_EQ(seen.body, body);
  EXPECT_EQ(seen.target, kChat);
  EXPECT_EQ(seen.headers.find("x-request-id"), "mine");
  EXPECT_EQ(seen.headers.find("traceparent"), "00-1-2-3");
  EXPECT_EQ(seen.headers.find("x-other"), "kept");
  EXPECT_EQ(seen.headers.find("authorization"), std::nullopt);
  EXPECT_EQ(seen.headers.find("connection"), std::nullopt);
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().prompt_tokens, 3u);
  EXPECT_EQ(counts().output_tokens, 5u);
  EXPECT_EQ(gateway_->calls(), 0u);
}

TEST_F(GatewayTest, PassesAStreamOnByteForByte) {
  ScriptedReplica replica(env_->loop());
  RawPeer peer = stream_of(replica);
  ASSERT_EQ(replica.kept.size(), 1u);
  const std::vector<std::string> pieces = {
      ": comment\n\n",
      "data: {\"a\"",
      ":1}\n\nda",
      "ta: {\"a\":2}\r\n\r\n",
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\n",
      "data: [DONE]\n\n"};
  std::string all;
  for (const std::string& piece : pieces) {
    replica.kept[0].send(piece);
    all += piece;
    run_for(Duration::milliseconds(3));
  }
  replica.kept[0].end();
  ASSERT_TRUE(receives(peer, "\r\n0\r\n\r\n"));
  std::string text = peer.received().substr(peer.received().find("\r\n\r\n") + 4);
  std::string joined;
  while (!text.empty()) {
    const std::size_t size = std::stoul(text, nullptr, 16);
    text.erase(0, text.find("\r\n") + 2);
    joined += text.substr(0, size);
    text.erase(0, size + 2);
  }
  EXPECT_EQ(joined, all);
  EXPECT_NE(peer.received().find("Content-Type: text/event-stream"), std::string::npos);
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().prompt_tokens, 7u);
  EXPECT_EQ(counts().output_tokens, 2u);
  EXPECT_EQ(gateway_->report().services[0].ttft.count(), 1u);
  EXPECT_EQ(gateway_->report().services[0].tpot.count(), 1u);
}

TEST_F(GatewayTest, CountsTheChunksOfAStreamWithoutUsage) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange& exchange) {
    begin_stream(exchange);
    exchange.send("data: {\"usage\":null}\n\ndata: {\"b\":1}\n\ndata: {}\n\ndata: [DONE]\n\n");
    exchange.end();
  };
  gateway_->set_table(table_of({replica.address()}));
  ask(request(kChat, R"({"model":"m","stream":true})"));
  EXPECT_EQ(counts().output_tokens, 3u);
}

TEST_F(GatewayTest, RefusesWhatItMust) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  const auto expect = [&](const std::string& text, std::string_view status,
                          std::string_view contains) {
    const std::string answer = ask(text);
    EXPECT_TRUE(answer.starts_with(fmt::format("HTTP/1.1 {} ", status))) << answer;
    EXPECT_NE(answer.find(contains), std::string::npos) << answer;
    const nlohmann::json error =
        nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n") + 4))["error"];
    for (const char* key : {"message", "type", "param", "code"}) EXPECT_TRUE(error.contains(key));
  };
  const std::string body = R"({"model":"m"})";
  std::string no_key = request(kChat, body);
  no_key.replace(no_key.find("Bearer all"), 10, "Bearer bad");
  expect(no_key, "401", "invalid_api_key");
  std::string other_tenant = request(kChat, body);
  other_tenant.replace(other_tenant.find("Bearer all"), 10, "Bearer b  ");
  expect(other_tenant, "404", "model_not_found");
  expect(request(kChat, R"({"model":"none"})"), "404", "The model 'none' does not exist");
  expect(request(kChat, "{\n\"model\": nope}"), "400", "'model' must be");
  expect(request(kChat, "{\n\"messages\": [,"), "400", "not a JSON object");
  expect(request(kChat, R"({"messages":[]})"), "400", R"("param":"model")");
  expect(request(kChat, R"({"model":"m","stream":3})"), "400", R"("param":"stream")");
  expect(request("/v1/other", body), "404", "unknown_url");
  expect(get("/v1/chat/completions"), "404", "unknown_url");
  expect(request(kChat, body, "Content-Length: 99999999999\r\n"), "400", "error");
  std::string large = request(kChat, body);
  large.replace(large.find("Content-Length: 13"), 18, "Content-Length: 99999999999");
  expect(large, "413", "invalid_request_error");
  EXPECT_TRUE(replica.seen.empty());
  for (const std::string& refused : {request("/v1/other", body, "X-Request-Id: mine\r\n"),
                                     request(kChat, "{}", "X-Request-Id: mine\r\n")}) {
    EXPECT_NE(ask(refused).find("\r\nx-request-id: mine\r\n"), std::string::npos);
  }
  EXPECT_NE(ask(get("/v1/models", "bad")).find("\r\nx-request-id: "), std::string::npos);
}

TEST_F(GatewayTest, TriesAnotherReplicaBeforeTheFirstByte) {
  ScriptedReplica refusing(env_->loop());
  const std::string refused = refusing.address();
  refusing.close();
  RawListener resetting;
  ScriptedReplica busy(env_->loop());
  busy.react = [](WebExchange& exchange) { exchange.respond(503, "text/plain", "draining"); };
  ScriptedReplica headless(env_->loop());
  headless.react = [](WebExchange& exchange) {
    begin_stream(exchange);
    exchange.send("data: {\"half");  // no whole event has come
    exchange.abort();
  };
  ScriptedReplica good(env_->loop());
  gateway_->set_table(
      table_of({refused, resetting.address(), busy.address(), headless.address(), good.address()}));
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m"})", "x-request-id: r1\r\n"));
  std::unique_ptr<RawPeer> reset;
  ASSERT_TRUE(run_until([&] { return (reset = resetting.accept()) != nullptr; }));
  reset->reset();
  ASSERT_TRUE(receives(peer, "total_tokens"));
  EXPECT_TRUE(peer.received().starts_with("HTTP/1.1 200 OK"));
  EXPECT_EQ(busy.seen.size(), 1u);
  EXPECT_EQ(headless.seen.size(), 1u);
  EXPECT_EQ(good.seen.size(), 1u);
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().failed, 0u);
  for (const ReplicaLoad& load : gateway_->report().replicas) EXPECT_EQ(load.in_flight, 0u);

  const std::string explained = ask(get("/explain/r1"));
  const auto json = nlohmann::json::parse(explained.substr(explained.find("\r\n\r\n") + 4));
  ASSERT_EQ(json["decisions"].size(), 5u) << json.dump(1);
  EXPECT_EQ(json["decisions"][4]["candidates"][0]["verdict"], "excluded");
  EXPECT_EQ(json["decisions"][4]["candidates"][4]["verdict"], "chosen");
  EXPECT_TRUE(ask(get("/explain/r1", "b")).starts_with("HTTP/1.1 404"));
  EXPECT_TRUE(ask(get("/explain/none")).starts_with("HTTP/1.1 404"));
}

TEST_F(GatewayTest, FailsOnceEveryReplicaHas) {
  ScriptedReplica refusing(env_->loop());
  const std::string refused = refusing.address();
  refusing.close();
  gateway_->set_table(table_of({refused}));
  const std::string answer = ask(request(kChat, R"({"model":"m"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 502")) << answer;
  EXPECT_EQ(counts().failed, 1u);
}

TEST_F(GatewayTest, EndsABrokenStreamWithAnError) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange& exchange) {
    begin_stream(exchange);
    exchange.send("data: {\"a\":1}\n\ndata: {\"a\":");
  };
  gateway_->set_table(table_of({replica.address()}));
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m","stream":true})"));
  ASSERT_TRUE(receives(peer, "{\"a\":1}"));
  replica.kept[0].abort();
  ASSERT_TRUE(receives(peer, "\r\n0\r\n\r\n"));
  EXPECT_NE(peer.received().find("data: {\"error\":{\"message\""), std::string::npos);
  EXPECT_EQ(peer.received().find("{\"a\":\r"), std::string::npos);
  EXPECT_EQ(counts().failed, 1u);
  EXPECT_EQ(counts().completed, 0u);
}

TEST_F(GatewayTest, CancelsTheCallOfAClientThatLeaves) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange& exchange) {
    begin_stream(exchange);
    exchange.send("data: {\"a\":1}\n\n");
  };
  gateway_->set_table(table_of({replica.address()}));
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m","stream":true})"));
  ASSERT_TRUE(receives(peer, "{\"a\":1}"));
  peer.close();
  ASSERT_TRUE(run_until([&] { return replica.gone == 1; }));
  EXPECT_EQ(counts().cancelled, 1u);
  EXPECT_EQ(gateway_->calls(), 0u);
  EXPECT_EQ(gateway_->report().replicas[0].in_flight, 0u);
}

TEST_F(GatewayTest, WaitsForAReplica) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({}));
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 1; }));
  gateway_->set_table(table_of({replica.address()}));
  ASSERT_TRUE(receives(peer, "total_tokens"));

  gateway_->set_table(table_of({}));
  const std::string answer = ask(request(kChat, R"({"model":"m"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503")) << answer;
  EXPECT_NE(answer.find("Retry-After: "), std::string::npos);
}

TEST_F(GatewayTest, QueuesAndShedsBeyondItsLimits) {
  start({.wait = Duration::milliseconds(50), .router = {.in_flight_max = 1, .queue_max = 1}});
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  gateway_->set_table(table_of({replica.address()}));
  RawPeer first(gateway_->address());
  RawPeer second(gateway_->address());
  first.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return replica.kept.size() == 1; }));
  second.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 2; }));
  const std::string shed = ask(request(kChat, R"({"model":"m"})"));
  EXPECT_TRUE(shed.starts_with("HTTP/1.1 429")) << shed;
  EXPECT_NE(shed.find("Retry-After: "), std::string::npos);
  EXPECT_EQ(replica.kept.size(), 1u);
  replica.kept[0].respond(200, "application/json", "{}");
  ASSERT_TRUE(run_until([&] { return replica.kept.size() == 2; }));
  replica.kept[1].respond(200, "application/json", "{}");
  ASSERT_TRUE(receives(second, "{}"));
  EXPECT_EQ(counts().shed, 1u);
  EXPECT_EQ(counts().completed, 2u);
}

TEST_F(GatewayTest, FinishesCallsToReplicasThatATableLacks) {
  ScriptedReplica old(env_->loop());
  ScriptedReplica fresh(env_->loop());
  RawPeer peer = stream_of(old);
  ASSERT_EQ(old.kept.size(), 1u);
  RouteTable next = table_of({fresh.address()});
  next.services[0].replicas[0].job = 9;
  gateway_->set_table(next);
  EXPECT_NE(ask(request(kChat, R"({"model":"m"})")).find("total_tokens"), std::string::npos);
  old.kept[0].send("data: late\n\n");
  old.kept[0].end();
  ASSERT_TRUE(receives(peer, "data: late"));
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 0; }));
  EXPECT_EQ(counts().completed, 2u);
  EXPECT_EQ(old.seen.size(), 1u);
}

TEST_F(GatewayTest, LosesNothingWhenTablesChangeUnderLoad) {
  ScriptedReplica a(env_->loop());
  ScriptedReplica b(env_->loop());
  gateway_->set_table(table_of({a.address(), b.address()}));
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 16; ++i) peers.push_back(std::make_unique<RawPeer>(gateway_->address()));
  const std::string text = request(kChat, R"({"model":"m"})");
  int sent = 0;
  std::size_t answered = 0;
  for (int round = 0; round < 60; ++round) {
    for (auto& peer : peers) peer->send(text);
    sent += static_cast<int>(peers.size());
    gateway_->set_table(round % 3 == 0   ? table_of({a.address()})
                        : round % 3 == 1 ? table_of({b.address(), a.address()})
                                         : table_of({}));
    ASSERT_TRUE(run_until([&] {
      std::size_t complete = 0;
      for (auto& peer : peers) {
        peer->read();
        complete += peer->received().find("total_tokens") != std::string::npos ? 1 : 0;
      }
      if (gateway_->table().services[0].replicas.empty() && gateway_->calls() == peers.size()) {
        gateway_->set_table(table_of({b.address()}));
      }
      return complete == peers.size();
    }));
    for (auto& peer : peers) {
      EXPECT_TRUE(peer->received().starts_with("HTTP/1.1 200"));
      peer->received().clear();
      ++answered;
    }
  }
  EXPECT_EQ(counts().completed, answered);
  EXPECT_EQ(static_cast<int>(answered), sent);
}

TEST_F(GatewayTest, KeepsServicesApart) {
  ScriptedReplica one(env_->loop());
  ScriptedReplica two(env_->loop());
  RouteTable table = table_of({one.address()});
  table.services.push_back({.id = 2,
                            .name = "embed",
                            .model = "e",
                            .tenant = "org/b",
                            .replicas = {{.job = 5, .attempt = 2, .endpoint = two.address()}}});
  gateway_->set_table(table);
  ask(request("/v1/embeddings", R"({"model":"e","input":"x"})"));
  ask(request("/v1/completions", R"({"model":"m","prompt":"x"})"));
  ASSERT_EQ(one.seen.size(), 1u);
  ASSERT_EQ(two.seen.size(), 1u);
  EXPECT_EQ(two.seen[0].target, "/v1/embeddings");
  EXPECT_EQ(gateway_->report().services.size(), 2u);

  const std::string all = ask(get("/v1/models"));
  EXPECT_NE(all.find(R"("id":"e")"), std::string::npos);
  EXPECT_NE(all.find(R"("id":"m")"), std::string::npos);
  const std::string other = ask(get("/v1/models", "b"));
  EXPECT_NE(other.find(R"("id":"e")"), std::string::npos);
  EXPECT_EQ(other.find(R"("id":"m")"), std::string::npos);
  EXPECT_TRUE(ask(get("/v1/models", "bad")).starts_with("HTTP/1.1 401"));
  for (const char* path : {"/healthz", "/health"}) {
    EXPECT_TRUE(ask(get(path, "bad")).starts_with("HTTP/1.1 200")) << path;
  }
  const std::string metrics = ask(get("/metrics", "bad"));
  EXPECT_NE(metrics.find("orrery_gateway_requests_total{service=\"embed\",tenant=\"org/b\","
                         "outcome=\"completed\"} 1\n"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("orrery_gateway_table_epoch 1\n"), std::string::npos);
}

TEST_F(GatewayTest, PassesErrorsOfTheEngineOn) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange& exchange) {
    exchange.respond(400, "application/json", R"({"error":{"message":"too long"}})");
  };
  gateway_->set_table(table_of({replica.address()}));
  const std::string answer = ask(request(kChat, R"({"model":"m"})"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 400")) << answer;
  EXPECT_NE(answer.find("too long"), std::string::npos);
  EXPECT_EQ(counts().completed, 1u);
  replica.react = [](WebExchange& exchange) { exchange.respond(500, "text/plain", "oops"); };
  EXPECT_TRUE(ask(request(kChat, R"({"model":"m"})")).starts_with("HTTP/1.1 500"));
  EXPECT_EQ(counts().failed, 1u);
}

TEST_F(GatewayTest, SlowsAReplicaDownForASlowClient) {
  ScriptedReplica replica(env_->loop());
  RawPeer peer = stream_of(replica);
  ASSERT_EQ(replica.kept.size(), 1u);
  const std::string event = "data: " + std::string(100'000, 'x') + "\n\n";
  std::size_t sent = 0;
  while (sent < (std::size_t{64} << 20) && replica.kept[0].buffered() < 2'000'000) {
    replica.kept[0].send(event);
    sent += event.size();
    env_->loop().run_round();
  }
  EXPECT_GE(replica.kept[0].buffered(), 2'000'000u);
  replica.kept[0].send("data: [DONE]\n\n");
  replica.kept[0].end();
  ASSERT_TRUE(run_until([&] {
    peer.read();
    return peer.received().ends_with("\r\n0\r\n\r\n");
  }));
  EXPECT_GE(peer.received().size(), sent);
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 0; }));
  EXPECT_EQ(counts().completed, 1u);
}

TEST_F(GatewayTest, StopsOnceItsCallsHaveEnded) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  gateway_->set_table(table_of({replica.address()}));
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return replica.kept.size() == 1; }));
  bool stopped = false;
  gateway_->stop([&] { stopped = true; });
  run_for(Duration::milliseconds(10));
  EXPECT_FALSE(stopped);
  replica.kept[0].respond(200, "application/json", "{}");
  ASSERT_TRUE(receives(peer, "{}"));
  EXPECT_TRUE(run_until([&] { return stopped; }));
}

}  // namespace
}  // namespace orrery
