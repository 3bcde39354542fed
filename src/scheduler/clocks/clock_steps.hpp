// scheduler/clocks/clock_steps.hpp - the clocks that a pass sets: lower ones where power is short,
// higher ones where it is left.
//
// Belongs to one pass. The gangs whose clocks can be set are listed once clocks have to be
// considered. Invariant: a clock that was set is in the power budget at once and becomes a decision
// with tell().
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "scheduler/clocks/powered_gangs.hpp"
#include "scheduler/pass/start_search.hpp"

namespace orrery {

class ClockSteps {
 public:
  ClockSteps(PassContext& pass, StartSearch& search);

  /// Meets caps that fell below the planned draw, by lower clocks first, then by stopping the least
  /// valuable jobs. Tells the clocks.
  void relieve_power();
  /// Replaces a start that is refused or slowed for lack of power by one for which the clocks of
  /// other jobs are lowered, where more work is done that way. `slot`: the only place where the job
  /// may start; empty: any.
  void share_power(const WaitingJob& job, StartOrRefusal& found, std::vector<PlacedGang> slot = {});
  /// Gives slowed gangs the clocks at which most work is done under the caps that hold now. Tells
  /// them.
  void raise();
  /// Makes decisions of the clocks set since the last call, as the decisions from position `at` on:
  /// lowered clocks first, because others take the power that they free. Prices slowed starts
  /// again.
  void tell(std::size_t at);

 private:
  /// Gangs whose clocks can be set, in the form that relieve() and make_room() take.
  struct AskedGangs {
    std::vector<std::uint32_t> entries;  ///< by gang: position among the powered
    std::vector<RunningGang> gangs;
  };
  /// kThatKeepPromises: only clocks at which deadlines, time limits and budgets are kept.
  enum class Steps : std::uint8_t { kAll, kThatKeepPromises };

  [[nodiscard]] PoweredGangs& powered();
  [[nodiscard]] AskedGangs ask_gangs(Steps steps);
  void set_step(PoweredGang& gang, std::size_t step);
  void tell_job(std::span<PoweredGang> gangs, std::vector<Decision>& lowered,
                std::vector<Decision>& raised);
  void slow_down_start(PlannedStart& found, const PowerRelief& relief, const AskedGangs& asked,
                       std::size_t others);
  [[nodiscard]] bool affordable(const WaitingJob& job, const PlannedStart& found) const;

  PassContext& pass_;
  const Situation& s_;
  const Policy& policy_;
  StartSearch& search_;
  std::optional<PoweredGangs> powered_;  ///< set once clocks are considered
  std::size_t starts_listed_ = 0;        ///< starts of the pass that are among the powered
  std::set<std::uint32_t> slowed_;  ///< starts whose clocks were lowered after they were priced
  std::uint32_t shares_ = 0;        ///< starts for which clocks of other jobs were lowered
  std::uint32_t vain_shares_ = 0;   ///< starts for which no power could be shared
};

}  // namespace orrery
