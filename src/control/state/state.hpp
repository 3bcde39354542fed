// control/state/state.hpp - what control knows: jobs, nodes, tenants, power, plans, slots, meters.
//
// Made from a ControlSetup; apply() is the only way to change it, so applying a log again gives the
// same state (comparable by digest()). Read by Core to decide, by passes through situation(), by
// reports. One thread. Invariant: see broken_invariant (control/state/invariants.hpp). Cost of an
// event: O(what it names), plus O(waiting) where the queue is not in the order of submission.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "control/closed_times.hpp"
#include "control/event.hpp"
#include "control/hold_bills.hpp"
#include "control/services/service_table.hpp"
#include "control/setup.hpp"
#include "control/state/job_table.hpp"
#include "control/state/ledger.hpp"
#include "control/state/running_list.hpp"
#include "fleet/fleet.hpp"
#include "scheduler/device_history.hpp"

namespace orrery {

class HeldSituation;

/// The state of a node that the fleet does not show.
struct NodeRecord {
  /// The number by which agents know the node: it stays when the ids of a changed fleet do not.
  std::uint32_t number = 0;
  std::uint64_t boot = 0;
  NodeHealth health = NodeHealth::kReady;
  bool spare = false;
  bool lemon = false;
  bool drain = false;  ///< takes no work before it is resumed, even after faults and reboots
  std::vector<Instant> faults;  ///< within the window that ends with the last
  std::string drain_why;        ///< as given with the drain, until it is ready again
  std::string out_why;          ///< what last took it out of service, until it is ready again
  struct Loan {
    bool managed = false;            ///< a resource manager lends the node, at times
    std::string hold;                ///< by which it lends it, as in NodeLent; empty: it does not
    Instant until = Instant::max();  ///< jobs are off the node by then
    Instant since;                   ///< when this hold was first seen to lend it
    Instant used = Instant::max();   ///< since when jobs have devices there; max: none has
    JobId job;                       ///< that alone may use it; invalid: any job
  };
  Loan loan;
  /// Others that use the node, as the newest ForeignSet says.
  struct Foreign {
    ForeignClaim claim = ForeignClaim::kNone;
    Instant until = Instant::max();
    std::string who;
  };
  Foreign foreign;

  /// Whether a resource manager has the node and does not lend it.
  [[nodiscard]] bool is_away() const { return loan.managed && loan.hold.empty(); }
};

/// Returns the health that the fleet shows: a spare takes no work until it replaces another node,
/// and a node that is for one job alone takes none of others.
[[nodiscard]] NodeHealth shown_health(const NodeRecord& record);
/// Returns the job that alone may start on the node now; invalid: there is no such rule.
[[nodiscard]] JobId bound_job(const NodeRecord& record);
/// Returns until when others, and nothing else, keep jobs off the node; Instant(): they do not.
[[nodiscard]] Instant taken_until(const NodeRecord& record);

/// A claim of a job against a node, kept as long as later claims are judged by it.
struct Claim {
  JobId job;
  std::uint32_t attempt = 0;
  NodeId node;
  TenantId tenant;
  Instant at;
  ClaimVerdict verdict = ClaimVerdict::kRefused;
};

/// Devices whose ranks may still run although their job has given them up: they are on a lost node,
/// or of an earlier epoch.
struct Ghost {
  JobId job;
  std::uint32_t attempt = 0;
  std::uint32_t epoch = 0;
  NodeDevices at;
  HostNeeds host;
  std::uint16_t share = kWholeDevice;
};

// The history of a job's attempts (control/state/state_attempts.cpp).
void begin_attempt(Job& job, Instant now);
void note_nodes(Job& job, std::span<const PlacedGang> gangs);
void end_attempt(Job& job, const JobStopping& event, Instant now);

class State : public DeviceHistory {
 public:
  explicit State(const ControlSetup& setup);

  /// Precondition: `at` is not before that of the previous event, and the event fits the state.
  void apply(Instant at, const Event& event);

