// Sessions with a service on a cluster of `orrery up`: two replicas of orrery-serve behind the
// gateway, of which each session keeps the one that has its prompt in its cache. With a second
// gateway, each knows what the other has sent to the replicas; one with the model's tokens knows
// what the caches of the replicas have, also of prompts that another client sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "tests/end_to_end/local_cluster.hpp"
#include "tests/end_to_end/small_model.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

/// client.py ENDPOINT KEY sessions|burst: prints {ID: [status, prompt tokens, cached tokens]}.
/// `sessions`: four sessions at a time, each of which asks four times with a prompt that grows, as
/// request sNtT. `burst`: the first session asks six times at once, as request bN.
constexpr const char* kClient = R"(import concurrent.futures, json, sys, urllib.request
endpoint, key, mode = sys.argv[1:4]
def ask(name, prompt, tokens):
    body = {"model": "chat", "prompt": prompt, "max_tokens": tokens}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + key,
               "X-Request-Id": name}
    request = urllib.request.Request(endpoint + "/v1/completions", json.dumps(body).encode(),
                                     headers)
    with urllib.request.urlopen(request, timeout=100) as answer:
        usage = json.loads(answer.read())["usage"]
        return name, [answer.status, usage["prompt_tokens"],
                      usage["prompt_tokens_details"]["cached_tokens"]]
def prompt(number, turn):
    return "abcd"[number] * 520 + "".join(" and then %d" % each for each in range(turn))
def session(number):
    return [ask("s%dt%d" % (number, turn), prompt(number, turn), 200) for turn in range(4)]
with concurrent.futures.ThreadPoolExecutor(6) as pool:
    if mode == "sessions":
        answers = [each for all in pool.map(session, range(4)) for each in all]
    else:
        answers = list(pool.map(lambda each: ask("b%d" % each, prompt(0, 3), 300), range(6)))
print(json.dumps(dict(answers)))
)";

/// gateways.py ENDPOINT KEY PROGRAM DIR: runs a gateway g2 of PROGRAM beside the one at ENDPOINT,
/// and a second one of that name; asks both for long texts, kills g2 on the way, and prints
/// {"namesake": what the second g2 logs of its name, "seen": requests of g2 that the other gateway
/// knows of, "forgotten_s": seconds from the end of g2 until it knows of none, "named": whether the
/// table had g2 still, "statuses": of the answers of the other gateway}.
constexpr const char* kGateways = R"PY(import json, os, re, subprocess, sys, threading, time
import urllib.request
endpoint, key, program, directory = sys.argv[1:5]
def start(log):
    command = [program, "--dir", directory, "--listen", "127.0.0.1:0", "--name", "g2"]
    return subprocess.Popen(command, stderr=open(log, "w"))
def until(what, rounds=1200):
    for _ in range(rounds):
        found = what()
        if found: return found
        time.sleep(0.02)
    raise SystemExit("it does not become so: " + what.__name__)
def metrics(name):
    with urllib.request.urlopen(endpoint + "/metrics", timeout=100) as answer:
        lines = answer.read().decode().splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.startswith("orrery_gateway_" + name))
def ask(url, name):
    body = {"model": "chat", "prompt": "abc " * 9, "max_tokens": 400}
    headers = {"Authorization": "Bearer " + key, "X-Request-Id": name}
    request = urllib.request.Request(url + "/v1/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=100) as answer:
        answer.read()
        return answer.status
ends, lock, statuses = threading.Event(), threading.Lock(), []
def load(url, kept):
    while not ends.is_set():
        try: status = ask(url, "load")
        except Exception as error: status = repr(error)
        with lock: kept.append(status)
        if status != 200: return
processes = [start("g2.log")]
try:
    def address(): return re.search('gateway serves address="([^"]*)"', open("g2.log").read())
    second = "http://" + until(address).group(1)
    def peers(): return metrics("peers ") == 1
    until(peers)
    processes.append(start("namesake.log"))
    def namesake():
        return re.search("another gateway with the name[^:]*", open("namesake.log").read())
    said = until(namesake).group(0)
    processes.pop().kill()
    threads = [threading.Thread(target=load, args=(url, kept))
               for url, kept in ((endpoint, statuses), (second, [])) for _ in range(3)]
    for each in threads: each.start()
    def seen(): return metrics("peer_requests_in_flight{")
    most = until(seen)
    statuses.append(ask(endpoint, "shared"))
    until(seen)
    processes[0].kill()
    killed = time.monotonic()
    def forgotten(): return seen() == 0
    until(forgotten)
    forgotten_s = time.monotonic() - killed
    sent = metrics("peer_messages_sent_total ")
    def named(): return metrics("peer_messages_sent_total ") > sent
    still = until(named)
    ends.set()
    for each in threads: each.join()
    print(json.dumps({"namesake": said, "seen": most, "forgotten_s": forgotten_s, "named": still,
                      "statuses": statuses}))
finally:
    for each in processes: each.kill()
)PY";

