// inference/server/serving_replica_test.cpp - a whole server with a small model, asked over
// loopback.
#include "inference/server/serving_replica.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "inference/server/serving_replica_test.hpp"
#include "kv_events/kv_event_reader.hpp"

namespace orrery {
namespace {

/// Bytes, but a long text is one token, and waits for `permission` (20 s at most).
class HeldTokenizer final : public Tokenizer {
 public:
  static constexpr std::size_t kLong = std::size_t{64} << 10;
  static constexpr std::size_t kTokenBytes = std::size_t{4} << 10;

  explicit HeldTokenizer(std::shared_future<void> permission)
      : permission_(std::move(permission)) {}

  [[nodiscard]] std::string name() const override { return "held"; }
  [[nodiscard]] std::string identity() const override { return ""; }
  [[nodiscard]] std::int64_t kinds() const override { return bytes_.kinds(); }
  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override { return std::nullopt; }
  [[nodiscard]] std::size_t least_tokens(std::string_view text) const override {
    return text.size() / kTokenBytes;
  }
  void encode(std::string_view text, std::vector<std::int32_t>& to) const override {
    if (text.size() < kLong) return bytes_.encode(text, to);
    permission_.wait_for(std::chrono::seconds(20));
    to.push_back('x');
  }
  [[nodiscard]] std::string decode(std::span<const std::int32_t> tokens) const override {
    return bytes_.decode(tokens);
  }

 private:
  ByteTokenizer bytes_;
  std::shared_future<void> permission_;
};

class LongPromptTest : public ServingReplicaTest {
 protected:
  /// Long prompts are not read until `permission_` has its value.
  void start_held() {
    ServingReplica::Options options;
    options.engine.load = [permission = permission_.get_future().share()]() -> Result<ServedModel> {
      Result<ServedModel> made = model();
      made->tokenizer = std::make_unique<HeldTokenizer>(permission);
      return made;
    };
    start_ready(std::move(options));
  }
  static Json long_prompt(std::size_t bytes) {
    return {{"model", "tiny"}, {"prompt", std::string(bytes, 'x')}, {"max_tokens", 2}};
  }
  std::unique_ptr<RawPeer> sent(const Json& body) {
    auto peer = std::make_unique<RawPeer>(replica_->endpoint());
    const std::string text = request_text("POST", "/v1/completions", body.dump());
    std::size_t done = 0;
    EXPECT_TRUE(run_until([&] {
      done += peer->send_some(std::string_view(text).substr(done));
      return done == text.size();
    }));
    return peer;
  }

