// verbs/schedule/scheduled_fleet.hpp - an idle fleet with its facts: what a decision rests on,
// before any job has started.
//
// Loaded once; it must not move, because its parts refer to each other. One thread.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fleet/fleet.hpp"
#include "scheduler/place/pristine_fleet.hpp"
#include "scheduler/plans/plan_sizes.hpp"
#include "scheduler/price/gang_pricing.hpp"
#include "verbs/command_options.hpp"

namespace orrery {

class ScheduledFleet {
 public:
  ScheduledFleet() = default;
  ScheduledFleet(const ScheduledFleet&) = delete;
  ScheduledFleet& operator=(const ScheduledFleet&) = delete;

  /// Errors: those of the fleet file, with their line.
  [[nodiscard]] Status load(const CommandOptions& options, const std::string& path);

  // Precondition of each: loaded.
  [[nodiscard]] const Facts& facts() const { return facts_; }
  [[nodiscard]] PristineFleet& pristine() { return *pristine_; }
  [[nodiscard]] const PristineFleet& pristine() const { return *pristine_; }
  [[nodiscard]] const Topology& topology() const { return pristine_->topology(); }
  [[nodiscard]] const FleetCosts& costs() const { return *costs_; }
  [[nodiscard]] const PowerTree& power() const { return *power_; }
  [[nodiscard]] PlanSizes& sizes() { return *sizes_; }

 private:
  Facts facts_;
  std::unique_ptr<PristineFleet> pristine_;
  std::optional<FleetCosts> costs_;
  std::optional<PowerTree> power_;
  std::optional<PlanSizes> sizes_;
};

}  // namespace orrery