  [[nodiscard]] const ControlSetup& setup() const { return *setup_; }
  [[nodiscard]] const Policy& policy() const { return policy_; }
  /// The text of the policy and of the tenants set at run time; empty: those of the setup hold.
  [[nodiscard]] const std::string& policy_text() const { return texts_.policy; }
  [[nodiscard]] const std::string& tenants_text() const { return texts_.tenants; }
  [[nodiscard]] Instant now() const { return now_; }
  /// When the fleet last changed: ids in earlier events are those of another fleet. The begin of
  /// the log: it never changed.
  [[nodiscard]] Instant fleet_since() const { return fleet_changes_.last; }
  [[nodiscard]] std::uint64_t version() const { return version_; }  ///< events applied

  /// How many job numbers were given out or skipped.
  [[nodiscard]] std::size_t jobs() const { return jobs_.size(); }
  /// The jobs that are not archived, by id.
  [[nodiscard]] const JobTable& all_jobs() const { return jobs_; }
  /// Precondition: has(id).
  [[nodiscard]] const Job& job(JobId id) const { return jobs_[id]; }
  /// Whether the job was submitted and is not archived.
  [[nodiscard]] bool has(JobId id) const { return jobs_.has(id); }
  /// Whether a job has ended and nothing in the state refers to it any more.
  [[nodiscard]] bool may_archive(JobId id) const;
  /// Precondition: the job holds devices.
  [[nodiscard]] const RunningJob& running(JobId id) const { return running_[job(id).at]; }
  [[nodiscard]] std::span<const RunningJob> running() const { return running_.jobs(); }
  [[nodiscard]] std::span<const WaitingJob> waiting() const { return waiting_; }
  [[nodiscard]] std::size_t held() const { return held_.size(); }
  [[nodiscard]] const std::set<JobId>& held_jobs() const { return held_; }
  /// Jobs that wait for the end of this one.
  [[nodiscard]] std::span<const JobId> after(JobId id) const;
  /// Returns the state of the dependency of a submission on `before`. Precondition: `before` is not
  /// archived.
  [[nodiscard]] Dependency dependency(const Submission& submission, JobId before) const;
  /// Returns how many jobs of an array are neither held nor ended.
  [[nodiscard]] std::uint32_t active(ArrayId array) const;
  /// The held jobs of an array, ascending.
  [[nodiscard]] std::vector<JobId> held_of(ArrayId array) const;

  [[nodiscard]] const NodeRecord& node(NodeId id) const { return nodes_[id.value()]; }
  /// The nodes kept back as spares, ready or not, ascending.
  [[nodiscard]] const std::set<NodeId>& spares() const { return spares_; }
  /// Jobs with devices on a node, ascending. O(devices of the node), more where devices are shared.
  [[nodiscard]] std::vector<JobId> jobs_on(NodeId id) const;
  [[nodiscard]] std::span<const Ghost> ghosts() const { return ghosts_; }
  /// Whether such an event would free anything. O(ghosts + nodes of the job).
  [[nodiscard]] bool has_ranks(const DevicesFreed& of) const;
  /// When nodes are closed to jobs.
  [[nodiscard]] const ClosedTimes& closed() const { return closed_; }

  [[nodiscard]] const ServiceTable& services() const { return services_; }
  /// What resource managers have lent.
  [[nodiscard]] const HoldBills& bills() const { return bills_; }

  /// Claims in the order in which they were made. Few: those of live jobs and of the last day.
  [[nodiscard]] std::span<const Claim> claims() const { return claims_; }

  [[nodiscard]] const Fleet& fleet() const { return fleet_; }
  [[nodiscard]] const TenantTree& tenants() const { return *tenants_; }
  [[nodiscard]] const PlanTable& plans() const { return plans_; }
  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] DeviceUse idle_cause(FleetTypeId type) const { return idle_[type.value()]; }
  [[nodiscard]] bool compiled(std::uint32_t program, FleetTypeId type) const {
    return compiled_.contains({program, type});
  }
  [[nodiscard]] std::optional<JobId> answered(const std::string& request_id) const;
  [[nodiscard]] std::span<const Reservation> slots() const { return slots_; }
  [[nodiscard]] const Changes& changes() const { return changes_; }
  /// How many passes of either kind ran up to now.
  [[nodiscard]] std::uint64_t passes() const { return passes_.count; }
  /// How many jobs have ended, archived or not.
  [[nodiscard]] std::size_t ended_jobs() const { return ended_; }

