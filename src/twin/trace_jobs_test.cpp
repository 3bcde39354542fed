#include "twin/trace_jobs.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "control/control_facts.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "perf/repository_facts_test.hpp"
#include "twin/policy_run.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace/trace_file.hpp"

namespace orrery {
namespace {

/// Jobs with written specs, each of eight H100 for an hour, on sixteen.
class TraceJobsTest : public testing::Test {
 protected:
  TraceJobsTest() : models_(*ModelCatalog::load(builtin_models(), {})) {
    const auto fleet = fleet_of_accelerators(builtin_facts(), {{{"h100", 16}}, std::nullopt});
    cluster_ =
        *ControlFacts::make({builtin_facts(), builtin_constants(), models_}, fleet->spec, nullptr);
  }

  void add(const std::string& name, const std::string& more) {
    text_ += "- {submit: 0 s, run: 1 h, spec: {apiVersion: orrery/v1, kind: Train, name: " + name +
             ", roles: [{accelerators: 8}]" + more + "}}\n";
  }

  Result<TraceJobs> made() {
    const auto trace = read_trace_file(
        "apiVersion: orrery/v1\nkind: Trace\nname: t\njobs:\n" + text_, "trace.yaml", {});
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    options_.rules = *replay_rules("orrery");
    return trace_jobs(*trace, cluster_->resolve_context({}), cluster_->classes(), options_);
  }

  PolicyRun play() {
    const Result<TraceJobs> jobs = made();
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    PolicyRunInputs in{.cluster = *cluster_,
                       .jobs = *jobs,
                       .label = "fifo",
                       .policy = *policy_under(options_.rules, "fifo"),
                       .rules = options_.rules};
    Result<PolicyRun> run = run_policy(in);
    EXPECT_TRUE(run) << (run ? "" : run.error().text());
    return *std::move(run);
  }

