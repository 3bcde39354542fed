#include "base/system/free_address.hpp"

#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

class SeededEntropy final : public Entropy {
 public:
  [[nodiscard]] std::uint64_t draw() override { return rng_.next_u64(); }

 private:
  Rng rng_{7};
};

TEST(FreeAddressTest, HasItsPortWhileItLives) {
  SeededEntropy first;
  const FreeAddress held = FreeAddress::on_loopback(first).value();
  EXPECT_EQ(held.text(), "127.0.0.1:" + std::to_string(held.port()));
  SeededEntropy again;
  const FreeAddress other = FreeAddress::on("127.0.0.1", again).value();
  EXPECT_NE(other.port(), held.port()) << "the same draw finds it taken";
  EXPECT_FALSE(FreeAddress::on("nonsense", again));
}

}  // namespace
}  // namespace orrery
