// twin/world/world.hpp - what really happens to jobs and nodes: the executor of the twin.
//
// Carries out control's actions and reports what control may see, with the delays of a real
// cluster. It knows what control does not: how long a job truly runs and when its program fails. A
// job advances by reference seconds at a rate that follows from its plan, devices, clock and links.
// One thread. Cost: O(log events) an event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "agent/executor.hpp"
#include "agent/heartbeat_watch.hpp"
#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/faults/failure_model.hpp"
#include "twin/plan_book.hpp"
#include "twin/replay_rules.hpp"
#include "twin/traffic/contention.hpp"
#include "twin/world/event_queue.hpp"

namespace orrery {

/// What a job truly is.
struct TrueJob {
  Duration work;                ///< run time where an option's speed is 1
  bool fails = false;           ///< its program ends with an error when its work is done
  std::uint64_t steps = 0;      ///< of a round-based replay
  double steps_per_second = 0;  ///< of a round-based replay
  bool peer_copy = false;       ///< its nodes keep copies of its state for each other
};

/// Times of the world that no job or node decides.
struct WorldTiming {
  Duration launch = Duration::seconds(5);  ///< of ranks, on any node
  Duration plan_search = Duration::seconds(1);
  Duration scheduler_latency = Duration::seconds(1);  ///< of a full pass
  /// Time from the loss of a node until an operator has cut it off and vouches for it (assumed: an
  /// alert is answered in 5 minutes, investigated and acted on in 10).
  Duration fencing = Duration::minutes(15);
  /// Time of a restart on nodes that are ready (the job's own and spares), without reading its
  /// state, where that is less than the job's own restart time. None: ready nodes make no
  /// difference.
  std::optional<Duration> warm_restart = std::nullopt;
  HeartbeatRule heartbeat;
};

/// Returns what a fault shows: its word and its evidence.
[[nodiscard]] std::string evidence_of(const Fault& fault);
/// Whether the ranks of a job need a network to work together.
[[nodiscard]] bool spans_nodes(const RunningJob& placed);

class World final : public Executor {
 public:
  struct Facts {
    ReplayRules rules;
    WorldTiming timing;
    PlanSource plans;
    std::optional<FailureModel> failures = std::nullopt;  ///< none: nothing breaks by chance
    /// Faults that happen in any case, by time.
    std::vector<Fault> scripted = {};
    /// With a calibration, jobs contend for links and storage; nullptr: no contention.
    const Calibration* calibration = nullptr;
    /// The time of delivery of each node (twin/world/arrivals.hpp); empty: all nodes are there.
    std::vector<Instant> arrivals = {};
  };

  /// A fault, and what it did to jobs.
  struct Felt {
    Fault fault;
    std::uint32_t jobs = 0;  ///< jobs that it stopped or slowed
  };

  /// Attempts that began where another had ended.
  struct Recoveries {
    std::uint64_t from_storage = 0;
    std::uint64_t from_peers = 0;
    std::uint64_t on_ready_nodes = 0;  ///< on own nodes and spares
  };

  World(const Topology& topology, Facts facts);

  /// Must be called before the job's submission is handled. Precondition: ids come in order.
  void add(const TrueJob& job);

  /// Takes over a job that has not ended from the history of a snapshot; the work done is what
  /// control has recorded. If the job holds devices, its ranks are as control knows them and have
  /// `left` to run at their present rate. This world knows no faults from before. Precondition: the
  /// job was added.
  void adopt(JobId id, Duration left, const State& state, Instant now);

  void carry_out(const Action& action, const State& state, Instant now) override;
  /// The world has no agents. Precondition: never called.
  void deliver(const Report& report, Instant now) override;
  /// Lets the next event happen. Precondition: `now` is next_due().
  void advance(const State& state, Instant now) override;
  [[nodiscard]] Instant next_due() const override {
    return queue_.empty() ? Instant::max() : queue_.next();
  }
  [[nodiscard]] std::vector<ExecutorEffect> take() override;

  /// Sends control an input that arrives later: a Proposal after WorldTiming::scheduler_latency, a
  /// PlanReady, whose entry is found here, after WorldTiming::plan_search, any other at once.
  void send_input(InputKind what, Instant now);