  ModelCatalog models_;
  std::unique_ptr<ControlFacts> cluster_;
  TraceJobOptions options_;
  std::string text_;
};

TEST_F(TraceJobsTest, KeepsWhatAJobsOwnSpecSaysOfRestartsAndCheckpoints) {
  add("stated", ", restart: {policy: never, max: 1}, checkpoint: {interval: 30 min, cost: 1 s}");
  add("silent", "");
  const Result<TraceJobs> jobs = made();
  ASSERT_TRUE(jobs);
  const Submission& stated = jobs->jobs[0].submission;
  EXPECT_EQ(stated.restart, RestartPolicy::kNever);
  EXPECT_EQ(stated.restart_max, 1u);
  EXPECT_FALSE(stated.choose_interval);
  EXPECT_EQ(stated.request.checkpoint_interval, Duration::minutes(30));
  EXPECT_EQ(jobs->jobs[1].submission.restart, RestartPolicy::kWhenSafe);
  EXPECT_TRUE(jobs->jobs[1].submission.choose_interval);
}

TEST_F(TraceJobsTest, PlaysJobsAfterThoseTheyWaitFor) {
  add("prepare", "");
  add("train", ", after: [prepare]");
  const PolicyRun run = play();
  EXPECT_GE(run.outcomes[1].start, run.outcomes[0].end);
  EXPECT_EQ(run.summary.finished, 2u);
}

TEST_F(TraceJobsTest, PlaysEveryJobOfAnArraySoManyAtATime) {
  add("sweep", ", array: {count: 3, parallel: 1}");
  add("last", ", after: [sweep]");
  const PolicyRun run = play();
  ASSERT_EQ(run.outcomes.size(), 4u);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_GE(run.outcomes[i].start, run.outcomes[i - 1].end);
}

TEST_F(TraceJobsTest, CompilesAProgramOnceForATypeOfAccelerator) {
  add("first", ", compile: {time: 20 min, program: net}");
  const PolicyRun alone = play();
  add("second", ", compile: {time: 20 min, program: net}, after: [first]");
  const PolicyRun run = play();
  const auto took = [](const JobOutcome& job) { return job.end - job.start; };
  EXPECT_EQ(took(run.outcomes[0]), took(alone.outcomes[0]));
  EXPECT_EQ(took(run.outcomes[0]) - took(run.outcomes[1]), Duration::minutes(20));
}

TEST_F(TraceJobsTest, RefusesToWaitForWhatIsNotSubmittedBefore) {
  add("train", ", after: [prepare]");
  add("prepare", "");
  const Result<TraceJobs> jobs = made();
  ASSERT_FALSE(jobs);
  EXPECT_NE(jobs.error().text().find("trace.yaml:5"), std::string::npos) << jobs.error().text();
  EXPECT_NE(jobs.error().text().find("no job \"prepare\""), std::string::npos);
}

TEST_F(TraceJobsTest, RefusesATraceThatTellsNoLengthOfAnyJob) {
  Trace trace;
  trace.jobs.push_back({.name = "a", .accelerators = 8});
  options_.rules = *replay_rules("orrery");
  const Result<TraceJobs> jobs =
      trace_jobs(trace, cluster_->resolve_context({}), cluster_->classes(), options_);
  ASSERT_FALSE(jobs);
  EXPECT_NE(jobs.error().message.find("no job of the trace states a run time"), std::string::npos);
}

TEST(ReplayRulesTest, RefuseAPolicyThatTheOtherSimulatorDoesNotHave) {
  EXPECT_EQ(policy_under(*replay_rules("helios"), "srtf").error().message,
            "the rules of helios know fifo, sjf; \"srtf\" is played without --rules");
  EXPECT_TRUE(policy_under(*replay_rules("muri"), "srsf"));
  EXPECT_TRUE(policy_under(*replay_rules("orrery"), "las"));
  for (const char* rules : {"orrery", "gavel"}) {
    EXPECT_FALSE(policy_under(*replay_rules(rules), "fifo:max_stretch=1")) << "without effect";
    EXPECT_TRUE(policy_under(*replay_rules(rules), "fifo:max_stretch=1", 1)) << "of a record";
  }
  EXPECT_EQ(policy_under(*replay_rules("muri"), "srtf")->min_run, Seconds{0});
}

/// Bare rows of a trace on a fleet of two types.
class UnlikeTypesTest : public testing::Test {
 protected:
  UnlikeTypesTest() : models_(*ModelCatalog::load(builtin_models(), {})) {
    const auto fleet =
        fleet_of_accelerators(builtin_facts(), {{{"h100", 8}, {"a100", 8}}, std::nullopt});
    cluster_ =
        *ControlFacts::make({builtin_facts(), builtin_constants(), models_}, fleet->spec, nullptr);
    h100_ = *cluster_->topology().find_type("h100");
    a100_ = *cluster_->topology().find_type("a100");
    options_.rules = *replay_rules("orrery");
  }

  /// Jobs of eight; without steps it runs for an hour.
  void add(const std::string& model, std::uint64_t steps) {
    TraceJob& job = trace_.jobs.emplace_back();
    job.name = std::to_string(trace_.jobs.size());
    job.model = model;
    job.accelerators = 8;
    job.steps = steps;
    if (steps == 0) job.run = Duration::hours(1);
  }

  /// Sets the measured steps a second of "lm"; 0: not measured on that type.
  void measure(double h100, double a100) {
    options_.throughput = [=, this](FleetTypeId type,
                                    const TraceJob& job) -> std::optional<double> {
      if (job.model != "lm") return std::nullopt;
      return type == h100_ ? h100 : a100;
    };
  }

  Result<TraceJobs> made() {
    return trace_jobs(trace_, cluster_->resolve_context({}), cluster_->classes(), options_);
  }

