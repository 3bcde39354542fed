// twin/world.hpp - what really happens to jobs and nodes: the executor of the twin.
//
// Carries out control's actions and reports what control may see, with the delays of the real
// thing; knows what control does not: how long a job truly runs, when its program fails. A job
// advances by reference seconds at a rate that follows from its plan, devices, clock and links.
// One thread. Cost: O(log events) an event.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "agent/heartbeat_watch.hpp"
#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state.hpp"
#include "twin/contention.hpp"
#include "twin/event_queue.hpp"
#include "twin/failure_model.hpp"
#include "twin/plan_book.hpp"
#include "twin/replay_rules.hpp"

namespace orrery {

/// What a job truly is.
struct TrueJob {
  Duration work;                ///< run time where an option's speed is 1
  bool fails = false;           ///< its program ends with an error when its work is done
  std::uint64_t steps = 0;      ///< of a round-based replay
  double steps_per_second = 0;  ///< likewise
  bool peer_copy = false;       ///< its nodes keep copies of its state for each other
};

/// Times of the world that no job or node decides.
struct WorldTiming {
  Duration launch = Duration::seconds(5);  ///< of ranks, wherever they start
  Duration plan_search = Duration::seconds(1);
  Duration scheduler_latency = Duration::seconds(1);  ///< of a full pass
  /// From when a node is lost until an operator has cut it off and vouches for it (assumed: an
  /// alert is answered in 5 minutes, seen through and acted on in 10).
  Duration fencing = Duration::minutes(15);
  /// Of a restart on nodes that are ready (the job's own and spares), its state not counted, where
  /// that is less than the job's own time; none: nodes make no difference.
  std::optional<Duration> warm_restart = std::nullopt;
  HeartbeatRule heartbeat;
};

class World {
 public:
  struct Facts {
    ReplayRules rules;
    WorldTiming timing;
    PlanSource plans;
    std::optional<FailureModel> failures = std::nullopt;  ///< none: nothing breaks by chance
    /// Faults that come anyhow, by time.
    std::vector<Fault> scripted = {};
    /// With it jobs take links and storage from each other; none: nobody hinders anybody.
    const Calibration* calibration = nullptr;
    /// By node, when it is delivered (twin/arrivals.hpp); empty: all are there.
    std::vector<Instant> arrivals = {};
  };

  /// A fault, and what it did to jobs.
  struct Felt {
    Fault fault;
    std::uint32_t jobs = 0;  ///< stopped or slowed
  };

  /// Attempts that began where another had ended.
  struct Recoveries {
    std::uint64_t from_storage = 0;
    std::uint64_t from_peers = 0;
    std::uint64_t on_ready_nodes = 0;  ///< its own and spares, wherever its state came from
  };

  World(const Topology& topology, Facts facts);

  /// Before the job's submission is handled. Precondition: ids come in order.
  void add(const TrueJob& job);

  /// Of a job that has not ended, where a history is gone on with: what is done of it is as control
  /// has it. Where it has devices, its ranks are as control knows them, and have `left` to run as
  /// they are. Faults of before are none of this world's. Precondition: it was added.
  void adopt(JobId id, Duration left, const State& state, Instant now);

  /// Precondition: `state` is that after the action's events, at `now`.
  void carry_out(const Action& action, const State& state, Instant now);

  [[nodiscard]] bool empty() const { return queue_.empty(); }
  [[nodiscard]] Instant next() const { return queue_.next(); }
  /// The next thing control sees; none: nothing came of it. Precondition: not empty.
  [[nodiscard]] std::optional<Input> step(const State& state);

  /// A result of a full pass, to arrive when the scheduler is done.
  void propose(Proposal proposal, Instant now);

  /// Round-based worlds: begins a round of all who run, if none is under way.
  void begin_round(const State& state, Instant now);
  [[nodiscard]] bool in_round() const { return in_round_; }

  /// Nothing but faults will happen by itself.
  [[nodiscard]] bool quiet() const { return repair_.empty() && queue_.size() <= 1; }

  [[nodiscard]] std::span<const Felt> felt() const { return felt_; }
  /// Jobs that ended well with results that are wrong, and nobody knows.
  [[nodiscard]] std::uint64_t corrupt() const { return corrupt_; }
  [[nodiscard]] const Recoveries& recoveries() const { return recoveries_; }

  /// What an end now would say of its attempt's time. Precondition: the job holds devices.
  [[nodiscard]] Progress progress_of(const Job& job, Instant now) const;

