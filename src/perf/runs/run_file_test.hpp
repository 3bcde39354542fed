// perf/runs/run_file_test.hpp - the built-in catalogs and short ways to read, for the tests of run
// files.
#pragma once

#include <string>
#include <string_view>

#include "perf/runs/run_file.hpp"

namespace orrery {

/// Returns the catalogs of the files compiled in; read once a program.
[[nodiscard]] const RunCatalogs& built_in();

/// The accelerator of that id.
[[nodiscard]] const Accelerator& accelerator_of(std::string_view id);

/// The only row of a list with the one given; a failure that is no run is reported.
[[nodiscard]] Run read_one(const std::string& row);
[[nodiscard]] TrainingRun read_training(const std::string& row);
[[nodiscard]] ServingRun read_serving(const std::string& row);
/// The error text of a bad row; "" for a good one.
[[nodiscard]] std::string error_of(const std::string& row);

}  // namespace orrery
