// control/passes/decisions.hpp - carries out what a pass decided, and keeps its result.
//
// A decision that no longer fits the state is dropped, with an event that says why. A job that
// should shrink in favour of another and cannot is preempted.
#pragma once

#include <cstdint>
#include <span>

#include "control/jobs/job_life.hpp"
#include "control/jobs/job_starts.hpp"
#include "control/jobs/plan_searches.hpp"
#include "control/recorder.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

struct PassCounts {
  std::uint64_t incremental = 0;
  std::uint64_t full = 0;
  std::uint64_t candidates = 0;
  std::uint64_t placements = 0;
};

class Decisions {
 public:
  /// The classes that carry out decisions.
  struct Parts {
    JobLife& jobs;
    JobStarts& starts;
    PlanSearches& plans;
  };

  Decisions(Recorder& recorder, const Parts& parts)
      : recorder_(recorder), state_(recorder.state()), parts_(parts) {}

  /// Carries out the decisions of a pass over the state as it was at `looked_at`.
  void carry_out(PassKind kind, PassResult result, Instant looked_at);
  /// The result of the last pass. Its reservations are in the state.
  [[nodiscard]] const PassResult& last() const { return last_; }
  [[nodiscard]] const PassCounts& counts() const { return counts_; }
  /// Forgets the result of the last pass, which is for another fleet.
  void forget() { last_ = {}; }

 private:
  void carry_out(const StartJob& start);
  void carry_out(const PreemptJob& preempt);
  void carry_out(const ResizeJob& resize);
  void carry_out(const SetClock& clock, Instant looked_at);
  void reserve(PassResult& result);
  void note_idle(const PassResult& result);

  Recorder& recorder_;
  const State& state_;
  Parts parts_;
  PassResult last_;
  PassCounts counts_;
};

}  // namespace orrery
