// A cluster on this machine as seen by a user: real processes, killed at critical moments.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/end_to_end/local_cluster.hpp"

namespace orrery {

std::string program() { return ORRERY_PROGRAM; }

namespace {

TEST_F(LocalClusterTest, AJobRunsAndItsWordsAndItsEndAreKnown) {
  const std::string id = submitted("-- sh -c 'echo hello from $ORRERY_JOB; exit 0'");
  const CliRun waited = live("wait " + id);
  EXPECT_EQ(waited.code, 0) << waited.err;
  const CliRun log = live("logs " + id);
  EXPECT_NE(log.out.find("hello from"), std::string::npos) << log.out << log.err;
  const CliRun failed = live("submit --restarts 0 --wait -- sh -c 'exit 3'");
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.err.find("exit status 3"), std::string::npos) << failed.err;
  const std::string gang = submitted("-n 4 --framework mpi -- sh -c 'cat $ORRERY_HOSTFILE'");
  EXPECT_EQ(live("wait " + gang).code, 0);
  const std::string hosts = live("logs " + gang).out;
  EXPECT_NE(hosts.find(" slots=4\n"), std::string::npos) << hosts;
  EXPECT_EQ(std::count(hosts.begin(), hosts.end(), '\n'), 1) << hosts;
  EXPECT_EQ(Json::parse(live("-o json jobs --all --name 's?'").out)["jobs"].size(), 3u);
  EXPECT_EQ(Json::parse(live("-o json jobs --all --name s").out)["jobs"].size(), 0u);
  const Json bill = Json::parse(live("-o json job " + gang).out)["bill"];
  ASSERT_EQ(bill["accelerator_hours_by_type"].size(), 1u) << bill;
  EXPECT_EQ(bill["accelerator_hours_by_type"][0]["hours"], bill["accelerator_hours"]);
  EXPECT_GT(bill["accelerator_hours"], 0);
  const Json nodes = Json::parse(live("-o json nodes").out)["nodes"];
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0]["name"], "node-0");
  EXPECT_EQ(nodes[0]["emulated"], true);
  expect_plans();
}

/// Characters that a terminal obeys, but for the ends of lines.
int controls_in(const std::string& text) {
  return static_cast<int>(std::ranges::count_if(
      text, [](unsigned char c) { return (c < 0x20 && c != '\n') || c == 0x7F; }));
}

TEST_F(LocalClusterTest, WhatAUserNamesIsShownToOthersWithoutItsControls) {
  const std::string id =
      submitted("--restarts 0 -- \"$(printf '/no/\\033]0;pwned\\a\\033[31msuch')\"");
  EXPECT_EQ(live("wait " + id).code, 1);
  for (const char* verb : {"jobs -a", "job 0", "explain 0", "wait 0", "top", "job 0 -o json"}) {
    const CliRun run = live(verb);
    EXPECT_EQ(controls_in(run.out + run.err), 0) << verb << ":\n" << run.out << run.err;
  }
  EXPECT_NE(live("jobs -a").out.find("cannot run /no/\\x1b]0;pwned\\x07\\x1b[31msuch"),
            std::string::npos);
  EXPECT_EQ(controls_in(slurp(path("c/orreryd.log")) + slurp(path("c/nodes/node-0/agent.log"))), 0);
}

TEST_F(LocalClusterTest, ALogOfManyMegabytesComesWholeToAPipeThatPauses) {
  const std::string id = submitted("-- seq 1 4000000");
  EXPECT_EQ(live("wait " + id).code, 0);
  // The first reader takes nothing until the program has filled all that lies between them.
  const std::string command = "sh -c '" + program() + " --dir " + path("c") + " logs " + id +
                              " | { head -c 1000000; sleep 2; cat; } | sha256sum >" + path("sum") +
                              "'";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(std::system(("seq 1 4000000 | sha256sum >" + path("expected")).c_str()), 0);
  EXPECT_EQ(slurp(path("sum")), slurp(path("expected")));
}

