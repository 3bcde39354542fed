// scheduler/power/planned_power.hpp - the planned power of a pass: the budget of the situation with
// the changes by starts, stops and new clocks, and the clocks that the pass has set.
//
// Belongs to one pass. Invariant: the budget holds the gangs of each running job that has not left
// at terms_now().
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "scheduler/power/gang_power.hpp"

namespace orrery {

class PlannedPower {
 public:
  explicit PlannedPower(const Situation& situation);

  /// Whether power is limited; if not, enter() and leave() do nothing.
  [[nodiscard]] bool limited() const { return budget_.has_value(); }
  /// Precondition: limited().
  [[nodiscard]] const PowerBudget& budget() const { return *budget_; }
  [[nodiscard]] const PowerCaps& caps() const { return *s_.caps; }

  /// Whether the gangs fit under every cap together. Precondition: limited(). O(domains + nodes x
  /// depth).
  [[nodiscard]] bool holds(std::span<const PlacedGang> gangs,
                           std::span<const GangTerms> terms) const;
  /// Whether a running job that left fits under every cap again. Precondition: limited(). O(domains
  /// + nodes x depth).
  [[nodiscard]] bool holds(const RunningJob& job) const;

  void enter(const PlacedGang& gang, const GangTerms& terms);
  void enter(std::span<const PlacedGang> gangs, std::span<const GangTerms> terms);
  /// A running job that left comes back with the clocks that the pass has set.
  void enter(const RunningJob& job);
  void leave(const RunningJob& job);

  /// A gang goes from one step of its clock to another. Precondition: limited().
  void change(std::span<const NodeShare> nodes, const ClockStep& from, const ClockStep& to);
  /// Sets the clock of a gang of a running job in terms_now(), not in the budget.
  void set_clock(std::uint32_t running, std::uint32_t gang, const ClockStep& step);
  /// The terms of a gang of the situation's running job, with the clock that the pass has set.
  [[nodiscard]] const GangTerms& terms_now(const RunningJob& job, std::size_t gang) const;

  /// A copy of the budget, for restore(); none: power is not limited.
  [[nodiscard]] std::optional<PowerBudget> saved() const { return budget_; }
  void restore(std::optional<PowerBudget> saved) { budget_ = std::move(saved); }

 private:
  const Situation& s_;
  std::optional<PowerBudget> budget_;
  /// Terms with the clocks that the pass has set, by position among the running, and gang.
  std::map<std::pair<std::uint32_t, std::uint32_t>, GangTerms> clocked_;
};

}  // namespace orrery