 private:
  enum class Kind : std::uint8_t {
    kUp,
    kShed,  ///< ranks of an earlier epoch are gone
    kEnd,
    kGone,
    kPlan,
    kProposal,
    kRoundEnd,
    kCopy,      ///< a copy of its state is due
    kMoved,     ///< bytes have arrived
    kLinks,     ///< links have been told of
    kFault,     ///< something breaks
    kKnown,     ///< and is noticed
    kCut,       ///< a node is noticed to reach no other
    kParted,    ///< and those who need it to end
    kReached,   ///< and it does again
    kOver,      ///< and is whole again
    kReport,    ///< of work before the present epoch
    kRepaired,  ///< a node is back
    kSuspect,   ///< heartbeats of a silent node are missing
    kLost,      ///< so many that it counts as lost
    kLeased,    ///< leases of what was there have run out
    kFenced,    ///< an operator vouches for it
    kBack,      ///< it has booted anew
  };
  struct Event {
    Kind kind = Kind::kUp;
    JobId job;
    std::uint32_t serial = 0;  ///< of the job's run; another by now: it does not hold any more
    std::uint32_t attempt = 0;
    std::uint32_t index = 0;  ///< of a plan, a proposal, a report or a fault
    NodeId node;
    LinkId link;
  };
  /// What a fault lies on, for as long as it does.
  using Part = std::variant<NodeId, LinkId, PowerDomainId>;
  /// A node of which nothing is heard.
  struct Silence {
    Instant since;
    Instant back;  ///< Instant::max(): never, for want of parts
    std::uint32_t serial = 0;
  };
  /// A node of an attempt, as it was booted then.
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
    bool halted = false;  ///< a fault stopped it, and nobody knows yet
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
    Duration saving;                       ///< spent on checkpoints, not reported yet
    std::optional<Duration> corrupt_left;  ///< of its work, in the newest copy that is not wrong
    Instant corrupt_known;                 ///< when somebody knows that it computes wrongly
    std::uint64_t steps_left = 0;
    std::optional<Duration> loading;  ///< its start waits for bytes, and takes that long after them
    std::uint32_t awaited = 0;        ///< transfers
    bool writes = false;              ///< its copies go through storage that others use, too
    std::uint32_t copies = 0;         ///< begun or given up; kCopy events of others do not hold
    std::optional<Duration> copy_left;  ///< of its work, in the copy being written
    Instant copy_at;                    ///< when that was begun
    std::optional<Progress> told;       ///< of a stop, which goes with the last of its ranks
    /// By gang, of the last attempt that was up, while others begin in its place.
    std::vector<std::vector<Seat>> seats;
    SiteSet data_at = 0;                        ///< sites to which its data have been brought
    bool memory_wrong = false;                  ///< its newest copy is one of what was wrong
    StateSource source = StateSource::kUnsaid;  ///< of the attempt
  };

  [[nodiscard]] std::optional<Input> step_run(const Event& event, const State& state, Instant now);
  void start(const StartRanks& action, const State& state, Instant now);
  void stop(const StopRanks& action, const State& state, Instant now);
  /// Seconds of the job's work that pass in a second where it is placed.
  [[nodiscard]] double rate_of(const State& state, const RunningJob& run);
  void set_rate(Run& run, const State& state, JobId job);
  void schedule_end(Run& run, JobId job, Instant now);
  /// Work done between `since` and `now`.
  [[nodiscard]] Duration worked(const Run& run, Instant now) const;
  /// Brings the work left, and what of it is saved, up to now.
  void settle(Run& run, Instant now) const;
  [[nodiscard]] static Progress take_progress(Run& run, Instant now);
  /// Before another epoch: what stood still or was wrong is told, in time of its new devices.
  void report_work(Run& run, const RunningJob& placed, Instant now);
  [[nodiscard]] std::optional<Input> come_up(const Event& event, const State& state, Instant now);
  [[nodiscard]] std::optional<Input> end(const Event& event, const State& state, Instant now);
  /// Part of its work that its newest good copy has.
  [[nodiscard]] static double done_of(const Run& run);

  // Starting again (world_recovery.cpp).
  /// It is up: so are the copies that its nodes keep for each other.
  void note_seats(Run& run, const RunningJob& placed, const State& state);
  /// Of each gang every part of its state is still on one node, given where it starts now.
  [[nodiscard]] static bool memory_survives(const Run& run, JobId job, const State& state);
  /// A node that it keeps is not as it left it.
  [[nodiscard]] static bool rebooted(const Run& run, JobId job, const State& state);
  /// Begins to read its state, if it has any; how long it takes beside that until it is up.
  [[nodiscard]] Duration begin_recovery(Run& run, const StartRanks& action, const State& state);

  // Contention (world_contention.cpp).
  /// nullptr: jobs do not hinder each other. Made when the first job that may is seen.
  Contention* contention(const RunningJob& job, const State& state);
  /// Begins to bring its data to where it starts; how long what shares nothing with other jobs
  /// takes.
  [[nodiscard]] Duration stage_data(Run& run, const RunningJob& placed, const State& state);
  /// Its ranks are up: it sends, and writes copies.
  void join(Run& run, JobId job, const State& state);
  /// They are not any more, in whatever way.
  void leave(JobId job, Instant now);
  /// Who is slower or faster by what changed, and when the next bytes arrive.
  void share(const State& state, Instant now);
  void begin_copy(Run& run, JobId job, const State& state, Instant now);
  void bytes_arrived(const State& state, Instant now);
  /// A last copy before a stop; whether one is being written.
  [[nodiscard]] bool last_copy(Run& run, JobId job, const State& state, Instant now);

