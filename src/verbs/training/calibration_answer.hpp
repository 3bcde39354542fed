// verbs/training/calibration_answer.hpp - the answer of `orrery calibrate-node`: how fast the parts
// of a training step are on this machine.
#pragma once

#include <string>

#include "runtime/training/node_probe.hpp"
#include "verbs/command_options.hpp"
#include "verbs/verb_answer.hpp"
#include "workload/node_calibration.hpp"

namespace orrery {

struct CalibrateCall {
  std::uint32_t ranks = 4;  ///< the most busy ranks
  ProbeEffort effort = ProbeEffort::kWhole;
  std::string precision = "float32";  ///< or "bfloat16"
  std::string directory = ".";        ///< on the disk to measure
  std::string out;                    ///< file for the calibration; empty: none
};

/// Shows a row per figure and a column per number of busy ranks. Precondition: a number of busy
/// ranks was measured, and all have the same products.
[[nodiscard]] VerbAnswer calibration_answer(const NodeCalibration& node);

/// Returns the file that `orrery predict --calibration` reads.
[[nodiscard]] std::string calibration_file(const NodeCalibration& node);

/// Measures for some seconds and writes the file; says so to options.message first. Errors: a
/// precision that this CPU cannot multiply in; a directory or file that cannot be written.
[[nodiscard]] Result<VerbAnswer> report_calibration(const CommandOptions& options,
                                                    const CalibrateCall& call);

}  // namespace orrery
