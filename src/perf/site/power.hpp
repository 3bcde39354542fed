// perf/site/power.hpp - what an accelerator and its share of the node draw, and what a power cap
// costs.
//
// The accelerator's draw is measured fractions of its TDP by phase of the step (computing, reading
// memory, waiting on a collective, idle), not utilisation x TDP. The rest of the node (CPUs, NICs,
// fans, losses of the power supplies) is what its measured idle and training power leave, and grows
// linearly with the accelerator's draw between the two. Losses before the node are in the PUE.
// Invariant of a model: 0 < idle <= training <= tdp, 0 <= rest_idle <= rest_training, cap <= tdp.
// Values, immutable in use. Cost: building a few look-ups, power_at about 20 ns.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"
#include "perf/site/site.hpp"

namespace orrery {

/// How the time of a step divides: at every moment the accelerator is in one of these. Each share
/// lies in [0, 1]; together they are 1.
struct PowerLoad {
  double compute_share = 1;
  double memory_share = 0;
  double network_share = 0;  ///< collectives that are not hidden
  double idle_share = 0;     ///< pipeline bubble, input stall, host
};

/// The phases of a step as times, from its breakdown.
struct PhaseTimes {
  Seconds compute;
  Seconds memory;
  Seconds network;
  Seconds idle;
};

/// Errors: a negative or non-finite time, no time at all.
[[nodiscard]] Result<PowerLoad> power_load(const PhaseTimes& times);

/// Power over power at full clock = static_share + (1 - static_share) x clock^exponent, clock being
/// the fraction of the full one. Source: catalog/power_cooling.yaml, power_cap_curves.
struct PowerCurve {
  double static_share = 0.3;
  double exponent = 2.4;
};

/// Precondition: clock in [0, 1].
[[nodiscard]] double power_at_clock(const PowerCurve& curve, double clock);

/// Its inverse: the clock that a cap of `power_fraction` of the full power leaves.
/// Errors: a fraction that no clock reaches (up to static_share) or above 1.
[[nodiscard]] Result<double> clock_at_power(const PowerCurve& curve, double power_fraction);

/// Throughput at `clock` over that at full clock, 1 / (c/clock + 1 - c), when a part
/// c = clock_bound_share of the time stretches with the clock. Errors: clock outside (0, 1], c
/// outside [0, 1].
[[nodiscard]] Result<double> relative_throughput(double clock_bound_share, double clock);

/// The operator's own figures, which replace the catalog's.
struct PowerOptions {
  std::optional<Watts> tdp;
  std::optional<Watts> node_training;  ///< whole node in training
  std::optional<Watts> cap;  ///< of each accelerator; none: the part's default limit, else its TDP
};

struct PowerModel {
  Watts tdp;
  Watts cap;
  Watts idle;
  Watts training;       ///< accelerator computing all the time, uncapped
  Watts memory;         ///< and reading memory all the time
  Watts network;        ///< and waiting on collectives all the time
  Watts rest_idle;      ///< one accelerator's share of the rest of the node
  Watts rest_training;  ///< at `rest_anchor` of the accelerator
  Watts rest_anchor;
  double clock = 1;  ///< of the full one, as the cap leaves it
  PowerCurve curve;
  double compute_clock_bound = 1;   ///< part of the phase that stretches with the clock
  double memory_clock_bound = 0.5;  ///< part of the phase that stretches with the clock
  std::vector<std::string> assumptions;
};

/// Model of one accelerator of `node`. Precondition: `calibration` has the built-in constants.
/// Errors: no TDP in the catalog and none given (nothing is guessed in its place); no power of the
/// node; a cap outside what the accelerator can be set to; a node that draws less than its
/// accelerators.
[[nodiscard]] Result<PowerModel> power_model(const Catalog& catalog, const Calibration& calibration,
                                             const NodeType& node, const PowerOptions& options);

struct DevicePower {
  Watts accelerator;
  Watts rest;  ///< its share of the rest of the node

  [[nodiscard]] Watts total() const { return accelerator + rest; }
};

/// Mean draw under a load whose shares are those at the model's cap. A cap lowers the computing and
/// the memory phase along the curve; a waiting or idle device stays as it is, since capping takes
/// off peaks and leaves troughs (Patel et al., ASPLOS 2024). Errors: shares that are no shares.
[[nodiscard]] Result<DevicePower> power_at(const PowerModel& model, const PowerLoad& load);

/// The part of the time that stretches with the clock, for relative_throughput.
[[nodiscard]] double clock_bound_of(const PowerModel& model, const PowerLoad& load);

/// Draw of `accelerators`, each with its share of the node, for a time.
struct PowerDraw {
  Watts each;
  double accelerators = 1;
  Seconds time;
};

struct Energy {
  Joules machines;  ///< at the nodes' inlets
  Joules facility;  ///< at the meter: x PUE
  GramsCo2 carbon;  ///< of the facility's energy
};

[[nodiscard]] Result<Energy> energy_of(const PowerDraw& draw, const Site& site);

using JoulesPerFlop = decltype(Joules{} / Flops{});

/// Errors: a negative energy, no operations.
[[nodiscard]] Result<JoulesPerFlop> joules_per_flop(Joules energy, Flops work);

[[nodiscard]] constexpr double kilowatt_hours(Joules energy) { return energy / kKilowattHour; }

}  // namespace orrery
