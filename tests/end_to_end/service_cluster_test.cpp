// A service on a cluster of `orrery up`: a small trained model behind the gateway, asked by a
// client of the OpenAI API while one of its replicas is killed.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <future>
#include <utility>

#include "tests/end_to_end/local_cluster.hpp"
#include "tests/end_to_end/small_model.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

/// client.py ENDPOINT,.. KEY MODEL one|stream|load|until [PID|FILE]: prints the answers as JSON,
/// [status, text] each. Where a connection fails, the next endpoint is asked. `load` asks with four
/// clients, every other request streamed, and kills PID on the way; `until` asks so until FILE is
/// there. `streams` runs sixteen streams at a time, each of which gives the same text whenever it
/// is asked, kills PID when the eighth begins, and prints {"streams": [[status, text, ids,
/// usages, finishes, ends, errors], ..], "moved": MOVES}.
constexpr const char* kClient =
    R"(import concurrent.futures, itertools, json, os, signal, sys, threading
import urllib.error, urllib.request
endpoints, key, model, mode = sys.argv[1:5]
endpoints = endpoints.split(",")
def ask(stream, at=0):
    headers = {"Content-Type": "application/json"}
    if mode == "one": headers["X-Request-Id"] = "mine"
    if key: headers["Authorization"] = "Bearer " + key
    body = {"model": model, "prompt": "the quick ", "max_tokens": 24, "stream": stream}
    url, data = endpoints[at] + "/v1/completions", json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]
    except Exception as error:
        if at + 1 < len(endpoints): return ask(stream, at + 1)
        return [0, repr(error)]
def stream(number):
    body = {"model": model, "prompt": "the quick %d " % number, "max_tokens": 96, "stream": True,
            "temperature": number % 2, "seed": number, "stream_options": {"include_usage": True}}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    request = urllib.request.Request(endpoints[0] + "/v1/completions", json.dumps(body).encode(),
                                     headers)
    text, ids, usages, finishes, ends, errors = "", set(), [], [], 0, 0
    try:
        with urllib.request.urlopen(request, timeout=100) as answer:
            for line in answer:
                if line.strip() == b"data: [DONE]": ends += 1
                if not line.startswith(b"data: {"): continue
                chunk = json.loads(line[6:])
                if not ids and next(begun) == 7 and len(sys.argv) > 5:
                    os.kill(int(sys.argv[5]), signal.SIGKILL)
                if "error" in chunk:
                    errors += 1
                    continue
                ids.add((chunk["id"], chunk["created"]))
                for choice in chunk["choices"]:
                    text += choice["text"]
                    if choice["finish_reason"]: finishes.append(choice["finish_reason"])
                if chunk["usage"]:
                    usages.append([chunk["usage"][each] for each in
                                   ("prompt_tokens", "completion_tokens", "total_tokens")])
            return [answer.status, text, len(ids), usages, finishes, ends, errors]
    except Exception as error:
        return [0, repr(error)]
def moved():
    with urllib.request.urlopen(endpoints[0] + "/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines
               if line.startswith("orrery_gateway_streams_moved_total{"))
if mode == "streams":
    begun = itertools.count()
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        print(json.dumps({"streams": list(pool.map(stream, range(16))), "moved": moved()}))
    sys.exit()
if mode in ("one", "stream"):
    print(json.dumps(ask(mode == "stream")))
    sys.exit()
answers, lock, killed = [], threading.Lock(), [mode == "until"]
def numbers():
    if mode == "load": return range(12)
    return iter(lambda: len(answers), -1)
def client():
    for number in numbers():
        if mode == "until" and os.path.exists(sys.argv[5]): return
        answer = ask(number % 2 == 0)
        with lock:
            answers.append(answer)
            kill = len(answers) >= 8 and not killed[0]
            killed[0] = killed[0] or kill
        if kill: os.kill(int(sys.argv[5]), signal.SIGKILL)
threads = [threading.Thread(target=client) for _ in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(json.dumps(answers))
)";

