// A cluster on this machine as seen by its operator: caps, logs, events, files.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <map>
#include <sstream>
#include <thread>

#include "base/system/real_clock.hpp"
#include "tests/end_to_end/local_cluster.hpp"

namespace orrery {
namespace {

/// The answer of a controller to an admin over HTTP.
std::string fetched(const std::string& directory, const std::string& url_path) {
  const Json cluster = Json::parse(slurp(directory + "/cluster.json"));
  const std::string out = directory + "/fetched";
  const std::string command = "curl -s --cacert " + directory +
                              "/tls/ca.pem -H \"Authorization: " + "Bearer $(cat " + directory +
                              "/token)\" https://" + cluster.at("http").get<std::string>() +
                              url_path + " >" + out;
  EXPECT_EQ(std::system(command.c_str()), 0);
  return slurp(out);
}

/// A site of two nodes with a cap, where job 0 has a node of its own.
class PowerCapTest : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    std::filesystem::create_directory(path("own"));
    (void)write("own/fleet.yaml", R"(apiVersion: orrery/v1
kind: Fleet
name: lab
sites:
- name: here
  power_cap: 30 kW
  halls: [{name: hall, pods: [{name: pod, racks: [{nodes: [{type: dgx-h100, count: 2}]}]}]}]
)");
    ASSERT_EQ(own("up").code, 0);
    ASSERT_EQ(own("submit -n 8 --time-limit '2 h' -- sleep 600").code, 0);
    while (json("job 0")["phase"] != "running") {
    }
  }
  void TearDown() override {
    EXPECT_EQ(own("down").code, 0);
    Cli::TearDown();
  }
  [[nodiscard]] CliRun own(const std::string& arguments) const {
    return orrery("--dir " + path("own") + " " + arguments);
  }
  [[nodiscard]] Json json(const std::string& arguments) const {
    return Json::parse(own("-o json " + arguments).out);
  }
  [[nodiscard]] CliRun cap(const std::string& power) const {
    return own("power cap here/power-cap '" + power + "'");
  }
  [[nodiscard]] Json site() const { return json("power")["domains"][0]; }
};

