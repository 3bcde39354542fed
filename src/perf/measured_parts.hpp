// perf/measured_parts.hpp - accelerators on which training was measured, and how far an estimate
// for any other has to be doubted.
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
  kGeneration,  ///< runs on another accelerator of its architecture
  kNone,        ///< no run on its architecture: the rates are priors
};

/// Rows on the accelerator itself.
[[nodiscard]] std::int64_t measured_training_runs(const Accelerator& accelerator);

[[nodiscard]] RunEvidence training_evidence(const Accelerator& accelerator);

/// "no measured training run on mi355x, nor on another cdna4: ..."; empty where one was measured.
[[nodiscard]] std::string evidence_text(const Accelerator& accelerator);

}  // namespace orrery
