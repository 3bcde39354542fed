// twin/simulation.hpp - runs jobs through the same core that runs real clusters, in virtual time.
//
// ControlHost runs the core as in a controller; its executor is the twin's world, its log keeps
// nothing and counts each event as durable at once. The loop lets the next event of the world, a
// submission or a command happen, and time pass until then. It keeps no state of jobs of its own:
// results are read from control's. One thread. Cost: O(events), and the passes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/core/core.hpp"
#include "executor/control_host.hpp"
#include "twin/figures/bill_check.hpp"
#include "twin/figures/fleet_bill.hpp"
#include "twin/trace_jobs.hpp"
#include "twin/world/job_watch.hpp"
#include "twin/world/world.hpp"

namespace orrery {

/// Restricts figures to the jobs submitted within, both ends included; figures of devices cover the
/// time between.
struct MeasureWindow {
  Instant from;
  Instant to;
};

/// Device-hours of one type by device use.
using UseHours = std::array<double, kDeviceUses>;

/// The result of one job.
struct JobOutcome {
  JobId job;
  std::uint32_t row = 0;  ///< of the trace
  JobPhase phase = JobPhase::kHeld;
  bool measured = true;  ///< it was submitted in the window, if there is one
  Instant submit;
  Instant start = Instant::max();  ///< first; max: never
  Instant end = Instant::max();    ///< max: not ended
  std::optional<Instant> deadline;
  std::uint32_t devices = 0;  ///< of all roles
  double whole_devices = 0;   ///< as `devices`, but shared devices count by their share
  /// Device-hours it would take on the type that run times are of; 0: its work is given in steps.
  double work_hours = 0;
  WatchedJob watched;
  JobUsage usage;
};

/// How long after its deadline the job finished, or has passed it unfinished at `now`; zero if it
/// was in time. None: no deadline, an end without success, or the deadline is still to come.
[[nodiscard]] std::optional<Duration> lateness_of(const JobOutcome& job, Instant now);

/// Figures of jobs with a deadline. Jobs that ended without success or are not due yet are neither
/// met nor missed.
struct DeadlineFigures {
  std::uint64_t jobs = 0;
  std::uint64_t met = 0;
  std::uint64_t missed = 0;
  double mean_late_s = 0;  ///< of those missed
  double max_late_s = 0;
};

/// Observers of a simulation; every member may be empty.
struct SimulationHooks {
  std::function<void(const Input&)> input;                      ///< before it is handled
  std::function<void(Instant, std::span<const Event>)> events;  ///< after they were applied
  std::function<void(Instant, const State&)> tick;  ///< whenever virtual time has advanced
  BillCheck::Observer billed;                       ///< an attempt ran to its end as it was started
};

/// Times, ends, bills and faults are of the measured jobs; uses are of the measured time.
struct SimulationSummary {
  std::uint64_t jobs = 0;
  std::uint64_t measured = 0;
  std::uint64_t finished = 0;
  std::uint64_t failed = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t unfinished = 0;
  double avg_jct_s = 0;
  double avg_wait_s = 0;  ///< from submission to the first start
  double p50_jct_s = 0;
  double p99_jct_s = 0;
  double avg_queueing_s = 0;  ///< before the first start, and after each stop
  double p50_queueing_s = 0;
  double p90_queueing_s = 0;
  double p99_queueing_s = 0;
  double makespan_s = 0;   ///< from the begin of the simulation to the last end
  double utilization = 0;  ///< devices in use x time, over all devices x time
  double goodput = 0;      ///< useful of the time in use
  double energy_kwh = 0;   ///< of jobs, at the meter (PUE)
  double cost_usd = 0;     ///< that jobs are billed
  double co2_kg = 0;
  FleetBill fleet;    ///< including devices that no job holds
  BillFigures bills;  ///< compared with the expected bills
  std::uint64_t preemptions = 0;
  std::uint64_t faults = 0;
  std::uint64_t corrupt = 0;  ///< jobs that finished with wrong results, undetected
  DeadlineFigures deadlines;
  Recoveries recoveries;
  std::uint64_t inputs = 0;
  std::uint64_t events = 0;
  Core::PassCounts passes;
};

class Simulation final : private HostOutlet {
 public:
  struct Parts {
    const ControlSetup& setup;
    World::Facts world;
    std::span<const PlayedJob> jobs;
    SimulationHooks hooks;
    std::span<const Input> commands;  ///< of an operator, by time
    std::optional<MeasureWindow> measure = {};
  };