TEST_F(LocalClusterTest, LogsOfAllRanksAreLabelledAndCutByLinesAndTime) {
  const std::string id = submitted(
      "-n 2 -- sh -c 'echo early; sleep 3; date -u +%Y-%m-%dT%H:%M:%SZ; sleep 1; "
      "echo late $ORRERY_RANK'");
  EXPECT_EQ(live("wait " + id).code, 0);
  const std::string both = live("logs " + id).out;
  for (const char* line : {"0: early\n", "1: early\n", "0: late 0\n", "1: late 1\n"}) {
    EXPECT_NE(both.find(line), std::string::npos) << line << " is missing in\n" << both;
  }
  const std::string one = live("logs " + id + " --rank 1").out;
  EXPECT_TRUE(one.starts_with("early\n")) << one;
  EXPECT_EQ(live("logs " + id + " --rank 1 --tail 1").out, "late 1\n");
  const std::string at = one.substr(6, 20);
  const std::string since = live("logs " + id + " --rank 1 --since " + at).out;
  EXPECT_EQ(since.find("early"), std::string::npos) << since;
  EXPECT_NE(since.find("late 1\n"), std::string::npos) << since;
  const CliRun none = live("logs " + id + " --rank 7");
  EXPECT_EQ(none.code, 2);
  EXPECT_NE(none.err.find("has no rank 7; it has ranks 0, 1"), std::string::npos) << none.err;
  const CliRun followed =
      live("logs -f " + submitted("-n 2 -- sh -c 'sleep 1; echo $ORRERY_RANK'"));
  EXPECT_EQ(followed.code, 0) << followed.err;
  EXPECT_NE(followed.out.find("0: 0\n"), std::string::npos) << followed.out;
  EXPECT_NE(followed.out.find("1: 1\n"), std::string::npos) << followed.out;
}

TEST_F(LocalClusterTest, CancelTakesNamesAndFiltersAndReportsEachJob) {
  const std::string array =
      write("sweep.sbatch", "#!/bin/sh\n#SBATCH --array=0-2 -J sweep\nsleep 600\n");
  EXPECT_EQ(live("submit " + array).code, 0);
  const std::string ended = submitted("-- true");
  const std::string one = submitted("--name solo -- sleep 600");
  EXPECT_EQ(live("wait " + ended).code, 0);
  const CliRun some = live("cancel 'sweep[1]' " + ended + " solo");
  EXPECT_EQ(some.code, 1);
  EXPECT_EQ(some.out, "job 1 (sweep[1]) cancelled\njob " + one + " (solo) cancelled\n");
  EXPECT_NE(some.err.find("orrery: job " + ended + " has already ended (finished)\n"),
            std::string::npos)
      << some.err;
  const Json dry = Json::parse(live("-o json cancel --name 'sw*' --dry-run").out);
  EXPECT_EQ(dry["would_cancel"], Json({"0", "2"})) << dry;
  EXPECT_EQ(Json::parse(live("-o json cancel --user owner --name 'sw*' --dry-run").out), dry);
  EXPECT_EQ(live("cancel --user ada").out, "no job matches\n");
  const Json rest = Json::parse(live("-o json cancel sweep").out);
  EXPECT_EQ(rest["cancelled"], Json({"0", "2"})) << rest;
  EXPECT_EQ(rest["failed"], Json::array());
  EXPECT_EQ(live("wait 0 2").code, 1);
  for (const auto& [arguments, why] : std::vector<std::pair<std::string, std::string>>{
           {"cancel", "nothing to cancel"},
           {"cancel nonesuch", "no job named \"nonesuch\""},
           {"cancel 1 --name x", "not both"},
           {"cancel --state finished", "expected one of held"},
           {"cancel --tenant nope", "no tenant \"nope\""},
           {"jobs --state foo", "no state \"foo\""},
           {"jobs --state finishd", "did you mean \"finished\"?"},
           {"jobs --tenant nope", "no tenant \"nope\""}}) {
    const CliRun wrong = live(arguments);
    EXPECT_EQ(wrong.code, 2) << arguments;
    EXPECT_NE(wrong.err.find(why), std::string::npos) << arguments << ": " << wrong.err;
  }
}

