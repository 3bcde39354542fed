// tests/fuzz/fuzz_runs.cpp - any text as a file of published runs; every row becomes a run whose
// model can be counted and whose prediction is finite, or an error that says where and why.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "perf/runs/run_file.hpp"
#include "planner/run_estimate.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

// Read once: only the rows are new in each run.
const RunCatalogs& builtin_catalogs() {
  static const Result<Catalog> kHardware = Catalog::load(builtin_catalog(), {});
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  ORRERY_ASSERT(kHardware && kModels, "the built-in catalogs load");
  static const RunCatalogs kCatalogs{*kHardware, *kModels};
  return kCatalogs;
}

template <class AnyRun>
void check_run(const AnyRun& run) {
  const double total = count_parameters(run.model).total;
  ORRERY_ASSERT(std::isfinite(total) && total > 0, "a model has parameters");
  ORRERY_ASSERT(run.accelerator != nullptr && run.count > 0, "a run has accelerators");
  const StatedPlan& plan = run.plan;
  if (!plan.tp || !plan.pp || !plan.dp) return;
  const double ranks = 1.0 * *plan.tp * *plan.pp * *plan.dp * plan.cp.value_or(1);
  ORRERY_ASSERT(ranks == static_cast<double>(run.count) * run.ranks_per_accelerator,
                "a whole layout covers the accelerators");
}

const Calibration& constants() {
  static const Result<Calibration> kCalibration = Calibration::load(builtin_calibration(), {});
  ORRERY_ASSERT(kCalibration, "the built-in calibration loads");
  return *kCalibration;
}

void check_estimate(const TrainingRun& run) {
  const Result<TrainingEstimate> one = estimate(run, builtin_catalogs().hardware, constants());
  if (!one) {
    ORRERY_ASSERT(!one.error().message.empty(), "a refusal says why");
    return;
  }
  ORRERY_ASSERT(std::isfinite(one->cost.seconds) && one->cost.seconds > 0, "a step takes time");
  ORRERY_ASSERT(std::isfinite(one->cost.memory.total()), "memory is finite");
  ORRERY_ASSERT(one->seconds_low <= one->cost.seconds && one->cost.seconds <= one->seconds_high,
                "a prediction lies in its interval");
}

void check_row(const Run& row) {
  if (const auto* training = std::get_if<TrainingRun>(&row)) {
    check_run(*training);
    check_estimate(*training);
    ORRERY_ASSERT(training->sequence > Tokens(0), "a training run has a sequence");
  } else if (const auto* serving = std::get_if<ServingRun>(&row)) {
    check_run(*serving);
  } else {
    const Error& error = std::get<BadRow>(row).error;
    ORRERY_ASSERT(!error.message.empty() && error.where.line > 0, "a refusal says where and why");
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Result<RunFile> file = RunFile::parse(text, "runs.json", builtin_catalogs());
  if (!file) {
    ORRERY_ASSERT(!file.error().message.empty(), "a refusal says why");
    return 0;
  }
  for (const Run& row : file->runs) check_row(row);
  return 0;
}
