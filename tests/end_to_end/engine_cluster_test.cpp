// Inference engines of others: as a service on a cluster of `orrery up`, and under orrery-engine
// alone. The engine is tests/engines/fake_engine.py, or orrery-serve, which has the same API.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <functional>
#include <future>

#include "tests/end_to_end/local_cluster.hpp"
#include "tests/end_to_end/small_model.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

constexpr const char* kFake = ORRERY_SOURCE_DIR "/tests/engines/fake_engine.py";

bool await(const std::function<bool()>& condition) {
  constexpr int kRounds = 1200;
  for (int round = 0; round < kRounds; ++round) {
    if (condition()) return true;
    (void)::poll(nullptr, 0, 50);
  }
  return false;
}

bool lives(const std::string& pid) { return ::kill(std::stoi(pid), 0) == 0 || errno != ESRCH; }

class EngineProgramTest : public Cli {
 protected:
  void TearDown() override {
    if (pid_ > 0) {
      (void)::kill(pid_, SIGKILL);
      (void)::waitpid(pid_, nullptr, 0);
    }
    Cli::TearDown();
  }
  /// Starts orrery-engine; what it says goes to `said`.
  void start(const std::string& arguments) {
    const std::string command =
        "cd " + path("") + " && exec " ORRERY_ENGINE " " + arguments + " >said 2>&1";
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  [[nodiscard]] std::string said() const { return slurp(path("said")); }
  /// Ends it with a signal and returns its status as of waitpid(2).
  int end(int signal) {
    EXPECT_EQ(::kill(pid_, signal), 0);
    int status = -1;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

TEST_F(EngineProgramTest, KilledItLeavesNothingBehind) {
  std::filesystem::create_directory(path("model"));
  (void)write("model/child", "");
  start("--engine vllm --program " + std::string(kFake) + " --artifact " + path("model") +
        " --model m -- --max-num-seqs 2");
  ASSERT_TRUE(await([&] { return said().find("m of vllm at http://") != std::string::npos; }))
      << said();
  const std::string engine = slurp(path("model/pid"));
  const std::string child = slurp(path("model/child"));
  ASSERT_TRUE(lives(engine) && lives(child));
  EXPECT_TRUE(WIFSIGNALED(end(SIGKILL)));
  EXPECT_TRUE(await([&] { return !lives(engine) && !lives(child); }));
}

TEST_F(EngineProgramTest, OverOurOwnEngineItMeasuresServesAndDrains) {
  ASSERT_NO_FATAL_FAILURE(train_small_model(path("")));
  start("--engine orrery --program " ORRERY_SERVE " --artifact " + path("cp") +
        " --model small -- --slots 3");
  ASSERT_TRUE(await([&] { return said().find("small of orrery at http://") != std::string::npos; }))
      << said();
  const std::string line = said().substr(said().find("small of orrery"));
  EXPECT_NE(line.find(": 3 slots, "), std::string::npos) << line;
  EXPECT_EQ(line.find("prompts 0 tokens/s"), std::string::npos) << line;
  EXPECT_EQ(line.find("a step 0 ms"), std::string::npos) << line;
  const std::size_t at = line.find("http://");
  const std::string url = line.substr(at, line.find("/v1") - at);
  (void)write("ask.py", R"(import json, sys, urllib.request
body = json.dumps({"model": "small", "prompt": "the ", "max_tokens": 5}).encode()
ask = urllib.request.Request(sys.argv[1] + "/v1/completions", body,
                             {"Content-Type": "application/json"})
print(json.load(urllib.request.urlopen(ask, timeout=60))["usage"]["completion_tokens"])
)");
  ASSERT_EQ(std::system(("python3 " + path("ask.py") + " " + url + " >" + path("tokens")).c_str()),
            0);
  EXPECT_NE(slurp(path("tokens")), "0\n");
  const int status = end(SIGTERM);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << said();
}

class EngineClusterTest : public LocalClusterTest {
 protected:
  [[nodiscard]] Json replica() const {
    const CliRun run = live("-o json job 0");
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["service"]["replicas"][0];
  }
  [[nodiscard]] bool ready() const { return replica()["state"] == "ready"; }
};

TEST_F(EngineClusterTest, AnEngineOfOthersServesThroughTheGatewayAndIsStartedAgain) {
  std::filesystem::create_directory(path("model"));
  const std::string job = write("chat.yaml", R"(apiVersion: orrery/v1
kind: Serve
name: chat
restart: {policy: at-once, max: 10}
roles: [{accelerators: 1}]
revisions:
- model: lab/chat
  artifact: )" + path("model") + R"(
  engine: {name: vllm, program: )" + std::string(kFake) +
                                                 R"(, arguments: [--max-num-seqs, '2']}
)");
  const CliRun run = live("submit " + job);
  ASSERT_EQ(run.code, 0) << run.err;
  ASSERT_TRUE(await([&] { return ready(); })) << replica();
  EXPECT_EQ(replica()["slots"], 2) << replica();
  const Json made = Json::parse(live("-o json serve --key chat").out);
  (void)write("ask.py", R"(import json, sys, urllib.request
body = json.dumps({"model": "lab/chat", "prompt": "a b", "max_tokens": 5}).encode()
headers = {"Content-Type": "application/json", "Authorization": "Bearer " + sys.argv[2]}
ask = urllib.request.Request(sys.argv[1] + "/v1/completions", body, headers)
print(json.load(urllib.request.urlopen(ask, timeout=60))["choices"][0]["text"])
)");
  const std::string ask = "python3 " + path("ask.py") + " " + made["endpoint"].get<std::string>() +
                          " " + made["api_key"].get<std::string>() + " >" + path("answer");
  ASSERT_EQ(std::system(ask.c_str()), 0);
  EXPECT_EQ(slurp(path("answer")), " a a a a a\n");
  const std::string first = slurp(path("model/pid"));
  ASSERT_EQ(::kill(std::stoi(first), SIGKILL), 0);
  ASSERT_TRUE(await([&] { return slurp(path("model/pid")) != first && ready(); })) << replica();
  EXPECT_EQ(std::system(ask.c_str()), 0);
  EXPECT_EQ(live("cancel 0").code, 0);
  const std::string second = slurp(path("model/pid"));
  EXPECT_TRUE(await([&] { return !lives(second); }));
}

/// load.py ENDPOINT KEY RATE STOP: asks as many times a second as the file RATE says, whatever
/// becomes of the requests, until STOP is there; prints {"answered": N, "lost": [[STATUS, TEXT],
/// ..]}.
constexpr const char* kLoad = R"(import json, os, sys, threading, time, urllib.error, urllib.request
endpoint, key, rate, stop = sys.argv[1:]
answered, lost, lock = [0], [], threading.Lock()
def ask():
    body = json.dumps({"model": "chat", "prompt": "a b", "max_tokens": 8}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    status, text = 0, ""
    try:
        request = urllib.request.Request(endpoint + "/v1/completions", body, headers)
        with urllib.request.urlopen(request, timeout=100) as answer:
            status, text = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read().decode()
    except Exception as error:
        text = repr(error)
    with lock:
        if status == 200 and '"finish_reason"' in text: answered[0] += 1
        else: lost.append([status, text])
threads = []
while not os.path.exists(stop):
    threads.append(threading.Thread(target=ask))
    threads[-1].start()
    time.sleep(1 / float(open(rate).read()))
for each in threads: each.join()
print(json.dumps({"answered": answered[0], "lost": lost}))
)";

/// A service of the fake engine, each of whose replicas generates about 200 tokens a second.
class ScaledServiceTest : public LocalClusterTest {
 protected:
  void SetUp() override {
    LocalClusterTest::SetUp();
    std::filesystem::create_directory(path("model"));
    (void)write("model/pace", "0.01");
    (void)write("load.py", kLoad);
  }
  /// Begins the service with one replica, and waits until it is ready.
  void serve(const std::string& scaling) {
    const std::string job = write("chat.yaml", R"(apiVersion: orrery/v1
kind: Serve
name: chat
restart: {policy: at-once, max: 10}
roles: [{accelerators: 1}]
scaling: {)" + scaling + R"(}
revisions:
- model: chat
  artifact: )" + path("model") + R"(
  engine: {name: vllm, program: )" + std::string(kFake) +
                                                   R"(, arguments: [--max-num-seqs, '2']}
)");
    const CliRun run = live("submit " + job);
    ASSERT_EQ(run.code, 0) << run.err;
    ASSERT_TRUE(await([&] { return states() == "ready"; })) << service();
    const Json made = Json::parse(live("-o json serve --key chat").out);
    asked_ = made["endpoint"].get<std::string>() + " " + made["api_key"].get<std::string>() + " " +
             path("rate") + " " + path("stop");
  }
  [[nodiscard]] Json service() const {
    const CliRun run = live("-o json job chat");
    EXPECT_EQ(run.code, 0) << run.err;
    const Json shown = Json::parse(run.out);
    // The first of several replicas has the service.
    return shown.contains("jobs") ? shown["jobs"].at(0).at("service") : shown.at("service");
  }
  /// The states of the replicas that have not ended: "ready ready".
  [[nodiscard]] std::string states() const {
    std::string text;
    const Json now = service();
    for (const Json& each : now.value("replicas", Json::array())) {
      text += (text.empty() ? "" : " ") + each["state"].get<std::string>();
    }
    return text;
  }
  /// Runs the load until the file `stop` is there; returns what it printed.
  [[nodiscard]] Json load() const {
    const std::string command = "python3 " + path("load.py") + " " + asked_ + " >" + path("loaded");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Json::parse(slurp(path("loaded")), nullptr, false);
  }

 private:
  std::string asked_;
};

TEST_F(ScaledServiceTest, ThreeTimesTheLoadGetsMoreReplicasAndNoRequestIsLost) {
  ASSERT_NO_FATAL_FAILURE(serve("max: 3"));
  (void)write("rate", "8");
  std::future<Json> loaded = std::async(std::launch::async, [this] { return load(); });
  const auto completed = [this] {
    const Json now = service();
    const Json count = now.value("counts", Json::object()).value("completed", Json(0));
    return count.is_string() ? std::stoul(count.get<std::string>()) : count.get<std::size_t>();
  };
  const bool asked = await([&] { return completed() >= 80; });
  EXPECT_TRUE(asked && states() == "ready") << service().dump(1);
  (void)write("rate", "24");
  const bool more = await([&] { return states().starts_with("ready ready"); });
  EXPECT_TRUE(more) << service().dump(1);
  const CliRun shown = live("job chat");
  EXPECT_NE(shown.out.find("of 1..3 replicas: "), std::string::npos) << shown.out;
  EXPECT_NE(shown.out.find("  last order "), std::string::npos) << shown.out;
  (void)write("rate", "4");
  const bool fewer =
      await([&] { return states() == "ready"; }) || await([&] { return states() == "ready"; });
  EXPECT_TRUE(fewer) << service().dump(1);
  (void)write("stop", "");
  const Json answers = loaded.get();
  EXPECT_GT(answers["answered"], 300) << answers;
  EXPECT_EQ(answers["lost"], Json::array());
}

TEST_F(ScaledServiceTest, TheLastReplicaRestsUntilARequestComes) {
  ASSERT_NO_FATAL_FAILURE(serve("min: 0, max: 2, idle: 2 s"));
  ASSERT_TRUE(await([&] { return states() == "resting"; })) << service().dump(1);
  EXPECT_NE(live("jobs").out.find("chat"), std::string::npos);
  (void)write("rate", "1");
  std::future<Json> loaded = std::async(std::launch::async, [this] { return load(); });
  const bool woken = await([&] { return states() == "ready"; });
  EXPECT_TRUE(woken) << service().dump(1);
  (void)write("stop", "");
  const Json answers = loaded.get();
  EXPECT_GT(answers["answered"], 0) << answers;
  EXPECT_EQ(answers["lost"], Json::array());
  EXPECT_EQ(live("cancel chat").code, 0);
  EXPECT_TRUE(await([&] { return live("job chat").code != 0 || states() == "gone"; }));
}

}  // namespace
}  // namespace orrery
