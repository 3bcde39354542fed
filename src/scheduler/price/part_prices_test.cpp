#include "scheduler/price/part_prices.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

std::vector<PartDemand> random_demand(std::uint64_t seed) {
  Rng rng(seed);
  std::set<int> sizes;
  while (sizes.size() < 1 + seed % 20) sizes.insert(1 + static_cast<int>(rng.below(999)));
  std::vector<PartDemand> demand;
  demand.reserve(sizes.size());
  for (const int size : sizes) demand.push_back({size, 1 + static_cast<double>(rng.below(100))});
  return demand;
}

TEST(PartPrices, OnlyAWholeDeviceIsWorthAnythingWhereNobodyAsksForParts) {
  const PartPrices prices = part_prices({});
  EXPECT_EQ(prices[999], 0);
  EXPECT_EQ(prices[1000], 1);
}

TEST(PartPrices, AHalfIsWorthHalfADeviceWhereAllAskForHalves) {
  const std::vector<PartDemand> demand = {{500, 7}};
  const PartPrices prices = part_prices(demand);
  EXPECT_EQ(prices[499], 0);
  EXPECT_EQ(prices[500], 0.5);
  EXPECT_EQ(prices[999], 0.5);
}

TEST(PartPrices, WhatIsLeftBesideAnUnpairedRequestIsWorthNothing) {
  const std::vector<PartDemand> demand = {{810, 100}, {160, 5}};
  const PartPrices prices = part_prices(demand);
  EXPECT_NEAR(prices[190], 0, 1e-9);
  EXPECT_NEAR(prices[810], 1, 1e-9);
}

TEST(PartPrices, ASmallPartHasAPriceOnceItIsAskedForMoreOftenThanItIsLeftOver) {
  const std::vector<PartDemand> demand = {{810, 100}, {160, 500}};
  const PartPrices prices = part_prices(demand);
  EXPECT_NEAR(prices[190], 1.0 / 6, 1e-9);
  EXPECT_NEAR(prices[350], 2.0 / 6, 1e-9);
}

TEST(PartPrices, ThirdsAndTwoThirdsPriceEachOther) {
  const std::vector<PartDemand> demand = {{650, 100}, {320, 300}};
  const PartPrices prices = part_prices(demand);
  EXPECT_NEAR(prices[350], 1.0 / 3, 1e-9);
  EXPECT_NEAR(prices[650], 2.0 / 3, 1e-9);
}

TEST(PartPrices, APartIsNeverWorthMoreThanTheLargerPartThatHoldsIt) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const PartPrices prices = part_prices(random_demand(seed));
    for (std::size_t free = 1; free <= kDeviceThousandths; ++free) {
      ASSERT_GE(prices[free], prices[free - 1]) << "seed " << seed << " free " << free;
    }
  }
}

TEST(PartPrices, TwoPartsApartAreNeverWorthMoreThanTogether) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const PartPrices prices = part_prices(random_demand(seed));
    for (std::size_t a = 0; a <= kDeviceThousandths; a += 7) {
      for (std::size_t b = 0; a + b <= kDeviceThousandths; b += 3) {
        ASSERT_LE(prices[a] + prices[b], prices[a + b] + 1e-9) << "seed " << seed;
      }
    }
  }
}

// Prices by amount keep every packing at or below 1 too, so the best prices are no lower in total.
TEST(PartPrices, AllThatIsAskedForIsWorthAtLeastItsAmount) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const std::vector<PartDemand> demand = random_demand(seed);
    const PartPrices prices = part_prices(demand);
    double worth = 0;
    double amount = 0;
    for (const PartDemand& part : demand) {
      worth += part.frequency * prices[static_cast<std::size_t>(part.thousandths)];
      amount += part.frequency * part.thousandths / kDeviceThousandths;
    }
    EXPECT_GE(worth, amount - 1e-6) << "seed " << seed;
  }
}

TEST(PartPrices, OnlyTheMostFrequentSizesCountWhereThereAreVeryMany) {
  std::vector<PartDemand> demand;
  for (int size = 301; size <= 380; ++size) demand.push_back({size, size == 301 ? 0.5 : 1.0});
  EXPECT_EQ(part_prices(demand)[301], 0);
}

}  // namespace
}  // namespace orrery
