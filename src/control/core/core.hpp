// control/core/core.hpp - the one deterministic machine that runs jobs: inputs in, events and
// actions out.
//
// Used by the daemon with a real clock and a durable log, by the twin with a virtual clock and log.
// handle() decides, applies the decisions at once, and returns them; the host makes the events
// durable, then carries out the actions and sends the answer. Two cores with the same setup and
// inputs produce the same events. Whatever is not in State (requested plans, timers) follows from
// it and from the inputs.
// One thread. Cost: that of the events, and of a pass on a Tick when something changed.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <string_view>
#include <vector>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

struct SpareTaken;

struct Outcome {
  std::vector<Event> events;
  std::vector<Action> actions;
  Answer answer;
};

class Core {
 public:
  explicit Core(const ControlSetup& setup);

  /// Returns what follows from an input; valid until the next one. Precondition: `input.at` is not
  /// before that of the previous input.
  const Outcome& handle(const Input& input);

  /// Loads a snapshot (control/state/snapshot.hpp) into a new core. After an error the core is
  /// unusable. Events of the log after the snapshot may follow; then call resume().
  [[nodiscard]] Status restore(std::string_view snapshot);
  /// Applies an event of a log, in a core that has handled no input yet. After the last event call
  /// resume().
  void replay(Instant at, const Event& event) { state_.apply(at, event); }
  void resume();

  [[nodiscard]] const State& state() const { return state_; }
  /// Returns the state as a full pass beside the core needs it.
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold(Instant now);

  /// When the core needs a Tick even if nothing else happens; none: never.
  [[nodiscard]] Instant wake() const;

  struct PassCounts {
    std::uint64_t incremental = 0;
    std::uint64_t full = 0;
    std::uint64_t candidates = 0;
    std::uint64_t placements = 0;
  };
  [[nodiscard]] const PassCounts& passes() const { return passes_; }
  /// Whether a job waits by choice until a certain time, according to the core's own last pass.
  [[nodiscard]] bool waits_by_choice() const { return wake_asked_ != Instant::max(); }
  /// Why each waiting job still waits, according to the last pass.
  [[nodiscard]] std::span<const StillWaits> still_waiting() const { return last_.waiting; }
  /// The decisions of the last pass, with the prices and gains that events do not keep.
  [[nodiscard]] std::span<const Decision> decisions() const { return last_.decisions; }

 private:
  void on(const SubmitJob& command);
  void on(const CancelJob& command);
  void on(const HoldJob& command);
  void on(const RequeueJob& command);
  void on(const ChangeJob& command);
  void on(const DrainNode& command);
  void on(const ResumeNode& command);
  void on(const FenceNode& command);
  void on(const SetSpare& command);
  void on(const SetPowerCap& command);
  void on(const SetTenants& command);
  void on(const SetPolicy& command);
  void on(const SetFleet& command);
  void on(const ResolveJob& command);
  void on(const SetMaintenance& command);
  void on(const ArchiveJobs& command);
  void on(const RanksUp& seen);
  void on(const RanksEnded& seen);
  void on(const RanksGone& seen);
  void on(const WorkReported& seen);
  void on(const NodeJoined& seen);
  void on(const NodeHeard& seen);
  void on(const NodeFault& seen);
  void on(const NodeRepaired& seen);
  void on(const LinkObserved& seen);
  void on(const SupplyObserved& seen);
  void on(const Tick& tick);
  void on(const Proposal& proposal);
  void on(const PlanReady& ready);

  void emit(Event event);
  /// Emits an event that leaves the cached pass result valid.
  void emit_unfelt(Event event);
  void act(const Action& action) { outcome_.actions.push_back(action); }
  void refuse(std::string why);
  void take_up_fleet();

  // Jobs (core_jobs.cpp).
  void release_if_due(JobId id);
  void release_of(ArrayId array);
  void stop(JobId id, StopReason reason, const Blame& blame, JobId in_favour_of = JobId());
  [[nodiscard]] bool has_node(NodeId node) const {
    return node.value() < state_.setup().topology->node_count();
  }
  [[nodiscard]] std::string contradiction(JobId id, std::uint32_t attempt) const;
  [[nodiscard]] Progress believed(const Job& job, const Progress& told);
  bool free_devices(DevicesFreed freed);
  void finish_if_gone(JobId id);
  void finish_stop(JobId id);
  void end(JobId id, JobPhase phase, const Progress& progress, Blame blame = {});
  void requeue(JobId id, const Progress& progress, Instant not_before);
  void start(const StartJob& start, std::optional<RestartKind> in_place = std::nullopt);
  void ask_plans(const StartJob& start);

