// inference/server/serving_replica_test.hpp - for tests: a whole server with a small model, asked
// over loopback.
//
// One thread beside that of the engine.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

#include "inference/server/serving_replica.hpp"

namespace orrery {

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

inline std::string without_chunks(std::string_view body) {
  std::string whole;
  while (true) {
    const std::size_t end = body.find("\r\n");
    const std::size_t size = std::stoul(std::string(body.substr(0, end)), nullptr, 16);
    if (size == 0) return whole;
    whole += body.substr(end + 2, size);
    body.remove_prefix(end + 2 + size + 2);
  }
}

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
};

/// The bytes that the model's trainer would write.
inline std::string expected_text(const std::string& prompt, std::int64_t tokens) {
  const ServedModelForTest model(ServedModelForTest::tiny(TransformerFamily::kLlama));
  std::vector<std::int32_t> encoded;
  ByteTokenizer bytes;
  bytes.encode(prompt, encoded);
  const auto generated = model.generated(encoded, {.tokens = tokens, .temperature = 0});
  return bytes.decode(generated);
}

}  // namespace orrery
