#include "scheduler/rounds/throughput_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

ShareClass jobs_of(std::vector<double> speeds, std::uint32_t devices = 1, std::uint32_t jobs = 1) {
  ShareClass alike;
  alike.jobs = jobs;
  for (std::uint32_t t = 0; t < speeds.size(); ++t) {
    alike.options.push_back({FleetTypeId(t), devices, speeds[t]});
  }
  return alike;
}

/// What the worst-off class has: devices x its speed over that on an equal share.
double least(std::span<const ShareClass> classes, std::span<const std::uint32_t> devices,
             const std::vector<std::vector<double>>& shares) {
  double all = 0;
  for (const std::uint32_t n : devices) all += n;
  double least = 1e300;
  for (std::size_t c = 0; c < classes.size(); ++c) {
    double equal = 0;
    double has = 0;
    for (std::size_t o = 0; o < classes[c].options.size(); ++o) {
      const ShareClass::Option& option = classes[c].options[o];
      equal += option.speed * devices[option.type.value()] / all;
      has += option.speed * shares[c][o] * option.devices;
    }
    least = std::min(least, has / equal);
  }
  return least;
}

TEST(ThroughputShares, AreThoseOfTheExampleOfThePaper) {
  // Section 4.1: three jobs, one V100 and one K80; each has 10 % more than of equal time on both.
  const std::array classes{jobs_of({4, 1}), jobs_of({3, 1}), jobs_of({2, 1})};
  const std::array devices{1U, 1U};
  const auto shares = throughput_shares(classes, devices);
  constexpr double kTwoDigits = 0.005;
  EXPECT_NEAR(shares[0][0], 0.45, kTwoDigits);
  EXPECT_NEAR(shares[0][1], 0, kTwoDigits);
  EXPECT_NEAR(shares[1][0], 0.45, kTwoDigits);
  EXPECT_NEAR(shares[1][1], 0.09, kTwoDigits);
  EXPECT_NEAR(shares[2][0], 0.09, kTwoDigits);
  EXPECT_NEAR(shares[2][1], 0.91, kTwoDigits);
  EXPECT_NEAR(least(classes, devices, shares), 8.0 / 11, 1e-9);
}

TEST(ThroughputShares, GiveTimeInInverseProportionToDevices) {
  // One type: a gang of four has a quarter of the time of a single device.
  const std::array classes{jobs_of({1}), jobs_of({1}, 4)};
  const auto shares = throughput_shares(classes, std::array{2U});
  EXPECT_NEAR(4 * shares[1][0], shares[0][0], 1e-6);
  EXPECT_NEAR(shares[0][0], 1, 1e-6);
}

TEST(ThroughputShares, LeaveNothingIdleThatSomebodyGainsFrom) {
  // The first runs on one type only; beyond the minimum the other takes the rest.
  ShareClass one = jobs_of({1, 0});
  one.options.resize(1);
  const std::array classes{one, jobs_of({1, 1}, 1, 2)};
  const auto shares = throughput_shares(classes, std::array{1U, 4U});
  EXPECT_NEAR(shares[0][0], 1, 1e-6);
  EXPECT_NEAR(shares[1][0] + shares[1][1], 1, 1e-6);
}

TEST(ThroughputShares, OfAClassAreThoseOfItsJobsAndNoneIsBeyondWhatThereIs) {
  Rng rng(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<ShareClass> classes;
    std::vector<ShareClass> apart;
    for (int c = 0; c < 5; ++c) {
      const double slow = 0.2 + rng.uniform();
      classes.push_back(jobs_of({1, slow, slow * rng.uniform()}, 1U << rng.below(4),
                                1 + static_cast<std::uint32_t>(rng.below(4))));
      ShareClass one = classes.back();
      one.jobs = 1;
      apart.insert(apart.end(), classes.back().jobs, one);
    }
    const std::array devices{8U, 12U, 4U};
    const auto shares = throughput_shares(classes, devices);
    const double worst = least(classes, devices, shares);
    EXPECT_NEAR(worst, least(apart, devices, throughput_shares(apart, devices)), 2e-3 * worst);
    std::array<double, 3> used{};
    for (std::size_t c = 0; c < classes.size(); ++c) {
      double time = 0;
      for (std::size_t o = 0; o < 3; ++o) {
        time += shares[c][o];
        used[o] += shares[c][o] * classes[c].jobs * classes[c].options[o].devices;
      }
      EXPECT_LE(time, 1 + 1e-9);
    }
    for (std::size_t t = 0; t < 3; ++t) EXPECT_LE(used[t], devices[t] + 1e-6);
  }
}

TEST(ThroughputShares, OfTypesWithoutDevicesAreNoneHoweverFastTheyAre) {
  const std::array classes{jobs_of({4, 1, 1e15}), jobs_of({3, 1}), jobs_of({2, 1})};
  const auto shares = throughput_shares(classes, std::array{1U, 1U, 0U});
  EXPECT_EQ(shares[0][2], 0);
  const std::array without{jobs_of({4, 1}), jobs_of({3, 1}), jobs_of({2, 1})};
  const auto alone = throughput_shares(without, std::array{1U, 1U});
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t o = 0; o < 2; ++o) EXPECT_NEAR(shares[c][o], alone[c][o], 1e-9);
  }
}

TEST(ThroughputShares, OfOneFarFasterJobLeaveTheOthersTheirs) {
  const std::array classes{jobs_of({1e15, 1}), jobs_of({1, 1})};
  const auto shares = throughput_shares(classes, std::array{1U, 1U});
  EXPECT_GT(shares[0][0], 0.4);
  EXPECT_GT(shares[1][0] + shares[1][1], 0.4);
}

TEST(ThroughputShares, AreEqualByTheDevicesOfTypesThatAreThere) {
  const std::array devices{6U, 2U, 0U};
  EXPECT_EQ(equal_shares(jobs_of({4, 1, 9}), devices), (std::vector{0.75, 0.25, 0.0}));
  EXPECT_EQ(equal_shares(jobs_of({0, 0, 9}), devices), (std::vector{0.0, 0.0, 0.0}));
}

TEST(ThroughputShares, AreFoundAnewOnlyForAnotherQuestion) {
  ThroughputShares memory;
  const std::vector<ShareClass> classes{jobs_of({4, 1}), jobs_of({2, 1}, 1, 3)};
  const auto first = memory.of(classes, {1, 1});
  EXPECT_EQ(memory.of(classes, {1, 1}), first);
  EXPECT_EQ(memory.of(classes, {2, 1}), throughput_shares(classes, std::array{2U, 1U}));
}

}  // namespace
}  // namespace orrery