  /// In a round-based world, begins a round of all running jobs if none is under way.
  void begin_round(const State& state, Instant now);
  [[nodiscard]] bool in_round() const { return in_round_; }

  /// Whether only faults can still happen without an action.
  [[nodiscard]] bool quiet() const { return repair_.empty() && queue_.size() <= 1; }

  [[nodiscard]] std::span<const Felt> felt() const { return felt_; }
  /// Jobs that finished with wrong results that were never detected.
  [[nodiscard]] std::uint64_t corrupt() const { return corrupt_; }
  [[nodiscard]] const Recoveries& recoveries() const { return recoveries_; }

  /// The progress that the job would report if its attempt ended now. Precondition: the job holds
  /// devices.
  [[nodiscard]] Progress progress_of(const Job& job, Instant now) const;

 private:
  enum class Kind : std::uint8_t {
    kUp,
    kShed,  ///< ranks of an earlier epoch are gone
    kEnd,
    kGone,
    kInput,  ///< an input that was made before arrives
    kRoundEnd,
    kCopy,      ///< a copy of its state is due
    kMoved,     ///< bytes have arrived
    kLinks,     ///< the changed links take effect
    kFault,     ///< something breaks
    kKnown,     ///< a fault is detected
    kCut,       ///< a node is found to reach no other node
    kParted,    ///< jobs that need the network of such a node end
    kReached,   ///< such a node reaches others again
    kOver,      ///< a fault is over
    kRepaired,  ///< a node is back
    kSuspect,   ///< heartbeats of a silent node are missing
    kLost,      ///< enough heartbeats are missing that the node counts as lost
    kLeased,    ///< the leases of what ran there have expired
    kFenced,    ///< an operator vouches that the node is cut off
    kBack,      ///< the node has rebooted
  };
  struct Event {
    Kind kind = Kind::kUp;
    JobId job;
    std::uint32_t serial = 0;  ///< void once the run of the job has another
    std::uint32_t attempt = 0;
    std::uint32_t index = 0;  ///< of a plan, a proposal, a report or a fault
    NodeId node;
    LinkId link;
  };
  /// What a fault affects while it lasts.
  using Part = std::variant<NodeId, LinkId, PowerDomainId>;
  /// A node that sends no heartbeats.
  struct Silence {
    Instant since;
    Instant back;  ///< Instant::max(): never, as parts are missing
    std::uint32_t serial = 0;
  };
  /// A node of an attempt, with its boot number at that time.
  struct Seat {
    NodeId node;
    std::uint64_t boot = 0;
  };
  /// An attempt under way.
  struct Run {
    TrueJob job;
    std::uint32_t serial = 0;
    std::uint32_t attempt = 0;
    std::uint32_t epoch = 0;
    bool up = false;
    bool halted = false;  ///< a fault stopped it and has not been detected yet
    Duration left;        ///< of its work, at `since`
    Duration safe_left;   ///< of its work, as of the newest good copy
    Instant since;
    double rate = 1;                      ///< work a second, checkpoints included
    double slowdown = 1;                  ///< by the slowest of its nodes
    std::uint32_t devices = 0;            ///< of the epoch
    Duration interval = Duration::max();  ///< between checkpoints
    Duration cost;                        ///< of one
    Instant saved;                        ///< when the newest good copy was complete
    Instant halted_at;
    Duration saving;                       ///< spent on checkpoints since the last report
    std::optional<Duration> corrupt_left;  ///< of its work, in the newest copy that is not wrong
    Instant corrupt_known;                 ///< when the corruption is detected
    std::uint64_t steps_left = 0;
    std::optional<Duration> loading;    ///< set while waiting for bytes: time from their arrival
    std::uint32_t awaited = 0;          ///< transfers that the start waits for
    bool writes = false;                ///< its copies go through shared storage
    std::uint32_t copies = 0;           ///< a kCopy event with another number is void
    std::optional<Duration> copy_left;  ///< of its work, in the copy being written
    Instant copy_at;                    ///< when that was begun
    std::optional<Progress> told;  ///< progress at a stop, reported when its last ranks are gone
    /// The nodes of each gang in the last attempt that was up, kept while the next one starts.
    std::vector<std::vector<Seat>> seats;
    SiteSet data_at = 0;                        ///< sites to which its data have been brought
    bool memory_wrong = false;                  ///< its newest copy holds wrong results
    StateSource source = StateSource::kUnsaid;  ///< of the attempt
  };

