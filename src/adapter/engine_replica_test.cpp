// adapter/engine_replica_test.cpp - replicas over tests/engines/fake_engine.py, a server with the
// faults that inference engines have.
#include "adapter/engine_replica.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/system/free_address.hpp"
#include "base/system/real_env.hpp"
#include "http/loop_test.hpp"
#include "workload/engine_flags.hpp"

namespace orrery {
namespace {

using Lines = std::vector<nlohmann::json>;

class EngineReplicaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "orrery_engine_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    home_ = name;
    ASSERT_EQ(::mkfifo((home_ / "progress").c_str(), 0600), 0);
    pipe_ = FileDescriptor(::open((home_ / "progress").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    options_.times = {.look = Duration::milliseconds(20), .grace = Duration::seconds(10)};
    options_.watch.pause = Duration::milliseconds(20);
    options_.watch.token_max = Duration::seconds(1);
    options_.announce = [this](const std::string& line) { said_.push_back(line); };
  }
  void TearDown() override {
    replica_.reset();
    std::filesystem::remove_all(home_);
  }

  void tell(const std::string& name, const std::string& text = "") {
    std::ofstream(home_ / name) << text;
  }
  [[nodiscard]] std::string told(const std::string& name) const {
    std::stringstream text;
    text << std::ifstream(home_ / name).rdbuf();
    return text.str();
  }
  [[nodiscard]] bool has(const std::string& name) const {
    return std::filesystem::exists(home_ / name);
  }

  void start(std::vector<std::string> arguments = {"--max-num-seqs", "3"}) {
    RealEntropy entropy;
    EngineLaunch launch{.engine = EngineName::kVllm,
                        .program = ORRERY_SOURCE_DIR "/tests/engines/fake_engine.py",
                        .artifact = home_.string(),
                        .model = "lab/tiny",
                        .host = "127.0.0.1",
                        .port = FreeAddress::on_loopback(entropy).value().port(),
                        .arguments = std::move(arguments)};
    options_.command = engine_launch(launch).value().words;
    options_.endpoint = "127.0.0.1:" + std::to_string(launch.port);
    options_.address = "node-7:" + std::to_string(launch.port);
    options_.kv_events = "node-7:1";
    options_.model = launch.model;
    options_.slots = slots_in(launch.engine, launch.arguments);
    options_.progress = (home_ / "progress").string();
    auto replica = EngineReplica::start(runner_.loop(), options_, [this] { ended_ = true; });
    ASSERT_TRUE(replica) << replica.error().text();
    replica_ = std::move(*replica);
  }
  /// Runs until the replica has reported a phase.
  bool reaches(const std::string& phase) {
    return runner_.run_until([&] {
      read_reports();
      return ended_ || (!reports_.empty() && reports_.back()["replica"]["phase"] == phase);
    }) && !ended_;
  }
  /// Runs until its end, and returns why.
  std::string end() {
    EXPECT_TRUE(runner_.run_until([&] { return ended_; }));
    return replica_->failure() ? replica_->failure()->message : "";
  }
  void read_reports() {
    std::array<char, 4096> bytes{};
    const ssize_t got = ::read(pipe_.get(), bytes.data(), bytes.size());
    if (got > 0) unread_.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t line = 0; (line = unread_.find('\n')) != unread_.npos;) {
      const nlohmann::json report = nlohmann::json::parse(unread_.substr(0, line));
      unread_.erase(0, line + 1);
      if (report.contains("replica")) reports_.push_back(report);
    }
  }
  [[nodiscard]] static bool lives(const std::string& pid) {
    return ::kill(std::stoi(pid), 0) == 0 || errno != ESRCH;
  }
  [[nodiscard]] bool has_reported(const std::string& phase) {
    read_reports();
    return std::ranges::any_of(
        reports_, [&](const auto& report) { return report["replica"]["phase"] == phase; });
  }

