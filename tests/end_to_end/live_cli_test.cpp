// The verbs that talk to a cluster, as a user runs them, against a controller in this process.
#include <gtest/gtest.h>

#include <algorithm>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "api/fake_controller_test.hpp"
#include "orrery/v1/orrery.pb.h"
#include "tests/end_to_end/cli.hpp"
#include "workload/job_spec.hpp"

namespace orrery {
namespace {

class LiveCli : public Cli {
 protected:
  void SetUp() override {
    Cli::SetUp();
    controller_.start();
    (void)write("ca.pem", controller_.authority());
    (void)write("cluster.json",
                R"({"ca": "ca.pem", "address": ")" + controller_.address() + R"("})");
  }
  /// Runs a verb against the controller, whether it is running or not.
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--retry 0 --dir " + path("") + " " + arguments);
  }
  [[nodiscard]] JobSpec made(const std::string& arguments) const {
    const CliRun run = orrery("submit --dry-run " + arguments);
    EXPECT_EQ(run.code, 0) << run.err;
    const Result<Document> document = Document::parse(run.out, "spec");
    const Result<JobSpec> spec = read_job_spec(*document);
    EXPECT_TRUE(spec) << spec.error().text();
    return *spec;
  }
  FakeController controller_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(LiveCli, ACommandBecomesABatchJobThatRunsWhereTheUserIs) {
  const JobSpec job = made("-- python3 train.py --lr 0.1 -o json");
  EXPECT_EQ(job.kind, JobKind::kBatch);
  EXPECT_EQ(job.name, "python3");
  ASSERT_EQ(job.roles.size(), 1u);
  EXPECT_EQ(job.roles[0].accelerators, 1u);
  ASSERT_TRUE(job.launch);
  EXPECT_EQ(job.launch->command,
            (std::vector<std::string>{"python3", "train.py", "--lr", "0.1", "-o", "json"}));
  EXPECT_EQ(job.launch->directory, std::filesystem::current_path().string());
}

TEST_F(LiveCli, EveryOptionOfSubmitReachesTheSpec) {
  const JobSpec job = made(
      "-n 4 --name a-job --type a100,h100 --tenant lab/vision --priority 7 --time-limit '90 min' "
      "--framework pytorch --env A=1 --env B=x=y --per node --restarts 9 --hold "
      "--after data,notok:'sweep[3]' --cpus 1.5 --memory '3 GiB' --output-file o/%j "
      "--error-file e/%t -- run it");
  EXPECT_EQ(job.name, "a-job");
  EXPECT_EQ(job.roles[0].accelerators, 4u);
  ASSERT_EQ(job.roles[0].types.size(), 2u);
  EXPECT_EQ(job.roles[0].types[1].type, "h100");
  EXPECT_EQ(job.tenant, "lab/vision");
  EXPECT_EQ(job.priority, 7);
  EXPECT_EQ(job.time_limit, Seconds(5'400));
  EXPECT_EQ(job.software.framework, "pytorch");
  const std::vector<std::pair<std::string, std::string>> environment{{"A", "1"}, {"B", "x=y"}};
  EXPECT_EQ(job.launch->environment, environment);
  EXPECT_EQ(job.launch->per, LaunchUnit::kNode);
  EXPECT_EQ(job.roles[0].host.cpu, 1.5);
  EXPECT_EQ(job.roles[0].host.memory, Bytes(3.0 * (1 << 30)));
  EXPECT_EQ(job.launch->output, "o/%j");
  EXPECT_EQ(job.launch->error, "e/%t");
  EXPECT_EQ(job.restart.max, 9u);
  EXPECT_TRUE(job.hold);
  ASSERT_EQ(job.after.size(), 2u);
  EXPECT_EQ(job.after[0].job, "data");
  EXPECT_EQ(job.after[0].when, AfterCondition::kOk);
  EXPECT_EQ(job.after[1].job, "sweep[3]");
  EXPECT_EQ(job.after[1].when, AfterCondition::kNotOk);
}

TEST_F(LiveCli, OptionsBesideASpecsFileWinOverIt) {
  const std::string file = write("one.yaml", R"(apiVersion: orrery/v1
kind: Train
name: one
roles: [{accelerators: 4}]
restart: {max: 2}
launch: {command: [run], environment: {A: "1"}}
)");
  EXPECT_EQ(made(file).priority, 0);
  const JobSpec job = made(
      "--hold --priority 9 --time-limit '1 min' --name other --env A=2 --after "
      "any:prep " +
      file);
  EXPECT_EQ(job.name, "other");
  EXPECT_EQ(job.kind, JobKind::kTrain);
  EXPECT_EQ(job.roles[0].accelerators, 4u);
  EXPECT_TRUE(job.hold);
  EXPECT_EQ(job.priority, 9);
  EXPECT_EQ(job.time_limit, Seconds(60));
  EXPECT_EQ(job.restart.max, 2u);
  ASSERT_EQ(job.after.size(), 1u) << "the file is not a job to wait for";
  EXPECT_EQ(job.after[0].when, AfterCondition::kAny);
  EXPECT_EQ(job.launch->environment.at(0).second, "2");
  EXPECT_EQ(orrery("submit --dry-run -n 8 " + file).code, 2) << "the file says it";
}

TEST_F(LiveCli, AScriptForSbatchIsASpecAndWhatItDoesNotKnowIsAnErrorUnlessItIsLenient) {
  const std::string script = write("a.sh", "#!/bin/sh\n#SBATCH -G 4 --frob\nsrun a\n");
  const CliRun strict = orrery("submit --dry-run " + script);
  EXPECT_EQ(strict.code, 2);
  EXPECT_NE(strict.err.find("a.sh:2:14: --frob is no option"), std::string::npos) << strict.err;
  const CliRun run = orrery("submit --dry-run --lenient --name b --env A=1 " + script + " c -- -d");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.err.find("note: "), std::string::npos) << run.err;
  const Result<Document> document = Document::parse(run.out, "");
  const JobSpec job = read_job_spec(document.value()).value();
  EXPECT_EQ(job.name, "b");
  EXPECT_EQ(job.roles[0].accelerators, 4u);
  EXPECT_EQ(job.launch->command,
            (std::vector<std::string>{"#!/bin/sh\n#SBATCH -G 4 --frob\nsrun a\n", "c", "-d"}));
  const std::pair<std::string, std::string> own{"A", "1"};
  EXPECT_EQ(std::ranges::count(job.launch->environment, own), 1);
  const CliRun sized = orrery("submit --dry-run -n 4 " + script);
  EXPECT_NE(sized.err.find("--accelerators: expected no such option with a file"),
            std::string::npos)
      << sized.err;
}

TEST_F(LiveCli, WhatIsWrongOnTheCommandLineIsSaidAndExitsWithTwo) {
  const std::pair<const char*, const char*> cases[] = {
      {"submit", "nothing to submit"},
      {"submit --", "nothing after --"},
      {"submit job.yaml -- true", "expected one of them"},
      {"submit --env A --dry-run -- true", "expected NAME=VALUE"},
      {"submit --per nodes --dry-run -- true", "did you mean \"node\"?"},
      {"submit --time-limit 5 bananas --dry-run -- true", "orrery: "},
      {"submit --time-limit 5 --dry-run -- true", "--time-limit: \"5\" has no unit"},
      {"status", "no verb \"status\"; the corresponding verb is `orrery top`"},
      {"help jbos", "no verb \"jbos\", did you mean \"jobs\"?"},
      {"--retry 3 jbos", "no verb \"jbos\", did you mean \"jobs\"?"},
      {"submit --directory no-such --dry-run -- true", "is not a directory"},
      {"submit --name 'a b' --dry-run -- true", "orrery: "},
      {"jobs -- true", "`orrery exec` and `orrery shell` take a command after --"},
      {"exec x -- true", "job \"x\": expected the number of a job"},
      {"exec 1 --", "nothing after --"},
      {"down --dir nowhere", "no cluster at nowhere"},
      {"jobs --dir nowhere", "no cluster at nowhere"},
      {"up --nodes 0 --dir nowhere", "expected 1 to"}};
  for (const auto& [arguments, message] : cases) {
    const CliRun run = orrery(arguments);
    EXPECT_EQ(run.code, 2) << arguments;
    EXPECT_TRUE(has(run.err, message)) << arguments << ": " << run.err;
    EXPECT_EQ(run.out, "") << arguments;
  }
}

TEST_F(LiveCli, ASubmissionSendsTheFileAndShowsTheAnswerOrTheLineThatIsWrong) {
  const std::string file = write("job.yaml", "kind: Batch\n");
  v1::SubmitJobRequest heard;
  controller_.on("SubmitJob", [&](const FakeController::Heard& call) {
    EXPECT_TRUE(heard.ParseFromString(call.request));
    v1::SubmitJobResponse response;
    response.set_id(7);
    response.set_name("train");
    return answer_with(response);
  });
  const CliRun accepted = live("submit " + file);
  EXPECT_EQ(accepted.code, 0) << accepted.err;
  EXPECT_EQ(accepted.out, "job 7 (train) accepted\n");
  EXPECT_EQ(heard.spec(), "kind: Batch\n");
  EXPECT_EQ(heard.file(), file);
  EXPECT_EQ(heard.request_id().size(), 32u);
  EXPECT_EQ(nlohmann::json::parse(live("submit -o json " + file).out)["id"], "7");
  controller_.on("SubmitJob", [](const FakeController::Heard&) {
    return refuse(grpc::StatusCode::INVALID_ARGUMENT, "job.yaml:1:1: the key \"name\" is missing");
  });
  const CliRun refused = live("submit " + file);
  EXPECT_EQ(refused.code, 2);
  EXPECT_EQ(refused.err, "orrery: job.yaml:1:1: the key \"name\" is missing\n");
}

v1::Job job(std::uint64_t id, const std::string& name, const std::string& phase) {
  v1::Job job;
  job.set_id(id);
  job.set_name(name);
  job.set_phase(phase);
  job.set_accelerators(2);
  return job;
}

TEST_F(LiveCli, JobsAreListedPageByPageAsATableOrJson) {
  controller_.on("ListJobs", [&](const FakeController::Heard& call) {
    v1::ListJobsRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    EXPECT_EQ(request.user(), "ada");
    v1::ListJobsResponse page;
    if (request.page_token().empty()) {
      *page.add_jobs() = job(1, "first", "running");
      page.mutable_jobs(0)->mutable_started()->set_seconds(1'000);
      page.mutable_jobs(0)->mutable_ended()->set_seconds(1'090);
      page.mutable_jobs(0)->set_submitter("ada");
      page.mutable_jobs(0)->add_parts()->set_node("node-0");
      page.set_next_page_token("more");
    } else {
      *page.add_jobs() = job(12, "second", "queued");
      page.mutable_jobs(0)->set_waiting("no accelerators are free");
    }
    return answer_with(page);
  });
  const CliRun table = live("jobs --user ada");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out,
            "ID  NAME    USER  TENANT  STATE    SINCE  TIME  ACCELERATORS  WHERE\n"
            " 1  first   ada           running           1m             2  node-0\n"
            "12  second                queued                           2          no accelerators "
            "are free\n");
  const auto json = nlohmann::json::parse(live("jobs --user ada -o json").out);
  ASSERT_EQ(json["jobs"].size(), 2u);
  EXPECT_EQ(json["jobs"][1]["id"], "12");
}

TEST_F(LiveCli, AJobIsShownByItsNameAndAnArrayOrServiceByItsJobs) {
  controller_.on("ListJobs", [&](const FakeController::Heard& call) {
    v1::ListJobsRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    EXPECT_TRUE(request.all());
    v1::ListJobsResponse jobs;
    if (request.name() == "chat[*]") {
      *jobs.add_jobs() = job(3, "chat[0]", "running");
      *jobs.add_jobs() = job(4, "chat[1]", "running");
      *jobs.add_jobs() = job(5, "chat[2]", "queued");
    }
    if (request.name() == "train") *jobs.add_jobs() = job(9, "train", "running");
    return answer_with(jobs);
  });
  controller_.on("GetJob", [&](const FakeController::Heard&) {
    return answer_with(job(9, "train", "running"));
  });
  const std::string service = live("job chat").out;
  EXPECT_TRUE(service.starts_with("3 jobs: 1 queued, 2 running\n")) << service;
  EXPECT_TRUE(has(service, "chat[2]"));
  EXPECT_EQ(nlohmann::json::parse(live("job chat -o json").out)["jobs"].size(), 3U);
  EXPECT_TRUE(has(live("job train").out, "train"));
  const CliRun none = live("job other");
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(has(none.err, "there is no job \"other\"")) << none.err;
}

TEST_F(LiveCli, UsageTellsHoursOfEachTypeOfATenantAndOfAJob) {
  v1::JobBill bill;
  bill.set_accelerator_hours(3.75);
  bill.set_cost_usd(8.5);
  for (const auto& [type, hours] : {std::pair{"h100", 2.5}, std::pair{"a100", 1.25}}) {
    v1::TypeHours& of = *bill.add_accelerator_hours_by_type();
    of.set_accelerator(type);
    of.set_hours(hours);
  }
  controller_.on("ListTenants", [&](const FakeController::Heard&) {
    v1::ListTenantsResponse tenants;
    tenants.add_tenants()->set_path("lab");
    *tenants.mutable_tenants(0)->mutable_bill() = bill;
    return answer_with(tenants);
  });
  v1::Job billed = job(7, "a", "finished");
  *billed.mutable_bill() = bill;
  controller_.on("ListJobs", [&](const FakeController::Heard&) {
    v1::ListJobsResponse jobs;
    *jobs.add_jobs() = billed;
    return answer_with(jobs);
  });
  controller_.on("GetJob", [&](const FakeController::Heard&) { return answer_with(billed); });
  EXPECT_EQ(live("usage").out,
            "TENANT  ACCELERATOR-HOURS  LOST   KWH   USD  KG CO2  HOURS BY TYPE\n"
            "lab                  3.75  0.00  0.00  8.50    0.00  2.50 h100, 1.25 a100\n");
  EXPECT_TRUE(has(live("usage --jobs").out, " 2.50 h100, 1.25 a100\n"));
  EXPECT_TRUE(has(live("job 7").out, " 2.50 h100, 1.25 a100\n"));
  const auto json = nlohmann::json::parse(live("usage -o json").out);
  const auto& types = json["tenants"][0]["bill"]["accelerator_hours_by_type"];
  EXPECT_EQ(types, nlohmann::json::parse(R"([{"accelerator": "h100", "hours": 2.5},
                                             {"accelerator": "a100", "hours": 1.25}])"));
}

TEST_F(LiveCli, WaitExitsWithOneWhenAJobDidNotFinish) {
  controller_.on("WaitJob", [&](const FakeController::Heard& call) {
    v1::WaitJobRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    if (request.id() == 9) return refuse(grpc::StatusCode::NOT_FOUND, "no job 9");
    v1::Job ended = job(request.id(), "a", request.id() == 1 ? "finished" : "failed");
    if (request.id() != 1) ended.set_blame("program: exit status 3 of rank 0");
    return answer_with(ended);
  });
  EXPECT_EQ(live("wait 1").code, 0);
  const CliRun both = live("wait 1 2");
  EXPECT_EQ(both.code, 1);
  EXPECT_EQ(both.out, "job 1 (a) finished\n");
  EXPECT_EQ(both.err, "orrery: job 2 (a) failed: program: exit status 3 of rank 0\n");
  const CliRun unknown = live("wait 9");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "orrery: no job 9\n");
}

TEST_F(LiveCli, LogsAreTheBytesAndNothingElseOnStandardOutput) {
  controller_.on("ReadLog", [](const FakeController::Heard&) {
    v1::LogChunk note;
    note.set_note("attempt 2 of job 7");
    v1::LogChunk bytes;
    bytes.set_bytes(std::string("a\0\xff", 3));
    bytes.set_skipped(5);
    return FakeAnswer{{note.SerializeAsString(), bytes.SerializeAsString()}, grpc::Status::OK};
  });
  const CliRun run = live("logs 7");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, std::string("a\0\xff", 3));
  EXPECT_EQ(run.err,
            "orrery: attempt 2 of job 7\norrery: 5 bytes of earlier output are no longer kept\n");
}

TEST_F(LiveCli, AControllerThatIsGoneIsSaidToBe) {
  controller_.stop();
  const CliRun run = live("nodes");
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(has(run.err, "cannot reach the controller at 127.0.0.1:")) << run.err;
}

v1::Node node(const std::string& name, const std::string& kernel) {
  v1::Node node;
  node.set_name(name);
  node.set_health("ready");
  node.set_accelerator("h100");
  node.set_connected(true);
  node.set_version("0.1.0");
  node.set_kernel(kernel);
  node.set_driver("NVIDIA 550.54");
  return node;
}

TEST_F(LiveCli, TheDoctorNamesTheNodesThatDifferFromTheRest) {
  controller_.on("GetCluster", [](const FakeController::Heard&) {
    v1::Cluster cluster;
    cluster.set_version("0.1.0");
    return answer_with(cluster);
  });
  v1::ListNodesResponse nodes;
  for (const char* name : {"node-0", "node-1", "node-2"}) *nodes.add_nodes() = node(name, "6.1");
  controller_.on("ListNodes", [&](const FakeController::Heard&) { return answer_with(nodes); });
  const CliRun alike = live("doctor --fleet");
  EXPECT_EQ(alike.code, 0) << alike.err;
  EXPECT_EQ(alike.out,
            "ok  log      the controller accepts changes\n"
            "ok  agents   3 of 3 connected\n"
            "ok  program  0.1.0 on the controller and on 3 of 3 agents\n"
            "ok  users    no node runs jobs as root\n"
            "ok  kernel   6.1 on 3 of 3\n"
            "ok  driver   NVIDIA 550.54 on 3 of 3 with h100\n");
  v1::Node other = node("node-3", "5.10");
  other.set_version("0.0.9");
  other.clear_driver();
  *nodes.add_nodes() = other;
  nodes.mutable_nodes(1)->set_connected(false);
  const CliRun unlike = live("doctor --fleet -o json");
  EXPECT_EQ(unlike.code, 1);
  EXPECT_EQ(unlike.err, "orrery: 1 problem\n");
  const auto json = nlohmann::json::parse(unlike.out);
  EXPECT_EQ(json["warnings"], 3);
  std::map<std::string, std::string> named;
  for (const auto& finding : json["findings"]) {
    if (finding["verdict"] == "ok") continue;
    EXPECT_NE(finding["advice"], "");
    named[finding["check"]] = finding["nodes"].dump();
  }
  const std::map<std::string, std::string> expected{{"agents", R"(["node-1"])"},
                                                    {"driver", R"(["node-3"])"},
                                                    {"kernel", R"(["node-3"])"},
                                                    {"program", R"(["node-3"])"}};
  EXPECT_EQ(named, expected);
}

TEST_F(LiveCli, TheDoctorNamesNodesAndLinesOfFilesThatTheControllerDoesNotKnow) {
  v1::Cluster cluster;
  cluster.set_version("0.1.0");
  for (const char* name : {"node-8", "node-9"}) cluster.add_unknown_nodes(name);
  cluster.add_missing_nodes("node-0");
  cluster.add_file_changes("tenants.yaml:4: \"weight: 1\" is now \"weight: 3\"");
  controller_.on("GetCluster", [&](const FakeController::Heard&) { return answer_with(cluster); });
  v1::ListNodesResponse nodes;
  *nodes.add_nodes() = node("node-0", "6.1");
  controller_.on("ListNodes", [&](const FakeController::Heard&) { return answer_with(nodes); });
  const CliRun run = live("doctor --fleet");
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* part : {"it names nodes that the cluster does not have", "node-8, node-9",
                           "it does not name all nodes of the cluster",
                           "tenants.yaml:4: \"weight: 1\" is now \"weight: 3\""}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << " in " << run.out;
  }
}

TEST_F(LiveCli, FleetApplyDrainsEachRetiredNodeAndAppliesOnceTheyAreEmpty) {
  const std::string file = "fleet apply " ORRERY_SOURCE_DIR "/examples/fleets/laptop.yaml";
  v1::FleetChange change;
  for (int i = 0; i < 23; ++i) change.add_added("new-" + std::to_string(i));
  for (const char* name : {"node-0", "node-1"}) change.add_retired(name);
  v1::BusyNode& busy = *change.add_busy();
  busy.set_node("node-1");
  for (const std::uint64_t id : {3U, 14U}) busy.add_jobs(id);
  change.add_changed("fleet.yaml:9: \"count: 2\" is now \"count: 23\"");
  int applied = 0;
  controller_.on("ApplyFleet", [&](const FakeController::Heard& heard) {
    v1::ApplyFleetRequest request;
    EXPECT_TRUE(request.ParseFromString(heard.request));
    EXPECT_TRUE(has(request.fleet(), "kind: Fleet"));
    if (request.dry_run()) return answer_with(change);
    ++applied;
    v1::FleetChange done;
    done.set_applied(true);  // the answer to a call that is repeated
    return answer_with(done);
  });
  std::map<std::string, bool> drained;
  controller_.on("DrainNode", [&](const FakeController::Heard& heard) {
    v1::DrainNodeRequest request;
    EXPECT_TRUE(request.ParseFromString(heard.request));
    EXPECT_EQ(request.why(), "to be retired by fleet apply");
    drained[request.name()] = request.at_once();
    return answer_with(v1::NodeResponse());
  });
  controller_.on("GetNode", [&](const FakeController::Heard&) { return answer_with(v1::Node()); });

  const CliRun refused = live(file);
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(refused.out.starts_with("23 nodes added: new-0, new-1, ")) << refused.out;
  for (const char* part : {"new-19 and 3 more\n2 nodes retired: node-0, node-1\n",
                           "node-1 is busy: jobs 3, 14\nfleet.yaml:9: "}) {
    EXPECT_TRUE(has(refused.out, part)) << part << " in " << refused.out;
  }
  EXPECT_TRUE(has(refused.err, "1 node of those retired is busy")) << refused.err;
  EXPECT_EQ(live(file + " --dry-run --drain").code, 0);
  EXPECT_EQ(applied, 0);
  EXPECT_TRUE(drained.empty());

  const CliRun run = live("-o json " + file + " --drain");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(drained, (std::map<std::string, bool>{{"node-0", false}, {"node-1", false}}));
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["added"].size(), 23u) << run.out;
  EXPECT_EQ(json["busy"].size(), 0u) << run.out;
  EXPECT_EQ(json["applied"], true) << run.out;
  const CliRun forced = live(file + " --force");
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_TRUE(drained["node-1"]);
  EXPECT_TRUE(has(forced.out, "the fleet is changed\nEach added node needs an agent."))
      << forced.out;
  EXPECT_TRUE(has(forced.out, "\n  and so on for 3 nodes\n")) << forced.out;
}

