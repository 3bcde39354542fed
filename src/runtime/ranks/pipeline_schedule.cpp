#include "runtime/ranks/pipeline_schedule.hpp"

#include <algorithm>
#include <optional>

#include "base/assert.hpp"

namespace orrery {
namespace {

using enum PipelineStep::Pass;

/// Returns the number of forward passes before the first backward pass. With one chunk, one for
/// each later stage; with several, two for each later stage, because passes of other chunks come
/// back in between, plus those of a round without its last chunk.
std::uint32_t ahead_of(const ModelPart& part, std::uint32_t passes) {
  const std::uint32_t behind = part.stages - part.stage - 1;
  if (part.chunks == 1) return std::min(passes - 1, behind);
  return std::min(passes - 1, 2 * behind + (part.chunks - 1) * part.stages);
}

/// Returns pass `number`, counted from 0. A round takes as many micro-batches as there are stages
/// through the chunks one after the other.
PipelineStep step_of(const ModelPart& part, PipelineStep::Pass pass, std::uint32_t number) {
  if (part.chunks == 1) return {.pass = pass, .micro_batch = number};
  const std::uint32_t in_round = number % (part.stages * part.chunks);
  const std::uint32_t round = number / (part.stages * part.chunks);
  const std::uint32_t chunk = in_round / part.stages;
  return {.pass = pass,
          .micro_batch = round * part.stages + in_round % part.stages,
          .chunk = pass == kForward ? chunk : part.chunks - 1 - chunk};
}

/// The content of each slot; the lowest free slot is taken.
class Slots {
 public:
  void take(PipelineStep& step) {
    auto free = std::ranges::find_if(held_, [](const auto& slot) { return !slot.has_value(); });
    if (free == held_.end()) free = held_.emplace(free);
    *free = step;
    step.slot = static_cast<std::uint32_t>(free - held_.begin());
  }
  void give_back(PipelineStep& step) {
    const auto found = std::ranges::find_if(held_, [&](const auto& slot) {
      return slot && slot->micro_batch == step.micro_batch && slot->chunk == step.chunk;
    });
    ORRERY_ASSERT(found != held_.end(), "what comes back has gone forward");
    found->reset();
    step.slot = static_cast<std::uint32_t>(found - held_.begin());
  }

 private:
  std::vector<std::optional<PipelineStep>> held_;
};

}  // namespace

std::vector<PipelineStep> pipeline_schedule(const ModelPart& part, std::uint32_t micro_batches) {
  ORRERY_ASSERT(micro_batches > 0, "a shard has a micro-batch");
  ORRERY_ASSERT(part.chunks == 1 || micro_batches % part.stages == 0, "rounds are whole");
  const std::uint32_t passes = micro_batches * part.chunks;
  const std::uint32_t ahead = ahead_of(part, passes);
  std::vector<PipelineStep> steps;
  steps.reserve(std::size_t{2} * passes);
  Slots slots;
  for (std::uint32_t number = 0; number < passes + ahead; ++number) {
    if (number < passes) slots.take(steps.emplace_back(step_of(part, kForward, number)));
    if (number < ahead) continue;
    slots.give_back(steps.emplace_back(step_of(part, kBackward, number - ahead)));
  }
  return steps;
}

std::uint32_t pipeline_slots(const ModelPart& part, std::uint32_t micro_batches) {
  return 1 + ahead_of(part, micro_batches * part.chunks);
}

}  // namespace orrery