  /// What a pass at `now` needs. Valid until the next event.
  [[nodiscard]] Situation situation(Instant now) const;
  /// A copy of situation() for a pass beside the core: later events do not change it.
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold(Instant now);

  /// What a job has used up to `now`.
  [[nodiscard]] JobUsage usage_of(JobId id, Instant now) const;
  [[nodiscard]] double device_seconds(JobId id, FleetTypeId type, Instant now) const override;
  [[nodiscard]] JobPast past(JobId id) const override;
  [[nodiscard]] const SharePeriod& share_period() const override { return share_period_; }
  /// Returns the progress to assume when an attempt stops: that of the event or, if it reports
  /// nothing and the job writes no checkpoints but restarts, all of the attempt's work as lost.
  [[nodiscard]] Progress progress_at_stop(const Job& job, const JobStopping& event) const;
  /// Returns what `told` says or, if it reports nothing, with the loss assumed at the stop.
  [[nodiscard]] static Progress progress_when_gone(const Job& job, const Progress& told);
  /// Moves time that counted as useful in `ledger`, which is exact up to `now`, to the causes in
  /// `progress`, and returns what the job's usage gains. Precondition: the job holds devices.
  [[nodiscard]] JobUsage settle_in(Ledger& ledger, JobId id, const Progress& progress,
                                   Instant now) const;
  /// Usage of all jobs, and of each tenant's own, as far as metered.
  [[nodiscard]] const JobUsage& total() const { return total_; }
  [[nodiscard]] std::span<const JobUsage> by_tenant() const { return by_tenant_; }

 private:
  friend class StateCheck;
  friend class StateCodec;
  friend class StateRanges;

  void on(const JobSubmitted& event);
  void on(const JobReleased& event);
  void on(const JobStarted& event);
  void on(const JobRunning& event);
  void on(const JobResized& event);
  void on(const ClockSet& event);
  void on(const JobStopping& event);
  void on(const DevicesFreed& event);
  void on(const JobRequeued& event);
  void on(const JobEnded& event);
  void on(const NodeChanged& event);
  void on(const NodeBooted& event);
  void on(const SpareSet& event);
  void on(const LinkChanged& event);
  void on(const PowerLimitSet& event);
  void on(const TenantsSet& event);
  void on(const PolicySet& event);
  void on(const FleetSet& event);
  void on(const SlotsReserved& event);
  void on(const PlanFound& event);
  void on(const DecisionDropped& event);
  void on(const NodeLent& event);
  void on(const ForeignSet& event);
  void on(const ReplicaChanged& event);
  void on(const MaintenanceSet& event);
  void on(const LemonFound& event);
  void on(const IdleCauseSet& event);
  void on(const PassDone& event);
  void on(const CancelAsked& event);
  void on(const JobsArchived& event);
  void on(const WorkSettled& event);
  void on(const NodeAccused& event);
  void on(const JobHoldSet& event);
  void on(const JobChanged& event);
  void on(const JobResolved& event);
  void replace_submission(Job& job, std::shared_ptr<const Submission> changed);

