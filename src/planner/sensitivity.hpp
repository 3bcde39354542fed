// planner/sensitivity.hpp - which hardware figure is most worth improving for this work.
//
// Each figure is raised and lowered by one percent on the machine, and the job planned again; the
// differences of the best plans' step time, dollars and joules are what the figure is worth.
#pragma once

#include <array>
#include <vector>

#include "planner/planner.hpp"

namespace orrery {

enum class HardwareFigure {
  kPeak,  ///< of every number format
  kMemorySize,
  kMemoryBandwidth,
  kScaleUpBandwidth,
  kScaleUpLatency,
  kScaleOutBandwidth,
  kScaleOutLatency,
  kHostLink,
  kStorage,   ///< where checkpoints are written and read
  kPowerCap,  ///< up to the rating
};

inline std::array<EnumWord<HardwareFigure>, 10> enum_words(HardwareFigure) {
  return {{{"peak", HardwareFigure::kPeak},
           {"memory_size", HardwareFigure::kMemorySize},
           {"memory_bandwidth", HardwareFigure::kMemoryBandwidth},
           {"scale_up_bandwidth", HardwareFigure::kScaleUpBandwidth},
           {"scale_up_latency", HardwareFigure::kScaleUpLatency},
           {"scale_out_bandwidth", HardwareFigure::kScaleOutBandwidth},
           {"scale_out_latency", HardwareFigure::kScaleOutLatency},
           {"host_link", HardwareFigure::kHostLink},
           {"storage", HardwareFigure::kStorage},
           {"power_cap", HardwareFigure::kPowerCap}}};
}

/// Relative changes of the best plan's figures; the run's time includes failures and checkpoints.
struct FigureChange {
  double step = 0;
  std::optional<double> run;
  std::optional<double> cost;    ///< of the run
  std::optional<double> energy;  ///< of a step
  ParallelPlan plan;             ///< best with the changed figure
};

struct Sensitivity {
  HardwareFigure figure = HardwareFigure::kPeak;
  FigureChange up;    ///< at +1 %
  FigureChange down;  ///< at -1 %
};

/// The machine of `choice` with one figure times `factor`. Errors: a power cap where no TDP is
/// published.
[[nodiscard]] Result<MachineChoice> changed(const PlannerFacts& facts, const MachineChoice& choice,
                                            HardwareFigure figure, double factor);

/// Sensitivities of the best plan on machine `machine` of the question alone. A figure whose change
/// leaves no plan, or that is not published, is left out. Cost: some twenty searches.
[[nodiscard]] Result<std::vector<Sensitivity>> sensitivities(const PlannerFacts& facts,
                                                             const PlanQuestion& question,
                                                             std::size_t machine);

}  // namespace orrery
