// The public traces, where they are present: counts and totals that their descriptions state.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

const std::filesystem::path kTraces = ORRERY_SOURCE_DIR "/../shared/data/traces";

#define SKIP_WITHOUT_TRACES() \
  if (!std::filesystem::exists(kTraces)) GTEST_SKIP() << "no public traces at " << kTraces

Trace load(const std::string& name, const TraceOptions& options = {}) {
  Result<Trace> trace = load_trace(kTraces / name, options);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
  return trace ? std::move(*trace) : Trace();
}

double run_quantile(const Trace& trace, double p) {
  std::vector<double> runs;
  runs.reserve(trace.jobs.size());
  for (const TraceJob& job : trace.jobs) runs.push_back(job.run.count_seconds());
  std::sort(runs.begin(), runs.end());
  return runs.empty() ? 0 : runs[static_cast<std::size_t>(p * static_cast<double>(runs.size()))];
}

TEST(PublicTraces, PhillyHasItsJobsAndHours) {
  SKIP_WITHOUT_TRACES();
  const Trace trace = load("train/philly_12vc.csv.gz");
  EXPECT_EQ(trace.jobs.size(), 64'223u);
  EXPECT_NEAR(trace.accelerator_seconds() / 3600, 613'167, 1);
  EXPECT_EQ(trace.first_submit().text(), "2017-09-04T10:30:41Z");
  EXPECT_EQ(trace.last_submit().text(), "2017-12-22T07:41:13Z");
  EXPECT_NEAR(run_quantile(trace, 0.5), 1580, 1);
  EXPECT_NEAR(run_quantile(trace, 0.99), 255'553, 50);

  const Trace one = load("train/philly_12vc.csv.gz", {.where = {{"cluster", "6c71a0"}}});
  EXPECT_EQ(one.jobs.size(), 9'953u);
  EXPECT_NEAR(one.accelerator_seconds() / 3600, 82'203, 1);
  const Trace window =
      load("train/philly_12vc.csv.gz", {.where = {{"cluster", "103959"}},
                                        .from = *parse_trace_time("2017-10-01T00:00:00"),
                                        .to = *parse_trace_time("2017-10-14T23:59:59")});
  EXPECT_EQ(window.jobs.size(), 249u);
}

TEST(PublicTraces, MuriTiresiasAndSiaHaveTheirJobs) {
  SKIP_WITHOUT_TRACES();
  const Trace one = load("train/muri_trace1.csv.gz");
  EXPECT_EQ(one.jobs.size(), 1'494u);
  EXPECT_NEAR(one.accelerator_seconds() / 3600, 383'327, 1);
  const Trace three = load("train/muri_trace3.csv.gz");
  EXPECT_EQ(three.jobs.size(), 992u);
  EXPECT_NEAR(three.accelerator_seconds() / 3600, 116'690, 1);
  EXPECT_EQ(load("train/tiresias_60_job.csv").jobs.size(), 60u);
  EXPECT_EQ(load("train/sia_philly_workload-1.csv").jobs.size(), 160u);
  EXPECT_EQ(load("train/sia_newtrace_workload-1.csv").jobs.size(), 960u);
}

TEST(PublicTraces, OpenbHasItsPodsAndFractions) {
  SKIP_WITHOUT_TRACES();
  const Trace trace = load("cluster/openb_pod_list_default.csv.gz");
  EXPECT_EQ(trace.jobs.size(), 8'152u);
  const auto count = [&](auto holds) {
    return std::count_if(trace.jobs.begin(), trace.jobs.end(), holds);
  };
  EXPECT_EQ(count([](const TraceJob& job) { return job.accelerators == 0; }), 1'088);
  EXPECT_EQ(count([](const TraceJob& job) { return job.accelerators == 8; }), 44);
  EXPECT_EQ(count([](const TraceJob& job) { return job.share < 1000; }), 3'078);
  EXPECT_EQ(count([](const TraceJob& job) { return job.status == TraceStatus::kFailed; }), 1'870);
  EXPECT_EQ(count([](const TraceJob& job) { return job.status == TraceStatus::kCancelled; }), 897);
}

TEST(PublicTraces, SwfHasItsJobsAndHours) {
  SKIP_WITHOUT_TRACES();
  const Trace trace = load("hpc/NASA-iPSC-1993-3.1-cln.swf.gz");
  EXPECT_EQ(trace.jobs.size(), 18'239u);
  EXPECT_NEAR(trace.accelerator_seconds() / 3600, 131'733, 1);
  EXPECT_NEAR(run_quantile(trace, 0.5), 86, 1);
}

TEST(PublicTraces, GavelHasItsJobs) {
  SKIP_WITHOUT_TRACES();
  EXPECT_EQ(load("gavel/artifact_evaluation.trace").jobs.size(), 15u);
  EXPECT_EQ(load("gavel/small_test.trace").jobs.size(), 20u);
  EXPECT_EQ(load("gavel/medium_test.trace").jobs.size(), 20u);
  EXPECT_EQ(load("gavel/max_min_fairness.trace").jobs.size(), 96u);
}

}  // namespace
}  // namespace orrery
