// control/passes/passes.hpp - when the core's own passes run, and when it requests full ones.
//
// 1. A pass runs on a Tick when something changed since the last one that could let a job start, a
//    power limit changed, or the time has come for which a job waits by choice; no sooner after the
//    last one than the policy's interval.
// 2. Until the instant that a pass names, its result stays valid through changes of links and
//    events that no pass reads: a pass on the state with these would decide the same.
// 3. Full passes run beside the core (FullPasses), unless the policy makes every pass full.
#pragma once

#include <cstdint>
#include <optional>

#include "control/jobs/job_life.hpp"
#include "control/jobs/node_replacement.hpp"
#include "control/passes/decisions.hpp"
#include "control/passes/full_passes.hpp"
#include "control/recorder.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

class Passes {
 public:
  /// The classes that passes depend on.
  struct Parts {
    JobLife& jobs;
    JobStarts& starts;
    PlanSearches& plans;
    NodeReplacement& replacement;
  };

  Passes(Recorder& recorder, const Parts& parts);

  void on(const Proposal& proposal);
  void on(const LinkObserved& seen) { emit_unfelt(LinkChanged{seen.link, seen.state}); }
  /// Runs a pass if one is due, then requests a full one if one is due.
  void run_due();
  /// When a pass of either kind is due; max: none is due as things are.
  [[nodiscard]] Instant wake() const;
  /// Whether a job waits by choice until a certain time, according to the core's own last pass.
  [[nodiscard]] bool waits_by_choice() const { return wake_asked_ != Instant::max(); }
  [[nodiscard]] const Decisions& decisions() const { return decisions_; }

  /// Emits an event that leaves the result of the last pass valid.
  void emit_unfelt(Event event);
  /// Notes that the requests of jobs have changed; proposals on the state before are refused.
  void options_changed() { full_.options_changed(state_.version()); }
  /// Notes that the policy has changed: the scheduler keeps nothing of earlier passes.
  void policy_changed() { scheduler_->forget(); }
  /// Begins anew with the fleet of the state.
  void take_up_fleet();

 private:
  [[nodiscard]] bool changed() const;
  [[nodiscard]] bool every_pass_full() const;
  [[nodiscard]] Instant next_pass() const;
  void run_pass();

  /// The counters of the state and of its jobs at the last pass.
  struct Seen {
    Changes changes;
    std::optional<std::uint64_t> queued = 0;  ///< none: that pass was for another fleet
  };
  /// How long the result of the last pass stays valid, for which version of the state.
  struct Held {
    Instant until;
    std::uint64_t version = 0;
  };

  Recorder& recorder_;
  const State& state_;
  const JobLife& jobs_;
  NodeReplacement& replacement_;
  Decisions decisions_;
  FullPasses full_;
  std::optional<Scheduler> scheduler_;
  Seen seen_;
  Held held_;
  Instant wake_asked_ = Instant::max();  ///< PassResult::wake of the core's own last pass
  std::optional<Instant> last_pass_;     ///< none: only one pass ran, or none
  bool first_pass_ = true;
};

}  // namespace orrery
