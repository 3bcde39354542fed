// twin/world.hpp - what really happens to jobs and nodes: the executor of the twin.
//
// Carries out control's actions and reports what control may see, with the delays of the real
// thing; knows what control does not: how long a job truly runs, when its program fails. A job
// advances by reference seconds at a rate that follows from its plan, devices, clock and links.
// One thread. Cost: O(log events) an event.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/action.hpp"
#include "control/input.hpp"
#include "control/state.hpp"
#include "twin/event_queue.hpp"
#include "twin/replay_rules.hpp"

namespace orrery {

/// What a job truly is.
struct TrueJob {
  Duration work;                        ///< run time on the first of its options
  std::optional<Duration> fails_after;  ///< of work: its program ends with an error then
  std::uint64_t steps = 0;              ///< of a round-based replay
  double steps_per_second = 0;
};

/// Times of the world that no job or node decides.
struct WorldTiming {
  Duration launch = Duration::seconds(5);  ///< of ranks, wherever they start
  Duration plan_search = Duration::seconds(1);
  Duration scheduler_latency = Duration::seconds(1);  ///< of a full pass
};

class World {
 public:
  struct Facts {
    ReplayRules rules;
    WorldTiming timing;
    PlanSource plans;
  };

  explicit World(Facts facts) : facts_(std::move(facts)) {}

  /// Before the job's submission is handled. Precondition: ids come in order.
  void add(const TrueJob& job);

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

 private:
  enum class Kind : std::uint8_t { kUp, kEnd, kGone, kPlan, kProposal, kRoundEnd };
  struct Event {
    Kind kind = Kind::kUp;
    JobId job;
    std::uint32_t serial = 0;  ///< of the job's run; another by now: it does not hold any more
    std::uint32_t attempt = 0;
    std::uint32_t index = 0;  ///< of a plan or proposal
    Instant at;
  };
  /// An attempt under way.
  struct Run {
    TrueJob job;
    std::uint32_t serial = 0;
    std::uint32_t attempt = 0;
    std::uint32_t epoch = 0;
    bool up = false;
    Duration left;       ///< of its work, at `since`
    Duration safe_left;  ///< of its work, as of the newest good copy
    Instant since;
    double rate = 1;
    Duration interval = Duration::max();  ///< of work between checkpoints
    Duration cost;                        ///< of one
    std::uint64_t steps_left = 0;
  };

  void start(const StartRanks& action, const State& state, Instant now);
  void stop(const StopRanks& action, const State& state, Instant now);
  void set_rate(Run& run, const State& state, JobId job);
  void schedule_end(Run& run, JobId job, Instant now);
  /// Work done between `since` and `now`.
  [[nodiscard]] Duration worked(const Run& run, Instant now) const;
  void settle(Run& run, Instant now);
  /// Part of its work that its newest good copy has.
  [[nodiscard]] static double done_of(const Run& run);

  Facts facts_;
  EventQueue<Event> queue_;
  std::vector<Run> runs_;  ///< by job
  std::vector<PlanKey> plans_;
  std::vector<Proposal> proposals_;
  bool in_round_ = false;
};

}  // namespace orrery
