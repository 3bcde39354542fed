// scheduler/pass/pass.hpp - one pass of the scheduler over a situation.
//
// Scheduler::decide makes a pass and uses it once. What the pass starts is entered into an overlay
// of the fleet, so that later decisions of the pass see earlier ones.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/forecast/reserved.hpp"
#include "scheduler/forecast/timeline.hpp"
#include "scheduler/forecast/waiting_queue.hpp"
#include "scheduler/moves/defragment.hpp"
#include "scheduler/place/job_placer.hpp"
#include "scheduler/power/powered_gangs.hpp"
#include "scheduler/power/yielders.hpp"
#include "scheduler/preempt/preemption.hpp"
#include "scheduler/price/priced_placer.hpp"
#include "scheduler/rounds/round_turns.hpp"
#include "scheduler/rounds/start_ramp.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

/// Scratch memory of passes, and refusals of earlier ones that still hold.
class PassMemory {
 public:
  explicit PassMemory(const PlaceTree& tree);

  void forget() {
    classes_.clear();
    refused_rooms_.clear();
    queue_.forget();
    yielders_.forget();
  }

 private:
  friend class Pass;

  /// A class that could not start.
  struct Refused {
    Refusal refusal;
    Changes changes;         ///< the situation's counters at the refusal
    std::uint32_t pass = 0;  ///< number of the pass that refused it; 0: none
  };

  /// A running job for which no place of another type, wherever it lies, is worth a move.
  struct Stays {
    JobId id;
    Instant since;         ///< as in RunningJob
    Instant expected_end;  ///< with `id` and `since` it identifies the run, its size and its clock
    Instant until;
  };
  /// The inputs beside the job on which a Stays entry depends.
  struct StaysUnder {
    PriceWeights weights;
    Seconds horizon;
    bool power = false;
    double failures_per_node_second = 0;
    std::vector<float> node_risk;
  };
  void keep_stays(const Situation& situation, const Policy& policy);
  [[nodiscard]] bool stays(std::uint32_t running, const Situation& situation) const;

  JobPlacer placer_;
  PricedPlacer priced_;
  std::optional<FleetOverlay> now_;
  std::optional<Reserved> reserved_;
  PreemptionScratch preemption_;
  std::optional<FleetOverlay> without_;  ///< the fleet without the jobs of left_out_
  Timeline timeline_;
  WaitingQueue queue_;
  Yielders yielders_;
  ThroughputShares shares_;
  std::vector<Refused> classes_;        ///< by ClassId
  std::vector<Refused> refused_rooms_;  ///< by room
  std::vector<Stays> stays_;            ///< by running job
  StaysUnder stays_under_;
  std::uint32_t pass_ = 0;
};

/// The request of a gang of a job: that of the option that it has.
[[nodiscard]] inline const GangRequest& request_of(const JobRequest& job, const PlacedGang& gang) {
  return job.roles[gang.role].options[gang.option].gang;
}

class Pass {
 public:
  Pass(const Situation& situation, const Policy& policy, PassMemory& memory);

  [[nodiscard]] PassResult run(PassKind kind);

 private:
  /// How a waiting job can start.
  struct Found {
    std::vector<PlacedGang> gangs;
    std::vector<GangTerms> terms;  ///< of each gang
    std::optional<Price> price;
    std::optional<Duration> length;  ///< expected run time; none: until it is stopped
  };
  using FoundOrRefusal = tl::expected<Found, Refusal>;

  /// Whether jobs behind a job are considered.
  enum class Queue { kGoesOn, kStops };

