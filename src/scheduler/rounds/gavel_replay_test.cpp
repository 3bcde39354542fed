// A trace of Gavel under its own policy, compared with the result of its own simulator.
#include <array>
#include <optional>
#include <tuple>

#include "scheduler/place/cluster_test.hpp"
#include "scheduler/plans/class_table.hpp"
#include "workload/gavel_throughputs.hpp"
#include "workload/trace_input/trace_reader.hpp"

namespace orrery {
namespace {

const std::string kTraces = ORRERY_SOURCE_DIR "/../shared/data/traces/gavel/";
constexpr std::array<const char*, 3> kAccelerators{"v100", "p100", "k80"};

/// A node of four devices of each of three types, which stand for V100, P100 and K80; the speeds of
/// jobs on them are Gavel's.
std::string three_types() {
  return one_hall(
      "    - name: su\n      racks:\n      - nodes: [{type: l4-4, count: 1}, {type: p100-pcie-4, "
      "count: 1}, {type: a10-4, count: 1}]\n");
}

/// Jobs run in rounds; starts and stops take no time, as in Gavel's simulator.
class GavelReplay {
 public:
  GavelReplay(const Trace& trace, const GavelThroughputs& rates) : trace_(trace) {
    const Topology& topology = cluster_.fleet().topology();
    for (const TraceJob& job : trace.jobs) {
      JobRequest request;
      request.tenant = cluster_.tenants().find("default").value_or(TenantId(0));
      request.checkpoint_interval = Duration::minutes(6);
      request.preemptible = true;
      request.roles.emplace_back();
      request.roles.front().devices_min = job.accelerators;
      request.roles.front().devices_max = job.accelerators;
      for (std::uint32_t t = 0; t < topology.type_count(); ++t) {
        GangRequest gang = cluster_.gang(job.accelerators, topology.accelerator(FleetTypeId(t)).id);
        const auto rate = rates.steps_per_second(kAccelerators[t], {job.model, job.accelerators});
        if (rate.value_or(0) <= 0) continue;  // the job does not fit there
        request.roles.front().options.push_back({gang, *rate, std::nullopt});
      }
      request.class_id = classes_.of(request);
      requests_.push_back(std::move(request));
    }
  }

  /// Mean seconds from submission to end.
  double mean_completion() {
    std::vector<double> left;
    std::vector<JobId> ids;
    double sum = 0;
    std::size_t ended = 0;
    for (double now = 0; ended < trace_.jobs.size(); now += kRound) {
      while (ids.size() < trace_.jobs.size() && submitted(ids.size()) <= now) {
        left.push_back(static_cast<double>(trace_.jobs[ids.size()].steps));
        ids.push_back(cluster_.submit(requests_[ids.size()]));
      }
      cluster_.pass("gavel", PassKind::kFull);
      cluster_.pass("gavel");
      for (std::size_t i = 0; i < ids.size(); ++i) {
        const RunningJob* job = left[i] > 0 ? cluster_.find(ids[i]) : nullptr;
        if (job == nullptr) continue;
        const double rate = requests_[i].roles.front().options[job->gangs.front().option].speed;
        const double lasts = left[i] / rate;
        left[i] -= rate * kRound;
        if (lasts > kRound) continue;
        left[i] = 0;
        ++ended;
        sum += now + lasts - submitted(i);
      }
      cluster_.wait(Duration::from_seconds(kRound));
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (left[i] <= 0 && cluster_.runs(ids[i])) cluster_.finish(ids[i]);
      }
    }
    return sum / static_cast<double>(trace_.jobs.size());
  }

 private:
  static constexpr double kRound = 360;

  [[nodiscard]] double submitted(std::size_t job) const {
    return (trace_.jobs[job].submit - Instant()).count_seconds();
  }

  const Trace& trace_;
  TestCluster cluster_{three_types()};
  ClassTable classes_;
  std::vector<JobRequest> requests_;
};

// Its simulator at c4fa4009: simulate_scheduler_with_trace.py -p max_min_fairness_perf -c 4:4:4
// --seed 0, with ECOS.
TEST(GavelReplay, MeanCompletionIsNearThatOfItsOwnSimulator) {
  const auto rates = GavelThroughputs::load(kTraces + "simulation_throughputs.json.gz");
  if (!rates) GTEST_SKIP() << "NOT RUN: " << rates.error().text();
  TraceOptions options;
  options.format = TraceFormat::kGavel;
  for (const auto& [name, seconds, within] :
       {std::tuple{"medium_test", 14'546.169, 0.05}, {"max_min_fairness", 66'166.292, 0.05}}) {
    const auto trace = load_trace(kTraces + name + ".trace", options);
    ASSERT_TRUE(trace);
    const double mean = GavelReplay(*trace, *rates).mean_completion();
    EXPECT_NEAR(mean / seconds, 1, within) << name << ": " << mean << " s";
  }
}

}  // namespace
}  // namespace orrery