/// caches.py ENDPOINT KEY PROGRAM DIR: runs a gateway g3 of PROGRAM that has the model's tokens,
/// and prints the candidates, {JOB: cached tokens}, and the chosen one of three requests: "before"
/// and "sent", before and after their prompt was sent to the second replica without a gateway, and
/// "evicted", after others had taken the place of all that was in its cache.
constexpr const char* kCaches = R"PY(import json, re, subprocess, sys, time, urllib.request
key, program, directory = sys.argv[2:5]
def fetch(url, body=None, headers={}):
    headers = {"Authorization": "Bearer " + key, **headers}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=100) as answer:
        return answer.read().decode()
def until(what, rounds=1200):
    for _ in range(rounds):
        found = what()
        if found: return found
        time.sleep(0.02)
    raise SystemExit("it does not become so: " + what.__name__)
command = [program, "--dir", directory, "--listen", "127.0.0.1:0", "--name", "g3",
           "--state", "g3.json", "--tokenizer", "chat=bytes"]
gateway = subprocess.Popen(command, stderr=open("g3.log", "w"))
try:
    def address(): return re.search('gateway serves address="([^"]*)"', open("g3.log").read())
    url = "http://" + until(address).group(1)
    def metric(name):
        text = fetch(url + "/metrics")
        return int(re.search("orrery_gateway_" + name + " (\\d+)", text).group(1))
    def engines(): return metric("cache_engines") == 2
    until(engines)
    replicas = json.load(open("g3.json"))["services"][0]["replicas"]
    def direct(replica, prompt):
        fetch("http://" + replica["endpoint"] + "/v1/completions",
              {"model": "chat", "prompt": prompt, "max_tokens": 1})
    count = 0
    for replica in replicas:
        heard = metric("cache_messages_total")
        def connected():
            global count
            count += 1
            direct(replica, ("%04d" % count) * 10)
            time.sleep(0.05)
            return metric("cache_messages_total") > heard
        until(connected)
    def ask(name, prompt):
        fetch(url + "/v1/completions", {"model": "chat", "prompt": prompt, "max_tokens": 1},
              {"X-Request-Id": name})
        found = json.loads(fetch(url + "/explain/" + name))["decisions"][-1]["candidates"]
        return {"cached": {str(each["job"]): each["cached_tokens"] for each in found},
                "chosen": [each["job"] for each in found if each["verdict"] == "chosen"]}
    def quiet():
        heard = metric("cache_messages_total")
        time.sleep(0.3)
        return metric("cache_messages_total") == heard
    told = {"job": replicas[1]["job"], "before": ask("k0", "now " * 150)}
    direct(replicas[1], "abc " * 150)
    until(quiet)
    told["sent"] = ask("k1", "abc " * 150 + "and")
    for each in range(8):
        direct(replicas[1], "efghijkl"[each] * 1000)
    until(quiet)
    told["evicted"] = ask("k2", "abc " * 150 + "or")
    told["gaps"] = metric("cache_gaps_total")
    print(json.dumps(told))
finally:
    gateway.kill()
)PY";

class RoutingClusterTest : public LocalClusterTest {
 protected:
  void SetUp() override {
    LocalClusterTest::SetUp();
    (void)write("client.py", kClient);
    (void)write("gateways.py", kGateways);
    (void)write("caches.py", kCaches);
    train_small_model(path(""), 1024);
  }
  void TearDown() override {
    if (HasFailure()) std::cerr << slurp(path("c/gateway.log"));
    LocalClusterTest::TearDown();
  }
  /// Relative paths are of the test's directory; what hangs fails.
  [[nodiscard]] std::string environment() const override {
    return "cd " + path("") + " && timeout 200 ";
  }

