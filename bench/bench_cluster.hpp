// bench/bench_cluster.hpp - a fleet with its queue, for benchmarks of decisions: submits, decides,
// carries decisions out and lets jobs end.
//
// One thread. Invariant: devices of running jobs are taken in the fleet; jobs wait by ascending id.
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "bench/figure.hpp"
#include "fleet/fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "perf/facts.hpp"
#include "scheduler/pass/taking.hpp"
#include "scheduler/place/job_placer.hpp"
#include "scheduler/plans/plan_work.hpp"
#include "scheduler/scheduler.hpp"
#include "scheduler/tenants/queue_order.hpp"

namespace orrery {

inline Topology topology_of(const std::string& yaml, const Catalog& catalog) {
  const Document document = must(Document::parse(yaml, "bench.yaml"));
  return must(build_topology(must(read_fleet_spec(document)), catalog));
}

inline TenantTree tenants_of(const std::string& yaml, const Topology& topology) {
  const Document document = must(Document::parse(yaml, "tenants.yaml"));
  return must(build_tenant_tree(must(read_tenants_spec(document)), topology));
}

class BenchCluster {
 public:
  BenchCluster(const Facts& facts, const std::string& fleet, const std::string& tenants)
      : fleet_(topology_of(fleet, facts.catalog())),
        tree_(fleet_.topology()),
        scheduler_(tree_),
        placer_(tree_),
        tenants_(tenants_of(tenants, fleet_.topology())),
        usage_(tenants_),
        costs_(
            must(FleetCosts::make({facts.catalog(), facts.calibration()}, fleet_.topology(), {}))) {
  }

  [[nodiscard]] Fleet& fleet() { return fleet_; }
  [[nodiscard]] const PlaceTree& tree() const { return tree_; }
  [[nodiscard]] const TenantTree& tenants() const { return tenants_; }
  [[nodiscard]] PlanTable& plans() { return plans_; }
  [[nodiscard]] std::vector<RunningJob>& running() { return running_; }
  [[nodiscard]] const std::vector<WaitingJob>& waiting() const { return waiting_; }
  [[nodiscard]] std::uint64_t busy() const { return busy_; }
  [[nodiscard]] Instant now() const { return now_; }
  void wait(Duration time) { now_ = now_ + time; }

  void submit(JobRequest request) {
    const JobId id = JobId::at(requests_.size());
    requests_.push_back(std::move(request));
    waiting_.push_back({id, &requests_.back(), now_, 0, 0});
  }
  void cancel_waiting() { waiting_.clear(); }

  /// Runs a job where it fits best, past the queue. Returns whether it fits.
  bool run(JobRequest request) {
    auto gangs = placer_.place(fleet_.view(), request, {});
    if (!gangs) return false;
    submit(std::move(request));
    const WaitingJob job = waiting_.back();
    waiting_.pop_back();
    const Duration length = job.request->estimate.value_or(Duration::hours(1));
    std::vector<GangTerms> terms(gangs->size());
    begin(job, StartJob{job.id, *std::move(gangs), std::move(terms), length, {}, {}});
    return true;
  }

  [[nodiscard]] Situation situation() const {
    Situation s{.now = now_, .fleet = fleet_.view()};
    s.waiting = waiting_;
    s.running = running_;
    s.tenants = &tenants_;
    s.usage = &usage_;
    s.plans = &plans_;
    s.costs = &costs_;
    s.reserved = reserved_;
    s.changes = changes_;
    return s;
  }
  [[nodiscard]] PassResult decide(const Policy& policy, PassKind kind) {
    return scheduler_.decide(situation(), policy, kind);
  }
  void forget() { scheduler_.forget(); }

  /// Starts what was decided; preempted jobs leave at once. Returns how many started.
  std::size_t carry_out(const PassResult& result) {
    std::vector<char> started(requests_.size());
    std::size_t count = 0;
    for (const Decision& decision : result.decisions) {
      if (const auto* stop = std::get_if<PreemptJob>(&decision)) finish(position_of(stop->job));
      if (const auto* resize = std::get_if<ResizeJob>(&decision)) move(*resize);
      const auto* start = std::get_if<StartJob>(&decision);
      if (start == nullptr) continue;
      started[start->job.value()] = 1;
      begin(*std::lower_bound(waiting_.begin(), waiting_.end(), start->job,
                              [](const WaitingJob& job, JobId id) { return job.id < id; }),
            *start);
      ++count;
    }
    std::erase_if(waiting_, [&](const WaitingJob& job) { return started[job.id.value()] != 0; });
    reserved_ = result.reservations;
    return count;
  }

  /// Ends the running job at a position; the last job takes its position.
  void finish(std::size_t at) {
    give_back(fleet_, std::span<const PlacedGang>(running_[at].gangs));
    count(running_[at], -1);
    std::swap(running_[at], running_.back());
    running_.pop_back();
    ++changes_.freed;
  }

 private:
  [[nodiscard]] std::size_t position_of(JobId id) const {
    const auto at = std::find_if(running_.begin(), running_.end(),
                                 [&](const RunningJob& job) { return job.id == id; });
    return static_cast<std::size_t>(at - running_.begin());
  }

  void begin(const WaitingJob& waiting, const StartJob& start) {
    take(fleet_, std::span<const PlacedGang>(start.gangs));
    RunningJob job{.id = start.job, .request = waiting.request, .submitted = waiting.submitted};
    job.started = now_;
    job.expected_end = start.expected ? now_ + *start.expected : Instant::max();
    job.gangs = start.gangs;
    job.terms = start.terms;
    count(job, 1);
    running_.push_back(std::move(job));
  }

  void move(const ResizeJob& resize) {
    RunningJob& job = running_[position_of(resize.job)];
    give_back(fleet_, std::span<const PlacedGang>(job.gangs));
    count(job, -1);
    job.gangs = resize.gangs;
    job.terms = resize.terms;
    take(fleet_, std::span<const PlacedGang>(job.gangs));
    count(job, 1);
    ++changes_.freed;
  }

  void count(const RunningJob& job, std::int64_t sign) {
    for (const PlacedGang& placed : job.gangs) {
      const GangRequest& gang = job.request->roles[placed.role].options[placed.option].gang;
      const std::int64_t devices = sign * static_cast<std::int64_t>(gang.devices);
      usage_.apply({job.request->tenant, gang.type, rank_of(*job.request), devices});
      busy_ += static_cast<std::uint64_t>(devices);
    }
  }

  Fleet fleet_;
  PlaceTree tree_;
  Scheduler scheduler_;
  JobPlacer placer_;
  TenantTree tenants_;
  TenantUsage usage_;
  FleetCosts costs_;
  PlanTable plans_;
  std::deque<JobRequest> requests_;
  std::vector<WaitingJob> waiting_;
  std::vector<RunningJob> running_;
  std::vector<Reservation> reserved_;
  Changes changes_;
  std::uint64_t busy_ = 0;  ///< devices
  Instant now_;
};

}  // namespace orrery
