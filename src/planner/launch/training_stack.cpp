#include "planner/launch/training_stack.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace orrery {
namespace {

constexpr std::array<std::string_view, 3> kTrainers{"pytorch", "jax", "tensorflow"};

/// Generations before the first kernels of flash attention (Turing).
constexpr std::array<std::string_view, 3> kBeforeFlash{"kepler", "pascal", "volta"};

struct Answers {
  bool known = false;   ///< the catalog has its platform
  bool trains = false;  ///< on some framework
  bool infers = false;
  std::vector<std::string> rows;
};

std::string row_of(const Framework& framework, const Catalog::StackAnswer& stack) {
  const bool runs = stack.support != Support::kNo;
  std::string text = fmt::format("{}: {}", framework.id, runs ? "inference only" : "no");
  const Provenance* why = stack.exception != nullptr ? &stack.exception->provenance
                          : stack.stack != nullptr   ? &stack.stack->provenance
                                                     : nullptr;
  if (why != nullptr && !why->note.empty()) text += fmt::format(" ({})", why->note);
  return text;
}

Answers answers_of(const Catalog& catalog, const Accelerator& accelerator) {
  Answers answers;
  for (const std::string_view id : kTrainers) {
    const Framework* framework = catalog.find<Framework>(id);
    if (framework == nullptr) continue;
    const Catalog::StackAnswer stack = catalog.stack(*framework, accelerator);
    if (stack.platform == nullptr) continue;
    answers.known = true;
    answers.infers = answers.infers || stack.support != Support::kNo;
    if (stack.support_for(FrameworkUse::kTraining) != Support::kNo) {
      answers.trains = true;
    } else {
      answers.rows.push_back(row_of(*framework, stack));
    }
  }
  return answers;
}

double peak16_of(const Accelerator& accelerator) {
  const auto bf16 = accelerator.rate(NumberFormat::kBf16);
  const auto rate = bf16 ? bf16 : accelerator.rate(NumberFormat::kFp16);
  return rate ? rate->value() : 0;
}

const Accelerator* nearest_that_trains(const Catalog& catalog, const Accelerator& wanted) {
  const Accelerator* nearest = nullptr;
  const auto distance = [&](const Accelerator& a) {
    return std::abs(peak16_of(a) - peak16_of(wanted));
  };
  for (const Accelerator& other : catalog.all<Accelerator>()) {
    const Answers answers = answers_of(catalog, other);
    if (!answers.known || !answers.trains || other.kind == AcceleratorKind::kCpu) continue;
    const bool kin = other.vendor == wanted.vendor;
    const bool better =
        nearest == nullptr || (kin && nearest->vendor != wanted.vendor) ||
        (kin == (nearest->vendor == wanted.vendor) && distance(other) < distance(*nearest));
    if (better) nearest = &other;
  }
  return nearest;
}

}  // namespace

Status check_training_stack(const Catalog& catalog, const Accelerator& accelerator) {
  const Answers answers = answers_of(catalog, accelerator);
  if (!answers.known || answers.trains) return {};
  const Accelerator* nearest = nearest_that_trains(catalog, accelerator);
  return infeasible(fmt::format("no software stack of the catalog trains on {}: {}{}",
                                accelerator.id, fmt::join(answers.rows, "; "),
                                nearest == nullptr ? "" : "; training runs on " + nearest->id));
}

bool only_infers(const Catalog& catalog, const Accelerator& accelerator) {
  const Answers answers = answers_of(catalog, accelerator);
  return answers.infers && !answers.trains;
}

std::vector<std::string> training_lacks(const Accelerator& accelerator, const TrainingJob& job) {
  std::vector<std::string> lacks;
  const bool no_bf16 = job.precision.format == NumberFormat::kBf16 &&
                       !accelerator.rate(NumberFormat::kBf16) &&
                       accelerator.rate(NumberFormat::kFp16);
  if (no_bf16) {
    lacks.push_back(fmt::format("{} has no bf16: its fp16 rate is used, which needs loss scaling",
                                accelerator.id));
  }
  const bool early = std::find(kBeforeFlash.begin(), kBeforeFlash.end(),
                               accelerator.architecture) != kBeforeFlash.end();
  if (early && job.attention == AttentionKernel::kFlash) {
    lacks.push_back(
        fmt::format("flash attention has no kernels for {} ({}) but is assumed; see --attention",
                    accelerator.id, accelerator.architecture));
  }
  return lacks;
}

}  // namespace orrery
