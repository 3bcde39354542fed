// perf/site/site_test.cpp - the building's figures come from the operator first, then from the
// catalog, which says where it stood in.
#include "perf/site/site.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "perf/repository_facts_test.hpp"

namespace orrery {
namespace {

Result<Site> site(const SiteOptions& options) {
  return site_of(builtin_facts(), node_type("dgx-h100"), options);
}

TEST(Site, TakesCarbonAndElectricityOfTheRegion) {
  const Result<Site> france = site({.region = "France"});
  ASSERT_TRUE(france) << france.error().text();
  EXPECT_NEAR((france->carbon * kKilowattHour).value(), 56, 1e-9);
  EXPECT_NEAR((france->electricity * kKilowattHour).value(), 0.12, 1e-12);
  ASSERT_EQ(france->assumptions.size(), 1U) << "only the PUE was not given";
}

TEST(Site, StandsInForWhatNobodyNamedAndSaysSo) {
  const Result<Site> unnamed = site({});
  ASSERT_TRUE(unnamed) << unnamed.error().text();
  EXPECT_DOUBLE_EQ(unnamed->pue, 1.3) << "the middle of air-containment-modern, 1.2 to 1.4";
  EXPECT_NEAR((unnamed->carbon * kKilowattHour).value(), 481, 1e-9);
  EXPECT_EQ(unnamed->assumptions.size(), 3U);
}

TEST(Site, ALiquidCooledNodeStandsInALiquidCooledHall) {
  const Result<Site> liquid = site_of(builtin_facts(), node_type("gb200-nvl72-tray"), {});
  ASSERT_TRUE(liquid) << liquid.error().text();
  EXPECT_DOUBLE_EQ(liquid->pue, (1.12 + 1.25) / 2);
}

TEST(Site, TheOperatorsFiguresNeedNoRegion) {
  const Result<Site> own = site({.pue = 1.1,
                                 .carbon = GramsCo2PerKwh{GramsCo2PerJoule(7)},
                                 .electricity = DollarsPerJoule(2)});
  ASSERT_TRUE(own) << own.error().text();
  EXPECT_EQ(own->pue, 1.1);
  EXPECT_EQ(own->carbon, GramsCo2PerJoule(7));
  EXPECT_EQ(own->electricity, DollarsPerJoule(2));
  EXPECT_TRUE(own->assumptions.empty());
}

TEST(Site, RefusesUnknownNamesAndAPueNoBuildingHas) {
  const Result<Site> typo = site({.region = "Frnace"});
  ASSERT_FALSE(typo);
  EXPECT_NE(typo.error().message.find("france"), std::string::npos) << typo.error().message;
  EXPECT_FALSE(site({.cooling = "wind"}));
  EXPECT_FALSE(site({.pue = 0.9}));
  EXPECT_FALSE(site({.pue = std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_FALSE(site({.region = "Poland"})) << "carbon is known there, a price is not";
  EXPECT_TRUE(site({.region = "Poland", .electricity = DollarsPerJoule(3e-8)}));
}

}  // namespace
}  // namespace orrery