class ServiceClusterTest : public LocalClusterTest {
 protected:
  void SetUp() override {
    LocalClusterTest::SetUp();
    (void)write("client.py", kClient);
    train_small_model(path(""));
  }
  void TearDown() override {
    if (HasFailure()) std::cerr << slurp(path("c/gateway.log"));
    LocalClusterTest::TearDown();
  }
  /// Relative paths are of the test's directory; what hangs fails.
  [[nodiscard]] std::string environment() const override {
    return "cd " + path("") + " && timeout 200 ";
  }

  /// Runs the client and returns what it printed.
  [[nodiscard]] Json ask(const std::string& mode, const std::string& rest = "") const {
    const std::string command = "python3 " + path("client.py") + " " + endpoint_ + " '" + key_ +
                                "' " + model_ + " " + mode + " " + rest + " >" + path("answers");
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Json::parse(slurp(path("answers")), nullptr, false);
  }
  [[nodiscard]] int status() const { return ask("one").at(0); }
  [[nodiscard]] Json service(const std::string& id) const {
    const CliRun run = live("-o json job " + id);
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["service"];
  }
  /// Waits until the service is as wanted, and returns it.
  Json await(const std::string& id, const std::function<bool(const Json&)>& wanted) const {
    constexpr int kRounds = 600;
    Json now;
    for (int round = 0; round < kRounds; ++round) {
      now = service(id);
      if (wanted(now)) return now;
      (void)::poll(nullptr, 0, 200);
    }
    ADD_FAILURE() << now.dump(1);
    return now;
  }
  static bool all_ready(const Json& service) {
    return std::ranges::all_of(service["replicas"],
                               [](const Json& replica) { return replica["state"] == "ready"; });
  }
  /// Serves the model and takes what the answer says of the service; returns its number.
  std::string serve(const std::string& options) {
    const CliRun run = live("-o json serve cp --name chat " + options);
    EXPECT_EQ(run.code, 0) << run.err;
    const Json made = Json::parse(run.out);
    endpoint_ = made["endpoint"];
    key_ = made["api_key"];
    model_ = made["model"];
    EXPECT_EQ(endpoint_.find("/v1"), std::string::npos);
    return made["id"];
  }

  /// Ends a client that asks `until`, also where a test fails before its end.
  class Stop {
   public:
    explicit Stop(std::string file) : file_(std::move(file)) {}
    Stop(const Stop&) = delete;
    Stop& operator=(const Stop&) = delete;
    ~Stop() { std::ofstream(file_) << "stop"; }

   private:
    std::string file_;
  };

  std::string endpoint_;
  std::string key_;
  std::string model_;
};

TEST_F(ServiceClusterTest, AModelAnswersThroughTheGatewayToHoldersOfAKeyAlone) {
  const std::string id = serve("");
  EXPECT_EQ(model_, "chat");
  const Json answer = ask("one");
  ASSERT_EQ(answer[0], 200) << answer;
  const Json whole = Json::parse(answer[1].get<std::string>());
  EXPECT_EQ(whole["model"], "chat");
  EXPECT_FALSE(whole["choices"].at(0)["text"].get<std::string>().empty()) << whole;
  EXPECT_GT(whole["usage"]["completion_tokens"], 0) << whole;
  const Json stream = ask("stream");
  ASSERT_EQ(stream[0], 200) << stream;
  const std::string events = stream[1];
  EXPECT_TRUE(events.starts_with("data: {")) << events;
  EXPECT_NE(events.find("data: [DONE]"), std::string::npos) << events;

  const CliRun why = live("explain --request mine");
  EXPECT_EQ(why.code, 0) << why.err;
  EXPECT_NE(why.out.find("chosen"), std::string::npos) << why.out;
  EXPECT_EQ(live("explain --request none").code, 2);

  const std::string key = std::exchange(key_, "");
  EXPECT_EQ(status(), 401);
  key_ = "wrong";
  EXPECT_EQ(status(), 401);
  key_ = key;
  model_ = "chit";
  EXPECT_EQ(status(), 404);
  model_ = "chat";
  const Json another = Json::parse(live("-o json serve --key chat").out);
  EXPECT_NE(another["api_key"], key);
  key_ = another["api_key"];
  EXPECT_EQ(status(), 200);
  EXPECT_EQ(live("cancel " + id).code, 0);
  for (int round = 0; status() == 200 && round < 100; ++round) (void)::poll(nullptr, 0, 200);
  EXPECT_NE(status(), 200);
}