  Job& at(JobId id) { return jobs_[id]; }
  RunningJob& running_at(JobId id) { return running_.edit(at(id).at); }
  void set_phase(Job& job, JobPhase phase);
  /// Returns the place of a queued job among those that wait.
  [[nodiscard]] std::vector<WaitingJob>::iterator queued_at(const Job& job);
  void leave_running(Job& job);
  /// Meters a job up to now: adds what it held since it was last metered, at the rates it had.
  void meter(Job& job);
  /// Adds the egress cost of the job's data, once for each site.
  void bring_data(Job& job, const RunningJob& run);
  /// Adds what a job that holds devices used since it was metered.
  void add_since_metered(const Job& job, Instant now, JobUsage& used) const;
  void count_usage(const RunningJob& run, std::int64_t sign);
  void enter_usage(const RunningJob& run, std::int64_t sign);
  /// Advances the decayed usage of tenants to now. Called before holdings change or a job enters
  /// the queue.
  void advance_usage();
  void drop_slots(JobId job);
  void add_power(const RunningJob& run);
  void remove_power(const RunningJob& run);

  void hold_devices(const RunningJob& run, const PlacedGang& gang, DeviceUse use);
  void release(const Ghost& part, DeviceUse from);
  void set_owner(const NodeDevices& at, JobId job);
  void move_use(NodeId node, std::uint64_t devices, std::pair<DeviceUse, DeviceUse> uses);
  void move_use(RunningJob& run, DeviceUse to);
  void hold_part(JobId job, const Ghost& part, DeviceUse use);
  void exchange_devices(Job& job, std::span<const PlacedGang> old, RunningJob& run);
  void free_ghost(const Ghost& ghost);
  void note_loan_use(NodeId node);
  [[nodiscard]] DeviceUse free_use(NodeId node) const;
  void edit_node(NodeId id, const NodeRecord& record);
  void settle_claims(const NodeChanged& event);
  void note_end(Job& job);
  [[nodiscard]] Instant expected_end(const RunningJob& run) const;

  const ControlSetup* setup_;
  Instant now_;
  std::uint64_t version_ = 0;
  Policy policy_;
  /// Texts of PolicySet and TenantsSet; empty: those of the setup hold.
  struct SetTexts {
    std::string policy;
    std::string tenants;
  };
  SetTexts texts_;
  std::shared_ptr<const TenantTree> own_tenants_;  ///< once TenantsSet was applied
  const TenantTree* tenants_;
  JobTable jobs_;
  std::vector<WaitingJob> waiting_;  ///< in the order of submission, then id
  RunningList running_;
  std::set<JobId> held_;
  std::map<JobId, std::vector<JobId>> after_;
  struct Array {
    std::uint32_t active = 0;
    std::set<JobId> held;
  };
  std::map<ArrayId, Array> arrays_;
  /// The requests of clients that are remembered.
  struct Requests {
    std::map<std::string, std::pair<JobId, Instant>> jobs;
    std::deque<std::pair<Instant, std::string>> ages;
  };
  Requests requests_;

  Fleet fleet_;
  std::vector<NodeRecord> nodes_;
  struct FleetChanges {
    std::uint32_t numbers = 0;  ///< numbers of nodes that were given out
    Instant last;               ///< when the fleet last changed; else the begin of the log
  };
  FleetChanges fleet_changes_;
  std::set<NodeId> spares_;
  std::vector<JobId> owner_;  ///< by device: the job or ghost that holds all of it
  std::vector<Ghost> ghosts_;
  std::vector<Claim> claims_;
  ClosedTimes closed_;

  std::unique_ptr<TenantUsage> usage_;
  Instant usage_until_;  ///< instant up to which usage_ is advanced
  std::optional<PowerCaps> caps_;
  std::optional<PowerBudget> power_;
  PlanTable plans_;
  std::set<std::pair<std::uint32_t, FleetTypeId>> compiled_;
  std::vector<float> risk_;  ///< by node; empty while no node is a lemon
  std::vector<Reservation> slots_;
  Changes changes_;
  struct PassTimes {
    std::array<std::optional<Instant>, 2> last;
    std::uint64_t count = 0;
  };
  PassTimes passes_;
  SharePeriod share_period_;  ///< only where keeps_share_period(); else empty
  std::size_t ended_ = 0;

  Ledger ledger_;
  std::vector<DeviceUse> idle_;  ///< by type
  JobUsage total_;
  std::vector<JobUsage> by_tenant_;
  HoldBills bills_;
  ServiceTable services_;
};

}  // namespace orrery