  // Faults (world_faults.cpp).
  void await_fault();
  /// The next by time, scripted or drawn.
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
  /// Faults that lie on a part; indexes of felt_.
  [[nodiscard]] std::span<const std::uint32_t> faults_on(const Part& part) const;
  /// Whether it lay there.
  bool lift(const Part& part, std::uint32_t index);
  /// Those of a node that were known, or over, by now.
  void lift_past(NodeId node, Instant (Fault::*time)() const, Instant now);
  [[nodiscard]] static std::string evidence_of(const Fault& fault);
  /// What it did since is known to be of no use.
  [[nodiscard]] static bool known_wrong(const Run& run, Instant now) {
    return run.corrupt_left && run.corrupt_known <= now;
  }
  /// What its nodes do to a run that comes up there.
  void take_on(Run& run, const RunningJob& placed) const;
  /// Time of its work over the usual time, by the slowest of its nodes.
  [[nodiscard]] double slowness(const RunningJob& placed) const;
  /// Whether its ranks need a network to work together.
  [[nodiscard]] static bool spans_nodes(const RunningJob& placed);
  /// Until when a dead or cut-off node keeps its ranks from working together; `now`: none does.
  [[nodiscard]] Instant stands_until(const RunningJob& placed, Instant now) const;
  /// Nobody can go on or tell how far it came: it ends here, with what is lost of it.
  [[nodiscard]] Input ends_here(JobId job, Blame blame, Instant now);

  // Links, switches and supplies (world_links.cpp).
  [[nodiscard]] std::vector<LinkId> links_struck(const FaultScope& scope) const;
  void strike_links(std::span<const LinkId> links, std::uint32_t index, const State& state);
  /// The node of a port; none: the link is one between switches.
  [[nodiscard]] NodeId node_at(LinkId link) const;
  /// Until when every port of a node is dead; none: one is not, or it has none.
  [[nodiscard]] std::optional<Instant> cut_off_until(NodeId node) const;
  /// What is left of a link, or of a supply, as far as is known.
  [[nodiscard]] Input link_observed(LinkId link, Instant now);
  void feel_links(const State& state, Instant now);
  [[nodiscard]] Input supply_observed(PowerDomainId domain, Instant now) const;
  [[nodiscard]] Input link_over(const Event& event, Instant now);
  [[nodiscard]] std::optional<Input> cut(const Event& event, Instant now);
  [[nodiscard]] std::optional<Input> parted(const Event& event, const State& state, Instant now);

  // Nodes that fall silent (world_silence.cpp).
  void fall_silent(NodeId node, const Fault& fault);
  /// Of the nodes with ranks of it, how many are silent; `heard`, if asked for, gets the others.
  std::uint32_t silent_of(const RunningJob& run, std::vector<NodeId>* heard = nullptr) const;
  /// What keepers say of ranks that were to end; none: nobody is left to say it.
  [[nodiscard]] std::optional<Input> told_gone(const Event& event, const State& state, Instant now);
  [[nodiscard]] std::optional<Input> step_silence(const Event& event, const State& state,
                                                  Instant now);
  [[nodiscard]] std::optional<Input> lost(const Event& event, const State& state, Instant now);
  /// One attempt after another of those that may have ranks on a silent node.
  [[nodiscard]] std::optional<Input> gone_from(const Event& event, const State& state, Instant now);

  const Topology* topology_;
  Facts facts_;
  PlanBook book_;
  EventQueue<Event> queue_;
  std::vector<Felt> felt_;
  std::optional<Fault> drawn_;  ///< by chance, not due yet
  std::size_t scripted_ = 0;    ///< of Facts::scripted, how many have been taken
  std::map<Part, std::vector<std::uint32_t>> faults_on_;  ///< indexes of felt_; none is empty
  std::map<NodeId, Duration> repair_;  ///< of nodes that wait for it, or are in it
  std::map<NodeId, Silence> silent_;
  std::uint32_t silences_ = 0;  ///< so far
  std::vector<Run> runs_;       ///< by job
  std::vector<PlanKey> plans_;
  std::vector<Proposal> proposals_;
  std::vector<WorkReported> reports_;
  std::uint64_t corrupt_ = 0;
  Recoveries recoveries_;
  bool in_round_ = false;
  std::optional<Contention> contention_;
  std::vector<LinkId> links_told_;      ///< changed, and not felt by who crosses them yet
  Instant next_move_ = Instant::max();  ///< when bytes arrive next, as last planned
  std::uint32_t moves_planned_ = 0;     ///< kMoved events so far; only the last holds
};

}  // namespace orrery