TEST_F(ServiceClusterTest, EveryRequestIsAnsweredWhileAReplicaIsKilled) {
  const std::string id = serve("--replicas 2");
  const Json before = await(id, all_ready);
  ASSERT_EQ(before["replicas"].size(), 2u) << before;
  const std::string victim = before["replicas"][0]["pid"];
  const Json answers = ask("load", victim);
  ASSERT_EQ(answers.size(), 48u);
  for (const Json& answer : answers) {
    EXPECT_EQ(answer[0], 200) << answer;
    const std::string text = answer[1];
    const bool streamed = text.starts_with("data: ");
    const bool whole = text.find(streamed ? "data: [DONE]" : "\"finish_reason\"") != text.npos;
    EXPECT_TRUE(whole) << text;
  }
  const Json after = await(id, [&](const Json& now) {
    const Json& counts = now["counts"];
    return all_ready(now) && std::stoul(counts["completed"].get<std::string>()) >= 48;
  });
  EXPECT_EQ(after["counts"]["failed"], "0") << after;
  EXPECT_NE(after["replicas"][0]["pid"], victim) << "it was started again";
  EXPECT_GT(after["ttft_s"]["p50"], 0.0) << after;
  EXPECT_GE(after["ttft_s"]["p99"], after["ttft_s"]["p50"]) << after;
  EXPECT_GT(after["tokens_s"], 0.0) << after;
  EXPECT_GT(after["predicted"]["tpot_s"], 0.0) << after;
  const CliRun text = live("job " + id);
  EXPECT_NE(text.out.find("service chat: model chat at " + endpoint_), std::string::npos)
      << text.out;
}

TEST_F(ServiceClusterTest, StreamsGoOnAtAnotherReplicaWhenTheirsIsKilled) {
  const char* asked = std::getenv("ORRERY_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 1;
  const std::string id = serve("--replicas 2");
  Json now = await(id, all_ready);
  const Json undisturbed = ask("streams");
  ASSERT_EQ(undisturbed["streams"].size(), 16u) << undisturbed;
  for (const Json& each : undisturbed["streams"]) {
    EXPECT_EQ(each[5], 1) << each;
    EXPECT_EQ(each[3].size(), 1u) << each;
  }
  std::size_t streams = 0;
  int rounds = 0;
  std::uint64_t moved = 0;
  // A kill may meet a replica between two streams, or one whose streams have all been generated. A
  // replica waits before each start twice as long as before: few kills fit into one run.
  for (; rounds < kills || (moved == 0 && rounds < kills + 5); ++rounds) {
    const std::string victim = now["replicas"][static_cast<std::size_t>(rounds) % 2]["pid"];
    const Json disturbed = ask("streams", victim);
    ASSERT_EQ(disturbed["streams"].size(), 16u) << disturbed;
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(disturbed["streams"][i], undisturbed["streams"][i]) << "kill " << rounds;
    }
    streams += 16;
    moved = disturbed["moved"];
    if (HasFailure()) break;
    now = await(id, [&](const Json& service) {
      return all_ready(service) && std::ranges::none_of(service["replicas"], [&](const Json& each) {
               return each["pid"] == victim;
             });
    });
  }
  EXPECT_GT(moved, 0u);
  EXPECT_EQ(service(id)["counts"]["failed"], "0");
  std::printf("%d kills, %zu streams, %llu moves\n", rounds, streams,
              static_cast<unsigned long long>(moved));
}

