// perf/runs/run_plan.hpp - the layout (`par`) of a published row, checked against its accelerators.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "hardware/accelerator.hpp"
#include "perf/runs/run_file.hpp"

namespace orrery {

/// The devices a layout is spread over.
struct RunDevices {
  const Accelerator& accelerator;
  std::uint64_t count = 0;
  /// A serving row may describe one of several equal replicas; a training row covers all devices.
  enum class Cover { kAll, kReplica } cover = Cover::kAll;
};

struct PlanText {
  StatedPlan plan;
  std::uint32_t ranks_per_accelerator = 1;
  std::uint32_t copies = 1;  ///< of the layout as `par` gives it, that fill the devices
  std::vector<std::string> warnings;
};

/// `par` may be null. Unknown keys are warnings, text values ("see recipe") unknowns. Errors, at
/// the field: a size below 1, a number in quotes, a product of tp x pp x cp x dp (x fsdp) that the
/// devices or their cores cannot hold. Expert parallelism is over the same ranks and does not
/// count.
[[nodiscard]] Result<PlanText> read_run_plan(const DocumentNode& par, const RunDevices& devices);

}  // namespace orrery