TEST_F(LocalClusterTest, TopCountsWhatJobsHoldAndListsThemFirst) {
  const std::string id = submitted("--name holds -- sleep 600");
  Json job;
  do {
    job = Json::parse(live("-o json job " + id).out);
  } while (job["phase"] != "running");
  const std::string other = job["parts"][0]["node"] == "node-0" ? "node-1" : "node-0";
  EXPECT_EQ(live("drain " + other).code, 0);
  for (int i = 0; i < 3; ++i) (void)submitted("-n 4 --name waits -- true");
  const std::string top = live("top").out;
  EXPECT_NE(top.find("accelerators [#####---------------] 1/4 in use, 2 unavailable\n"),
            std::string::npos)
      << top;
  EXPECT_LT(top.find("holds"), top.find("waits")) << top;
}

TEST_F(LocalClusterTest, TheQuickstartStopsWaitingForAJobThatFailed) {
  const std::string id = submitted("--restarts 0 -- false");
  EXPECT_EQ(live("wait " + id).code, 1);
  const std::string script = write(
      "follow", "set -euo pipefail\nbin=$(dirname " + program() + ") id=" + id +
                    " steps=10\nexport ORRERY_DIR=" + path("c") +
                    "\nsource <(sed -n '/^step_of()/p; /^follow()/,/^}/p' " + ORRERY_SOURCE_DIR +
                    "/scripts/quickstart)\nfollow " + path("run") + " 5\n");
  const std::string run = "timeout 60 bash " + script + " 2>" + path("why");
  EXPECT_EQ(WEXITSTATUS(std::system(run.c_str())), 1);
  EXPECT_NE(slurp(path("why")).find("job " + id + " failed at step 0 of 10"), std::string::npos)
      << slurp(path("why"));
}

TEST_F(LocalClusterTest, DownSaysThatAnotherControllerRunsHere) {
  EXPECT_EQ(live("down").code, 0);
  const std::string daemon =
      std::filesystem::path(program()).parent_path().string() + "/orreryd --dir " + path("c");
  const std::string started =
      daemon + " >" + path("by-hand.log") + " 2>&1 & echo $! >" + path("pid");
  EXPECT_EQ(std::system(started.c_str()), 0);
  const std::string pid = slurp(path("pid")).substr(0, slurp(path("pid")).find('\n'));
  while (slurp(path("c/orreryd.pid")) != pid + "\n") {
  }
  const CliRun down = live("down");
  EXPECT_EQ(down.code, 1);
  EXPECT_NE(down.err.find("process " + pid), std::string::npos) << down.err;
  EXPECT_EQ(::kill(std::stoi(pid), SIGTERM), 0);
  while (std::filesystem::exists("/proc/" + pid)) {
  }
  EXPECT_EQ(live("down").code, 0);
}