TEST_F(PowerCapTest, IsTriedOutSetAndTakenBack) {
  const std::string job = write("big.yaml", R"(apiVersion: orrery/v1
kind: Batch
name: big
roles: [{accelerators: 8}]
time_limit: 3 h
launch: {command: ["true"]}
)");
  const auto start = [&](const std::string& with_cap) {
    return json("what-if --submit " + job + with_cap)["jobs"][1]["changed"]["start_s"];
  };
  EXPECT_LT(start(""), 5);
  EXPECT_GT(start(" --cap 'here/power-cap=12 kW'"), 3'600);
  EXPECT_EQ(own("what-if --cap 'here/power-cap=12 kW' --cap here").code, 2);

  EXPECT_EQ(site()["name"], "here/power-cap");
  EXPECT_EQ(site()["limit_w"], 30'000);
  EXPECT_GT(site()["planned_w"], 10'000);
  ASSERT_EQ(cap("12 kW").code, 0);
  EXPECT_EQ(own("submit " + job).code, 0);
  // The reason to wait is known after the next pass.
  while (own("explain 1").out.find("kW") == std::string::npos) {
  }
  const CliRun low = cap("6 kW");
  EXPECT_NE(low.out.find("jobs are slowed or stopped"), std::string::npos) << low.out << low.err;
  EXPECT_EQ(low.err, "") << "its nodes draw less without work";
  while (site()["planned_w"] > 6'000) {
  }
  const CliRun never = cap("2 kW");
  EXPECT_EQ(never.code, 0) << never.err;
  EXPECT_NE(never.err.find("cannot stay below 2.0 kW: its idle nodes draw"), std::string::npos)
      << never.err;
  EXPECT_EQ(cap("none").code, 0);
  EXPECT_TRUE(site()["cap_w"].is_null());
  EXPECT_EQ(own("wait 1").code, 0);
  const CliRun unknown = own("power cap here/power-cab '6 kW'");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("did you mean \"here/power-cap\""), std::string::npos) << unknown.err;
  EXPECT_EQ(cap("warm").code, 2);
}

TEST_F(PowerCapTest, ALittleLowerIsHadByClocksThatJobNodeAndMetricsShow) {
  const double planned = site()["planned_w"];
  ASSERT_EQ(cap(std::to_string(static_cast<int>(planned - 1'000)) + " W").code, 0);
  Json part;
  do {
    part = json("job 0")["parts"][0];
  } while (part["clock"] == 1);
  const double clock = part["clock"];
  EXPECT_GT(clock, 0.3);
  EXPECT_LT(clock, 1);
  const std::string node = part["node"];
  const Json clocks = json("node " + node)["clocks"];
  ASSERT_EQ(clocks.size(), 1U) << clocks;
  EXPECT_EQ(clocks[0]["clock"], clock);
  EXPECT_EQ(clocks[0]["job"], "0");
  const std::string shown = fmt::format("{:.0f} %", clock * 100);
  EXPECT_NE(own("node " + node).out.find(shown + " on 8 of job 0"), std::string::npos);
  EXPECT_NE(own("job 0").out.find("at " + shown + " of the clock"), std::string::npos);
  const std::string metrics = fetched(path("own"), "/metrics");
  EXPECT_NE(metrics.find("orrery_node_clock_ratio{node=\"" + node + "\"} 0."), std::string::npos)
      << metrics;
}

/// `orrery events -f` in a process of its own, into a file.
class Follower {
 public:
  Follower(const std::string& directory, const std::string& file) {
    const std::string command = "exec " + program() + " --dir " + directory +
                                " --retry 60 events -f >" + file + " 2>&1 </dev/null";
    std::string shell = "/bin/sh";
    std::string option = "-c";
    std::string text = command;
    char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
    EXPECT_EQ(::posix_spawn(&pid_, shell.c_str(), nullptr, nullptr, arguments, environ), 0);
  }
  ~Follower() {
    signal(SIGCONT);
    signal(SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;
  void signal(int number) const { (void)::kill(pid_, number); }

 private:
  pid_t pid_ = 0;
};

TEST_F(LocalClusterTest, EventsThatAreFollowedHaveNoGapWhereTheControllerWasStartedAnew) {
  const Follower follower(path("c"), path("events"));
  const auto await_text = [&](const std::string& text) {
    while (slurp(path("events")).find(text) == std::string::npos) {
    }
  };
  ASSERT_EQ(live("submit --wait --name before -- true").code, 0);
  await_text("JobEnded");
  // Events during the time it cannot listen are only in the log.
  follower.signal(SIGSTOP);
  kill_dead("c/orreryd.pid");
  ASSERT_EQ(live("up").code, 0);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(live("submit --wait --name between -- true").code, 0);
  follower.signal(SIGCONT);
  ASSERT_EQ(live("submit --wait --name after -- true").code, 0);
  const auto lines_of = [](const std::string& text) {
    std::map<std::string, int> lines;
    std::istringstream all(text);
    for (std::string line; std::getline(all, line);) {
      if (line.find("  Job") != std::string::npos) ++lines[line];
    }
    return lines;
  };
  const std::map<std::string, int> expected = lines_of(live("events --since 1d").out);
  EXPECT_GT(expected.size(), 15U);
  // Each look takes its time.
  for (int i = 0; i < 100 && lines_of(slurp(path("events"))).size() < expected.size(); ++i) {
    (void)live("jobs");
  }
  EXPECT_EQ(lines_of(slurp(path("events"))), expected);
}

TEST_F(LocalClusterTest, UpAfterAFailedStartPrintsTheLineThatMattersFirst) {
  ASSERT_EQ(live("down").code, 0);
  (void)write("c/tenants.yaml",
              "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants: [{name: default}]\n");
  (void)write("c/controller.yaml", "apiVersion: orrery/v1\nkind: Controller\nretian: 3 h\n");
  const CliRun up = live("up");
  EXPECT_EQ(up.code, 1) << up.out;
  EXPECT_TRUE(up.err.starts_with("orrery: orreryd exited during startup: orreryd: ")) << up.err;
  const std::string first = up.err.substr(0, up.err.find('\n'));
  EXPECT_NE(first.find("controller.yaml:3:1: unknown key \"retian\", did you mean \"retain\"?"),
            std::string::npos)
      << up.err;
  EXPECT_EQ(up.err.find("agent connected"), std::string::npos) << "of an earlier start: " << up.err;
  (void)write("c/controller.yaml", "apiVersion: orrery/v1\nkind: Controller\nretain: 3 h\n");
  EXPECT_EQ(live("up").code, 0);
}

TEST_F(LocalClusterTest, ChangedLinesOfConfigurationFilesAreReportedUntilTheNextStart) {
  const auto restart = [&] {
    ASSERT_EQ(live("down").code, 0);
    ASSERT_EQ(live("up").code, 0);
  };
  const std::string head = "apiVersion: orrery/v1\nkind: ";
  (void)write("c/tenants.yaml", head + "Tenants\nname: t\ntenants:\n- {name: default}\n");
  (void)write("c/controller.yaml", head + "Controller\nretain: 3 h\n");
  (void)write("c/nodes/node-1/agent.yaml", head + "Agent\ntelemetry: 10 s\n");
  restart();
  restart();
  EXPECT_EQ(live("doctor --fleet").out.find("files"), std::string::npos);
  (void)write("c/tenants.yaml",
              head + "Tenants\nname: t\ntenants:\n- {name: default, weight: 3}\n");
  (void)write("c/controller.yaml", head + "Controller\nretain: 9 h\n");
  (void)write("c/nodes/node-1/agent.yaml", head + "Agent\ntelemetry: 90 s\n");
  restart();
  const std::string doctor = live("doctor --fleet").out;
  for (const char* change :
       {"tenants.yaml:5: \"- {name: default}\" is now \"- {name: default, weight: 3}\"",
        "controller.yaml:3: \"retain: 3 h\" is now \"retain: 9 h\""}) {
    EXPECT_NE(doctor.find(change), std::string::npos) << change << " in " << doctor;
  }
  EXPECT_NE(slurp(path("c/orreryd.log")).find("controller.yaml:3: "), std::string::npos);
  // The controller knows the node from before, so that `up` does not wait for its agent.
  std::string log;
  for (int i = 0; i < 200 && log.find("agent.yaml:3: ") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    log = slurp(path("c/nodes/node-1/agent.log"));
  }
  EXPECT_NE(log.find("agent.yaml:3: "), std::string::npos) << log;
  (void)write("c/tenants.yaml", "");
  restart();
  EXPECT_NE(live("doctor --fleet").out.find("tenants.yaml:5: "), std::string::npos);
  const std::string set = live("events --kind TenantsSet").out;
  EXPECT_EQ(std::count(set.begin(), set.end(), '\n'), 2)
      << "an empty file changes nothing: " << set;
  std::filesystem::remove(path("c/tenants.yaml"));
  restart();
  EXPECT_NE(live("doctor --fleet").out.find("tenants.yaml: the file is missing"),
            std::string::npos);
}

TEST_F(LocalClusterTest, APolicyWithAKeyWithoutEffectIsNotTakenOver) {
  (void)write("c/policy.yaml",
              "apiVersion: orrery/v1\nkind: Policy\nname: hardware-aware\nversion: 0\n");
  ASSERT_EQ(live("down").code, 0);
  ASSERT_EQ(live("up").code, 0);
  EXPECT_NE(slurp(path("c/orreryd.log")).find("policy.yaml:4:1: version: expected 1 to "),
            std::string::npos)
      << slurp(path("c/orreryd.log"));
  EXPECT_EQ(live("events --kind PolicySet").out, "");
}

// `up` waits up to a minute for nodes that may become ready.
TEST_F(LocalClusterTest, UpDoesNotWaitForADrainedNode) {
  ASSERT_EQ(live("drain node-1").code, 0);
  ASSERT_EQ(::kill(std::stoi(slurp(path("c/orreryd.pid"))), SIGKILL), 0);
  const RealClock clock;
  const Instant before = clock.now_monotonic();
  const CliRun up = live("up");
  EXPECT_EQ(up.code, 0) << up.err;
  EXPECT_LT(clock.now_monotonic() - before, Duration::seconds(50));
}

TEST_F(LocalClusterTest, TheStoreIsCompactedByItsControllerOrWithoutOneAndLosesNothing) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(live("submit --wait -- true").code, 0);
  const auto verified = [&] {
    return Json::parse(orrery("-o json store verify " + path("c/store")).out);
  };
  const std::string jobs = live("-o json jobs --all").out;
  const CliRun online = orrery("-o json store compact " + path("c/store"));
  ASSERT_EQ(online.code, 0) << online.err;
  EXPECT_GT(Json::parse(online.out)["dropped_batches"], 3);
  EXPECT_EQ(verified()["good"], true);
  EXPECT_EQ(verified()["oldest_batch"], Json::parse(online.out)["snapshot"].get<int>() + 1);
  EXPECT_EQ(live("-o json jobs --all").out, jobs);
  ASSERT_EQ(live("submit --wait -- true").code, 0);
  ASSERT_EQ(live("down").code, 0);
  const Json before = verified();
  const CliRun offline = orrery("-o json store compact " + path("c/store"));
  ASSERT_EQ(offline.code, 0) << offline.err;
  EXPECT_EQ(verified()["history_hash"], before["history_hash"]);
  ASSERT_EQ(live("up").code, 0);
  EXPECT_EQ(Json::parse(live("-o json jobs --all").out)["jobs"].size(), 4U);
}

class AuthorityTest : public LocalClusterTest {};

TEST_F(AuthorityTest, IsExchangedWhileJobsRun) {
  const std::string id = submitted("-- sleep 600");
  const auto await_code = [&](const std::string& arguments, int code) {
    for (int i = 0; i < 600 && live(arguments).code != code; ++i) ::usleep(100'000);
    const CliRun last = live(arguments);
    EXPECT_EQ(last.code, code) << last.err;
  };
  await_code("exec " + id + " -- true", 0);
  const std::string before = slurp(path("c/tls/ca.pem"));
  kill_dead("c/orreryd.pid");
  std::filesystem::remove_all(path("c/tls"));
  EXPECT_EQ(live("up").code, 0);
  EXPECT_NE(slurp(path("c/tls/ca.pem")), before);
  for (const std::string node : {"node-0", "node-1"}) {
    kill_dead("c/nodes/" + node + "/agent.pid");
    std::filesystem::remove_all(path("c/nodes/" + node + "/tls"));
  }
  EXPECT_EQ(live("up").code, 0);
  await_code("exec " + id + " -- true", 0);
  const Json job = Json::parse(live("-o json job " + id).out);
  EXPECT_EQ(job["phase"], "running");
  EXPECT_EQ(job["attempt"], 1);
}

}  // namespace
}  // namespace orrery
