// tests/end_to_end/test_seed.hpp - the seed of tests that do things at random moments.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iostream>

namespace orrery {

/// ORRERY_TEST_SEED, else 1; printed, so that a failure can be repeated with the same seed.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("ORRERY_TEST_SEED");
  const std::uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  std::cout << "ORRERY_TEST_SEED=" << seed << '\n';
  return seed;
}

}  // namespace orrery