TEST_F(LocalClusterTest, AScriptOfSlurmStartsStepsOnAllItsNodes) {
  const std::string script = write("train.sbatch", R"(#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2 --gpus-per-node=2
#SBATCH --array=5,7%1 --mail-type=END
echo "job $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID: $1 $SLURM_NTASKS $SLURM_TASKS_PER_NODE"
[ "$SLURM_ARRAY_TASK_ID" = 7 ] && exit 9
echo hosts $(scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l)
srun -l sh -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURM_STEP_ID' | sort
export A=b
echo from script | srun -n 1 -r 1 --export=ALL,B=c sh -c 'cat; echo $A$B $ORRERY_PROGRESS'
srun -N 1 -n 2 sh -c 'exit $((3 + SLURM_PROCID))'
echo "highest $?"
srun sh -c 'if [ $SLURM_PROCID = 2 ]; then kill -9 $$; fi'
echo "killed $?"
srun -K -n 2 sh -c 'if [ $SLURM_PROCID = 0 ]; then exit 1; fi; exec sleep 600'
srun --frob true
echo secrets $(env | grep -c ORRERY_STEP_SECRET=) $(stat -c %a $ORRERY_STEP_SECRET_FILE)
(sleep 600; echo never) &
exit 4
)");
  const CliRun run = live("submit --wait " + script + " first");
  EXPECT_EQ(run.code, 1) << run.err;
  EXPECT_NE(run.err.find("train.sbatch:3: --mail-type has no effect"), std::string::npos)
      << run.err;
  const Json jobs = Json::parse(live("-o json jobs --all").out)["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  const std::string id = jobs[1]["id"];
  const std::string log = live("logs " + id).out;
  const auto said = [&](const std::string& words) {
    EXPECT_NE(log.find(words), std::string::npos) << words << " is missing in\n" << log;
  };
  said("of " + id + ": first 4 2(x2)\nhosts 2\n");
  said("\n0: 0 0 0 0\n1: 1 1 0 0\n2: 2 0 1 0\n3: 3 1 1 0\n");
  std::error_code on_disk;
  const std::string node = path("c/nodes/node-1");
  const std::string in_memory = std::filesystem::read_symlink(node + "/run", on_disk);
  said("\nfrom script\nbc " + (on_disk ? node : in_memory));
  said("\nhighest 4\n");
  said("task 2: Killed\nkilled 137\n");
  said("task 0: Exited with exit code 1\n");
  said("task 1: Terminated\n");
  said("--frob is no option");
  said("secrets 0 600\n");
}

TEST_F(LocalClusterTest, WhatIfSaysWhoWouldWaitForAChangeAndChangesNothing) {
  const std::string busy = submitted("-n 4 --time-limit '2 h' -- sleep 600");
  while (Json::parse(live("-o json job " + busy).out)["phase"] != "running") {
  }
  const std::string next = submitted("-n 2 --time-limit '1 h' -- sleep 600");
  std::ofstream(path("big.yaml")) << "apiVersion: orrery/v1\nkind: Batch\nname: big\n"
                                     "roles: [{accelerators: 4}]\ntime_limit: 3 h\n"
                                     "launch: {command: [\"true\"]}\n";
  const CliRun run = live("what-if --submit " + path("big.yaml") + " --drain node-1 -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const Json jobs = Json::parse(run.out)["jobs"];
  ASSERT_EQ(jobs.size(), 3u) << run.out;
  // The first job runs to its limit in either case; the second starts then.
  EXPECT_EQ(jobs[0]["id"], busy);
  const double end = jobs[0]["as_is"]["end_s"];
  EXPECT_GT(end, 3'600);
  EXPECT_LE(end, 7'200);
  EXPECT_EQ(jobs[0]["as_is"], jobs[0]["changed"]);
  EXPECT_EQ(jobs[1]["id"], next);
  EXPECT_NEAR(jobs[1]["as_is"]["start_s"], end, 10);
  EXPECT_NEAR(jobs[1]["as_is"]["end_s"], end + 3'600, 20);
  EXPECT_NEAR(jobs[1]["changed"]["start_s"], end, 10);
  // With one node less, the new job never has room.
  EXPECT_EQ(jobs[2]["name"], "big");
  EXPECT_TRUE(jobs[2]["as_is"].is_null());
  EXPECT_TRUE(jobs[2]["changed"]["start_s"].is_null()) << run.out;
  EXPECT_EQ(Json::parse(live("-o json jobs").out)["jobs"].size(), 2u);
  EXPECT_EQ(Json::parse(live("-o json node node-1").out)["drain"], false);
  const CliRun wrong = live("what-if --drain node-7");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("no node \"node-7\""), std::string::npos) << wrong.err;
}

TEST_F(LocalClusterTest, WhatIfBringsMachinesThatAreAwayAndSetsQuotas) {
  ASSERT_EQ(live("drain node-1").code, 0);
  const std::string busy = submitted("-n 2 --time-limit '2 h' -- sleep 600");
  while (Json::parse(live("-o json job " + busy).out)["phase"] != "running") {
  }
  const std::string held = submitted("-n 2 --time-limit '1 h' -- sleep 600");
  const auto asked = [&](const std::string& change) {
    const CliRun run = live("what-if " + change + " -o json");
    EXPECT_EQ(run.code, 0) << run.err;
    return Json::parse(run.out)["jobs"][1];
  };
  EXPECT_GT(asked("--add node-1")["as_is"]["start_s"], 3'600);
  EXPECT_LT(asked("--add node-1")["changed"]["start_s"], 5) << "no longer drained";
  ASSERT_EQ(live("cancel " + held).code, 0);
  ASSERT_EQ(live("resume node-1").code, 0);
  kill_dead("c/nodes/node-1/agent.pid");
  while (Json::parse(live("-o json node node-1").out)["health"] != "lost") {
  }
  (void)submitted("-n 2 --time-limit '1 h' -- sleep 600");
  EXPECT_LT(asked("--add node-1")["changed"]["start_s"], 5) << "no longer lost";
  const std::string quotas = write("quotas.yaml", R"(apiVersion: orrery/v1
kind: Tenants
name: less
tenants: [{name: default, limit: {"*": 1}}]
)");
  EXPECT_TRUE(asked("--tenants " + quotas)["changed"]["start_s"].is_null());
  const std::string wrong = write("wrong.yaml", R"(apiVersion: orrery/v1
kind: Tenants
name: less
tenants: [{name: default, limits: 1}]
)");
  const auto refused = [&](const std::string& change, const std::string& words) {
    const CliRun run = live("what-if " + change);
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
  };
  refused("--tenants " + wrong, "wrong.yaml:4:27: unknown key \"limits\"");
  refused("--add node-0", "\"node-0\" is not away: it is ready");
  refused("--cap 'site=3 kW'", "no site cap, feed, UPS, row, rack or cooling loop \"site\"");
}

TEST_F(LocalClusterTest, AJobGoesOnWhileTheControllerAndAnAgentAreKilledAndStartedAnew) {
  // It ends when the file is there, and says how often it was started.
  const std::string id = submitted("-n 2 --name long -- sh -c 'echo begun; until [ -e " +
                                   path("go") + " ]; do sleep 0.05; done; echo done'");
  while (slurp(path("err")).empty() &&
         Json::parse(live("-o json job " + id).out)["phase"] != "running") {
  }
  kill_dead("c/orreryd.pid");
  kill_dead("c/nodes/node-0/agent.pid");
  const CliRun up = live("up");
  ASSERT_EQ(up.code, 0) << up.err;
  EXPECT_NE(up.out.find("started orreryd, node-0; the rest was already running"), std::string::npos)
      << up.out;
  (void)write("go", "");
  const CliRun waited = live("wait " + id);
  EXPECT_EQ(waited.code, 0) << waited.err;
  EXPECT_EQ(live("logs --rank 0 " + id).out, "begun\ndone\n");
  EXPECT_EQ(Json::parse(live("-o json job " + id).out)["attempt"], 1);
}

TEST_F(LocalClusterTest, AnAgentJoinsAnewWhereItsCertificateIsOfNoUseAndOnlyThere) {
  const std::string token = Json::parse(live("-o json node token node-0").out)["token"];
  const std::string address = Json::parse(slurp(path("c/cluster.json")))["address"];
  const std::string pem = "c/nodes/node-0/tls/agent.pem";
  const auto agent = [&](const std::string& join) {
    // The process is found by its pid file, as that of `up` is.
    const std::string log = path("c/nodes/node-0/agent.log");
    const std::string command = fmt::format(
        "{}/orrery-agent --controller {} --node node-0 --dir {} --address 127.0.0.1 --emulate "
        "h100:2 --boot 1 --ca {} {} </dev/null >>{} 2>&1 & echo $! >{}",
        std::filesystem::path(program()).parent_path().string(), address, path("c/nodes/node-0"),
        path("c/tls/ca.pem"), join, log, path("c/nodes/node-0/agent.pid"));
    EXPECT_EQ(std::system(command.c_str()), 0);
  };
  const auto until_connected = [&](bool connected) {
    while (Json::parse(live("-o json node node-0").out)["connected"] != connected) {
    }
  };
  kill_dead("c/nodes/node-0/agent.pid");
  until_connected(false);
  const std::string before = slurp(path(pem));
  agent("--join none");
  until_connected(true);
  EXPECT_EQ(slurp(path(pem)), before) << "it has one that is good";
  kill_dead("c/nodes/node-0/agent.pid");
  until_connected(false);
  (void)write(pem, "torn");
  agent("--join @" + write("join.token", token + "\n"));
  until_connected(true);
  EXPECT_NE(slurp(path(pem)), before);
  kill_dead("c/nodes/node-0/agent.pid");
}

TEST_F(LocalClusterTest, AUserHasATokenInAFileWhichIsRotatedAndKeepsToItsRights) {
  namespace fs = std::filesystem;
  fs::create_directories(path("ada/tls"));
  fs::copy_file(path("c/cluster.json"), path("ada/cluster.json"));
  fs::copy_file(path("c/tls/ca.pem"), path("ada/tls/ca.pem"));
  const std::string file = path("ada/token");
  const CliRun added =
      live("user add ada --role viewer --tenant default --expires 90d --token-file " + file);
  ASSERT_EQ(added.code, 0) << added.err;
  EXPECT_EQ(added.out, "");
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  const std::string token = slurp(file);
  const auto ada = [&](const std::string& arguments) {
    return orrery("--retry 0 --dir " + path("ada") + " " + arguments);
  };
  EXPECT_EQ(ada("jobs").code, 0);
  EXPECT_NE(ada("submit -- true").err.find("may not call SubmitJob"), std::string::npos);
  EXPECT_NE(live("user list").out.find("until 20"), std::string::npos);
  ASSERT_EQ(live("user rotate ada --token-file " + file).code, 0);
  EXPECT_NE(slurp(file), token);
  const CliRun kept = live("user add bob --role viewer --token-file " + path("none/token"));
  EXPECT_EQ(kept.code, 1);
  EXPECT_EQ(kept.out.size(), token.size()) << "a token that no file takes is not lost";
  EXPECT_EQ(ada("jobs").code, 0);
  (void)write("ada/token", token);
  const CliRun late = ada("jobs");
  EXPECT_EQ(late.code, 1);
  EXPECT_NE(late.err.find("the token of ada expired on "), std::string::npos) << late.err;
  for (const auto& [arguments, why] : std::map<std::string, std::string>{
           {"--role admin --tenant default", "expected no tenant"},
           {"--role user --tenant defalt", "did you mean \"default\""},
           {"--role user --expires 90", "expected a time with its unit"},
           {"--role user --run-as root", "other than root"}}) {
    const CliRun refused = live("user add eve " + arguments);
    EXPECT_EQ(refused.code, 2) << arguments;
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
  }
}

TEST_F(LocalClusterTest, DownEndsRanksTooAndTheirJobStartsAgainWithUp) {
  const std::string id =
      submitted("-- sh -c 'until [ -e " + path("go") + " ]; do sleep 0.05; done'");
  while (slurp(path("err")).empty() &&
         Json::parse(live("-o json job " + id).out)["phase"] != "running") {
  }
  const CliRun down = live("down");
  EXPECT_EQ(down.code, 0) << down.err;
  EXPECT_EQ(processes_here(), "");
  // Its facts are found beside its log.
  const CliRun compacted = orrery("store compact " + path("c/store"));
  EXPECT_EQ(compacted.code, 0) << compacted.err;
  (void)write("go", "");
  ASSERT_EQ(live("up").code, 0);
  const CliRun waited = live("wait " + id);
  EXPECT_EQ(waited.code, 0) << waited.err;
  EXPECT_EQ(Json::parse(live("-o json job " + id).out)["attempt"], 2);
}

}  // namespace
}  // namespace orrery
