#include "perf/machine/measured_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace orrery {
namespace {

struct MeasuredPart {
  std::string_view id;
  std::string_view architecture;
  std::int64_t rows;
};

constexpr auto kMeasuredParts = std::to_array<MeasuredPart>({
    {"nvidia-a100-sxm4-40g", "ampere", 63},
    {"nvidia-a100-sxm4-80g", "ampere", 230},
    {"nvidia-h100-sxm5-80g", "hopper", 105},
    {"nvidia-h200-sxm-141g", "hopper", 2},
    {"nvidia-b200-sxm-180g", "blackwell", 58},
    {"nvidia-b300-sxm-288g", "blackwell-ultra", 27},
    {"nvidia-gb200-186g", "blackwell", 80},
    {"nvidia-gb300-279g", "blackwell-ultra", 69},
    {"amd-mi300x", "cdna3", 2},
    {"google-tpu-v4", "tpu-v4", 4},
    {"google-tpu-v5e", "tpu-v5e", 19},
    {"google-tpu-v5p", "tpu-v5p", 25},
    {"google-tpu-v6e", "tpu-v6e", 26},
    {"google-tpu7x", "tpu-v7", 16},
    {"aws-trainium1", "neuroncore-v2", 2},
});

}  // namespace

std::int64_t measured_training_runs(const Accelerator& accelerator) {
  const auto at = std::find_if(kMeasuredParts.begin(), kMeasuredParts.end(),
                               [&](const MeasuredPart& each) { return each.id == accelerator.id; });
  return at == kMeasuredParts.end() ? 0 : at->rows;
}

RunEvidence training_evidence(const Accelerator& accelerator) {
  const std::int64_t runs = measured_training_runs(accelerator);
  if (runs > 0) return runs < kRunsEnough ? RunEvidence::kFew : RunEvidence::kMeasured;
  const bool sibling = std::any_of(
      kMeasuredParts.begin(), kMeasuredParts.end(),
      [&](const MeasuredPart& each) { return each.architecture == accelerator.architecture; });
  return sibling ? RunEvidence::kGeneration : RunEvidence::kNone;
}

std::string evidence_text(const Accelerator& accelerator) {
  switch (training_evidence(accelerator)) {
    case RunEvidence::kMeasured:
      return {};
    case RunEvidence::kFew:
      return fmt::format("only {} measured training runs on {}: its interval is widened by half",
                         measured_training_runs(accelerator), accelerator.id);
    case RunEvidence::kGeneration:
      return fmt::format(
          "no measured training run on {}: its rates are those of other {} parts, and "
          "its interval is widened by half",
          accelerator.id, accelerator.architecture);
    case RunEvidence::kNone:
      break;
  }
  return fmt::format(
      "no measured training run on {} or another {} part: its rates are assumed, and "
      "its interval is that of an unknown kind, -40 to +60 %",
      accelerator.id, accelerator.architecture);
}

}  // namespace orrery
