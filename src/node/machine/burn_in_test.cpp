// node/machine/burn_in_test.cpp - a good machine passes, and one wrong bit is found and named.
#include "node/machine/burn_in.hpp"

#include <gtest/gtest.h>

#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

TEST(BurnInThreads, AMachineThatComputesAndRemembersPasses) {
  const Status passed = burn_in(RealClock(), {.time = Duration(), .memory = 1 << 16});
  EXPECT_TRUE(passed) << passed.error().text();
}

TEST(BurnIn, OneWrongNumberOfAProductIsFound) {
  const KnownProduct known(7);
  std::vector<double> product = known.multiply<double>();
  EXPECT_EQ(known.fault(product), "");
  product.back() += 1;
  EXPECT_NE(known.fault(product).find("as a sum of products that is "), std::string::npos);
  std::vector<std::uint64_t> whole = known.multiply<std::uint64_t>();
  EXPECT_EQ(known.fault(whole), "");
  whole[5] ^= 1;
  EXPECT_NE(known.fault(whole), "");
}

TEST(BurnIn, OneWrongBitOfMemoryIsFoundAndNamed) {
  std::vector<std::uint64_t> memory(1000);
  write_pattern(memory, 3);
  EXPECT_EQ(pattern_fault(memory, 3), "");
  EXPECT_NE(pattern_fault(memory, 4), "");
  memory[999] ^= std::uint64_t{1} << 40;
  EXPECT_TRUE(pattern_fault(memory, 3).ends_with("(bits 0000010000000000)"));
}

}  // namespace
}  // namespace orrery
