// cmake/precompiled_command.hpp - what most sources of the command line include, besides
// cmake/precompiled_core.hpp. Nothing includes this file.
#pragma once

#include <CLI/CLI.hpp>

#include "base/format/field_writer.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"
#include "workload/models/model_catalog.hpp"