  void run_in_order();
  void run_fair();
  void note_held_back(std::span<const QueuedJob> behind);
  enum class Services : std::uint8_t { kNone, kOnly };
  Queue run_fair_over(Services services);
  [[nodiscard]] std::vector<std::int64_t> capacity() const;
  void run_by_order();
  void replan_all();
  void run_rounds();
  /// A place for a job that is to start or to move.
  struct RoundPlace {
    const WaitingJob* job = nullptr;
    std::optional<std::uint32_t> moves;  ///< position of the job among the running
    Found found;
  };
  /// The state of a round that is being planned.
  struct Round {
    std::span<const RoundJob> jobs;
    FleetOverlay after;  ///< the fleet once all jobs that do not go on have left
    std::vector<Turn> turns;
    std::vector<std::size_t> turn_of;  ///< by job: index of the turn it was chosen for
    std::vector<char> has_place;       ///< by job
    std::vector<char> goes_on;         ///< by job: it keeps the devices that it has
    std::vector<RoundPlace> places;
  };
  /// The waiting jobs that could not be placed, with the reason.
  using Refusals = std::map<JobId, Refusal>;
  [[nodiscard]] std::vector<const WaitingJob*> without_turns() const;
  [[nodiscard]] std::vector<RoundJob> round_jobs() const;
  /// Starts waiting jobs on free devices, from the first turn on.
  void fill(std::span<const RoundJob> jobs);
  void begin_round(std::span<const RoundJob> jobs, std::span<const WaitingJob* const> first);
  void leave_devices(Round& round, const RunningJob& job);
  void open_round(Round& round);
  void choose_turns(Round& round);
  void go_on(Round& round, std::uint32_t job);
  [[nodiscard]] bool may_go_on(const Round& round, std::uint32_t job) const;
  void take_place(Round& round, RoundPlace place);
  void take_turn(Round& round, const Turn& turn, Found found);
  bool place_turn(Round& round, const Turn& turn);
  bool make_place(Round& round, const Turn& turn, const Refusal& refusal);
  [[nodiscard]] std::vector<std::uint32_t> who_makes_place(const Round& round, const Turn& turn,
                                                           const Refusal& refusal) const;
  void place_rest(Round& round);
  void end_turns(const Round& round);
  void begin_turns(Round& round);
  [[nodiscard]] bool starts_in_full(const WaitingJob& job, Found& found) const;
  void wait_for_turns(const Refusals& refusals);
  /// Whether a node of the placement closes before the job would be done.
  [[nodiscard]] bool is_closed(const Found& found) const;
  [[nodiscard]] FoundOrRefusal by_turn(const FleetView& view, const WaitingJob& job,
                                       std::uint32_t option);
  /// A job in the common order of waiting and running jobs.
  struct Entry {
    OrderKey key;
    std::uint32_t at = 0;  ///< position among the waiting or the running
    bool running = false;
  };
  [[nodiscard]] std::vector<Entry> everybody() const;
  void start_reserved();
  void keep_slot_of_mover(const Reservation& slot);
  [[nodiscard]] bool start_in(const WaitingJob& job, const Reservation& slot);
  void hold(JobId job);
  [[nodiscard]] bool makes_reservations() const;
  void open_timeline();
  void reserve(const QueuedJob& queued, const Refusal& refusal);
  [[nodiscard]] bool needs_slot(const QueuedJob& queued);
  /// Whether a job would find room without the jobs of its tenant that it may overtake, now or once
  /// its aged service is low enough.
  [[nodiscard]] bool may_win_room(const QueuedJob& queued);
  /// Whether new jobs like those that hold most devices now would overtake a job, or be overtaken.
  enum class Overtaking : std::uint8_t { kNeither, kIsOvertaken, kOvertakes };
  [[nodiscard]] Overtaking overtaking_by_arrivals(const QueuedJob& queued) const;
  /// Whether a job finds room without those that it may overtake within `drain` and those that end
  /// within it.
  [[nodiscard]] bool wins_room_within(Duration drain, const QueuedJob& queued);
  void relieve_power();
  [[nodiscard]] bool slowed_somebody() const;
  void raise_clocks();
  /// leave_power() removes what a running job draws by its terms from the budget; enter_power()
  /// adds what a gang draws by its terms.
  void leave_power(const RunningJob& job);
  void enter_power(const PlacedGang& gang, const GangTerms& terms);
  /// Gangs whose clocks can be set, in the form that relieve() and make_room() take.
  struct AskedGangs {
    std::vector<std::uint32_t> entries;  ///< by gang: position among the powered
    std::vector<RunningGang> gangs;
  };
  [[nodiscard]] PoweredGangs& powered();
  void add_powered_start(std::uint32_t at);
  /// kThatKeepPromises: only clocks at which deadlines, time limits and budgets are kept.
  enum class Steps : std::uint8_t { kAll, kThatKeepPromises };
  [[nodiscard]] AskedGangs ask_gangs(Steps steps);
  void set_step(PoweredGang& gang, std::size_t step);
  void tell_clocks(std::size_t at);
  /// `slot`: the only place where the job may start; empty: any.
  void share_power(const WaitingJob& job, FoundOrRefusal& found, std::vector<PlacedGang> slot = {});
  void slow_down_start(Found& found, const PowerRelief& relief, const AskedGangs& asked,
                       std::size_t others);
  [[nodiscard]] bool affordable(const WaitingJob& job, const Found& found) const;
  [[nodiscard]] Price price_of_all(const WaitingJob& job, std::span<const PlacedGang> gangs,
                                   std::span<const GangTerms> terms) const;
  /// The terms of a running job's gang, with the clock that the pass has set.
  [[nodiscard]] const GangTerms& terms_now(const RunningJob& job, std::size_t gang) const;
  void stagger_starts();
  void move_jobs();
  [[nodiscard]] double sooner(const WaitingJob& job) const;
  void defragment();
  void carry_out(RoomPlan& plan, std::span<const std::uint32_t> who, const WaitingJob& job);
  [[nodiscard]] bool move(std::uint32_t running);
  void improve_running();
  bool improve(std::uint32_t running, const std::vector<char>& wanted);
  [[nodiscard]] std::vector<std::uint32_t> options_to_try(std::uint32_t running,
                                                          const std::vector<char>& wanted);
  [[nodiscard]] bool may_change_to(const RunningJob& job, const GangOption& to) const;
  /// Whether another option may be a gain for a running job.
  enum class Gain { kMaybe, kNoRoom, kWorthNothing };
  [[nodiscard]] Gain may_gain(const RunningJob& job, std::uint32_t to);
  [[nodiscard]] bool bounded(const RunningJob& job, std::uint32_t to) const;
  struct Bounds {
    std::int64_t stay = 0;   ///< most that the rest of the run costs here, micro-dollars
    std::int64_t there = 0;  ///< least that it costs on the other type
  };
  [[nodiscard]] Bounds bounds_at(Instant time, const RunningJob& job, std::uint32_t to) const;
  /// When to look again at a job that gains nothing on any other type; now: at the next pass.
  [[nodiscard]] Instant stays_until(const RunningJob& job) const;
  /// A lower bound of the micro-dollars by which the other type is worse for a job than its place.
  [[nodiscard]] std::int64_t margin_at(Instant time, const RunningJob& job, std::uint32_t to) const;
  [[nodiscard]] std::optional<Allocation> place_for(const RunningJob& job, const GangRequest& gang);
  /// How a job whose devices are given back could go on with another option.
  [[nodiscard]] std::optional<Found> option_of(const RunningJob& job, std::uint32_t option);
  /// What is left of a run and what that costs: micro-dollars (joules if energy is the goal) where
  /// options are priced, else nanoseconds.
  struct Rest {
    Duration length;
    std::int64_t worth = 0;
  };
  [[nodiscard]] Rest rest_of(const RunningJob& job, const PlacedGang& gang, GangTerms terms) const;
  [[nodiscard]] std::int64_t cost_of_move(const RunningJob& job, const Rest& stay) const;
  /// The largest smaller size of the job that fits beside `kept`.
  [[nodiscard]] std::optional<Found> smaller_of(const RunningJob& job,
                                                std::span<const PlacedGang> kept) const;
  /// Resizes a victim and returns the gang that it goes on with; nothing if it has to stop.
  std::optional<PlacedGang> shrink(const RunningJob& job, JobId in_favour_of,
                                   std::span<const PlacedGang> kept);
  /// Visits the devices of nodes that close before `end` and on which the job has no rank.
  template <class Visit>
  void for_each_closed(const RunningJob& job, Instant end, const Visit& visit) const;
  void hide_closed(FleetOverlay& fleet, const RunningJob& job, Instant end) const;
  /// Whether the placement `there` takes a job to a node that closes before `end`.
  [[nodiscard]] bool closes(const PlacedGang& there, const RunningJob& job, Instant end) const;
  void keep(const Reservation& slot);
  void keep_from_others(const PlacedGang& gang);

