// runtime/kernels/rotation.hpp - cosine and sine of an angle, the same bits on every CPU.
#pragma once

namespace orrery {

struct Rotation {
  double cosine = 1;
  double sine = 0;
};

/// Returns cosine and sine of an angle in [0, pi] radians, within 1e-15, by Taylor series.
[[nodiscard]] Rotation rotation_of(double angle);

}  // namespace orrery
