// planner/economics.hpp - dollars, joules, carbon and expected goodput of a plan on a machine.
//
// Economics is resolved once a machine; quoting a plan is then a few multiplications. An
// unpublished figure (a price, a TDP) is left out and its reason kept, never guessed; what had to
// be assumed is listed. Values, pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "perf/site/money.hpp"
#include "perf/site/power.hpp"
#include "perf/training/goodput.hpp"
#include "perf/training/training_step.hpp"

namespace orrery {

/// Tables from which every question is answered; both must outlive it.
struct PlannerFacts {
  const Catalog& catalog;
  const Calibration& calibration;
};

/// What the operator states in place of the catalog; everything may stay empty.
struct EconomicsOptions {
  std::optional<PriceBasis> basis;  ///< none: on demand, else any other that the catalog has
  PriceOptions price;
  double price_factor = 1;  ///< factor on a rent
  PowerOptions power;
  SiteOptions site;
  std::optional<std::string> failures;  ///< id of a FailureProfile
  std::optional<std::string> storage;   ///< id of a StorageSystem
  std::optional<double> storage_units;
  double storage_speed = 1;  ///< factor on the rates of the storage system
};

/// A figure, or why there is none.
template <class T>
struct Known {
  std::optional<T> value;
  std::string missing;
};

struct Reliability {
  Seconds mean_time_to_failure;
  CheckpointTimes checkpoint;
  Seconds detect;
  Seconds restart;
};

struct Economics {
  double accelerators = 1;
  double nodes = 1;
  Known<PowerModel> power;
  Known<AcceleratorCost> price;
  Known<Site> site;
  Known<Reliability> reliability;
  bool owned = false;  ///< electricity is paid in addition to the hire
  std::vector<std::string> assumptions;
};

/// Errors: an unknown failure profile or storage system, a figure out of range.
[[nodiscard]] Result<Economics> economics_of(const PlannerFacts& facts, const Machine& machine,
                                             const ModelWork& model,
                                             const EconomicsOptions& options);

/// Running costs of one accelerator of `node`, with its power, price and site alone.
[[nodiscard]] Result<Economics> running_costs_of(const PlannerFacts& facts, const NodeType& node,
                                                 const EconomicsOptions& options);

/// A power cap slows the clock: changes the rates of the machine to those under the cap. Errors: a
/// cap the accelerator cannot hold; an accelerator without a published TDP.
[[nodiscard]] Status apply_power_cap(const PlannerFacts& facts, const PowerOptions& options,
                                     Machine& machine);

/// The length of a run and the work of a step, counted in tokens or in samples (SampleUnit).
struct RunSize {
  std::optional<double> length;  ///< of the whole run; none: not stated
  double step_length = 1;        ///< of one step
  double step_flops = 1;         ///< of the model
};

struct PlanQuote {
  std::optional<Dollars> step_cost;
  std::optional<Joules> step_energy;  ///< at the nodes' inlets
  std::optional<Watts> power;         ///< of all accelerators with their nodes
  std::optional<JoulesPerFlop> joules_per_flop;
  std::optional<double> tokens_per_second_watt;
  double tokens_per_second = 0;  ///< images or videos where the run is counted in those
  std::optional<Goodput> goodput;
  // Figures of the whole run if it has a length, with its failures if goodput is known.
  std::optional<Seconds> run_time;
  std::optional<double> run_steps;
  std::optional<Dollars> run_cost;
  std::optional<Energy> run_energy;
};

[[nodiscard]] PlanQuote quote_of(const Economics& economics, const StepCost& cost,
                                 const RunSize& size);

/// How the time of a step divides: at every moment a device computes, reads memory, waits for a
/// collective or idles. No value for a step that takes no time.
[[nodiscard]] std::optional<PowerLoad> power_load_of(const StepCost& cost);

/// Joules of a step at the nodes' inlets; at least floor_of_energy for the same time.
[[nodiscard]] std::optional<Joules> step_energy(const Economics& economics, const StepCost& cost);
[[nodiscard]] Joules floor_of_energy(const Economics& economics, double seconds);

}  // namespace orrery
