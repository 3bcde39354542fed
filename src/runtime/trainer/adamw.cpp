#include "runtime/trainer/adamw.hpp"

#include <algorithm>
#include <numbers>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"
#include "runtime/kernels/kernels.hpp"
#include "runtime/kernels/rotation.hpp"

namespace orrery {

void update(const AdamW& optimizer, const ParameterLayout& layout, const OptimizerRange& range,
            const OptimizerStep& step) {
  const std::size_t size = range.parameters.size();
  ORRERY_ASSERT(range.begin + size <= layout.size(), "the range lies in the layout");
  ORRERY_ASSERT(range.gradient.size() == size && range.first_moment.size() == size &&
                    range.second_moment.size() == size,
                "the range's spans are of one size");
  ORRERY_ASSERT(step.number > 0, "steps count from 1");
  const auto number = static_cast<double>(step.number);
  AdamStep call{
      .gradient_scale = step.gradient_scale,
      .beta1 = static_cast<float>(optimizer.beta1),
      .beta2 = static_cast<float>(optimizer.beta2),
      .first_correction = static_cast<float>(1 / (1 - math::pow(optimizer.beta1, number))),
      .second_correction = static_cast<float>(1 / (1 - math::pow(optimizer.beta2, number))),
      .epsilon = static_cast<float>(optimizer.epsilon),
      .rate = static_cast<float>(step.rate)};
  const KernelTable& table = kernels();
  for (const ParameterTensor& tensor : layout.tensors()) {
    const std::size_t begin = std::max(tensor.begin, range.begin);
    const std::size_t end = std::min(tensor.begin + tensor.size, range.begin + size);
    if (begin >= end) continue;
    const std::size_t at = begin - range.begin;
    call.parameters = range.parameters.data() + at;
    call.gradient = range.gradient.data() + at;
    call.first = range.first_moment.data() + at;
    call.second = range.second_moment.data() + at;
    call.count = static_cast<std::int64_t>(end - begin);
    call.decay = tensor.decays ? static_cast<float>(step.rate * optimizer.weight_decay) : 0.0F;
    table.adam(call);
  }
}

double CosineSchedule::rate(std::int64_t number) const {
  if (number <= warmup) return peak * static_cast<double>(number) / static_cast<double>(warmup);
  if (number >= steps) return lowest;
  const double done = static_cast<double>(number - warmup) / static_cast<double>(steps - warmup);
  return lowest + (peak - lowest) * (1 + rotation_of(std::numbers::pi * done).cosine) / 2;
}

}  // namespace orrery
