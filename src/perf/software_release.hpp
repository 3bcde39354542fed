// perf/software_release.hpp - releases of the training software that measured runs name.
//
// NVIDIA's NeMo container, which carries Megatron Bridge and Megatron Core. A constant table; the
// calibration knows how fast some of them are (perf/training/training_constants.cpp), and a test
// compares the table with data/runs. Pure.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "perf/machine/machine.hpp"

namespace orrery {

struct SoftwareRelease {
  std::string_view name;  ///< "26.04"
  double years = 0;       ///< since 2020, as TrainingJob::release has it
};

/// Oldest first.
[[nodiscard]] std::span<const SoftwareRelease> known_releases();

[[nodiscard]] const SoftwareRelease& newest_release();

/// "26.04"; of years that are no known release's, those.
[[nodiscard]] std::string release_name(double years);

/// Errors (input): any other name; the message lists the known ones, the nearest first.
[[nodiscard]] Result<SoftwareRelease> release_named(std::string_view name);

/// Whether runs of known releases were measured on the accelerator's generation.
[[nodiscard]] bool has_releases(const Machine& machine);

}  // namespace orrery
