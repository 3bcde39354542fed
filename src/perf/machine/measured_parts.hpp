// perf/machine/measured_parts.hpp - accelerators on which training was measured, and how doubtful
// an estimate for any other one is.
//
// A constant table of the rows of data/runs/training_runs.json; a test compares the two. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "hardware/catalog.hpp"

namespace orrery {

/// What published training runs say about an accelerator.
enum class RunEvidence {
  kMeasured,    ///< runs on the accelerator itself
  kFew,         ///< fewer than kRunsEnough of them
  kGeneration,  ///< runs on another accelerator of its architecture
  kNone,        ///< no run on its architecture: the rates are priors
};

inline constexpr std::int64_t kRunsEnough = 10;

/// Rows on the accelerator itself.
[[nodiscard]] std::int64_t measured_training_runs(const Accelerator& accelerator);

[[nodiscard]] RunEvidence training_evidence(const Accelerator& accelerator);

/// Returns "no measured training run on mi355x, nor on another cdna4: ..."; empty where enough were
/// measured.
[[nodiscard]] std::string evidence_text(const Accelerator& accelerator);

}  // namespace orrery
