// gateway/gateway_test.cpp - real sockets on loopback: clients that write raw HTTP, and replicas
// that are scripted.
#include "gateway/gateway.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "gateway/gateway_test.hpp"

namespace orrery {
namespace {

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
  EXPECT_EQ(body_of(peer.received()), all);
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

TEST_F(GatewayTest, WaitsLongerForAReplicaThatRests) {
  ScriptedReplica replica(env_->loop());
  RouteTable table = table_of({});
  table.services[0].wakes_in_s = 60;
  gateway_->set_table(table);
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, R"({"model":"m"})"));
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 1; }));
  run_for(Duration::milliseconds(400));
  EXPECT_EQ(gateway_->calls(), 1u) << "others are refused after 150 ms";
  EXPECT_EQ(gateway_->report().services[0].waiting, 1u);
  table = table_of({replica.address()});
  gateway_->set_table(table);
  ASSERT_TRUE(receives(peer, "total_tokens"));
  EXPECT_EQ(gateway_->report().services[0].waiting, 0u);
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
  EXPECT_NE(ask(get("/v1/models/e")).find(R"({"id":"e","object":"model","created":0,)"),
            std::string::npos);
  const std::string others_model = ask(get("/v1/models/m", "b"));
  EXPECT_TRUE(others_model.starts_with("HTTP/1.1 404"));
  EXPECT_NE(others_model.find("model_not_found"), std::string::npos);
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

TEST_F(GatewayTest, ACanaryIsCountedApartAndItsAnswersCanBeScored) {
  ScriptedReplica former(env_->loop());
  ScriptedReplica canary(env_->loop());
  RouteTable table = table_of({former.address(), canary.address()});
  table.services[0].replicas[0].revision = 1;
  table.services[0].replicas[1].revision = 2;
  table.services[0].canary = RoutedCanary{2, 0.5};
  gateway_->set_table(table);
  canary.react = [](WebExchange& exchange) { exchange.abort(); };
  constexpr std::string_view kBody = R"({"model":"m"})";
  for (int i = 0; i < 20; ++i) {
    const std::string answer = ask(request(kChat, kBody, fmt::format("x-request-id: r{}\r\n", i)));
    EXPECT_NE(answer.find("HTTP/1.1 200"), std::string::npos) << answer;
    EXPECT_NE(answer.find("x-orrery-revision: 1\r\n"), std::string::npos) << answer;
  }
  const CanaryReport counts = gateway_->report().services[0].canary.value();
  EXPECT_EQ(counts.revision, 2u);
  EXPECT_GT(counts.canary.failed, 0u);
  EXPECT_EQ(counts.canary.failed, counts.canary.requests) << "others answered for it";
  EXPECT_EQ(counts.others.requests, 20u);
  EXPECT_EQ(counts.others.failed, 0u);
  const auto feedback = [this](std::string_view body, std::string_view key = "all") {
    std::string text = request("/v1/feedback", body);
    text.replace(text.find("Bearer all"), 10, "Bearer " + std::string(key));
    return ask(text);
  };
  EXPECT_NE(feedback(R"({"model":"m","revision":1,"score":0.25})").find("200"), std::string::npos);
  for (const char* unknown :
       {R"({"model":"n","revision":1,"score":1})", R"({"model":"m","revision":3,"score":1})"}) {
    EXPECT_NE(feedback(unknown).find("404"), std::string::npos) << unknown;
  }
  EXPECT_NE(feedback(R"({"model":"m","revision":1,"score":1})", "b").find("404"),
            std::string::npos);
  for (const char* wrong :
       {"", "[]", R"({"model":"m","revision":1})", R"({"model":1,"revision":1,"score":1})",
        R"({"model":"m","revision":-1,"score":1})", R"({"model":"m","revision":"1","score":1})",
        R"({"model":"m","revision":1,"score":1.5})", R"({"model":"m","revision":1,"score":"1"})"}) {
    EXPECT_NE(feedback(wrong).find("400"), std::string::npos) << wrong;
  }
  EXPECT_EQ(gateway_->report().services[0].canary->others.scores, 1);
  EXPECT_EQ(gateway_->report().services[0].canary->others.score_sum, 0.25);
  table.epoch += 1;
  table.services[0].canary.reset();
  gateway_->set_table(table);
  EXPECT_FALSE(gateway_->report().services[0].canary);
}

}  // namespace
}  // namespace orrery
