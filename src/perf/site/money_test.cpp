// perf/site/money_test.cpp - rents are the catalog's, owning adds up by hand, and a missing price
// is an error that says what to give.
#include "perf/site/money.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "base/numbers/rng.hpp"
#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

const Site kSite{.pue = 1.2, .carbon = {}, .electricity = DollarsPerJoule(0.08 / 3.6e6)};

Result<AcceleratorCost> cost(std::string_view node, const PriceOptions& options) {
  return accelerator_cost({builtin_facts(), builtin_constants(), kSite}, node_type(node), options);
}

double per_hour(std::string_view node, const PriceOptions& options) {
  const Result<AcceleratorCost> found = cost(node, options);
  EXPECT_TRUE(found) << found.error().text();
  return found ? (found->total() * kHour).value() : 0;
}

std::string refusal(std::string_view node, const PriceOptions& options) {
  const Result<AcceleratorCost> found = cost(node, options);
  EXPECT_FALSE(found);
  return found ? "" : found.error().message;
}

TEST(Money, RentsAreTheCatalogsByBasisAndLevel) {
  EXPECT_NEAR(per_hour("dgx-h100", {}), 2.95, 1e-9);
  EXPECT_NEAR(per_hour("dgx-h100", {.level = PriceLevel::kLow}), 1.99, 1e-9);
  EXPECT_NEAR(per_hour("dgx-h100", {.level = PriceLevel::kHigh}), 5.0, 1e-9);
  EXPECT_NEAR(per_hour("dgx-h100", {.basis = PriceBasis::kSpot}), 0.8, 1e-9);
  EXPECT_NEAR(per_hour("dgx-h100", {.basis = PriceBasis::kHyperscaler}), 6.88, 1e-9);
}

TEST(Money, TheOperatorsRentWins) {
  EXPECT_NEAR(per_hour("dgx-h100", {.rent = DollarsPerHour{DollarsPerSecond(1.5 / 3600)}}), 1.5,
              1e-9);
}

TEST(Money, AMissingPriceNamesTheAcceleratorAndWhatToGive) {
  const std::string none = refusal("dgx-a100-40g", {.basis = PriceBasis::kOwned, .owned = {}});
  EXPECT_NE(none.find("watts"), std::string::npos) << none;
  const std::string spot = refusal("hgx-h20-8", {.basis = PriceBasis::kSpot});
  EXPECT_NE(spot.find("spot"), std::string::npos) << spot;
  EXPECT_NE(spot.find("nvidia-h20-sxm-96g"), std::string::npos) << spot;
  EXPECT_NE(spot.find("another basis"), std::string::npos) << spot;
  const std::string owned =
      refusal("tpu-v4-host", {.basis = PriceBasis::kOwned, .owned = {.power = Watts(300)}});
  EXPECT_NE(owned.find("google-tpu-v4"), std::string::npos) << owned;
  EXPECT_NE(owned.find("dollars for one node"), std::string::npos) << owned;
}

TEST(Money, AnOwnedDgxH100AddsUpByHand) {
  const PriceOptions options{.basis = PriceBasis::kOwned,
                             .owned = {.amortisation_years = 4,
                                       .utilisation = 0.8,
                                       .maintenance_per_year = 0,
                                       .power = Watts(1000)}};
  const Result<AcceleratorCost> owned = cost("dgx-h100", options);
  ASSERT_TRUE(owned) << owned.error().text();
  // 300,000 / 8 for the server, 17.5 % network and 5.5 % storage on top, 4 x 8760 h x 0.8.
  EXPECT_NEAR((owned->hire * kHour).value(), 37500 * 1.23 / (4 * 8760 * 0.8), 1e-9);
  EXPECT_NEAR((owned->energy * kHour).value(), 1.2 * 0.08, 1e-12) << "1 kW for an hour";
  EXPECT_EQ(owned->assumptions.size(), 2U) << "network and storage";
}

TEST(Money, OwningAtTheCatalogsFiguresLiesNearPublishedCosts) {
  const auto owned = [](double watts) {
    return PriceOptions{.basis = PriceBasis::kOwned, .owned = {.power = Watts(watts)}};
  };
  // Published: an H100 at 1.2 (3 years, node alone) to 2.3 (3-year payback, 20 % opex) an hour.
  EXPECT_GT(per_hour("dgx-h100", owned(969)), 1.2);
  EXPECT_LT(per_hour("dgx-h100", owned(969)), 2.3);
  // A GB200 NVL72 at cost: 3.2, capital and hosting dearer than here.
  EXPECT_NEAR(per_hour("gb200-nvl72-tray", owned(1667)), 2.3, 0.4);
}

TEST(Money, ARackIsSharedByItsAccelerators) {
  PriceOptions options{.basis = PriceBasis::kOwned, .owned = {.power = Watts(1667)}};
  const double rack = per_hour("gb200-nvl72-tray", options);
  options.owned.node_price = Dollars(3.1e6 / 18);
  EXPECT_NEAR(per_hour("gb200-nvl72-tray", options), rack, 1e-9);
}

TEST(Money, AServerWithoutAPriceIsAFactorOfItsAcceleratorsAndSaysSo) {
  const Result<AcceleratorCost> guessed =
      cost("h100-pcie-8", {.basis = PriceBasis::kOwned, .owned = {.power = Watts(500)}});
  ASSERT_TRUE(guessed) << guessed.error().text();
  ASSERT_FALSE(guessed->assumptions.empty());
  EXPECT_NE(guessed->assumptions.front().find("h100-pcie-8: 1.5 x"), std::string::npos)
      << guessed->assumptions.front();
}

TEST(Money, RefusesFiguresOutOfRange) {
  PriceOptions options{.basis = PriceBasis::kOwned, .owned = {.power = Watts(900)}};
  ASSERT_TRUE(cost("dgx-h100", options));
  options.owned.utilisation = 0;
  EXPECT_FALSE(cost("dgx-h100", options));
  options.owned.utilisation = 1;
  options.owned.amortisation_years = kNan;
  EXPECT_FALSE(cost("dgx-h100", options));
  options.owned.amortisation_years = 5;
  options.rent = DollarsPerSecond(1);
  EXPECT_FALSE(cost("dgx-h100", options)) << "rented and owned at once";
  EXPECT_FALSE(cost("dgx-h100", {.rent = DollarsPerSecond(-1)}));
  EXPECT_FALSE(cost_of({.hire = DollarsPerSecond(1)}, 8, Seconds(kNan)));
}

TEST(Money, OwningGetsCheaperWithUseAndYears) {
  Rng rng(21);
  for (int i = 0; i < 200; ++i) {
    const double years = 2 + 4 * rng.uniform();
    const double use = 0.1 + 0.8 * rng.uniform();
    const auto at = [&](double y, double u) {
      return per_hour("dgx-b200",
                      {.basis = PriceBasis::kOwned,
                       .owned = {.amortisation_years = y, .utilisation = u, .power = Watts(1375)}});
    };
    EXPECT_LT(at(years + 0.5, use), at(years, use));
    EXPECT_LT(at(years, use + 0.05), at(years, use));
  }
}

TEST(Money, ARunCostsItsAcceleratorHours) {
  const Result<AcceleratorCost> rent = cost("dgx-h100", {});
  ASSERT_TRUE(rent) << rent.error().text();
  const Result<Dollars> run = cost_of(*rent, 1024, kHour * 24.0);
  ASSERT_TRUE(run) << run.error().text();
  EXPECT_NEAR(run->value(), 2.95 * 1024 * 24, 1e-6);
}

}  // namespace
}  // namespace orrery