  LoopRunner runner_;
  std::filesystem::path home_;
  FileDescriptor pipe_;
  std::string unread_;
  EngineReplica::Options options_;
  std::unique_ptr<EngineReplica> replica_;
  bool ended_ = false;
  Lines reports_;
  std::vector<std::string> said_;
};

TEST_F(EngineReplicaTest, IsReadyWithWhatItMeasuredOnceItHasGeneratedAToken) {
  tell("loading");
  start();
  runner_.run_for(Duration::milliseconds(500));
  ASSERT_TRUE(reaches("loading"));
  std::filesystem::remove(home_ / "loading");
  ASSERT_TRUE(reaches("ready"));
  ASSERT_EQ(reports_.size(), 3u);
  EXPECT_EQ(reports_[1]["replica"]["phase"], "warming");
  const nlohmann::json ready = reports_[2]["replica"];
  EXPECT_EQ(ready["endpoint"], options_.address);
  EXPECT_EQ(ready["pid"], ::getpid());
  EXPECT_EQ(ready["slots"], 3);
  EXPECT_EQ(ready["kv_tokens"], 1600);
  EXPECT_EQ(ready["kv_events"], options_.kv_events);
  EXPECT_GT(ready["prefill_tokens_s"], 0);
  EXPECT_GT(ready["step_s"], 0);
  EXPECT_GT(ready["step_full_s"], 0);
  ASSERT_EQ(said_.size(), 1u);
  EXPECT_TRUE(said_[0].starts_with("lab/tiny of vllm at http://node-7:")) << said_[0];
  EXPECT_NE(said_[0].find(": 3 slots, 100 KV blocks of 16 tokens; prompts "), std::string::npos);
  EXPECT_NE(told("arguments").find(" --max-num-seqs 3"), std::string::npos) << told("arguments");
}

TEST_F(EngineReplicaTest, AProgramThatIsNotThereIsNamed) {
  start();
  replica_.reset();
  ended_ = false;
  options_.command = {"/none/vllm", "serve"};
  replica_ = *EngineReplica::start(runner_.loop(), options_, [this] { ended_ = true; });
  EXPECT_EQ(end(),
            "inference engine /none/vllm cannot be run: No such file or directory while loading");
}

TEST_F(EngineReplicaTest, AnEngineThatEndsWhileItLoadsEndsTheReplicaWithItsStatus) {
  tell("exit", "3");
  start();
  EXPECT_TRUE(end().ends_with("fake_engine.py exited with status 3 while loading")) << end();
}

TEST_F(EngineReplicaTest, AnEngineThatIsKilledEndsTheReplica) {
  start();
  ASSERT_TRUE(reaches("ready"));
  ASSERT_EQ(::kill(std::stoi(told("pid")), SIGKILL), 0);
  EXPECT_TRUE(end().ends_with("was killed by signal 9 (Killed) while ready")) << end();
}

TEST_F(EngineReplicaTest, NonsenseIsNotReadyAndIsShown) {
  for (const auto& [fault, why] :
       {std::pair{"nonsense", "answered \"<html>it works</html>\", expected JSON"},
        std::pair{"empty", "expected the tokens of prompt and text"},
        std::pair{"half", "is healthy but generates no token: /v1/completions "}}) {
    tell(fault);
    ended_ = false;
    start();
    const std::string reason = end();
    EXPECT_NE(reason.find(why), std::string::npos) << fault << ": " << reason;
    EXPECT_FALSE(has_reported("ready")) << fault;
    EXPECT_FALSE(lives(told("pid"))) << fault;
    std::filesystem::remove(home_ / fault);
  }
}

TEST_F(EngineReplicaTest, AnEngineThatNeverBecomesHealthyIsEnded) {
  tell("loading");
  options_.times.start_max = Duration::milliseconds(200);
  start();
  const std::string why = end();
  EXPECT_NE(why.find("did not become healthy in 200 ms"), std::string::npos) << why;
  EXPECT_NE(why.find(": /health "), std::string::npos) << why;
}

TEST_F(EngineReplicaTest, AnEngineWhoseTokensStopComingIsKilled) {
  start();
  ASSERT_TRUE(reaches("ready"));
  tell("hang");
  const std::string why = end();
  EXPECT_NE(why.find("is sick: /v1/completions gave no answer in 1 s, 3 times in a row"),
            std::string::npos)
      << why;
  EXPECT_FALSE(lives(told("pid")));
}

TEST_F(EngineReplicaTest, ABusyEngineIsNotAskedForTokens) {
  tell("running", "2");
  start();
  ASSERT_TRUE(reaches("ready"));
  tell("hang");
  runner_.run_for(Duration::seconds(4));
  EXPECT_FALSE(ended_);
  std::filesystem::remove(home_ / "running");
  EXPECT_NE(end().find("is sick"), std::string::npos);
}

TEST_F(EngineReplicaTest, AnEngineThatIsBusyAndCountsNoTokenIsKilled) {
  tell("running", "2");
  tell("uncounted");
  options_.watch.stall_max = Duration::milliseconds(300);
  start();
  ASSERT_TRUE(reaches("ready"));
  runner_.run_for(Duration::seconds(1));
  EXPECT_FALSE(ended_) << "an engine that counts no tokens gives no evidence";
  tell("counts");
  std::filesystem::remove(home_ / "uncounted");
  runner_.run_for(Duration::seconds(1));
  EXPECT_FALSE(ended_);
  std::filesystem::remove(home_ / "counts");
  const std::string why = end();
  EXPECT_NE(why.find("is sick: 2 requests run and 0 wait, and it has counted no token for 300 ms"),
            std::string::npos)
      << why;
  EXPECT_FALSE(lives(told("pid")));
}

TEST_F(EngineReplicaTest, AnEngineThatIsFullOrCountsTokensIsAtWork) {
  start();
  ASSERT_TRUE(reaches("ready"));
  tell("full");
  runner_.run_for(Duration::milliseconds(500));
  EXPECT_FALSE(ended_);
  tell("counts");
  tell("hang");
  std::filesystem::remove(home_ / "full");
  runner_.run_for(Duration::seconds(4));
  EXPECT_FALSE(ended_) << "the question for a token waits, and others get theirs";
  std::filesystem::remove(home_ / "counts");
  EXPECT_NE(end().find("is sick"), std::string::npos);
}

TEST_F(EngineReplicaTest, AnEngineWhoseHealthFailsIsKilledAndOneThatRecoversIsNot) {
  start();
  ASSERT_TRUE(reaches("ready"));
  tell("silent");
  runner_.run_for(Duration::milliseconds(300));
  EXPECT_FALSE(ended_) << "it has no metrics, and generates tokens";
  tell("sick");
  EXPECT_NE(end().find("is sick: /health answered 500"), std::string::npos);
}

TEST_F(EngineReplicaTest, ADrainWaitsForTheRequestsThatRun) {
  tell("running", "1");
  start();
  ASSERT_TRUE(reaches("ready"));
  replica_->drain();
  ASSERT_TRUE(reaches("draining"));
  runner_.run_for(Duration::seconds(1));
  EXPECT_FALSE(ended_);
  EXPECT_FALSE(has("term"));
  std::filesystem::remove(home_ / "running");
  EXPECT_EQ(end(), "");
  EXPECT_TRUE(has("term"));
}

TEST_F(EngineReplicaTest, ADrainEndsAnEngineThatTellsNothingOrDoesNotEnd) {
  tell("silent");
  start();
  ASSERT_TRUE(reaches("ready"));
  EXPECT_NE(said_.back().find("it has no metrics"), std::string::npos) << said_.back();
  replica_->drain();
  EXPECT_EQ(end(), "");
  EXPECT_TRUE(has("term"));

  std::filesystem::remove(home_ / "silent");
  std::filesystem::remove(home_ / "term");
  tell("deaf");
  tell("running", "1");
  options_.times.drain_max = Duration::milliseconds(300);
  options_.times.grace = Duration::milliseconds(300);
  ended_ = false;
  reports_.clear();
  start();
  ASSERT_TRUE(reaches("ready"));
  replica_->drain();
  EXPECT_EQ(end(), "");
  EXPECT_TRUE(has("term"));
  EXPECT_EQ(said_.back(), "requests still run after 300 ms; the engine is ended");
  EXPECT_FALSE(lives(told("pid")));
}

TEST_F(EngineReplicaTest, ADrainBeforeItIsReadyEndsItAtOnce) {
  tell("loading");
  start();
  ASSERT_TRUE(runner_.run_until([&] { return !told("pid").empty(); }));
  replica_->drain();
  EXPECT_EQ(end(), "");
}

TEST_F(EngineReplicaTest, NothingOfTheEngineIsLeft) {
  tell("child");
  start();
  ASSERT_TRUE(reaches("ready"));
  const std::string child = told("child");
  ASSERT_FALSE(child.empty());
  ASSERT_TRUE(lives(child)) << "it runs in a session of its own";
  ASSERT_EQ(::kill(std::stoi(told("pid")), SIGKILL), 0);
  EXPECT_NE(end(), "");
  EXPECT_FALSE(lives(child));

  tell("child");
  ended_ = false;
  reports_.clear();
  start();
  ASSERT_TRUE(reaches("ready"));
  replica_.reset();
  EXPECT_FALSE(lives(told("child")));
  EXPECT_FALSE(lives(told("pid")));
}

}  // namespace
}  // namespace orrery
