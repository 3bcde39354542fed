// inference/server/serving_replica_test.cpp - a whole server with a small model, asked over
// loopback.
#include "inference/server/serving_replica.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/system/real_env.hpp"
#include "http/loop_test.hpp"
#include "inference/engine/served_model_test.hpp"
#include "inference/formats/model_writer_test.hpp"
#include "tokens/bpe_tokenizer.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

/// An answer, taken apart.
struct Answer {
  int status = 0;
  std::string head;
  std::string body;  ///< without its transfer encoding

  [[nodiscard]] Json json() const { return Json::parse(body); }
  [[nodiscard]] std::string error(const char* key) const {
    const Json value = json().at("error").at(key);
    return value.is_null() ? "null" : value.get<std::string>();
  }
};

std::string without_chunks(std::string_view body) {
  std::string whole;
  while (true) {
    const std::size_t end = body.find("\r\n");
    const std::size_t size = std::stoul(std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0) return whole;
    whole += body.substr(end + 2, size);
    body.remove_prefix(end + 2 + size + 2);
  }
}

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

class ServingReplicaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    env_ = *RealEnv::create();
    tick();
  }
  void TearDown() override {
    replica_.reset();
    if (!pipe_path_.empty()) std::filesystem::remove_all(pipe_path_.parent_path());
  }

  void tick() {
    env_->env().timers.call_after(Duration::milliseconds(2), [this] { tick(); });
  }
  bool run_until(const std::function<bool()>& condition) {
    const Instant limit = env_->env().clock.now_monotonic() + Duration::seconds(60);
    env_->run_until([&] { return condition() || env_->env().clock.now_monotonic() > limit; });
    return condition();
  }

  static Result<ServedModel> model() {
    const ServedModelForTest model(ServedModelForTest::tiny(TransformerFamily::kLlama));
    return ServedModel{.name = "tiny",
                       .origin = "orrery-train, step 3",
                       .model = model.packed(),
                       .tokenizer = std::make_unique<ByteTokenizer>(),
                       .ends = {},
                       .chat = {}};
  }

  /// A model whose template shows roles, contents and tools, and takes a user first.
  static Result<ServedModel> chatting() {
    TransformerConfig config = ServedModelForTest::tiny(TransformerFamily::kLlama);
    config.vocab = kByteTokens;
    constexpr const char* kTemplate =
        "{% if messages[0].role != 'user' %}{{ raise_exception('a user begins') }}{% endif %}"
        "{{ bos_token }}{% for m in messages %}{{ m.role[0] }}:{{ m.content }}{% endfor %}"
        "{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}A{% endif %}";
    return ServedModel{
        .name = "tiny",
        .origin = "a test",
        .model = ServedModelForTest(config).packed(),
        .tokenizer = std::make_unique<BpeTokenizer>(
            BpeTokenizer::of(byte_tokenizer_json(), "tokenizer.json").value()),
        .ends = {kEndToken},
        .chat = ModelChat{ChatTemplate::of(kTemplate, "t").value(), "<|begin|>", "<|end|>"}};
  }
  void start_chatting() {
    ServingReplica::Options options;
    options.engine.load = chatting;
    start_ready(std::move(options));
  }
  Answer chat(const Json& messages, Json more = {}) {
    more.update({{"model", "tiny"}, {"messages", messages}, {"max_tokens", 5}, {"temperature", 0}});
    return ask("POST", "/v1/chat/completions", more.dump());
  }

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

  void start(ServingReplica::Options options = {}) {
    if (!options.engine.load) options.engine.load = model;
    options.announce = [this](const std::string& line) { announced_ = line; };
    auto replica = ServingReplica::start(env_->loop(), env_->env(), std::move(options),
                                         [this] { ended_ = true; });
    ASSERT_TRUE(replica) << replica.error().text();
    replica_ = std::move(*replica);
  }
  void start_ready(ServingReplica::Options options = {}) {
    start(std::move(options));
    ASSERT_TRUE(run_until([&] { return !announced_.empty(); }));
  }

  static std::string request_text(const std::string& method, const std::string& path,
                                  const std::string& body) {
    return method + " " + path + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  Answer finish(RawPeer& peer) {
    EXPECT_TRUE(run_until([&] {
      peer.read();
      return peer.ended();
    }));
    const std::string& text = peer.received();
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) return {};
    Answer answer{std::stoi(text.substr(9, 3)), text.substr(0, end), text.substr(end + 4)};
    if (answer.head.find("chunked") != std::string::npos) {
      answer.body = without_chunks(answer.body);
    }
    return answer;
  }
  Answer ask(const std::string& method, const std::string& path, const std::string& body = {}) {
    RawPeer peer(replica_->endpoint());
    peer.send(request_text(method, path, body));
    return finish(peer);
  }
  Answer complete(const Json& body) { return ask("POST", "/v1/completions", body.dump()); }
  std::string metric(const std::string& name) {
    const std::string text = ask("GET", "/metrics").body;
    const std::size_t at = text.find("\norrery_serve_" + name + " ");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + 15 + name.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }

  /// Makes the keeper's pipe.
  std::string make_pipe() {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_serve_XXXXXX").string();
    EXPECT_NE(::mkdtemp(name.data()), nullptr);
    pipe_path_ = name + "/progress";
    EXPECT_EQ(::mkfifo(pipe_path_.c_str(), 0600), 0);
    pipe_ = FileDescriptor(::open(pipe_path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    return pipe_path_;
  }
  std::string read_pipe() {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(pipe_.get(), bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
  }

  std::unique_ptr<RealEnv> env_;
  std::unique_ptr<ServingReplica> replica_;
  std::string announced_;
  bool ended_ = false;
  std::filesystem::path pipe_path_;
  FileDescriptor pipe_;
  std::promise<void> permission_;  ///< of long prompts
};

/// The bytes that the model's trainer would write.
std::string expected_text(const std::string& prompt, std::int64_t tokens) {
  const ServedModelForTest model(ServedModelForTest::tiny(TransformerFamily::kLlama));
  std::vector<std::int32_t> encoded;
  ByteTokenizer bytes;
  bytes.encode(prompt, encoded);
  const auto generated = model.generated(encoded, {.tokens = tokens, .temperature = 0});
  return bytes.decode(generated);
}

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

TEST_F(ServingReplicaTest, APromptWhoseBytesCannotFitIsRefusedUnread) {
  start_held();
  const Answer answer = finish(*sent(long_prompt(100 * HeldTokenizer::kTokenBytes)));
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.error("code"), "context_length_exceeded");
  EXPECT_NE(answer.error("message").find("the prompt has at least 100,"), std::string::npos);
  permission_.set_value();
  EXPECT_EQ(finish(*sent(long_prompt(99 * HeldTokenizer::kTokenBytes))).status, 200);
}

TEST_F(ServingReplicaTest, StreamsGoOnWhileALongPromptIsRead) {
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

TEST_F(ServingReplicaTest, ADrainWaitsForAPromptThatIsRead) {
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
  EXPECT_GT(ready["prefill_tokens_s"], 0);
  EXPECT_GT(ready["step_s"], 0);
  EXPECT_GT(ready["step_full_s"], 0);
  EXPECT_EQ(parsed[4]["replica"]["phase"], "draining");
}

}  // namespace
}  // namespace orrery
