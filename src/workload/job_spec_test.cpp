// workload/job_spec_test.cpp - the contents of a job spec, what is refused, and that it is read
// back as written.
#include "workload/job_spec.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <vector>

#include "base/format/field_writer.hpp"
#include "hardware/builtin_catalog.hpp"
#include "hardware/catalog.hpp"
#include "workload/job_spec_test.hpp"
#include "workload/models/model_catalog_test.hpp"

namespace orrery {
namespace {

/// A job of one role, written in flow style from 4:9.
std::string job(const std::string& role, const std::string& keys = "",
                const std::string& kind = "Batch") {
  return "apiVersion: orrery/v1\nkind: " + kind + "\nname: j\nroles: [{" + role + "}]\n" + keys;
}

const std::string kOne = "accelerators: 1";

struct Case {
  std::string yaml;
  std::string message;
};

void expect_refusals(const std::vector<Case>& cases) {
  for (const Case& each : cases) {
    const Result<JobSpec> spec = spec_of(each.yaml);
    EXPECT_EQ(spec ? "accepted" : spec.error().message, each.message) << each.yaml;
  }
}

TEST(JobSpec, ReadsEveryKey) {
  const JobSpec spec = accepted(R"(
apiVersion: orrery/v1
kind: Train
name: big
tenant: research/vision
priority: -5
preemptible: false
goal: cost
deadline: 2026-12-01T02:00:00+02:00
budget: $12k
time_limit: 3 d
estimate: 2 days
data: [{site: east, size: 2 TB}]
software: {framework: megatron-lm, image: registry/train:7}
residency: [eu]
export_classes: [us-not-3a090]
checkpoint: {interval: 30 min, cost: 20 s, restart: 4 min, peer_copy: true}
restart: {policy: after-lease, max: 0}
after: [prepare]
array: {count: 10, parallel: 2}
roles:
- name: actor
  replicas: 2
  accelerators: 128
  node_accelerators: 4
  types: [gb200, {type: h100, speed: 1}]
  host: {cpu: 8.5, memory: 64 GiB, cxl: 1 TiB, disk: 100 GB}
  topology: {required: pod, preferred: scale-up, segment: 16, spread: {level: rack, most: 2},
             exclusive: scale-up, rails_aligned: true}
  work: {model: m, sequence: 8192, global_batch: 1024, precision: fp8, tokens: 1T tokens}
- name: helper
  accelerators_min: 2
  accelerators_max: 8
  types: [{type: h100, speed: 0.5}]
)");
  EXPECT_EQ(spec.kind, JobKind::kTrain);
  EXPECT_EQ(spec.preemptible, false);
  EXPECT_EQ(spec.deadline->text(), "2026-12-01T00:00:00Z");
  EXPECT_EQ(spec.budget, Dollars(12'000));
  EXPECT_EQ(spec.estimate, Seconds(172'800));
  EXPECT_TRUE(spec.checkpoint.peer_copy);
  EXPECT_EQ(spec.restart.policy, RestartPolicy::kAfterLease);
  EXPECT_EQ(spec.array->parallel, 2u);
  ASSERT_EQ(spec.roles.size(), 2u);
  const RoleSpec& actor = spec.roles[0];
  EXPECT_EQ(actor.types[0].type, "gb200");
  EXPECT_EQ(actor.topology.spread->most, 2u);
  EXPECT_EQ(actor.topology.exclusive, TopologyLevel::kScaleUp);
  EXPECT_EQ(actor.host.cpu, 8.5);
  EXPECT_EQ(actor.work->tokens, Tokens(1e12));
  EXPECT_EQ(spec.roles[1].accelerators_max, 8u);
  EXPECT_EQ(spec.roles[1].types[0].speed, 0.5);
  EXPECT_EQ(spec.roles[1].where.text(), "job.yaml:31:3");
}

TEST(JobSpec, HasDefaultsForAllButNameKindAndRoles) {
  const JobSpec spec = accepted(job(kOne));
  EXPECT_EQ(spec.tenant, "default");
  EXPECT_FALSE(spec.preemptible.has_value());
  EXPECT_EQ(spec.roles[0].name, "main");
  EXPECT_EQ(spec.roles[0].replicas, 1u);
  EXPECT_EQ(spec.restart.max, 0u);
  EXPECT_EQ(spec.goal, JobGoal::kTime);
}

TEST(JobSpec, RefusesWhatIsNoJob) {
  EXPECT_TRUE(refusal("apiVersion: orrery/v1\nkind: Fleet\nname: j\nroles: []\n")
                  .starts_with("job.yaml:2:7: unknown value \"Fleet\"; expected one of: Train"));
  EXPECT_TRUE(
      refusal(job(kOne, "pritority: 3\n"))
          .starts_with("job.yaml:5:1: unknown key \"pritority\", did you mean \"priority\"?"));
  expect_refusals({
      {"apiVersion: orrery/v2\nkind: Batch\nname: j\nroles: [{accelerators: 1}]\n",
       "apiVersion is orrery/v2, expected orrery/v1"},
      {"apiVersion: orrery/v1\nkind: Batch\nname: j\n", "the key \"roles\" is missing"},
      {"apiVersion: orrery/v1\nkind: Batch\nname: j\nroles: []\n",
       "roles is empty, expected at least one"},
  });
}

TEST(JobSpec, NamesThePlaceOfWhatItRefuses) {
  EXPECT_EQ(refusal(job("accelerators: 0")),
            "job.yaml:4:9: accelerators is 0, expected 1 to 1048576");
  EXPECT_EQ(refusal(job("accelerators: 4, topology: {segment: 0}")),
            "job.yaml:4:37: segment is 0, expected 1 to 1048576");
  EXPECT_EQ(refusal(job("work: {model: m}")),
            "job.yaml:4:16: expected either tokens or steps (training) or rate (serving)");
  EXPECT_EQ(refusal(job(kOne, "array: {count: 0}\n")),
            "job.yaml:5:8: count is 0, expected 1 to 1048576");
  EXPECT_EQ(refusal(job(kOne, "budget: $0\n")),
            "job.yaml:1:1: budget is $0, expected more than zero");
}

TEST(JobSpec, RefusesCountsAndSizesThatAreNone) {
  expect_refusals({
      {job("accelerators: 1, replicas: 0"), "replicas is 0, expected 1 to 1048576"},
      {job("accelerators: 1048577"), "accelerators is 1048577, expected 1 to 1048576"},
      {job("accelerators: 1, node_accelerators: 0"),
       "node_accelerators is 0, expected 1 to 1048576"},
      {job("replicas: 2"),
       "the role asks for nothing, expected accelerators, accelerators_min and accelerators_max, "
       "or work"},
      {job("accelerators: 1, accelerators_min: 1, accelerators_max: 2"),
       "accelerators beside accelerators_min and accelerators_max: expected a number or a range, "
       "not both"},
      {job("accelerators_min: 1"), "one of accelerators_min and accelerators_max, expected both"},
      {job("accelerators_max: 1"), "one of accelerators_min and accelerators_max, expected both"},
      {job("accelerators_min: 3, accelerators_max: 2"),
       "accelerators_min is 3, expected at most accelerators_max, 2"},
      {job("accelerators: 4, node_accelerators: 8"),
       "node_accelerators is 8, expected at most the 4 of the gang"},
      {job("accelerators_min: 4, accelerators_max: 16, node_accelerators: 8"),
       "node_accelerators is 8, expected at most the 4 of the gang"},
      {job("accelerators: 1, host: {cpu: -1}"), "host.cpu is -1, expected 0 or more cores"},
  });
  EXPECT_EQ(accepted(job("accelerators_min: 2, accelerators_max: 2")).roles[0].accelerators_min,
            2u);
}

TEST(JobSpec, RefusesAShareOfAnythingButOneAccelerator) {
  const std::string one =
      "share is of one accelerator, expected accelerators: 1 (and replicas for more)";
  expect_refusals({
      {job("accelerators: 1, share: 1"),
       "share is 1, expected more than 0 and less than 1, or none for whole accelerators"},
      {job("accelerators: 1, share: 0"),
       "share is 0, expected more than 0 and less than 1, or none for whole accelerators"},
      {job("accelerators: 2, share: 0.5"), one},
      {job("accelerators_min: 1, accelerators_max: 2, share: 0.5"), one},
      {job("work: {model: m, steps: 1}, share: 0.5"), one},
      {job("accelerators: 1, share: 0.5, topology: {segment: 1}"),
       "share is of one accelerator, expected no segment and no slice"},
      {job("accelerators: 1, share: 0.5, topology: {slice: [1]}"),
       "share is of one accelerator, expected no segment and no slice"},
  });
  EXPECT_EQ(accepted(job("accelerators: 1, share: 0.5, replicas: 9")).roles[0].share, 0.5);
}

TEST(JobSpec, RefusesLayoutsThatTheGangDoesNotHold) {
  expect_refusals({
      {job("accelerators: 4, layout: {tp: 0}"), "tp is 0, expected 1 to 1048576"},
      {job("accelerators: 4, layout: {micro_batch: 0}"), "micro_batch is 0, expected 1 to 1048576"},
      {job("accelerators: 6, layout: {tp: 2, pp: 2}"),
       "a replica takes 4 ranks, of which 6 accelerators are no whole number"},
      {job("accelerators_min: 1, accelerators_max: 4, layout: {tp: 2}"),
       "a replica takes 2 ranks, of which 1 accelerators are no whole number"},
      {job("layout: {tp: 2}, work: {model: m, steps: 1}"),
       "layout beside work, expected one of them: work is planned here"},
      {job("accelerators: 1, share: 0.5, layout: {}"),
       "layout beside share, expected whole accelerators"},
  });
  const std::string laid_out = job(
      "accelerators_min: 4, accelerators_max: 16, layout: {tp: 2, pp: 2, zero: 1, micro_batch: 3, "
      "recompute: full}");
  const JobSpec spec = accepted(laid_out);
  const ParallelPlan expected{
      .tp = 2, .pp = 2, .zero = 1, .micro_batch = 3, .recompute = Recompute::kFull};
  EXPECT_EQ(spec.roles[0].layout->plan, expected);
  EXPECT_EQ(accepted(write_job_spec(spec)).roles[0].layout->plan, expected);
}

TEST(JobSpec, RefusesTypesThatAreDoubleEmptyOrOfNoSpeed) {
  expect_refusals({
      {job("accelerators: 1, types: [\"\"]"), "type is empty, expected the name of an accelerator"},
      {job("accelerators: 1, types: [h100, {type: h100, speed: 2}]"),
       "types names \"h100\" twice, expected it once"},
      {job("accelerators: 1, types: [{type: h100, speed: 0}]"),
       "speed is 0, expected more than zero"},
      {job("work: {model: m, steps: 1}, types: [{type: h100, speed: 2}]"),
       "speed of a role with work, expected none: the model says how fast a type is"},
  });
}

TEST(JobSpec, RefusesAPreferenceThatNoFleetCouldKeep) {
  const auto levels = [](const std::string& required, const std::string& preferred) {
    return job("accelerators: 8, topology: {required: " + required + ", preferred: " + preferred +
               "}");
  };
  expect_refusals({
      {levels("rack", "pod"), "preferred is pod, expected nothing wider than required, rack"},
      {levels("node", "scale-up"),
       "preferred is scale-up, expected nothing wider than required, node"},
      {levels("group", "site"), "preferred is site, expected nothing wider than required, group"},
      {levels("site", "fleet"), "preferred is fleet, expected nothing wider than required, site"},
  });
}

TEST(JobSpec, AcceptsPreferencesInsideOrIncomparableWithWhatIsRequired) {
  for (const auto& [required, preferred] :
       std::vector<std::pair<std::string, std::string>>{{"rack", "rack"},
                                                        {"pod", "node"},
                                                        {"leaf", "rack"},
                                                        {"rack", "leaf"},
                                                        {"scale-up", "rack"},
                                                        {"fleet", "site"}}) {
    std::string line = "accelerators: 8, topology: {required: ";
    line.append(required).append(", preferred: ").append(preferred).append("}");
    const JobSpec spec = accepted(job(line));
    EXPECT_EQ(word_of(*spec.roles[0].topology.preferred), preferred);
  }
}

TEST(JobSpec, RefusesSegmentsThatAreNoPartOfTheGang) {
  expect_refusals({
      {job("accelerators: 8, topology: {required: node, segment: 2}"),
       "segment is a run of nodes, expected no required: node"},
      {job("accelerators: 8, topology: {slice: [8], segment: 2}"),
       "segment and slice, expected one of them"},
      {job("accelerators: 40, node_accelerators: 4, topology: {segment: 16}"),
       "segment is 16, expected a divisor of the gang's 10 nodes"},
  });
  EXPECT_EQ(accepted(job("accelerators: 512, node_accelerators: 4, topology: {segment: 16}"))
                .roles[0]
                .topology.segment,
            16u);
}

TEST(JobSpec, RefusesSlicesThatAreNotTheGang) {
  expect_refusals({
      {job("accelerators: 16, topology: {slice: [2, 2, 2, 2]}"),
       "slice has 4 sides, expected 1 to 3"},
      {job("accelerators: 1, topology: {slice: [1, 0]}"),
       "a side of slice is 0, expected 1 to 1048576"},
      {job("accelerators: 64, topology: {slice: [4, 4, 8]}"),
       "slice has 128 accelerators, expected the 64 of the gang"},
      {job("accelerators_min: 64, accelerators_max: 128, topology: {slice: [4, 4, 8]}"),
       "slice beside accelerators_min and accelerators_max, expected accelerators: a slice has one "
       "size"},
      {job("accelerators: 8, topology: {slice: [1048576, 1048576, 1048576]}"),
       "slice has 1152921504606846976 accelerators, expected the 8 of the gang"},
  });
  EXPECT_EQ(accepted(job("work: {model: m, steps: 1}, topology: {slice: [4, 4]}"))
                .roles[0]
                .topology.slice.size(),
            2u);
}

TEST(JobSpec, RefusesConstraintsThatContradictEachOther) {
  expect_refusals({
      {job("accelerators: 8, node_accelerators: 4, topology: {required: node}"),
       "required is node, expected node_accelerators to be the 8 of the gang, it is 4"},
      {job("accelerators_min: 4, accelerators_max: 8, node_accelerators: 4, topology: {required: "
           "node}"),
       "required is node, expected node_accelerators to be the 8 of the gang, it is 4"},
      {job("accelerators: 8, topology: {exclusive: pod}"),
       "exclusive is pod, expected node, scale-up or rack"},
      {job("accelerators: 8, replicas: 2, topology: {spread: {level: fleet}}"),
       "spread over fleets, expected level: node to site"},
      {job("accelerators: 8, replicas: 2, topology: {spread: {level: rack, most: 0}}"),
       "most is 0, expected 1 to 1048576"},
  });
}

TEST(JobSpec, SpreadsGangsThatAreEachKeptInARack) {
  const JobSpec spec = accepted(
      job("accelerators: 8, replicas: 4, topology: {required: rack, spread: {level: rack}}"));
  EXPECT_EQ(spec.roles[0].topology.spread->most, 1u);
}

TEST(JobSpec, RefusesWorkThatItsKindDoesNotDo) {
  const auto work = [](const std::string& kind, const std::string& keys) {
    return job("work: {model: m" + keys + "}", "", kind);
  };
  const std::string either = "expected either tokens or steps (training) or rate (serving)";
  expect_refusals({
      {work("Train", ", steps: 1, rate: 2"),
       "rate is for services, expected tokens or steps for kind Train"},
      {work("FineTune", ", ttft: 1 s"),
       "ttft is for services, expected tokens or steps for kind FineTune"},
      {work("Serve", ", rate: 1, tokens: 1B tokens"),
       "tokens is for training, expected rate for Serve"},
      {work("Serve", ", rate: 1, global_batch: 8"),
       "global_batch is for training, expected rate for Serve"},
      {work("Serve", ", input_tokens: 8"), "rate is missing, expected requests a second for Serve"},
      {work("Batch", ""), either},
      {work("Batch", ", rate: 1, steps: 1"), either},
      {work("Train", ", tokens: 1B tokens, steps: 5"),
       "tokens and steps, expected one of them: both say how much"},
  });
  EXPECT_EQ(accepted(work("Serve", ", rate: 2.5")).roles[0].work->rate, 2.5);
  EXPECT_FALSE(accepted(work("Train", "")).roles[0].work->tokens.has_value());
  EXPECT_EQ(accepted(work("Batch", ", steps: 5")).roles[0].work->steps, 5u);
}

TEST(JobSpec, RefusesAmountsOfWorkThatAreNone) {
  for (const char* key : {"sequence: 0", "global_batch: 0", "global_batch: -1", "steps: 0"}) {
    EXPECT_TRUE(refusal(job("work: {model: m, " + std::string(key) + "}", "", "Train"))
                    .ends_with("expected more than zero"))
        << key;
  }
  for (const char* key : {"input_tokens: -1", "output_tokens: 0", "ttft: 0 s", "tpot: 0 ms"}) {
    EXPECT_TRUE(refusal(job("work: {model: m, rate: 1, " + std::string(key) + "}", "", "Serve"))
                    .ends_with("expected more than zero"))
        << key;
  }
  expect_refusals({
      {job("work: {model: m, rate: 0}", "", "Serve"), "rate is 0, expected more than zero"},
      {job("work: {model: m, tokens: 0 tokens}", "", "Train"),
       "tokens is 0 tokens, expected more than zero"},
      {job("work: {model: \"\", steps: 1}"), "model is empty, expected the name of a model"},
  });
}

TEST(JobSpec, RefusesNamesAndPathsThatAreNone) {
  const std::string rest = " is not a name: expected 1 to 64 letters, digits, '-', '_' or '.'";
  expect_refusals({
      {"apiVersion: orrery/v1\nkind: Batch\nname: a b\nroles: [{accelerators: 1}]\n",
       "name: \"a b\"" + rest},
      {job(kOne, "tenant: a//b\n"), "tenant: \"\"" + rest},
      {job(kOne, "tenant: /a\n"), "tenant: \"\"" + rest},
      {job(kOne, "tenant: a/\n"), "tenant: \"\"" + rest},
      {job(kOne, "tenant: \"\"\n"), "tenant: \"\"" + rest},
      {job(kOne, "tenant: a/b c\n"), "tenant: \"b c\"" + rest},
      {job("accelerators: 1, name: \"\""), "\"\"" + rest},
      {job("accelerators: 1, name: a}, {accelerators: 1, name: a"),
       "a second role named \"a\", the first is at job.yaml:4:9"},
      {job(kOne, "data: [{site: a b, size: 1 GB}]\n"), "site: \"a b\"" + rest},
      {job(kOne, "after: [a b]\n"), "after: \"a b\"" + rest},
  });
  EXPECT_EQ(accepted(job(kOne, "tenant: a/b-1/c.d\n")).tenant, "a/b-1/c.d");
}

TEST(JobSpec, RefusesLimitsThatCannotHold) {
  expect_refusals({
      {job(kOne, "priority: 1001\n"), "priority is 1001, expected -1000 to 1000"},
      {job(kOne, "priority: -1001\n"), "priority is -1001, expected -1000 to 1000"},
      {job(kOne, "time_limit: 0 s\n"), "time_limit is 0 s, expected more than zero"},
      {job(kOne, "estimate: 0 s\n"), "estimate is 0 s, expected more than zero"},
      {job(kOne, "time_limit: 1 h\nestimate: 2 h\n"),
       "time_limit is 60 min, expected at least the estimate, 2 h"},
      {job(kOne, "checkpoint: {interval: 0 s}\n"), "interval is 0 s, expected more than zero"},
      {job(kOne, "data: [{site: east, size: 0 B}]\n"), "size is 0 B, expected more than zero"},
      {job(kOne, "array: {count: 2, parallel: 3}\n"), "parallel is 3, expected at most count, 2"},
      {job(kOne, "array: {count: 2, parallel: 0}\n"), "parallel is 0, expected 1 to 1048576"},
      {job("accelerators: 1, replicas: 2", "array: {count: 2}\n", "Serve"),
       "a service with replicas is an array of them, expected one role with replicas: 1"},
  });
  EXPECT_EQ(accepted(job(kOne, "priority: -1000\ntime_limit: 1 h\nestimate: 1 h\n")).priority,
            -1000);
}

TEST(JobSpec, RefusesListsThatSayAThingTwiceOrNothing) {
  expect_refusals({
      {job(kOne, "residency: [eu, us, eu]\n"), "residency names \"eu\" twice, expected it once"},
      {job(kOne, "residency: [\"\"]\n"), "residency holds an empty text, expected a label"},
      {job(kOne, "export_classes: [x, x]\n"), "export_classes names \"x\" twice, expected it once"},
      {job(kOne, "after: [a, a]\n"), "after names \"a\" twice, expected it once"},
      {job(kOne, "after: [i, j]\n"), "after names the job itself, expected others"},
  });
}

TEST(JobSpec, RefusesADeadlineOnlyOnceItHasPassed) {
  const JobSpec spec = accepted(job(kOne, "deadline: 2026-12-01T00:00:00Z\n"));
  EXPECT_TRUE(check_at(spec, *spec.deadline - Duration::nanoseconds(1)));
  const Status late = check_at(spec, *spec.deadline);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().text(),
            "job.yaml:1:1: deadline 2026-12-01T00:00:00Z is in the past (now "
            "2026-12-01T00:00:00Z)");
  EXPECT_TRUE(check_at(accepted(job(kOne)), Instant::max()));
}

TEST(JobSpec, SaysWhatIsLaunchedAndReadsItBack) {
  const JobSpec spec = accepted(
      job(kOne,
          "launch:\n  command: [python3, train.py, '--lr', '1e-4']\n"
          "  environment: {NCCL_DEBUG: INFO, LEVEL: '1'}\n  directory: /srv/run\n  per: node\n"));
  ASSERT_TRUE(spec.launch);
  EXPECT_EQ(spec.launch->command,
            (std::vector<std::string>{"python3", "train.py", "--lr", "1e-4"}));
  ASSERT_EQ(spec.launch->environment.size(), 2u);
  EXPECT_EQ(spec.launch->environment[1], (std::pair<std::string, std::string>("LEVEL", "1")));
  EXPECT_EQ(spec.launch->per, LaunchUnit::kNode);
  EXPECT_EQ(to_json(accepted(write_job_spec(spec))).dump(), to_json(spec).dump());
  EXPECT_EQ(accepted(job(kOne, "launch: {command: [a]}\n")).launch->per, LaunchUnit::kAccelerator);
}

TEST(JobSpec, RefusesALaunchThatCannotStartWithItsPlace) {
  const auto launch = [](const std::string& keys) {
    return refusal(job(kOne, "launch:\n  " + keys + "\n"));
  };
  EXPECT_EQ(launch("per: node"), "job.yaml:6:3: the key \"command\" is missing");
  EXPECT_EQ(launch("command: []"),
            "job.yaml:6:3: command is empty, expected a program and its arguments");
  EXPECT_EQ(launch("{command: [a], environment: {2X: b}}"),
            "job.yaml:6:3: environment names \"2X\", expected letters, digits and _, no digit "
            "first");
  EXPECT_EQ(launch("{command: [a], environment: {ORRERY_JOB: b}}"),
            "job.yaml:6:3: environment sets ORRERY_JOB, expected no ORRERY_ variable: they tell of "
            "the job");
  EXPECT_EQ(launch("{command: [a], directory: run}"),
            "job.yaml:6:3: directory is \"run\", expected an absolute path");
  EXPECT_EQ(launch("{command: [/opt/bin/torchrun, a.py]}"),
            "job.yaml:6:3: torchrun starts a process an accelerator itself, expected per: node");
  EXPECT_EQ(launch("{command: [a], per: rack}"),
            "job.yaml:6:23: unknown value \"rack\"; expected one of: accelerator, node");
  EXPECT_EQ(
      refusal(job("accelerators_min: 2, accelerators_max: 4", "software: {framework: mpi}\n")),
      "job.yaml:4:9: accelerators_min and accelerators_max with framework: mpi, expected "
      "accelerators: mpirun keeps the ranks it started with");
  EXPECT_EQ(accepted(job(kOne, "software: {framework: mpi}\n")).software.framework, "mpi");
  EXPECT_EQ(refusal(job(kOne, "software: {framework: slurm}\nlaunch: {command: [srun, a]}\n")),
            "job.yaml:6:9: command with framework: slurm, expected a script's text, from #! on, "
            "and its arguments");
}

TEST(JobSpec, IsWrittenWithoutWhatIsSoAnyway) {
  EXPECT_EQ(write_job_spec(accepted(job("accelerators: 1, name: main, host: {}, topology: {}, "
                                        "types: [{type: h100, speed: 1}]",
                                        "tenant: default\nrestart: {max: 0}\npriority: 1\n"))),
            "apiVersion: orrery/v1\nkind: Batch\nname: j\npriority: 1\nroles:\n- accelerators: 1\n"
            "  types: [h100]\n");
}

std::filesystem::path examples() {
  return std::filesystem::path(ORRERY_SOURCE_DIR) / "examples" / "jobs";
}

TEST(ExampleJobs, AreAllNamedHereAndReadBackTheSameFromWhatIsWritten) {
  const std::set<std::string> expected = {
      "batch-fractions",   "chat",         "dlrm-two-roles", "finetune-elastic", "nvl72-segments",
      "pretrain-deadline", "residency-eu", "serve-small",    "tpu-slice",        "train-gpt",
      "train-gpt-halves"};
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(examples())) {
    const std::string name = entry.path().stem().string();
    found.insert(name);
    const Result<JobSpec> spec = load_job_spec(entry.path().string());
    ASSERT_TRUE(spec) << spec.error().text();
    EXPECT_EQ(spec->name, name);
    const JobSpec again = accepted(write_job_spec(*spec));
    EXPECT_EQ(to_json(again).dump(), to_json(*spec).dump()) << write_job_spec(*spec);
  }
  EXPECT_EQ(found, expected);
}

TEST(ExampleJobs, NameWhatTheCatalogsKnow) {
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  ASSERT_TRUE(catalog && repository_models());
  for (const auto& entry : std::filesystem::directory_iterator(examples())) {
    const Result<JobSpec> spec = load_job_spec(entry.path().string());
    ASSERT_TRUE(spec) << spec.error().text();
    const std::string& framework = spec->software.framework;
    EXPECT_TRUE(framework.empty() || catalog->find<Framework>(framework) != nullptr) << framework;
    for (const std::string& name : spec->permitted.export_classes) {
      EXPECT_NE(catalog->find<ExportClass>(name), nullptr) << name;
    }
    for (const RoleSpec& role : spec->roles) {
      for (const TypeSpeed& type : role.types) {
        EXPECT_NE(catalog->find<Accelerator>(type.type), nullptr) << type.type;
      }
      EXPECT_TRUE(!role.work || repository_models()->find(role.work->model) != nullptr)
          << role.work->model;
    }
  }
}

}  // namespace
}  // namespace orrery