  /// Returns the input to control that the next event leads to; none: it leads to none.
  /// Precondition: the queue is not empty.
  [[nodiscard]] std::optional<Input> step(const State& state);
  [[nodiscard]] std::optional<Input> step_run(const Event& event, const State& state, Instant now);
  void start(const StartRanks& action, const State& state, Instant now);
  void stop(const StopRanks& action, const State& state, Instant now);
  /// Seconds of the job's work that pass in a second on its present placement.
  [[nodiscard]] double rate_of(const State& state, const RunningJob& run);
  void set_rate(Run& run, const State& state, JobId job);
  void schedule_end(Run& run, JobId job, Instant now);
  /// Work done between `since` and `now`.
  [[nodiscard]] Duration worked(const Run& run, Instant now) const;
  /// Updates the work left and the work saved to `now`.
  void settle(Run& run, Instant now) const;
  [[nodiscard]] static Progress take_progress(Run& run, Instant now);
  /// Before a new epoch, reports time lost to a halt or to wrong results, in time of the new
  /// devices.
  void report_work(Run& run, const RunningJob& placed, Instant now);
  [[nodiscard]] std::optional<Input> come_up(const Event& event, const State& state, Instant now);
  [[nodiscard]] std::optional<Input> end(const Event& event, const State& state, Instant now);
  /// The part of its work that its newest good copy covers.
  [[nodiscard]] static double done_of(const Run& run);

  // Restarts (world_recovery.cpp).
  /// Records the nodes of a job that is up; from then on they hold its peer copies.
  void note_seats(Run& run, const RunningJob& placed, const State& state);
  /// Whether the surviving nodes still hold every part of the state of each gang, given where the
  /// job starts now.
  [[nodiscard]] static bool memory_survives(const Run& run, JobId job, const State& state);
  /// Whether a node that the job keeps has rebooted since the last attempt.
  [[nodiscard]] static bool rebooted(const Run& run, JobId job, const State& state);
  /// Begins to read the job's state, if it has any. Returns the rest of the restart time.
  [[nodiscard]] Duration begin_recovery(Run& run, const StartRanks& action, const State& state);

  // Contention (world_contention.cpp).
  /// nullptr: jobs do not contend. Created when the first job that may be affected is seen.
  Contention* contention(const RunningJob& job, const State& state);
  /// Begins to bring the job's data to the site of its nodes. Returns the time of the transfers
  /// that share nothing with other jobs.
  [[nodiscard]] Duration stage_data(Run& run, const RunningJob& placed, const State& state);
  /// Called when the ranks are up: the job begins to send and to write copies.
  void join(Run& run, JobId job, const State& state);
  /// Ends the job's traffic and copies, however its ranks ended.
  void leave(JobId job, Instant now);
  /// Updates the rates of jobs that contention slows, and plans when the next bytes arrive.
  void share(const State& state, Instant now);
  void begin_copy(Run& run, JobId job, const State& state, Instant now);
  void bytes_arrived(const State& state, Instant now);
  /// Begins a last copy before a stop. Returns whether one is being written.
  [[nodiscard]] bool last_copy(Run& run, JobId job, const State& state, Instant now);