  std::promise<void> permission_;  ///< of long prompts
};

std::vector<Json> events_of(const std::string& body) {
  std::vector<Json> events;
  std::string_view rest = body;
  while (rest.starts_with("data: {")) {
    const std::size_t end = rest.find("\n\n");
    events.push_back(Json::parse(rest.substr(6, end - 6)));
    rest.remove_prefix(end + 2);
  }
  EXPECT_EQ(rest, "data: [DONE]\n\n");
  return events;
}

TEST_F(ServingReplicaTest, ACompletionIsTheTextOfTheModel) {
  start_ready();
  const Answer answer = complete({{"model", "tiny"},
                                  {"prompt", "hello"},
                                  {"max_tokens", 12},
                                  {"temperature", 0},
                                  {"return_token_ids", true}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json json = answer.json();
  EXPECT_EQ(json["object"], "text_completion");
  EXPECT_EQ(json["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(json["usage"]["prompt_tokens"], 5);
  EXPECT_EQ(json["usage"]["completion_tokens"], 12);
  EXPECT_EQ(json["usage"]["total_tokens"], 17);
  std::string bytes;
  for (const Json& token : json["choices"][0]["token_ids"]) {
    bytes += static_cast<char>(token.get<int>());
  }
  EXPECT_EQ(bytes, expected_text("hello", 12));
  // A prompt may also be given as tokens.
  const Answer again = complete({{"model", "tiny"},
                                 {"prompt", {104, 101, 108, 108, 111}},
                                 {"max_tokens", 12},
                                 {"temperature", 0}});
  EXPECT_EQ(again.json()["choices"][0]["text"], json["choices"][0]["text"]);
}

TEST_F(ServingReplicaTest, AStreamIsTheSameTextInPieces) {
  start_ready();
  Json body{{"model", "tiny"}, {"prompt", "hello"}, {"max_tokens", 30}, {"temperature", 0}};
  const std::string whole = complete(body).json()["choices"][0]["text"];
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const Answer answer = complete(body);
  EXPECT_NE(answer.head.find("text/event-stream"), std::string::npos);
  const std::vector<Json> events = events_of(answer.body);
  ASSERT_GE(events.size(), 3U);
  std::string text;
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    text += events[i]["choices"][0]["text"].get<std::string>();
    EXPECT_TRUE(events[i]["usage"].is_null());
    EXPECT_EQ(events[i]["choices"][0]["finish_reason"].is_null(), i + 2 < events.size());
  }
  EXPECT_EQ(text, whole);
  EXPECT_TRUE(events.back()["choices"].empty());
  EXPECT_EQ(events.back()["usage"]["completion_tokens"], 30);
}

TEST_F(ServingReplicaTest, AChatIsTheContentsOfItsMessagesInLines) {
  start_ready();
  const Json messages = {{{"role", "system"}, {"content", "be"}},
                         {{"role", "user"}, {"content", {{{"type", "text"}, {"text", "good"}}}}}};
  const std::string text =
      complete({{"model", "tiny"}, {"prompt", "be\ngood\n"}, {"max_tokens", 9}, {"temperature", 0}})
          .json()["choices"][0]["text"];
  Json body{
      {"model", "tiny"}, {"messages", messages}, {"max_completion_tokens", 9}, {"temperature", 0}};
  const Json whole = ask("POST", "/v1/chat/completions", body.dump()).json();
  EXPECT_EQ(whole["object"], "chat.completion");
  EXPECT_EQ(whole["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(whole["choices"][0]["message"]["content"], text);
  body["stream"] = true;
  const std::vector<Json> events = events_of(ask("POST", "/v1/chat/completions", body.dump()).body);
  EXPECT_EQ(events[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(events[0]["choices"][0]["delta"]["role"], "assistant");
  std::string streamed;
  for (const Json& event : events) {
    streamed += event["choices"][0]["delta"].value("content", "");
  }
  EXPECT_EQ(streamed, text);
}

TEST_F(ServingReplicaTest, AChatTemplateWritesThePromptWithItsTokens) {
  start_chatting();
  const Json messages = {{{"role", "user"}, {"content", {{{"type", "text"}, {"text", "hi"}}}}}};
  const Json answer = chat(messages).json();
  EXPECT_EQ(answer["usage"]["prompt_tokens"], 6) << "one token, then u:hiA";
  const Json same = complete({{"model", "tiny"},
                              {"prompt", {256, 'u', ':', 'h', 'i', 'A'}},
                              {"max_tokens", 5},
                              {"temperature", 0}})
                        .json();
  EXPECT_EQ(answer["choices"][0]["message"]["content"], same["choices"][0]["text"]);
  const Json tools = Json::parse(R"([{"type": "x", "a": 1}])");
  const std::string shown = R"([{"type": "x", "a": 1}])";
  const std::string body = R"({"model": "tiny", "messages": [{"role": "user", "content": "hi"}],)"
                           R"( "max_tokens": 1, "tools": [{"type": "x", "a": 1}]})";
  EXPECT_EQ(ask("POST", "/v1/chat/completions", body).json()["usage"]["prompt_tokens"],
            6 + shown.size());
  EXPECT_EQ(
      chat(messages, {{"tools", tools}, {"tool_choice", "none"}}).json()["usage"]["prompt_tokens"],
      6);
}

TEST_F(ServingReplicaTest, WhatAChatTemplateRefusesIsAFaultOfTheClient) {
  start_chatting();
  const Answer raised = chat({{{"role", "system"}, {"content", "be"}}});
  EXPECT_EQ(raised.status, 400);
  EXPECT_EQ(raised.error("param"), "messages");
  EXPECT_NE(raised.error("message").find("a user begins"), std::string::npos);
  const Json messages = {{{"role", "user"}, {"content", "hi"}}};
  EXPECT_EQ(chat(messages, {{"tools", 1}}).error("param"), "tools");
  EXPECT_EQ(chat(messages, {{"tool_choice", "required"}}).error("param"), "tool_choice");
  EXPECT_EQ(chat({{{"role", "user"}, {"content", 3}}}).error("param"), "messages[0].content");
}

TEST_F(ServingReplicaTest, ADeepBodyIsRefused) {
  start_ready();
  constexpr std::size_t kDepth = 50'000;  // longer than what is read beside the loop, too
  for (const std::size_t depth : {std::size_t{200}, std::size_t{5'000}, kDepth}) {
    const std::string deep = std::string(depth, '[') + std::string(depth, ']');
    const Answer answer =
        ask("POST", "/v1/completions", R"({"model": "tiny", "prompt": )" + deep + "}");
    EXPECT_EQ(answer.status, 400);
    EXPECT_NE(answer.error("message").find("more than 128 levels"), std::string::npos);
  }
  EXPECT_EQ(ask("POST", "/v1/completions",
                R"({"model": "tiny", "prompt": "[[[[[[[[[[\\\"[", "max_tokens": 1})")
                .status,
            200);
}

TEST_F(ServingReplicaTest, FaultsOfTheClientAreNamed) {
  start_ready();
  struct Case {
    const char* body;
    int status;
    const char* param;
    const char* code;
  };
  const std::string long_prompt =
      R"({"model": "tiny", "prompt": ")" + std::string(100, 'x') + R"("})";
  for (const Case& each : std::vector<Case>{
           {R"({"model": "tiny", "prompt": )", 400, "null", "null"},
           {R"([])", 400, "null", "null"},
           {R"({"prompt": "x"})", 400, "model", "missing_required_parameter"},
           {R"({"model": "tiny"})", 400, "prompt", "missing_required_parameter"},
           {R"({"model": "big", "prompt": "x"})", 404, "model", "model_not_found"},
           {R"({"model": "tiny", "prompt": ""})", 400, "prompt", "empty_prompt"},
           {R"({"model": "tiny", "prompt": ["a", "b"]})", 400, "prompt", "invalid_value"},
           {R"({"model": "tiny", "prompt": [1, 256]})", 400, "prompt", "invalid_value"},
           {R"({"model": "tiny", "prompt": [1, -1]})", 400, "prompt", "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "max_tokens": "9"})", 400, "max_tokens",
            "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "max_tokens": 0})", 400, "max_tokens",
            "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "max_tokens": 1.5})", 400, "max_tokens",
            "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "temperature": -1})", 400, "temperature",
            "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "stream": 1})", 400, "stream", "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "stop": [""]})", 400, "stop", "invalid_value"},
           {R"({"model": "tiny", "prompt": "x", "n": 2})", 400, "n", "unsupported_value"},
           {R"({"model": "tiny", "prompt": "x", "echo": true})", 400, "echo", "unsupported_value"},
           {R"({"model": "tiny", "prompt": "x", "logprobs": 1})", 400, "logprobs",
            "unsupported_value"},
           {R"({"model": "tiny", "prompt": "x", "temprature": 1})", 400, "temprature",
            "unknown_parameter"},
           {long_prompt.c_str(), 400, "prompt", "context_length_exceeded"}}) {
    const Answer answer = ask("POST", "/v1/completions", each.body);
    EXPECT_EQ(answer.status, each.status) << each.body;
    EXPECT_EQ(answer.error("param"), each.param) << each.body;
    EXPECT_EQ(answer.error("code"), each.code) << each.body;
  }
  EXPECT_NE(ask("POST", "/v1/completions", "{\n  \"model\": x}").error("message").find("line 2"),
            std::string::npos);
  EXPECT_EQ(ask("POST", "/v1/chat/completions",
                R"({"model": "tiny", "messages": [{"role": "user", "content": "x"}],)"
                R"( "tools": [{}]})")
                .error("param"),
            "tools")
      << "there is no template that shows them";
  EXPECT_EQ(ask("GET", "/v1/none").status, 404);
  EXPECT_EQ(ask("GET", "/v1/completions").status, 405);
  EXPECT_EQ(
      ask("POST", "/v1/chat/completions", R"({"model": "tiny", "messages": [{}]})").error("param"),
      "messages[0].role");
}

TEST_F(LongPromptTest, APromptWhoseBytesCannotFitIsRefusedUnread) {
  start_held();
  const Answer answer = finish(*sent(long_prompt(100 * HeldTokenizer::kTokenBytes)));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.error("code"), "context_length_exceeded");
  EXPECT_NE(answer.error("message").find("the prompt has at least 100,"), std::string::npos);
  permission_.set_value();
  EXPECT_EQ(finish(*sent(long_prompt(99 * HeldTokenizer::kTokenBytes))).status, 200);
}

TEST_F(LongPromptTest, StreamsGoOnWhileALongPromptIsRead) {
  start_held();
  const auto held = sent(long_prompt(HeldTokenizer::kLong));
  ASSERT_TRUE(run_until([&] { return metric("requests_waiting") == "1"; }));
  Json body = long_prompt(1);
  body.update({{"max_tokens", 30}, {"stream", true}, {"temperature", 0}});
  const Answer stream = complete(body);
  EXPECT_EQ(stream.status, 200);
  EXPECT_GT(events_of(stream.body).size(), 2U);
  permission_.set_value();
  const Answer answer = finish(*held);
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.json()["usage"]["prompt_tokens"], 1);
}

TEST_F(LongPromptTest, ADrainWaitsForAPromptThatIsRead) {
  start_held();
  const auto held = sent(long_prompt(HeldTokenizer::kLong));
  const auto gone = sent(long_prompt(HeldTokenizer::kLong));
  ASSERT_TRUE(run_until([&] { return metric("requests_waiting") == "2"; }));
  gone->reset();
  replica_->drain();
  EXPECT_EQ(complete(long_prompt(1)).status, 503);
  EXPECT_FALSE(ended_);
  permission_.set_value();
  EXPECT_EQ(finish(*held).status, 200);
  EXPECT_TRUE(run_until([&] { return ended_; }));
}

TEST_F(ServingReplicaTest, BeforeTheModelIsLoadedRequestsAreRefused) {
  std::promise<void> permission;
  ServingReplica::Options options;
  options.engine.load = [&permission] {
    permission.get_future().wait();
    return model();
  };
  start(std::move(options));
  EXPECT_EQ(ask("GET", "/health").status, 503);
  EXPECT_EQ(complete({{"model", "tiny"}, {"prompt", "x"}}).status, 503);
  permission.set_value();
  ASSERT_TRUE(run_until([&] { return !announced_.empty(); }));
  EXPECT_EQ(ask("GET", "/health").status, 200);
  const Json models = ask("GET", "/v1/models").json();
  EXPECT_EQ(models["data"][0]["id"], "tiny");
}

TEST_F(ServingReplicaTest, AModelThatCannotBeLoadedEndsTheReplica) {
  ServingReplica::Options options;
  options.engine.load = []() -> Result<ServedModel> { return input_error({}, "no such model"); };
  start(std::move(options));
  ASSERT_TRUE(run_until([&] { return ended_; }));
  EXPECT_EQ(replica_->failure()->message, "no such model");
}

TEST_F(ServingReplicaTest, RequestsBeyondTheQueueAreRefusedForNow) {
  ServingReplica::Options options;
  options.engine.limits.slots = 1;
  options.server.waiting_max = 1;
  start_ready(std::move(options));
  const std::string body =
      R"({"model": "tiny", "prompt": "x", "max_tokens": 90, "temperature": 0})";
  // Sent together, so that the first has not ended when the third is read.
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 12; ++i) {
    peers.push_back(std::make_unique<RawPeer>(replica_->endpoint()));
    peers.back()->send(request_text("POST", "/v1/completions", body));
  }
  int done = 0;
  int refused = 0;
  for (const auto& peer : peers) {
    const Answer answer = finish(*peer);
    done += answer.status == 200 ? 1 : 0;
    if (answer.status != 429) continue;
    ++refused;
    EXPECT_NE(answer.head.find("Retry-After: 1"), std::string::npos);
    EXPECT_EQ(answer.error("code"), "overloaded");
  }
  EXPECT_EQ(done + refused, 12);
  EXPECT_GE(done, 2);
  EXPECT_GT(refused, 0);
}

TEST_F(ServingReplicaTest, AClientThatLeavesEndsItsRequest) {
  start_ready();
  RawPeer peer(replica_->endpoint());
  // The answer is longer than what the model generates before the client is missed.
  peer.send(request_text("POST", "/v1/completions",
                         R"({"model": "tiny", "prompt": "x", "max_tokens": 98, "stream": true})"));
  ASSERT_TRUE(run_until([&] {
    peer.read();
    return peer.received().find("data: ") != std::string::npos;
  }));
  peer.reset();
  ASSERT_TRUE(run_until([&] {
    return metric("requests_total{outcome=\"cancelled\"}") == "1" ||
           metric("requests_total{outcome=\"completed\"}") == "1";
  }));
  ASSERT_TRUE(run_until([&] { return metric("requests_running") == "0"; }));
  EXPECT_EQ(metric("kv_usage_ratio"), "0");
}

TEST_F(ServingReplicaTest, ADrainEndsWhatRunsAndSendsTheRestElsewhere) {
  ServingReplica::Options options;
  options.engine.limits.slots = 1;
  start_ready(std::move(options));
  const std::string body = R"({"model": "tiny", "prompt": "x", "max_tokens": 90})";
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<RawPeer>(replica_->endpoint()));
    peers.back()->send(request_text("POST", "/v1/completions", body));
  }
  RawPeer late(replica_->endpoint());
  ASSERT_TRUE(run_until([&] { return metric("requests_running") == "1"; }));
  replica_->drain();
  late.send(request_text("POST", "/v1/completions", body));
  const Answer refused = finish(late);
  EXPECT_EQ(refused.status, 503);
  EXPECT_NE(refused.head.find("Retry-After: 0"), std::string::npos);
  for (const auto& peer : peers) EXPECT_EQ(finish(*peer).status, 200);
  EXPECT_TRUE(run_until([&] { return ended_; }));
  EXPECT_FALSE(replica_->failure());
}

TEST_F(ServingReplicaTest, MetricsCountWhatWasServed) {
  start_ready();
  const Json body{{"model", "tiny"}, {"prompt", std::string(40, 'a')}, {"max_tokens", 5}};
  EXPECT_EQ(complete(body).status, 200);
  EXPECT_EQ(complete(body).json()["usage"]["prompt_tokens_details"]["cached_tokens"], 32);
  EXPECT_EQ(metric("prefix_query_tokens_total"), "80");
  EXPECT_EQ(metric("prefix_hit_tokens_total"), "32");
  EXPECT_EQ(metric("generation_tokens_total"), "10");
  EXPECT_EQ(metric("ttft_seconds_count"), "2");
  EXPECT_EQ(metric("tpot_seconds_count"), "2");
  EXPECT_EQ(metric("e2e_seconds_bucket{le=\"+Inf\"}"), "2");
}

TEST_F(ServingReplicaTest, TheKeeperHearsOfEachPhase) {
  ServingReplica::Options options;
  options.progress = make_pipe();
  options.listen = "0.0.0.0:0";
  options.host = "127.0.0.1";
  options.kv_events = "0.0.0.0:0";
  start_ready(std::move(options));
  replica_->drain();
  ASSERT_TRUE(run_until([&] { return ended_; }));
  const std::string lines = read_pipe();
  std::vector<Json> parsed;
  for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    parsed.push_back(Json::parse(lines.substr(at, lines.find('\n', at) - at)));
  }
  ASSERT_EQ(parsed.size(), 5U) << lines;
  EXPECT_GT(parsed[0]["quiet"], 1e8);
  EXPECT_EQ(parsed[1]["replica"]["phase"], "loading");
  EXPECT_EQ(parsed[2]["replica"]["phase"], "warming");
  const Json& ready = parsed[3]["replica"];
  EXPECT_EQ(ready["phase"], "ready");
  EXPECT_EQ(ready["endpoint"], replica_->endpoint());
  EXPECT_EQ(ready["pid"], ::getpid());
  EXPECT_EQ(ready["slots"], 8);
  EXPECT_EQ(ready["kv_tokens"].get<std::uint64_t>() % 16, 0u);
  EXPECT_GT(ready["kv_tokens"], 0);
  const std::string events = ready["kv_events"];
  EXPECT_EQ(events.substr(0, 10), "127.0.0.1:");
  EXPECT_NE(announced_.find("; KV events at " + events), std::string::npos) << announced_;
  EXPECT_GT(ready["prefill_tokens_s"], 0);
  EXPECT_GT(ready["step_s"], 0);
  EXPECT_GT(ready["step_full_s"], 0);
  EXPECT_EQ(parsed[4]["replica"]["phase"], "draining");
}

TEST_F(ServingReplicaTest, ItsEventsHaveTheTokensOfItsCache) {
  ServingReplica::Options options;
  options.kv_events = "127.0.0.1:0";
  start_ready(std::move(options));
  std::vector<KvEvent> told;
  KvEventReader reader(env_->loop(), [&](std::uint64_t, const Result<KvEventMessage>& message) {
    ASSERT_TRUE(message) << message.error().message;
    told.insert(told.end(), message->batch.events.begin(), message->batch.events.end());
  });
  reader.follow({{1, announced_.substr(announced_.rfind(' ') + 1)}});
  // Until the reader is connected, nothing that is published reaches it.
  std::string prompt;
  for (char c = 'a'; told.empty() && c <= 'z'; ++c) {
    prompt = std::string(20, c);
    EXPECT_EQ(complete({{"model", "tiny"}, {"prompt", prompt}, {"max_tokens", 1}}).status, 200);
    const Instant end = env_->env().clock.now_monotonic() + Duration::milliseconds(200);
    run_until([&] { return !told.empty() || env_->env().clock.now_monotonic() > end; });
  }
  ASSERT_EQ(told.size(), 1u);
  const auto* stored = std::get_if<KvBlocksStored>(&told[0]);
  ASSERT_NE(stored, nullptr);
  EXPECT_EQ(stored->tokens, std::vector<std::int32_t>(kChainTokens, prompt[0]));
  EXPECT_FALSE(stored->parent);
  EXPECT_EQ(stored->hashes, token_chain(stored->tokens, 0)) << "the engine's names are the chain";
}

TEST_F(ServingReplicaTest, AnAddressOfEventsThatIsNoneIsRefused) {
  ServingReplica::Options options;
  options.engine.load = model;
  options.kv_events = "nowhere";
  const auto replica = ServingReplica::start(env_->loop(), env_->env(), std::move(options), [] {});
  ASSERT_FALSE(replica);
  EXPECT_EQ(replica.error().message.substr(0, 43), "KV events: cannot listen at \"nowhere\", expe");
}

}  // namespace
}  // namespace orrery