  explicit Simulation(const Parts& parts);
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// What is known of a job from a history.
  struct KnownJob {
    Duration work = Duration::max();  ///< total, at an option's speed of 1; max: unknown
    Duration left;  ///< left to run at its present rate, if it runs and `work` is known
  };
  using JobKnowledge = std::function<KnownJob(const State&, JobId)>;

  /// Must be called before anything else: continues from a snapshot of the same setup
  /// (control/state/snapshot.hpp). Its jobs come before those of `jobs`. Errors: those of the
  /// snapshot.
  [[nodiscard]] Status go_on_from(std::string_view snapshot, Instant now,
                                  const JobKnowledge& knowledge);

  /// Runs until every job has ended, nothing more can happen, or `until`.
  void run(Instant until = Instant::max());

  [[nodiscard]] const World& world() const { return world_; }
  [[nodiscard]] const Core& core() const { return host_->core(); }
  [[nodiscard]] const State& state() const { return host_->state(); }
  [[nodiscard]] Instant now() const { return now_; }

  /// The ledger and the added usage of the jobs that hold devices, as if each reported its progress
  /// now.
  struct Settled {
    Ledger ledger;
    std::map<JobId, JobUsage> usage;
  };
  [[nodiscard]] Settled settled() const;

  /// The outcomes of the submitted jobs, without those of a snapshot.
  [[nodiscard]] std::vector<JobOutcome> outcomes() const;
  [[nodiscard]] SimulationSummary summary() const;
  /// Device-hours by type in the measured time. Lost work counts at the time the loss is found.
  [[nodiscard]] std::vector<UseHours> use_hours() const;

 private:
  [[nodiscard]] bool done() const;
  /// Whether the waiting jobs will wait for ever: nothing runs, arrives or is under repair.
  [[nodiscard]] bool stuck() const;
  [[nodiscard]] Instant next() const;
  void begin(std::unique_ptr<Core> core);
  void note(const Input& input) override;
  std::uint64_t append(Instant at, std::span<const Event> events) override;
  void send(const Order& order) override;
  void run_full_pass(Core& core, Instant now) override;
  void search_plan(const PlanKey& key) override;
  void step_at(Instant now);
  void pass_marks(Instant next);
  [[nodiscard]] std::vector<UseHours> hours_until_now() const;
  void sum_jobs(SimulationSummary& s) const;
  void submit_next();

  const ControlSetup& setup_;
  ReplayRules rules_;
  std::span<const PlayedJob> jobs_;
  SimulationHooks hooks_;
  World world_;
  std::optional<ControlHost> host_;
  JobWatch watch_;
  Scheduler full_scheduler_;
  std::span<const Input> commands_;
  std::optional<MeasureWindow> measure_;
  std::vector<UseHours> before_;  ///< up to the begin of the window; empty: not reached yet
  std::vector<UseHours> within_;  ///< up to its end; empty: not reached yet
  std::size_t first_job_ = 0;     ///< of the submitted jobs
  std::size_t next_job_ = 0;
  std::size_t next_command_ = 0;
  Instant now_;
  std::uint64_t inputs_ = 0;
  BillCheck bills_;
  int idle_ticks_ = 0;  ///< consecutive ticks without a result
  std::uint64_t events_ = 0;
};

}  // namespace orrery