  void open_queue();
  [[nodiscard]] const WaitingJob& job_of(const QueuedJob& queued) const {
    return s_.waiting[queued.at];
  }
  [[nodiscard]] Queue consider(const QueuedJob& queued);
  [[nodiscard]] FoundOrRefusal find(const WaitingJob& job);
  [[nodiscard]] std::optional<std::uint32_t> missing_beside_slots(const WaitingJob& job) const;
  [[nodiscard]] std::uint32_t missing_beside_slots(const WaitingJob& job,
                                                   const GangOption& option) const;
  [[nodiscard]] FoundOrRefusal find_in(const FleetView& view, const WaitingJob& job);
  [[nodiscard]] FoundOrRefusal by_price(const FleetView& view, const WaitingJob& job);
  [[nodiscard]] FoundOrRefusal by_fit(const FleetView& view, const WaitingJob& job);
  [[nodiscard]] FoundOrRefusal with_terms(const FleetView& view, const WaitingJob& job,
                                          std::vector<PlacedGang> gangs) const;
  [[nodiscard]] bool power_holds(const Found& found) const;
  [[nodiscard]] PriceContext context_of(const FleetView& view) const;
  [[nodiscard]] const Refusal* remembered(const QueuedJob& queued);
  void remember(const QueuedJob& queued, const Refusal& refusal);
  [[nodiscard]] bool may_take_any(const JobRequest& request) const;
  /// may_take_any() of the job's request, cached for each group until the usage changes.
  [[nodiscard]] bool may_take_any(const QueuedJob& queued);
  void start(const WaitingJob& job, Found found);
  void wait(const WaitingJob& job, const Refusal& refusal);
  /// Limits the validity of the pass: from `time` on its decisions may differ.
  void hold_until(Instant time) { result_.holds_until = std::min(result_.holds_until, time); }
  [[nodiscard]] bool holds_at_all() const;
  /// The cost of ending a running job, in device-milliseconds or any other unit.
  using CostOf = std::function<std::int64_t(std::uint32_t)>;

