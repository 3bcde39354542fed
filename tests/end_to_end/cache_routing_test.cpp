// A gateway and two engines, orrery-serve: what the engines tell of their KV caches, over ZeroMQ,
// decides where a prompt goes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "gateway/gateway_test.hpp"
#include "kv_events/kv_event.hpp"
#include "tests/end_to_end/small_model.hpp"

namespace orrery {
namespace {

constexpr std::size_t kCacheBlocks = 16;  // two texts of the whole context

class CacheRoutingTest : public GatewayTest {
 protected:
  struct Engine {
    std::string endpoint;
    std::string kv_events;
  };

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_caches_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    directory_ = name + "/";
    ASSERT_NO_FATAL_FAILURE(train_small_model(directory_));
    tick();
    start({.tokenizers = {{"m", *PromptTokenizer::open("bytes")}}});
    RouteTable table = table_of({});
    for (std::uint64_t job = 1; job <= engines_.size(); ++job) {
      ASSERT_NO_FATAL_FAILURE(start_engine(job));
      table.services[0].replicas.push_back({.job = job,
                                            .attempt = 1,
                                            .endpoint = engines_[job - 1].endpoint,
                                            .slots = 2,
                                            .kv_tokens = kCacheBlocks * kChainTokens,
                                            .kv_events = engines_[job - 1].kv_events});
    }
    gateway_->set_table(table);
    for (const Engine& engine : engines_) ASSERT_NO_FATAL_FAILURE(connect(engine));
  }
  void TearDown() override {
    gateway_.reset();
    (void)std::system(("cd " + directory_ + " && kill $(cat *.pid)").c_str());
    std::filesystem::remove_all(directory_);
  }

  /// Starts an engine, and reads where it listens in what it says of itself.
  void start_engine(std::uint64_t job) {
    const std::string log = std::to_string(job) + ".log";
    const std::string command = "cd " + directory_ +
                                " && { " ORRERY_SERVE
                                " --checkpoint cp --model m --slots 2 --kv-blocks " +
                                std::to_string(kCacheBlocks) + " --kv-events 127.0.0.1:0 >" + log +
                                " 2>&1 & echo $! >" + std::to_string(job) + ".pid; }";
    ASSERT_EQ(std::system(command.c_str()), 0);
    std::string said;
    ASSERT_TRUE(run_until([&] {
      std::stringstream text;
      text << std::ifstream(directory_ + log).rdbuf();
      said = text.str();
      return said.ends_with('\n');
    }));
    const auto between = [&](const std::string& begin, const std::string& end) {
      const std::size_t at = said.find(begin) + begin.size();
      return said.substr(at, said.find(end, at) - at);
    };
    engines_[job - 1] = {between("http://", "/v1"), between("KV events at ", "\n")};
    ASSERT_TRUE(has_port(engines_[job - 1].kv_events)) << said;
  }
  /// Until the gateway is connected, nothing that an engine publishes reaches it.
  void connect(const Engine& engine) {
    const std::uint64_t before = messages();
    char letter = 'A';
    ASSERT_TRUE(run_until([&] {
      ask_engine(engine, std::string(20, letter++));
      run_for(Duration::milliseconds(20));
      return messages() > before;
    }));
  }

  static std::string body_of_prompt(const std::string& prompt) {
    return R"({"model":"m","max_tokens":1,"prompt":")" + prompt + "\"}";
  }
  /// Sends a prompt to an engine, past the gateway.
  void ask_engine(const Engine& engine, const std::string& prompt) {
    RawPeer peer(engine.endpoint);
    peer.send(request("/v1/completions", body_of_prompt(prompt), "Connection: close\r\n"));
    EXPECT_TRUE(run_until([&] {
      peer.read();
      return peer.ended();
    }));
    EXPECT_NE(peer.received().find("200 OK"), std::string::npos) << peer.received();
  }
  std::uint64_t messages() {
    const std::string text = ask(get("/metrics"));
    const std::string name = "\norrery_gateway_cache_messages_total ";
    return std::stoull(text.substr(text.find(name) + name.size()));
  }
  /// Waits until the engines have told all that they have done.
  void settle() {
    std::uint64_t before = 0;
    do {
      before = messages();
      run_for(Duration::milliseconds(100));
    } while (messages() != before);
  }
  /// Sends a prompt by the gateway; returns the candidates of its decision.
  nlohmann::json candidates_for(const std::string& prompt, const std::string& id) {
    const std::string answer =
        ask(request("/v1/completions", body_of_prompt(prompt), "X-Request-Id: " + id + "\r\n"));
    EXPECT_NE(answer.find("200 OK"), std::string::npos) << answer;
    const std::string explained = ask(get("/explain/" + id));
    return nlohmann::json::parse(explained.substr(explained.find("\r\n\r\n") + 4))
        .at("decisions")
        .back()
        .at("candidates");
  }

  std::string directory_;  ///< ends with '/'
  std::array<Engine, 2> engines_;
};

TEST_F(CacheRoutingTest, APromptGoesToTheEngineThatHasItUntilItIsEvicted) {
  const std::string prompt(80, 'p');
  nlohmann::json found = candidates_for(std::string(80, 'n'), "r0");
  ASSERT_EQ(found.size(), 2u) << found;
  for (const auto& each : found) EXPECT_EQ(each["cached_tokens"], 0) << found;
  for (std::size_t at = 0; at < engines_.size(); ++at) {
    const std::string own = prompt.substr(at);  // 80 and 79 letters: five blocks and four
    ask_engine(engines_[at], own + std::string(at, 'q'));
  }
  settle();
  found = candidates_for(prompt + "z", "r1");
  EXPECT_EQ(found[0]["cached_tokens"], 80) << found;
  EXPECT_EQ(found[1]["cached_tokens"], 64) << found;
  EXPECT_EQ(found[0]["verdict"], "chosen") << found;
  settle();
  for (const char letter : {'a', 'b', 'c', 'd'}) ask_engine(engines_[0], std::string(112, letter));
  settle();
  found = candidates_for(prompt + "y", "r2");
  EXPECT_EQ(found[0]["cached_tokens"], 0) << found;
  EXPECT_EQ(found[1]["cached_tokens"], 64) << found;
  EXPECT_EQ(found[1]["verdict"], "chosen") << found;
  EXPECT_NE(ask(get("/metrics")).find("orrery_gateway_cache_gaps_total 0"), std::string::npos);
}

TEST_F(CacheRoutingTest, AChatIsTheTokensThatItsEngineMakesOfIt) {
  const std::string text(70, 'c');
  RawPeer peer(engines_[1].endpoint);
  const std::string messages = R"([{"role":"user","content":")" + text + "\"}]";
  const std::string body = R"({"model":"m","max_tokens":1,"messages":)" + messages + "}";
  peer.send(request(kChat, body, "Connection: close\r\n"));
  EXPECT_TRUE(run_until([&] {
    peer.read();
    return peer.ended();
  }));
  settle();
  const std::string answer = ask(request(kChat, body, "X-Request-Id: c1\r\n"));
  EXPECT_NE(answer.find(R"("cached_tokens":64)"), std::string::npos) << answer;
  const std::string explained = ask(get("/explain/c1"));
  EXPECT_NE(explained.find(R"("prompt_tokens":71,)"), std::string::npos) << explained;
  EXPECT_NE(explained.find(R"("cached_tokens":64,)"), std::string::npos) << explained;
}

}  // namespace
}  // namespace orrery
