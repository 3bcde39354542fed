// tests/fuzz/fuzz_plan.cpp - any text as a layout, which is printed and read again, and as an
// overlay of the calibration.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "perf/calibration.hpp"
#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

template <class T>
T first_or(const Choice<T>& choice, T otherwise) {
  return choice.open() ? otherwise : choice.values().front();
}

void check_layout(std::string_view text) {
  PlanSpace space;
  const Status read = read_layout(text, space);
  if (!read) {
    ORRERY_ASSERT(!read.error().message.empty(), "a refusal says why");
    return;
  }
  ParallelPlan plan;
  plan.tp = first_or(space.tp, plan.tp);
  plan.pp = first_or(space.pp, plan.pp);
  plan.dp = first_or(space.dp, plan.dp);
  plan.micro_batch = first_or(space.micro_batch, plan.micro_batch);
  PlanSpace again;
  ORRERY_ASSERT(read_layout(print_layout(plan), again), "what is printed can be read");
  ORRERY_ASSERT(again.tp.values() == std::vector<std::uint32_t>{plan.tp}, "and says the same");
}

// Two constants instead of the hundreds built in, so that the run time is the overlay's alone.
constexpr EmbeddedFile kBase[] = {
    {"base.yaml",
     "apiVersion: orrery/v1\nkind: Calibration\nname: base\nconstants:\n"
     "- {id: matmul.wave, value: 0.5, prior: 0.5, spread: 0.1, low: 0, high: 1}\n"
     "- {id: jitter, value: 0.01, prior: 0.01, spread: 0.1, low: 0, high: 1}\n"}};

void check_calibration(std::string_view text) {
  Result<std::vector<Document>> documents = Document::parse_all(text, "calibration.yaml");
  if (!documents) return;
  const FactOverlay overlay{.catalogs = {}, .calibrations = *std::move(documents), .models = {}};
  const Result<Calibration> calibration = Calibration::load(kBase, {&overlay, 1});
  if (!calibration) {
    ORRERY_ASSERT(!calibration.error().message.empty(), "a refusal says why");
    return;
  }
  for (const CalibrationConstant& constant : calibration->constants()) {
    ORRERY_ASSERT(constant.low <= constant.value && constant.value <= constant.high,
                  "values stay in their bounds");
  }
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  orrery::check_layout(text);
  orrery::check_calibration(text);
  return 0;
}