  /// Serves a model with two replicas of two slots, each with a cache that holds all sessions, and
  /// waits until both are ready.
  [[nodiscard]] Json serve_twice() const {
    const CliRun run = live(
        "-o json serve cp --name chat --replicas 2 -- --slots 2 --kv-blocks 400 --kv-events "
        "0.0.0.0:0");
    EXPECT_EQ(run.code, 0) << run.err;
    Json made = Json::parse(run.out);
    for (int round = 0; round < 300; ++round) {
      const Json service = Json::parse(live("-o json job " + made["id"].get<std::string>()).out);
      if (std::ranges::all_of(service["service"]["replicas"],
                              [](const Json& each) { return each["state"] == "ready"; })) {
        break;
      }
      (void)std::system("sleep 0.2");
    }
    return made;
  }
  /// Runs a script of the test's directory with these arguments; returns what it prints.
  [[nodiscard]] Json ask(const Json& made, const std::string& script,
                         const std::string& arguments) const {
    const std::string command = "cd " + path("") + " && python3 " + script + " " +
                                made["endpoint"].get<std::string>() + " " +
                                made["api_key"].get<std::string>() + " " + arguments + " >answers";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Json::parse(slurp(path("answers")), nullptr, false);
  }
  /// Plays requests against the service as it runs and with a change.
  void ask_what_if() const {
    (void)write("requests.yaml", "apiVersion: orrery/v1\nkind: Requests\nspan: 2 min\nrate: 4\n");
    const CliRun run = live("-o json what-if --service chat --requests " + path("requests.yaml") +
                            " --half first --replicas 3 --router random");
    ASSERT_EQ(run.code, 0) << run.err;
    const Json json = Json::parse(run.out);
    EXPECT_EQ(json["as_is"]["replicas"], 2);
    EXPECT_EQ(json["as_is"]["policy"], "cost");
    EXPECT_EQ(json["changed"]["replicas"], 3);
    EXPECT_EQ(json["changed"]["policy"], "random");
    EXPECT_NEAR(json["requests"].get<double>(), 240, 60);
    EXPECT_GT(json["as_is"]["usd_per_million_tokens"], 0);
    const CliRun wrong = live("what-if --service chatt --requests " + path("requests.yaml"));
    EXPECT_NE(wrong.err.find("--service: no service \"chatt\", did you mean \"chat\"?"),
              std::string::npos)
        << wrong.err;
  }
  /// The candidate that was chosen for a request.
  [[nodiscard]] Json chosen_for(const std::string& request) const {
    const CliRun run = live("-o json explain --request " + request);
    EXPECT_EQ(run.code, 0) << run.err;
    const Json explained = Json::parse(run.out);
    for (const Json& each : explained["decisions"].back()["candidates"]) {
      if (each["verdict"] == "chosen") return each;
    }
    ADD_FAILURE() << run.out;
    return {};
  }
};

TEST_F(RoutingClusterTest, ASessionKeepsTheReplicaThatHasItsPromptUntilThatIsFull) {
  const Json made = serve_twice();
  const Json answers = ask(made, "client.py", "sessions");
  ASSERT_EQ(answers.size(), 16u) << answers;
  for (int session = 0; session < 4; ++session) {
    std::set<std::uint64_t> jobs;
    for (int turn = 0; turn < 4; ++turn) {
      const std::string id = "s" + std::to_string(session) + "t" + std::to_string(turn);
      jobs.insert(chosen_for(id)["job"].get<std::uint64_t>());
      if (turn > 0) EXPECT_GE(answers[id][2], 512) << id << ": " << answers[id];
    }
    EXPECT_EQ(jobs.size(), 1u) << "session " << session << " moved";
  }
  const CliRun why = live("explain --request s0t3");
  EXPECT_NE(why.out.find(" prompt tokens cached, first token in "), std::string::npos) << why.out;

  const Json burst = ask(made, "client.py", "burst");
  ASSERT_EQ(burst.size(), 6u) << burst;
  std::set<std::uint64_t> jobs;
  for (const char* id : {"b0", "b1", "b2", "b3", "b4", "b5"}) {
    jobs.insert(chosen_for(id)["job"].get<std::uint64_t>());
  }
  EXPECT_EQ(jobs.size(), 2u) << "a replica takes three at a time";
  ask_what_if();
}

TEST_F(RoutingClusterTest, GatewaysKnowEachOthersRequestsUntilOneIsKilled) {
  const Json made = serve_twice();
  const std::string gateway =
      (std::filesystem::path(ORRERY_PROGRAM).parent_path() / "orrery-gateway").string();
  const Json told = ask(made, "gateways.py", gateway + " c");
  ASSERT_TRUE(told.is_object()) << told;
  RecordProperty("forgotten_s", told["forgotten_s"].dump());
  EXPECT_EQ(told["namesake"], R"(another gateway with the name \"g2\" reports, at http)");
  EXPECT_GE(told["seen"], 1);
  EXPECT_EQ(told["named"], true) << "its silence is why, not the table";
  for (const Json& status : told["statuses"]) EXPECT_EQ(status, 200) << told;
  EXPECT_GE(told["statuses"].size(), 4u);
  const Json explained = Json::parse(live("-o json explain --request shared").out);
  std::uint64_t others = 0;
  for (const Json& decision : explained["decisions"]) {
    for (const Json& each : decision["candidates"]) {
      others += each["others_in_flight"].get<std::uint64_t>();
    }
  }
  EXPECT_GE(others, 1u) << explained;
}

TEST_F(RoutingClusterTest, AGatewayKnowsWhatTheReplicasTellOfTheirCaches) {
  const Json made = serve_twice();
  const std::string gateway =
      (std::filesystem::path(ORRERY_PROGRAM).parent_path() / "orrery-gateway").string();
  const Json told = ask(made, "caches.py", gateway + " c");
  ASSERT_TRUE(told.is_object()) << told << slurp(path("g3.log"));
  const std::string job = told["job"].dump();
  for (const auto& [each, cached] : told["before"]["cached"].items()) EXPECT_EQ(cached, 0) << told;
  EXPECT_EQ(told["sent"]["cached"][job], 592) << told;
  EXPECT_EQ(told["sent"]["chosen"], Json::array({told["job"]})) << told;
  EXPECT_EQ(told["evicted"]["cached"][job], 0) << told;
  EXPECT_EQ(told["gaps"], 0) << told;
}

}  // namespace
}  // namespace orrery
