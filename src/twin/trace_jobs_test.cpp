#include "twin/trace_jobs.hpp"

#include <gtest/gtest.h>

#include "control/control_facts.hpp"
#include "fleet/accelerator_fleet.hpp"
#include "perf/repository_facts_test.hpp"
#include "twin/policy_run.hpp"
#include "workload/builtin_models.hpp"
#include "workload/trace_file.hpp"

namespace orrery {
namespace {

/// Jobs that a person wrote, each of eight H100 for an hour, on sixteen.
class TraceJobsTest : public testing::Test {
 protected:
  TraceJobsTest() : models_(*ModelCatalog::load(builtin_models(), "")) {
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

}  // namespace
}  // namespace orrery