  // Nodes (core_nodes.cpp).
  enum class DrainedBy { kOperator, kWindow };
  void drain(const DrainNode& command, DrainedBy by);
  void drain_further(const DrainNode& command);
  void evict(NodeId node);
  void let_go(NodeId node);
  void keep_maintenance();
  void close_window(std::uint32_t window, const Maintenance& plan);
  void leave_windows(NodeId node);
  void end_drain(NodeId node);
  void come_back(NodeId node);
  void lose(NodeId node, const Blame& blame);
  void lose_part(JobId id, NodeId node, const Blame& blame);
  [[nodiscard]] bool can_resize_running(JobId id) const;
  [[nodiscard]] std::vector<NodeId> ready_spares() const;
  void take_spares(std::span<const SpareTaken> spares);
  void return_spares(std::span<const SpareTaken> spares);
  [[nodiscard]] bool replace_part(JobId id, NodeId node);
  [[nodiscard]] bool shrink_away(JobId id, NodeId node);
  /// How a job restarts in place: after a wait, what the nodes held in memory is gone.
  enum class Restart { kAtOnce, kAfterWait };
  [[nodiscard]] bool restart_at_its_place(JobId id, Restart restart);
  void restart_waiting();
  void recall_places();
  void recall_place(const Job& job);
  void ranks_gone_on(NodeId node);
  void settle_nodes();
  void detect_lemon_node(NodeId node);

  // Claims of jobs against nodes (core_claims.cpp).
  void hear_claim(const NodeFault& seen);
  [[nodiscard]] ClaimVerdict judge(const NodeAccused& claim);
  void clear_suspicions(JobId id);
  [[nodiscard]] RanksEnded judged(const RanksEnded& seen);

  // Passes (core_passes.cpp).
  [[nodiscard]] bool changed() const;
  [[nodiscard]] bool every_pass_full() const;
  /// Returns when a full pass is due; max: none is due as things are.
  [[nodiscard]] Instant next_full() const;
  [[nodiscard]] Instant next_pass() const;
  void run_pass();
  /// Carries out the decisions of a pass over the state as it was at `looked_at`.
  void carry_out(PassResult& result, Instant looked_at);
  [[nodiscard]] bool beyond_quota(const JobRequest& request, std::span<const PlacedGang> gangs,
                                  std::span<const PlacedGang> instead_of) const;
  [[nodiscard]] bool loses_guaranteed(JobId id, JobId in_favour_of,
                                      std::span<const PlacedGang> left) const;
  void preempt(const PreemptJob& preempt);
  [[nodiscard]] bool may_set(const SetClock& clock, Instant looked_at) const;
  /// Returns why a decision no longer fits a view of the present fleet; "": it fits.
  [[nodiscard]] std::string why_stale(const StartJob& start, const FleetView& view) const;
  [[nodiscard]] std::string why_stale(const ResizeJob& resize, const FleetView& view) const;
  void go_on_as(const ResizeJob& resize);
  void resize(const ResizeJob& resize);
  void note_idle(const PassResult& result);
  void fire_timers();

  struct Timer {
    Instant at;
    JobId job;  ///< none: a maintenance window, or only a tick
    friend auto operator<=>(const Timer&, const Timer&) = default;
  };
  /// The state's counters at the last pass.
  struct Seen {
    Changes changes;
    std::uint64_t queued = 0;
  };

  State state_;
  std::optional<Scheduler> scheduler_;
  Outcome outcome_;
  Instant now_;
  std::string request_id_;
  std::set<Timer> timers_;
  std::set<PlanKey> plans_asked_;
  std::set<NodeId> emptying_;  ///< draining or quarantined nodes that still have jobs
  /// The last place of each job that stops or waits after an infrastructure fault; the job restarts
  /// there if it can.
  std::map<JobId, std::vector<PlacedGang>> places_;
  PassResult last_;  ///< result of the last pass
  Seen seen_;
  Changes seen_full_;                    ///< counters at the last full pass
  std::uint64_t queued_ = 0;             ///< jobs that entered the queue
  Instant held_until_;                   ///< PassResult::holds_until of the core's own last pass
  Instant wake_asked_ = Instant::max();  ///< PassResult::wake of the core's own last pass
  std::uint64_t held_version_ = 0;       ///< version of the state for which held_until_ is valid
  std::optional<Instant> last_pass_;
  std::optional<Instant> last_full_;
  /// Version of the state since which the fleet and the options of its jobs are as they are.
  std::uint64_t options_since_ = 0;
  bool first_pass_ = true;
  bool full_asked_ = false;
  PassCounts passes_;
};

/// Returns how a job ended that another one waits for in vain; the text goes after "which has ".
[[nodiscard]] std::string_view unmet_text(JobPhase phase);

/// Makes a full pass beside the core, on the present state: the host's reply to RunFullPass.
[[nodiscard]] Proposal full_pass(const State& state, Scheduler& scheduler, Instant now);
/// Makes a full pass on a held state; in any thread, with a scheduler that no other thread uses.
[[nodiscard]] Proposal full_pass(const HeldSituation& held, Scheduler& scheduler);

}  // namespace orrery