TEST_F(ServiceClusterTest, AServiceIsUpdatedWithoutALostRequest) {
  const char* asked = std::getenv("ORRERY_UPDATES");
  const int rounds = asked != nullptr ? std::atoi(asked) / 3 : 1;
  const std::string id = serve("");
  auto load = std::async(std::launch::async, [this] { return ask("until", path("stop")); });
  const Stop stop(path("stop"));
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const std::string revision = "v" + std::to_string(round + 2);
    const CliRun updated = live("serve --update chat --revision " + revision + " -- --slots " +
                                std::to_string(4 + round % 2));
    EXPECT_EQ(updated.code, 0) << updated.err;
    EXPECT_EQ(updated.out,
              "service chat (job 0) runs revision " + revision + ": 1 of 1 replica ready\n");
    const CliRun grown = live("-o json serve --update chat --replicas 2");
    EXPECT_EQ(grown.code, 0) << grown.err;
    const Json two = Json::parse(grown.out, nullptr, false);
    ASSERT_TRUE(two.is_object()) << grown.out;
    EXPECT_EQ(two.value("revision", ""), revision) << two;
    const CliRun shrunk = live("serve --update chat --replicas 1");
    EXPECT_EQ(shrunk.code, 0) << shrunk.err;
  }
  (void)write("stop", "");
  const Json answers = load.get();
  EXPECT_GT(answers.size(), 8u);
  int lost = 0;
  for (const Json& answer : answers) {
    const std::string text = answer[1];
    const bool streamed = text.starts_with("data: ");
    const bool whole = text.find(streamed ? "data: [DONE]" : "\"finish_reason\"") != text.npos;
    if (answer[0] == 200 && whole && text.find("\"error\"") == text.npos) continue;
    ++lost;
    ADD_FAILURE() << answer;
  }
  EXPECT_EQ(service(id)["counts"]["failed"], "0");
  std::printf("%d changes, %zu requests, %d lost\n", 3 * rounds, answers.size(), lost);
}

TEST_F(ServiceClusterTest, AnotherGatewayAnswersWhenOneIsKilled) {
  const std::string id = serve("--replicas 2");
  const std::string first = endpoint_;
  const std::string start = "cd " + path("") +
                            " && { " ORRERY_GATEWAY
                            " --dir c --listen 127.0.0.1:0 --name second >second.log 2>&1 & "
                            "echo $! >second.pid; }";
  ASSERT_EQ(std::system(start.c_str()), 0);
  const Json both = await(id, [](const Json& now) { return now["endpoints"].size() == 2; });
  for (const Json& each : both["endpoints"]) {
    if (each != first) endpoint_ = each.get<std::string>() + "," + first;
  }
  auto load = std::async(std::launch::async, [this] { return ask("until", path("stop")); });
  const Stop stop(path("stop"));
  const auto counted = [](const Json& now) {
    return std::stoul(now["counts"]["completed"].get<std::string>());
  };
  await(id, [&](const Json& now) { return counted(now) > 16; });
  kill_dead("second.pid");
  const std::uint64_t then = counted(service(id));
  await(id, [&](const Json& now) { return counted(now) > then + 16; });
  (void)write("stop", "");
  for (const Json& answer : load.get()) {
    ASSERT_EQ(answer[0], 200) << answer;
    EXPECT_EQ(answer[1].get<std::string>().find("\"error\""), std::string::npos) << answer;
  }
}

TEST_F(ServiceClusterTest, AnUpdateThatCannotServeGoesBack) {
  serve("");
  const CliRun bad = live("serve --update chat -- --slots many");
  EXPECT_EQ(bad.code, 1) << bad.out;
  EXPECT_NE(bad.err.find("did not succeed"), std::string::npos) << bad.err;
  EXPECT_EQ(status(), 200);
  const Json after = service("0");
  EXPECT_EQ(after["revision"], "r1");
  EXPECT_NE(after["outcome"], "");
  const CliRun same = live("submit " + write("chat.yaml", R"(apiVersion: orrery/v1
kind: Serve
name: chat
roles: [{accelerators: 1}]
revisions: [{model: other, artifact: cp}]
)") + " --update");
  EXPECT_EQ(same.code, 2);
  EXPECT_NE(same.err.find("model is \"other\", expected \"chat\""), std::string::npos) << same.err;
}

/// grade.py ENDPOINT KEY MODEL REVISION FILE: asks until FILE is there, and gives each answer of
/// that revision the score 0, each other one 1.
constexpr const char* kGrader = R"(import json, os, sys, urllib.error, urllib.request
endpoint, key, model, bad, stop = sys.argv[1:]
def call(path, body):
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key}
    request = urllib.request.Request(endpoint + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        answer.read()
        return answer.headers["x-orrery-revision"]
while not os.path.exists(stop):
    revision = call("/v1/completions", {"model": model, "prompt": "the ", "max_tokens": 2})
    score = 0 if revision == bad else 1
    try:
        call("/v1/feedback", {"model": model, "revision": int(revision), "score": score})
    except urllib.error.HTTPError as error:
        if error.code != 404: raise  # its replicas have left meanwhile
)";