TEST_F(LiveCli, TheDoctorLooksAtThisMachineAndExitsWithOneOnAProblem) {
  const CliRun here = live("doctor -o json");
  const auto json = nlohmann::json::parse(here.out);
  EXPECT_EQ(here.code, json["problems"] == 0 ? 0 : 1) << here.out;
  EXPECT_GE(json["findings"].size(), 10u);
  // No user can write there.
  const CliRun elsewhere = orrery("doctor --dir /proc/self/task");
  EXPECT_EQ(elsewhere.code, 1);
  EXPECT_TRUE(has(elsewhere.out, "problem  disk")) << elsewhere.out;
}

TEST_F(LiveCli, BashCompletesVerbsOptionsFilesJobsAndNodes) {
  controller_.on("ListNodes", [&](const FakeController::Heard&) {
    v1::ListNodesResponse nodes;
    *nodes.add_nodes() = node("node-0", "6.1");
    *nodes.add_nodes() = node("other-1", "6.1");
    return answer_with(nodes);
  });
  controller_.on("ListJobs", [&](const FakeController::Heard& call) {
    v1::ListJobsRequest request;
    EXPECT_TRUE(request.ParseFromString(call.request));
    v1::ListJobsResponse jobs;
    *jobs.add_jobs() = job(12, "running", "running");
    if (request.all()) *jobs.add_jobs() = job(13, "over", "finished");
    return answer_with(jobs);
  });
  (void)write("spec.yaml", "");
  const std::string script = write("try.bash", R"(
cd "$1"; program=$2; export ORRERY_DIR=.
source <("$program" completion bash)
complete -p orrery
try() {
  COMP_WORDS=("$program" "$@"); COMP_CWORD=$#
  _orrery "$program" "${COMP_WORDS[COMP_CWORD]}"
  echo "${COMPREPLY[*]}"
}
try dra
try drain n
try node t
try logs 1
try cancel ''
try cancel --dir nowhere ''
try --dir . logs 12 --ra
try submit -o = j
try submit sp
try submit -- sp
try simulate --trace sp
try nonsense ''
)");
  const std::string command = "bash --norc " + script + " " + path("") + " " + program() + " >" +
                              path("out") + " 2>" + path("err") + " </dev/null";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(slurp(path("err")), "");
  EXPECT_EQ(slurp(path("out")),
            "complete -F _orrery orrery\n"
            "drain\n"
            "node-0\n"
            "token\n"
            "12 13\n"
            "12\n"
            "\n"
            "--rank\n"
            "json\n"
            "spec.yaml\n"
            "spec.yaml\n"
            "spec.yaml\n"
            "\n");
}

TEST_F(LiveCli, CompletionKnowsEveryVerbThatHelpShows) {
  const std::string help = orrery("--help").out;
  std::istringstream lines(help.substr(help.find("Subcommands:")));
  std::string line;
  (void)std::getline(lines, line);
  const std::string found = orrery("__complete ''").out;
  int verbs = 0;
  while (std::getline(lines, line) && line.starts_with("  ")) {
    if (line[2] == ' ') continue;  // goes on
    const std::string verb = line.substr(2, line.find(' ', 2) - 2);
    EXPECT_TRUE(has("\n" + found, "\n" + verb + "\t")) << verb;
    ++verbs;
  }
  EXPECT_GT(verbs, 20);
  EXPECT_EQ(orrery("completion tcsh").code, 2);
}

}  // namespace
}  // namespace orrery