  /// Run times of all jobs, shortest first.
  std::vector<double> run_times() {
    const Result<TraceJobs> jobs = made();
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    PolicyRunInputs in{.cluster = *cluster_,
                       .jobs = *jobs,
                       .label = "fifo",
                       .policy = *policy_under(options_.rules, "fifo"),
                       .rules = options_.rules};
    in.timing.launch = Duration();
    const Result<PolicyRun> run = run_policy(in);
    EXPECT_TRUE(run) << (run ? "" : run.error().text());
    std::vector<double> times;
    for (const JobOutcome& job : run->outcomes) {
      times.push_back((job.end - job.start).count_seconds());
    }
    std::sort(times.begin(), times.end());
    return times;
  }

  double speed_on(const PlayedJob& job, FleetTypeId type) {
    for (const GangOption& option : job.submission.request.roles.front().options) {
      if (option.gang.type == type) return option.speed;
    }
    return 0;
  }

  ModelCatalog models_;
  std::unique_ptr<ControlFacts> cluster_;
  FleetTypeId h100_;
  FleetTypeId a100_;
  Trace trace_;
  TraceJobOptions options_;
};

TEST_F(UnlikeTypesTest, OfAMeasuredJobTakeAsLongAsTheirOwnRatesSay) {
  add("lm", 36'000);
  add("lm", 36'000);
  measure(10, 4);
  for (const FleetTypeId reference : {h100_, a100_}) {
    options_.reference = reference;
    const std::vector<double> times = run_times();
    ASSERT_EQ(times.size(), 2u);
    EXPECT_NEAR(times[0], 3'600, 1);
    EXPECT_NEAR(times[1], 9'000, 1);
  }
}

TEST_F(UnlikeTypesTest, KeepTheirOwnRatesInRounds) {
  add("lm", 36'000);
  add("lm", 36'000);
  measure(10, 4);
  options_.rules = *replay_rules("gavel");
  const std::vector<double> times = run_times();
  EXPECT_NEAR(times[0], 3'600, 36);
  EXPECT_NEAR(times[1], 9'000, 90);
}

TEST_F(UnlikeTypesTest, ThatWereNotMeasuredAreNoneOfTheJobs) {
  add("lm", 36'000);
  measure(0, 4);
  const Result<TraceJobs> jobs = made();
  ASSERT_TRUE(jobs) << jobs.error().text();
  EXPECT_EQ(speed_on(jobs->jobs[0], h100_), 0);
  EXPECT_EQ(jobs->jobs[0].truth.work, Duration::seconds(9'000));
  EXPECT_EQ(jobs->fewer_types, 1u);
  EXPECT_EQ(jobs->first_of_fewer, "1 (not on " + cluster_->topology().accelerator(h100_).id + ")");
}

TEST_F(UnlikeTypesTest, AreAsFastAsMeasuredWhereTheMappingSaysSomethingElse) {
  add("lm", 0);
  add("other", 0);
  measure(10, 4);
  options_.reference = a100_;
  options_.speed = [this](std::string_view, FleetTypeId type) { return type == h100_ ? 7.0 : 1.0; };
  const Result<TraceJobs> jobs = made();
  ASSERT_TRUE(jobs) << jobs.error().text();
  EXPECT_DOUBLE_EQ(speed_on(jobs->jobs[0], h100_), 2.5);
  EXPECT_DOUBLE_EQ(speed_on(jobs->jobs[0], a100_), 1);
  EXPECT_DOUBLE_EQ(speed_on(jobs->jobs[1], h100_), 7);
}

TEST_F(UnlikeTypesTest, AreRefusedWhereNothingSaysHowFastAJobIsOnEach) {
  add("other", 0);
  measure(10, 4);
  const Result<TraceJobs> jobs = made();
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().kind, ErrorKind::kInput);
  for (const char* way : {"--throughputs", "--map", "a single type"}) {
    EXPECT_NE(jobs.error().text().find(way), std::string::npos) << jobs.error().text();
  }
  trace_.jobs[0].types = "a100";
  const Result<TraceJobs> named = made();
  ASSERT_TRUE(named) << named.error().text();
  EXPECT_EQ(speed_on(named->jobs[0], a100_), 1);
}

}  // namespace
}  // namespace orrery
