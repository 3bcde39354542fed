// gateway/apart/prompt_hop_test.cpp - requests whose prompt one replica computes and another one
// answers, as vLLM has it; both are scripted.
#include <nlohmann/json.hpp>

#include "gateway/apart/prompt_bodies.hpp"
#include "gateway/gateway_test.hpp"

namespace orrery {
namespace {

using nlohmann::json;

constexpr std::string_view kPlace =
    R"({"do_remote_prefill":true,"do_remote_decode":false,"remote_block_ids":[4,5],)"
    R"("remote_engine_id":"e1","remote_host":"10.0.0.9","remote_port":5600})";

void compute_prompt(WebExchange& exchange) {
  exchange.respond(200, "application/json",
                   R"({"id":"p","choices":[],"usage":{"prompt_tokens":900,)"
                   R"("completion_tokens":1},"kv_transfer_params":)" +
                       std::string(kPlace) + "}");
}

class PromptHopTest : public GatewayTest {
 protected:
  void SetUp() override {
    GatewayTest::SetUp();
    prompts_.react = compute_prompt;
    RouteTable table = table_of({prompts_.address(), answers_.address()});
    RoutedService& service = table.services[0];
    service.tpot_p99_s = 0.05;
    for (RoutedReplica& each : service.replicas) {
      each.slots = 8;
      each.pace = {1000, 0.01, 0.01};
    }
    service.replicas[0].duty = ReplicaDuty::kPrefill;
    service.replicas[0].transfer = RoutedTransfer{.token_bytes = 1e5, .bytes_s = 1e10};
    service.replicas[1].duty = ReplicaDuty::kDecode;
    gateway_->set_table(table);
  }

  /// Begins a stream at the replica that answers, beside which a long prompt would be computed.
  RawPeer busy() {
    answers_.react = begin_stream;
    RawPeer peer(gateway_->address());
    peer.send(request(kChat, R"({"model":"m","messages":[],"stream":true,"max_tokens":50})"));
    EXPECT_TRUE(run_until([&] { return answers_.kept.size() == 1; }));
    EXPECT_TRUE(prompts_.seen.empty());
    return peer;
  }