  /// Returns a victim that must not be in a plan; none: the plan may be carried out.
  using Objection = std::function<std::optional<std::uint32_t>(const PreemptionPlan&)>;

  /// The vain searches that a pass makes, counted apart for preemption and for overtaking: each
  /// looks at many jobs.
  static constexpr std::uint32_t kVainPreemptions = 32;

  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  /// Running jobs that may be preempted for an asker, ascending; valid for one value of
  /// usage_changes_.
  struct Leavers {
    std::uint64_t under = kNever;
    std::vector<std::uint32_t> who;
    bool in_vain = false;                ///< a search among them found no plan
    std::vector<std::uint32_t> devices;  ///< devices of these jobs, by type; empty: not counted yet
  };
  [[nodiscard]] Yielders& yielders();
  [[nodiscard]] bool preempt_for(const QueuedJob& queued, const Refusal& refusal);
  /// Positions among the running, ascending.
  [[nodiscard]] std::vector<std::uint32_t> who_may_yield(const WaitingJob& job);
  [[nodiscard]] bool nobody_may_yield(const JobRequest& mine, TenantId theirs,
                                      std::int32_t lowest) const;
  [[nodiscard]] bool preempt(const WaitingJob& job, std::span<const std::uint32_t> from,
                             const CostOf& cost, const Objection& objection);
  [[nodiscard]] bool take_from(const WaitingJob& job, std::span<const std::uint32_t> from,
                               const CostOf& cost, const Objection& objection);
  /// Whether a job may take room that is kept for others.
  [[nodiscard]] bool may_use_kept(const WaitingJob& job, const Found& found) const;
  /// Starts a job for which there is room; no value: there is no room; false: that room is kept for
  /// other jobs.
  [[nodiscard]] std::optional<bool> start_as_it_is(const WaitingJob& job);
  /// Whether a job finds no room even when all of the leavers have left.
  [[nodiscard]] bool no_room_without(Leavers& leavers, const WaitingJob& job);
  /// Whether a job would find room if all of the leavers had left, quotas of its tenant aside.
  [[nodiscard]] bool fits_without(const Leavers& leavers, const WaitingJob& job);
  [[nodiscard]] static bool asks_by_number(const JobRequest& job);
  [[nodiscard]] bool too_few_with(const WaitingJob& job, double service);
  /// Devices of the running jobs `from`, by type.
  [[nodiscard]] std::vector<std::uint32_t> devices_of(std::span<const std::uint32_t> from) const;
  [[nodiscard]] bool enough_with(std::span<const std::uint32_t> devices,
                                 const JobRequest& job) const;
  [[nodiscard]] bool overtake(const QueuedJob& queued, const Refusal& refusal);
  enum class Pressed : std::uint8_t { kNo, kYes };
  /// Whether all jobs that may be overtaken are listed, or only the first found.
  enum class Overtaken : std::uint8_t { kAll, kAny };
  /// Positions among the running, ascending.
  [[nodiscard]] std::vector<std::uint32_t> who_is_overtaken(const WaitingJob& job, double least,
                                                            Pressed pressed, Overtaken wanted);
  [[nodiscard]] bool overtake_some_of(const WaitingJob& job, std::span<const std::uint32_t> who);
  [[nodiscard]] bool is_overdue(const WaitingJob& job) const;
  [[nodiscard]] bool is_pressed(const WaitingJob& job);
  [[nodiscard]] bool would_be_late(const RunningJob& running, const WaitingJob& other) const;
  [[nodiscard]] bool may_be_overtaken(const JobRequest& mine, std::uint32_t running) const;
  [[nodiscard]] bool is_lent(const RunningJob& job, TenantId claimant) const;
  [[nodiscard]] double most_service(const QueuedJob& queued);
  [[nodiscard]] bool overtakes_in_vain(const QueuedJob& queued);
  /// A victim that makes the plan break a limit or a guarantee; none: the plan keeps them.
  [[nodiscard]] std::optional<std::uint32_t> object_to_overtaking(const WaitingJob& job,
                                                                  const PreemptionPlan& plan) const;
  [[nodiscard]] bool take_surplus(const QueuedJob& queued, const Refusal& refusal);
  [[nodiscard]] bool has_surplus_for(const WaitingJob& job, const RunningJob& running);
  /// A victim of the plan that cannot go on with fewer devices, or may not; none: all of them can.
  [[nodiscard]] std::optional<std::uint32_t> object_to_shrinking(const WaitingJob& job,
                                                                 const PreemptionPlan& plan) const;
  [[nodiscard]] std::int64_t lost_device_milliseconds(std::uint32_t running) const;
  /// The right of a tenant to take devices of a type from another tenant.
  enum class Claim : std::uint8_t { kNotAsked, kNone, kByRank, kRight };
  /// `claims` of the job's tenant: by the other tenant, then the type.
  [[nodiscard]] bool may_yield(const WaitingJob& job, const RunningJob& running,
                               std::span<Claim> claims);
  [[nodiscard]] std::optional<std::uint32_t> object(const WaitingJob& job,
                                                    const PreemptionPlan& plan) const;
  [[nodiscard]] std::vector<UsageChange> changes_of(const WaitingJob& job,
                                                    const PreemptionPlan& plan) const;
  void yield(const WaitingJob& job, PreemptionPlan plan);
  [[nodiscard]] double lost_device_seconds(const RunningJob& job) const;