TEST_F(ServiceClusterTest, ACanaryIsRolledBackByTheScoresOfItsAnswersAndAGoodOneIsPromoted) {
  (void)write("grade.py", kGrader);
  const std::string id = serve("--replicas 1");
  const Stop stop(path("stop"));
  std::future<int> grader = std::async(std::launch::async, [this] {
    return std::system(("python3 " + path("grade.py") + " " + endpoint_ + " " + key_ + " " +
                        model_ + " 2 " + path("stop"))
                           .c_str());
  });
  const std::string update = "serve --update chat --canary 50% --bake 0s --gates quality ";
  const CliRun worse = live(update + "--revision bad -- --slots 2");
  EXPECT_EQ(worse.code, 1) << worse.err;
  EXPECT_NE(worse.err.find("canary, stage 1 of 1: 50 % of the requests"), std::string::npos)
      << worse.err;
  EXPECT_NE(worse.err.find("the canary is worse: the mean score of "), std::string::npos)
      << worse.err;
  EXPECT_EQ(service(id)["revision"], "r1");
  const CliRun good = live(update + "--revision good -- --slots 3");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(service(id)["revision"], "good");
  EXPECT_TRUE(all_ready(service(id))) << service(id).dump(1);
  (void)write("stop", "");
  EXPECT_EQ(grader.get(), 0) << "no request failed";
}

TEST_F(ServiceClusterTest, ASubmittedServiceSaysHowAKeyIsMade) {
  const std::string job = write("chat.yaml", R"(apiVersion: orrery/v1
kind: Serve
name: filed
restart: {policy: at-once, max: 10}
roles: [{accelerators: 1}]
revisions: [{model: filed, artifact: cp}]
)");
  const CliRun run = live("submit " + job);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("`orrery serve --key 0`"), std::string::npos) << run.err;
  await("0", all_ready);
  const Json made = Json::parse(live("-o json serve --key filed").out);
  endpoint_ = made["endpoint"];
  key_ = made["api_key"];
  model_ = "filed";
  EXPECT_EQ(status(), 200);
  (void)write("gone.yaml",
              slurp(path("chat.yaml")).replace(slurp(path("chat.yaml")).find("cp}"), 2, "no"));
  const CliRun gone = live("submit " + path("gone.yaml"));
  EXPECT_EQ(gone.code, 2);
  EXPECT_NE(gone.err.find("gone.yaml:6:"), std::string::npos) << gone.err;
}

TEST_F(ServiceClusterTest, WithoutWaitingAServiceThatCannotStartIsAccepted) {
  ASSERT_EQ(live("drain node-0").code + live("drain node-1").code, 0);
  serve("--no-wait");
  EXPECT_EQ(service("0")["replicas"][0]["state"], "requested");
}

TEST_F(ServiceClusterTest, TheGatewayKeepsItsAddressAndIsStartedAgain) {
  const Json first = Json::parse(live("-o json up").out);
  const std::string gateway = first["gateway"];
  EXPECT_TRUE(gateway.starts_with("http://127.0.0.1:")) << first;
  const Json record = Json::parse(slurp(path("c/local.json")));
  for (const Json& process : record["processes"]) {
    if (process["name"] != "gateway") continue;
    ASSERT_EQ(::kill(process["process"]["pid"].get<pid_t>(), SIGKILL), 0);
  }
  const Json again = Json::parse(live("-o json up").out);
  EXPECT_EQ(again["started"], Json::array({"gateway"}));
  EXPECT_EQ(again["gateway"], gateway);
  ASSERT_EQ(live("down --keep-jobs").code, 0);
  EXPECT_EQ(Json::parse(live("-o json up").out)["gateway"], gateway);
}

}  // namespace
}  // namespace orrery
