#include "scheduler/power/power_clock.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

constexpr int kClockPercentMin = 50;

/// The load at `clock`, derived from the given one.
Result<PowerLoad> load_at(const PowerModel& model, const PowerLoad& load, double clock) {
  const auto stretched = [clock](double share, double bound) {
    return Seconds(share * (bound / clock + 1 - bound));
  };
  return power_load({.compute = stretched(load.compute_share, model.compute_clock_bound),
                     .memory = stretched(load.memory_share, model.memory_clock_bound),
                     .network = Seconds(load.network_share),
                     .idle = Seconds(load.idle_share)});
}

}  // namespace

Result<std::vector<ClockStep>> clock_ladder(const PowerModel& model, const PowerLoad& load) {
  // Invalid shares would be hidden below, where they are converted to times.
  if (Result<DevicePower> full = power_at(model, load); !full) return forward_error(full);
  std::vector<ClockStep> ladder;
  const double bound = std::min(1.0, load.compute_share * model.compute_clock_bound +
                                         load.memory_share * model.memory_clock_bound);
  PowerModel slowed = model;
  for (int percent = 100; percent >= kClockPercentMin; --percent) {
    const double clock = percent / 100.0;
    slowed.clock = model.clock * clock;
    Result<PowerLoad> shifted = load_at(model, load, clock);
    if (!shifted) return forward_error(shifted);
    Result<DevicePower> power = power_at(slowed, *shifted);
    if (!power) return forward_error(power);
    Result<double> throughput = relative_throughput(bound, clock);
    if (!throughput) return forward_error(throughput);
    if (!ladder.empty() && power->total() >= ladder.back().each) continue;
    ladder.push_back({.clock = clock, .each = power->total(), .throughput = *throughput});
  }
  return ladder;
}

tl::expected<std::size_t, PowerShortfall> clock_for(const PowerBudget& budget,
                                                    const PowerCaps& caps, const GangPower& gang) {
  ORRERY_ASSERT(!gang.ladder.empty(), "a gang runs at some clock");
  PowerBudget trial = budget;
  const auto shortfall = [&](std::size_t step) {
    const std::vector<NodeDraw> draws = draws_of(budget.tree(), gang.nodes, gang.ladder[step].each);
    const std::optional<PowerShortfall> missing = trial.try_add(caps, draws);
    if (!missing) trial.remove(draws);
    return missing;
  };
  if (!shortfall(0)) return std::size_t{0};
  std::size_t refused = 0;
  std::size_t fits = gang.ladder.size() - 1;
  if (const std::optional<PowerShortfall> missing = shortfall(fits)) {
    return tl::unexpected(*missing);
  }
  while (fits - refused > 1) {
    const std::size_t middle = refused + (fits - refused) / 2;
    (shortfall(middle) ? refused : fits) = middle;
  }
  return fits;
}

}  // namespace orrery
