// control/passes/full_passes.hpp - when a full pass beside the core is due, and which proposal of
// one is still valid.
//
// Invariant: one full pass on the present fleet is requested at a time, except that a late proposal
// for an earlier fleet lets the next one begin early. A proposal for an earlier fleet, or from
// before options of jobs changed, is refused. Changes nothing in the state.
#pragma once

#include <cstdint>
#include <optional>

#include "control/core/held_situation.hpp"
#include "control/input.hpp"
#include "control/state/state.hpp"
#include "scheduler/scheduler.hpp"

namespace orrery {

class FullPasses {
 public:
  /// When a full pass is due; max: none is due as things are.
  [[nodiscard]] Instant due(const State& state, Instant now) const;
  /// Notes that a full pass on the present state was requested.
  void begin(const State& state, Instant now);
  /// Notes that the result of a full pass has come; returns whether its options are the present
  /// ones.
  [[nodiscard]] bool end(const Proposal& proposal);
  /// When the last one was requested; none: none was.
  [[nodiscard]] std::optional<Instant> begun() const { return begun_; }

  /// Notes that the options of jobs are others from this version of the state on.
  void options_changed(std::uint64_t version) { options_since_ = version; }
  /// Notes that the fleet is another one from this version of the state on.
  void take_up_fleet(std::uint64_t version);

 private:
  std::optional<Instant> begun_;
  Changes seen_;  ///< the state's counters when the last one was requested
  bool under_way_ = false;
  std::uint64_t options_since_ = 0;
};

/// Makes a full pass beside the core, on the present state: the host's reply to RunFullPass.
[[nodiscard]] Proposal full_pass(const State& state, Scheduler& scheduler, Instant now);
/// Makes a full pass on a held state; in any thread, with a scheduler that no other thread uses.
[[nodiscard]] Proposal full_pass(const HeldSituation& held, Scheduler& scheduler);

}  // namespace orrery
