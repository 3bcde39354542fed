// Replays the runs of other simulators on the same traces; results must be equal within 0.001 s.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/format/document.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "perf/repository_facts_test.hpp"
#include "twin/policy_run.hpp"
#include "workload/builtin_models.hpp"
#include "workload/gavel_throughputs.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

const std::string kData = ORRERY_SOURCE_DIR "/../shared/data";

struct Played {
  std::string trace;
  TraceOptions options;
  std::string rules;
  std::string policy;
  int accelerators = 0;
};

class ReferenceReplayTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = kData + "/reference/scheduler_replays.json";
    if (!std::filesystem::exists(path)) {
      GTEST_SKIP() << "NOT RUN: results of other simulators are not here: " << path;
    }
    reference_ = nlohmann::json::parse(*read_file(path, std::size_t{1} << 20));
  }

  SimulationSummary play(const Played& played) {
    const ReplayRules rules = *replay_rules(played.rules);
    const Result<AcceleratorFleet> fleet = fleet_of_accelerators(
        builtin_facts(), {{{"v100", played.accelerators}}, rules.node_accelerators});
    EXPECT_TRUE(fleet) << (fleet ? "" : fleet.error().text());
    const Result<Catalog> catalog = builtin_facts().with(fleet->nodes);
    EXPECT_TRUE(catalog) << (catalog ? "" : catalog.error().text());
    const ModelCatalog models = *ModelCatalog::load(builtin_models(), {});
    auto cluster =
        ControlFacts::make({*catalog, builtin_constants(), models}, fleet->spec, nullptr);
    EXPECT_TRUE(cluster) << (cluster ? "" : cluster.error().text());
    const Result<Trace> trace = load_trace(kData + "/traces/" + played.trace, played.options);
    EXPECT_TRUE(trace) << (trace ? "" : trace.error().text());
    TraceJobOptions options;
    options.rules = rules;
    const Result<GavelThroughputs> rates =
        GavelThroughputs::load(kData + "/traces/gavel/simulation_throughputs.json.gz");
    EXPECT_TRUE(rates);
    options.throughput = [&](FleetTypeId, const TraceJob& job) {
      return rates->steps_per_second("v100", {job.model, job.accelerators});
    };
    const Result<TraceJobs> jobs =
        trace_jobs(*trace, (*cluster)->resolve_context({}), (*cluster)->classes(), options);
    EXPECT_TRUE(jobs) << (jobs ? "" : jobs.error().text());
    PolicyRunInputs in{.cluster = **cluster,
                       .jobs = *jobs,
                       .label = played.policy,
                       .policy = *policy_under(rules, played.policy),
                       .rules = rules};
    if (!rules.all_at_start) in.begin = played.options.from.value_or(trace->first_submit());
    const Result<PolicyRun> run = run_policy(in);
    EXPECT_TRUE(run) << (run ? "" : run.error().text());
    return run->summary;
  }

  nlohmann::json reference_;
};

constexpr double kTolerance = 0.001;

TEST_F(ReferenceReplayTest, FifoAndShortestFirstOfHeliosComeOutExactly) {
  int runs = 0;
  for (const auto& run : reference_["helios"]["runs"]) {
    Played played{"train/philly_12vc.csv.gz", {}, "helios", run["policy"], run["gpus"]};
    played.options.where.push_back({"cluster", run["vc"]});
    played.options.from = *parse_trace_time("2017-10-01T00:00:00");
    played.options.to = *parse_trace_time("2017-10-14T23:59:59");
    const SimulationSummary s = play(played);
    SCOPED_TRACE(run.dump());
    EXPECT_EQ(s.jobs, run["jobs"].get<std::uint64_t>());
    EXPECT_NEAR(s.avg_jct_s, run["avg_jct_s"], kTolerance);
    EXPECT_NEAR(s.avg_wait_s, run["avg_queue_s"], kTolerance);
    EXPECT_NEAR(s.p50_jct_s, run["p50_jct_s"], kTolerance);
    EXPECT_NEAR(s.p99_jct_s, run["p99_jct_s"], kTolerance);
    EXPECT_NEAR(s.makespan_s, run["makespan_s"], kTolerance);
    ++runs;
  }
  EXPECT_EQ(runs, 4);
}

TEST_F(ReferenceReplayTest, ShortestRemainingTimeAndServiceOfMuriComeOutExactly) {
  int runs = 0;
  for (const auto& run : reference_["muri_zero_overhead"]["runs"]) {
    Played played{"train/muri_" + run["trace"].get<std::string>() + ".csv.gz",
                  {},
                  "muri",
                  run["policy"] == "SRTF" ? "srtf" : "srsf",
                  64};
    played.options.format = TraceFormat::kMuri;
    const SimulationSummary s = play(played);
    SCOPED_TRACE(run.dump());
    EXPECT_EQ(s.jobs, run["jobs"].get<std::uint64_t>());
    EXPECT_NEAR(s.avg_jct_s, run["avg_jct"], kTolerance);
    EXPECT_NEAR(s.p99_jct_s, run["p99_jct"], kTolerance);
    EXPECT_NEAR(s.makespan_s, run["makespan"], kTolerance);
    ++runs;
  }
  EXPECT_EQ(runs, 2);
}

TEST_F(ReferenceReplayTest, RoundsOfGavelComeOutExactly) {
  int runs = 0;
  for (const auto& run : reference_["gavel_fifo"]["runs"]) {
    Played played{
        "gavel/" + run["trace"].get<std::string>() + ".trace", {}, "gavel", "fifo", run["v100"]};
    played.options.format = TraceFormat::kGavel;
    const SimulationSummary s = play(played);
    SCOPED_TRACE(run.dump());
    EXPECT_NEAR(s.avg_jct_s, run["avg_jct_s"], kTolerance);
    EXPECT_NEAR(s.makespan_s, run["makespan_s"], kTolerance);
    EXPECT_NEAR(s.utilization, run["utilization"], kTolerance);
    ++runs;
  }
  EXPECT_EQ(runs, 6);
}

}  // namespace
}  // namespace orrery