  // Faults (world_faults.cpp).
  void await_fault();
  /// Returns the next fault by time, scripted or drawn.
  [[nodiscard]] std::optional<Fault> take_fault();
  [[nodiscard]] bool is_there(NodeId node, Instant at) const {
    return facts_.arrivals.empty() || facts_.arrivals[node.value()] <= at;
  }
  void strike(std::uint32_t index, const State& state, Instant now);
  void strike_node(NodeId node, std::uint32_t index, const State& state);
  void halt(JobId job, Instant now);
  static void corrupt(Run& run, const Fault& fault);
  [[nodiscard]] std::optional<Input> known(const Event& event, const State& state, Instant now);
  [[nodiscard]] std::optional<Input> over(const Event& event, const State& state, Instant now);
  [[nodiscard]] std::optional<Input> repaired(const Event& event, Instant now);
  /// Faults that affect a part, as indexes of felt_.
  [[nodiscard]] std::span<const std::uint32_t> faults_on(const Part& part) const;
  /// Removes the fault from the part. Returns whether it was there.
  bool lift(const Part& part, std::uint32_t index);
  /// Removes the faults of a node whose `time` (known or over) is not after `now`.
  void lift_past(NodeId node, Instant (Fault::*time)() const, Instant now);
  /// Whether the work since the corruption is known to be useless.
  [[nodiscard]] static bool known_wrong(const Run& run, Instant now) {
    return run.corrupt_left && run.corrupt_known <= now;
  }
  /// Applies the faults of its nodes to a run that comes up there.
  void take_on(Run& run, const RunningJob& placed) const;
  /// Time of the job's work over the usual time, by the slowest of its nodes.
  [[nodiscard]] double slowness(const RunningJob& placed) const;
  /// Until when a dead or cut-off node keeps its ranks from working together; `now`: none does.
  [[nodiscard]] Instant stands_until(const RunningJob& placed, Instant now) const;
  /// Ends the attempt where no node can continue it or report its progress; unsaved work is lost.
  [[nodiscard]] Input ends_here(JobId job, Blame blame, Instant now);

  // Links, switches and supplies (world_links.cpp).
  [[nodiscard]] std::vector<LinkId> links_struck(const FaultScope& scope) const;
  void strike_links(std::span<const LinkId> links, std::uint32_t index, const State& state);
  /// The node of a port; none: the link is one between switches.
  [[nodiscard]] NodeId node_at(LinkId link) const;
  /// When the first port of a node whose ports are all dead works again. None: a port works, or the
  /// node has none.
  [[nodiscard]] std::optional<Instant> cut_off_until(NodeId node) const;
  /// Reports the known remaining capacity of a link.
  [[nodiscard]] Input link_observed(LinkId link, Instant now);
  void feel_links(const State& state, Instant now);
  [[nodiscard]] Input supply_observed(PowerDomainId domain, Instant now) const;
  [[nodiscard]] Input link_over(const Event& event, Instant now);
  [[nodiscard]] std::optional<Input> cut(const Event& event, Instant now);
  [[nodiscard]] std::optional<Input> parted(const Event& event, const State& state, Instant now);

  // Nodes that fall silent (world_silence.cpp).
  void fall_silent(NodeId node, const Fault& fault);
  /// Returns how many nodes with ranks of the job are silent; `heard`, if given, receives the
  /// others.
  std::uint32_t silent_of(const RunningJob& run, std::vector<NodeId>* heard = nullptr) const;
  /// Reports that ranks which were to end are gone; none: no node is left to report it.
  [[nodiscard]] std::optional<Input> reported_gone(const Event& event, const State& state,
                                                   Instant now);
  [[nodiscard]] std::optional<Input> step_silence(const Event& event, const State& state,
                                                  Instant now);
  [[nodiscard]] std::optional<Input> lost(const Event& event, const State& state, Instant now);
  /// Reports, one at a time, that attempts which may have ranks on a silent node are gone there.
  [[nodiscard]] std::optional<Input> gone_from(const Event& event, const State& state, Instant now);

  const Topology* topology_;
  Facts facts_;
  PlanBook book_;
  EventQueue<Event> queue_;
  std::vector<ExecutorEffect> effects_;
  std::vector<Felt> felt_;
  std::optional<Fault> drawn_;  ///< drawn at random, not due yet
  std::size_t scripted_ = 0;    ///< number of Facts::scripted already taken
  std::map<Part, std::vector<std::uint32_t>> faults_on_;  ///< indexes of felt_; none is empty
  std::map<NodeId, Duration> repair_;  ///< of nodes that wait for it, or are in it
  std::map<NodeId, Silence> silent_;
  std::uint32_t silences_ = 0;    ///< so far
  std::vector<Run> runs_;         ///< by job
  std::vector<InputKind> later_;  ///< inputs of kInput events
  std::uint64_t corrupt_ = 0;
  Recoveries recoveries_;
  bool in_round_ = false;
  std::optional<Contention> contention_;
  std::vector<LinkId> links_told_;      ///< changed links whose effect on jobs is not applied yet
  Instant next_move_ = Instant::max();  ///< when the next bytes arrive, as last planned
  std::uint32_t moves_planned_ = 0;     ///< kMoved events so far; only the last is valid
};

}  // namespace orrery
