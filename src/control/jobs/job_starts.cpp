#include "control/jobs/job_starts.hpp"

#include <algorithm>

#include "perf/training/goodput.hpp"

namespace orrery {
namespace {

/// Returns the interval between checkpoints: that of the job, or the best one at a failure rate of
/// a node, in 1/s.
Duration checkpoint_interval(const Job& job, const StartJob& start, double rate) {
  const JobRequest& request = job.submission->request;
  const Duration cost = request.checkpoint_cost;
  const bool choose = job.submission->choose_interval && rate > 0 && cost > Duration();
  if (!choose) return request.checkpoint_interval;
  double nodes = 0;
  for (const PlacedGang& gang : start.gangs) {
    nodes += static_cast<double>(gang.allocation.ranks.size());
  }
  const Result<Seconds> best =
      daly_interval(Seconds(cost.count_seconds()), Seconds(1 / (rate * std::max(nodes, 1.0))));
  return best ? Duration::from_seconds(best->value()) : request.checkpoint_interval;
}

}  // namespace

void JobStarts::start(const StartJob& start, std::optional<RestartKind> in_place) {
  const Job& job = state_.job(start.job);
  bool compile = false;
  if (job.submission->prepare.program != 0) {
    for (const PlacedGang& gang : start.gangs) {
      const NodeId node = gang.allocation.ranks.front().node;
      const FleetTypeId type = state_.setup().topology->group(node).type;
      compile = compile || !state_.compiled(job.submission->prepare.program, type);
    }
  }
  const std::uint32_t attempt = job.attempt + 1;
  places_.forget(start.job);
  recorder_.emit(
      JobStarted{start.job, attempt, start.gangs, start.terms, start.expected,
                 checkpoint_interval(job, start, state_.setup().failures_per_node_second),
                 start.delay, compile, start.price ? start.price->total() : 0});
  recorder_.act(StartRanks{start.job, attempt, 0, start.delay, compile, in_place});
  if (state_.policy().choice == OptionChoice::kFirst) request_plans(start);
}

// Requests plans wherever the job was placed: its power follows from its plan.
void JobStarts::request_plans(const StartJob& start) {
  if (!state_.setup().plans) return;
  const JobRequest& request = state_.job(start.job).submission->request;
  for (const PlacedGang& gang : start.gangs) {
    const std::optional<PlanKey>& key = request.roles[gang.role].options[gang.option].plan;
    if (!key || state_.plans().find(*key) != nullptr) continue;
    plans_.request(*key);
  }
}

void JobStarts::go_on_as(const ResizeJob& resize) {
  const Job& job = state_.job(resize.job);
  const std::uint32_t epoch = job.epoch + 1;
  recorder_.emit(JobResized{resize.job, epoch, resize.gangs, resize.terms,
                            resize.in_favour_of.value_or(JobId()),
                            state_.running(resize.job).done_at(recorder_.now())});
  recorder_.act(StartRanks{resize.job, job.attempt, epoch, Duration(), false});
}

}  // namespace orrery
