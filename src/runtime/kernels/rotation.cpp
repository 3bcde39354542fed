#include "runtime/kernels/rotation.hpp"

#include "base/numbers/math.hpp"

namespace orrery {

// At pi the last term is below 2^-60.
Rotation rotation_of(double angle) {
  Rotation rotation{.cosine = 0, .sine = 0};
  double term = 1;
  for (int i = 0; i < 32; i += 2) {
    rotation.cosine += term;
    rotation.sine += term * angle / (i + 1);
    term *= -angle * angle / ((i + 1) * (i + 2));
  }
  return rotation;
}

RotaryTable rotary_table(const RotaryShape& shape) {
  RotaryTable table;
  table.cosine.resize(static_cast<std::size_t>(shape.positions * shape.half));
  table.sine.resize(table.cosine.size());
  for (std::int64_t i = 0; i < shape.half; ++i) {
    const double power = -static_cast<double>(i) / static_cast<double>(shape.half);
    const double factor = shape.factors.empty() ? 1 : shape.factors[static_cast<std::size_t>(i)];
    const Rotation step = rotation_of(factor * math::pow(shape.base, power));
    Rotation turn;
    for (std::int64_t position = 0; position < shape.positions; ++position) {
      const auto at = static_cast<std::size_t>(position * shape.half + i);
      table.cosine[at] = static_cast<float>(turn.cosine);
      table.sine[at] = static_cast<float>(turn.sine);
      turn = {.cosine = turn.cosine * step.cosine - turn.sine * step.sine,
              .sine = turn.sine * step.cosine + turn.cosine * step.sine};
    }
  }
  return table;
}

}  // namespace orrery