  /// A body with a long prompt that none had before, and other keys.
  std::string long_body(const std::string& more = "") {
    return fmt::format(R"({{"model":"m","messages":[{{"role":"user","content":"{} {}"}}]{}}})",
                       ++bodies_, std::string(40'000, 'x'), more);
  }

  std::uint64_t in_flight() {
    std::uint64_t sum = 0;
    for (const ReplicaLoad& each : gateway_->report().replicas) sum += each.in_flight;
    return sum;
  }

  ScriptedReplica prompts_{env_->loop()};
  ScriptedReplica answers_{env_->loop()};
  int bodies_ = 0;
};

void answer_whole(WebExchange& exchange) {
  exchange.respond(200, "application/json",
                   R"({"id":"d","usage":{"prompt_tokens":900,"completion_tokens":7}})");
}

TEST_F(PromptHopTest, ALongPromptGoesOverBothReplicas) {
  RawPeer first = busy();
  answers_.react = answer_whole;
  const std::string body = long_body(R"(,"max_tokens":50,"stream_options":null,"min_tokens":9)");
  const std::string answer = ask(request(kChat, body, "x-request-id: r1\r\n"));
  EXPECT_TRUE(answer.ends_with(R"("completion_tokens":7}})")) << answer;
  ASSERT_EQ(prompts_.seen.size(), 1u);
  EXPECT_EQ(prompts_.seen[0].headers.find("x-request-id"), "r1");
  const json prompt = json::parse(prompts_.seen[0].body);
  EXPECT_EQ(prompt["max_tokens"], 1);
  EXPECT_EQ(prompt["max_completion_tokens"], 1);
  EXPECT_EQ(prompt["min_tokens"], 0);
  EXPECT_EQ(prompt["ignore_eos"], true);
  EXPECT_EQ(prompt["stream"], false);
  EXPECT_EQ(prompt["kv_transfer_params"]["do_remote_decode"], true);
  EXPECT_EQ(prompt["kv_transfer_params"]["do_remote_prefill"], false);
  EXPECT_EQ(prompt["messages"], json::parse(body)["messages"]);
  ASSERT_EQ(answers_.seen.size(), 2u);
  EXPECT_EQ(answers_.seen[1].headers.find("x-request-id"), "r1");
  json sent = json::parse(answers_.seen[1].body);
  EXPECT_EQ(sent["kv_transfer_params"], json::parse(kPlace));
  sent.erase("kv_transfer_params");
  EXPECT_EQ(sent, json::parse(body)) << "all else as the client has it";
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().prompt_tokens, 900u) << "of the answer, not of both";
  EXPECT_EQ(counts().output_tokens, 7u);
  EXPECT_EQ(in_flight(), 1u) << "the stream alone";
  const std::string why = ask(get("/explain/r1"));
  EXPECT_NE(why.find(R"("verdict":"prefill")"), std::string::npos) << why;
  EXPECT_NE(why.find(R"("local_job":2)"), std::string::npos) << why;
}

TEST_F(PromptHopTest, AStreamComesFromTheReplicaThatAnswers) {
  RawPeer first = busy();
  RawPeer peer(gateway_->address());
  peer.send(request(kChat, long_body(R"(,"stream":true)")));
  ASSERT_TRUE(run_until([&] { return answers_.kept.size() == 2; }));
  answers_.kept[1].send("data: {\"a\":1}\n\ndata: [DONE]\n\n");
  answers_.kept[1].end();
  ASSERT_TRUE(receives(peer, "\r\n0\r\n\r\n"));
  EXPECT_EQ(prompts_.seen.size(), 1u);
  EXPECT_EQ(body_of(peer.received()), "data: {\"a\":1}\n\ndata: [DONE]\n\n");
}

TEST_F(PromptHopTest, WhereItFailsTheReplicaThatAnswersComputesThePrompt) {
  RawPeer first = busy();
  answers_.react = answer_whole;
  const std::vector<std::function<void(WebExchange&)>> failures = {
      [](WebExchange& exchange) { exchange.respond(500, "text/plain", "no"); },
      [](WebExchange& exchange) { exchange.respond(400, "text/plain", "no"); },
      [](WebExchange& exchange) { exchange.abort(); },
      [](WebExchange& exchange) { exchange.respond(200, "application/json", "{}"); },
      [](WebExchange& exchange) {
        exchange.respond(200, "application/json", R"({"kv_transfer_params":null})");
      }};
  for (std::size_t i = 0; i < failures.size(); ++i) {
    prompts_.react = failures[i];
    const std::string body = long_body();
    const std::size_t before = prompts_.seen.size();
    EXPECT_TRUE(ask(request(kChat, body)).ends_with(R"("completion_tokens":7}})")) << i;
    EXPECT_EQ(answers_.seen.back().body, body) << i;
    EXPECT_EQ(in_flight(), 1u) << i;
    const std::size_t failed = prompts_.seen.size();
    EXPECT_GT(failed, before) << i;
    prompts_.react = compute_prompt;
    ask(request(kChat, long_body()));
    EXPECT_EQ(prompts_.seen.size(), failed + 1) << "it is asked again";
  }
  EXPECT_EQ(counts().completed, 2 * failures.size());
  EXPECT_EQ(counts().failed, 0u);
}

TEST_F(PromptHopTest, AClientThatLeavesCancelsWhicheverCallRuns) {
  RawPeer first = busy();
  for (ScriptedReplica* held : {&prompts_, &answers_}) {
    const auto react = held->react;
    const std::size_t before = held->kept.size();
    held->react = [](WebExchange&) {};
    auto peer = std::make_unique<RawPeer>(gateway_->address());
    peer->send(request(kChat, long_body()));
    ASSERT_TRUE(run_until([&] { return held->kept.size() == before + 1; }));
    EXPECT_EQ(in_flight(), held == &prompts_ ? 3u : 2u) << "both are charged, then one";
    peer.reset();
    ASSERT_TRUE(run_until([&] { return held->gone == 1; }));
    EXPECT_EQ(in_flight(), 1u);
    held->react = react;
  }
  EXPECT_EQ(counts().cancelled, 2u);
}

TEST_F(PromptHopTest, WhatOneReplicaMustKnowStaysWithIt) {
  RawPeer first = busy();
  answers_.react = answer_whole;
  for (const char* more : {R"(,"n":2)", R"(,"echo":true)", R"(,"prompt_logprobs":0)",
                           R"(,"use_beam_search":true)", R"(,"best_of":3)"}) {
    ask(request(kChat, long_body(more)));
    EXPECT_TRUE(prompts_.seen.empty()) << more;
  }
  ask(request("/v1/completions",
              R"({"model":"m","prompt":["a","b)" + std::string(40'000, 'x') + R"("]})"));
  ask(request(kChat, R"({"model":"m","messages":[{"role":"user","content":"short"}]})"));
  EXPECT_TRUE(prompts_.seen.empty());
  ask(request(kChat, long_body(R"(,"n":1,"echo":false,"prompt_logprobs":null)")));
  EXPECT_EQ(prompts_.seen.size(), 1u);
}

TEST(PromptBodies, APlaceNeedsAllOfItsKeys) {
  const std::string whole = R"({"kv_transfer_params":)" + std::string(kPlace) + "}";
  EXPECT_EQ(json::parse(cache_place(whole)), json::parse(kPlace));
  for (const char* key : {"remote_engine_id", "remote_block_ids", "remote_host", "remote_port"}) {
    json without = json::parse(whole);
    without["kv_transfer_params"].erase(key);
    EXPECT_EQ(cache_place(without.dump()), "") << key;
  }
  for (const char* other : {"", "[]", "{", "3", R"({"kv_transfer_params":[1]})"}) {
    EXPECT_EQ(cache_place(other), "") << other;
  }
}

}  // namespace
}  // namespace orrery
