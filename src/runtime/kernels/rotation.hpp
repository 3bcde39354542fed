// runtime/kernels/rotation.hpp - cosine and sine of an angle, and those of all rotary positions,
// the same bits on every CPU. Values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/kernels/aligned_floats.hpp"

namespace orrery {

struct Rotation {
  double cosine = 1;
  double sine = 0;
};

/// Returns cosine and sine of an angle in [0, pi] radians, within 1e-15, by Taylor series.
[[nodiscard]] Rotation rotation_of(double angle);

/// Positions and angles of rotary embeddings.
struct RotaryShape {
  std::int64_t positions = 0;
  std::int64_t half = 0;  ///< half of a head's width
  double base = 10'000;
  std::vector<double> factors;  ///< of the angle of each pair, in (0, 1]; empty: all are 1
};

/// Cosine and sine of position p and pair i at p x half + i: those of the angle p x factor of i /
/// base^(i / half).
struct RotaryTable {
  AlignedFloats cosine;
  AlignedFloats sine;
};
[[nodiscard]] RotaryTable rotary_table(const RotaryShape& shape);

}  // namespace orrery
