#include "runtime/kernels/rotation.hpp"

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

}  // namespace orrery