  [[nodiscard]] JobPlaceRules rules_for(const WaitingJob& job);
  [[nodiscard]] Instant end_of(const Found& found) const;
  /// The end of a job that starts now with its slowest option.
  [[nodiscard]] Instant latest_end(const WaitingJob& job) const;
  [[nodiscard]] const TenantUsage& usage() const { return usage_ ? *usage_ : *s_.usage; }
  [[nodiscard]] TenantUsage& edit_usage();
  [[nodiscard]] FleetOverlay& edit_now();
  [[nodiscard]] Reserved& edit_reserved();
  enum class Held { kMore, kLess };
  void count(const JobRequest& job, std::span<const PlacedGang> gangs, Held held);
  void apply(const UsageChange& change);

  const Situation& s_;
  const Policy& policy_;
  PassMemory& m_;
  PassKind kind_ = PassKind::kIncremental;
  std::optional<TenantUsage> usage_;  ///< a copy, once the pass edits it
  std::optional<PowerBudget> power_;
  enum class PowerCounts : std::uint8_t { kYes, kNo };
  PowerCounts power_counts_ = PowerCounts::kYes;  ///< whether a placement has to fit the power
                                                  ///< budget
  std::optional<PoweredGangs> powered_;           ///< set once clocks are considered
  /// Terms with the clocks that the pass has set, by position among the running, and gang.
  std::map<std::pair<std::uint32_t, std::uint32_t>, GangTerms> clocked_;
  struct Start {
    const WaitingJob* job;
    std::size_t decision;  ///< position of its decision
    bool slowed = false;   ///< its clock was lowered after it was priced
  };
  std::vector<Start> starts_;
  std::size_t clocks_at_ = 0;  ///< index at which decisions about clocks are inserted: before all
                               ///< starts
  std::uint32_t shares_ = 0;   ///< starts for which clocks of other jobs were lowered
  std::uint32_t vain_shares_ = 0;           ///< starts for which no power could be shared
  std::vector<TenantId> changed_;           ///< tenants whose usage the considered job changed
  std::vector<char> stopped_;               ///< by running job: whether this pass has decided on it
  std::vector<const WaitingJob*> blocked_;  ///< jobs that lack nothing but room, in the order of
                                            ///< the queue
  std::vector<JobId> held_;                 ///< jobs that have a slot, ascending
  std::vector<std::uint32_t> yielding_;     ///< running job, by victim of the plan being made
  std::uint64_t usage_changes_ = 0;
  /// Search results for the jobs of a tenant and rank, each valid for one value of usage_changes_.
  struct Asker {
    Leavers by_right;
    Leavers overtaken;                  ///< listed from the second search on, after a vain one
    Leavers own;                        ///< jobs of the tenant that may be overtaken now or later
    std::uint64_t no_surplus = kNever;  ///< usage_changes_ at which no job had a surplus for them
    double most_service = 0;            ///< the most service of a job that they may overtake
    std::uint64_t most_under = kNever;
  };
  std::vector<Asker> askers_;  ///< by QueuedJob::asker
  struct Group {
    std::uint64_t under = kNever;
    bool may_take_any = false;
  };
  std::vector<Group> groups_;          ///< by QueuedJob::group
  const Leavers* left_out_ = nullptr;  ///< jobs that PassMemory::without_ leaves out
  std::uint64_t left_out_under_ = 0;
  /// Places of gangs that do not depend on what the asking job holds, valid until a job moves;
  /// empty: no place.
  std::map<GangRequest, std::optional<Allocation>> elsewhere_;
  std::map<TenantId, Duration> longest_waiting_;  ///< longest expected run of a waiting job; empty:
                                                  ///< not computed
  const FleetView* left_ = nullptr;  ///< a view without some of the victims, whose devices the
                                     ///< tenant's limits have room for again
  std::uint32_t overtakes_ = 0;      ///< vain searches for jobs to overtake
  std::uint32_t preemptions_ = 0;    ///< vain searches for victims by right or rank
  std::uint32_t views_ = 0;          ///< vain searches beside slots
  bool looked_for_yielders_ = false;
  bool own_leave_ = false;   ///< only jobs of the considered job's tenant may be preempted
  bool in_the_way_ = false;  ///< the considered job was refused because of another job's slot
  bool lacks_room_ = false;  ///< the considered job was refused only for lack of room
  bool hidden_ = false;      ///< some free devices are hidden in the overlay
  bool timeline_open_ = false;
  std::uint64_t slots_ = 0;         ///< jobs that keep a new slot or need one
  std::uint64_t slots_sought_ = 0;  ///< jobs for which a new slot was sought
  PassResult result_;
};

}  // namespace orrery
