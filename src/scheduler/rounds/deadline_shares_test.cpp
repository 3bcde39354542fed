#include "scheduler/rounds/deadline_shares.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kNothing = 99;

/// Work done in a second, by number of devices from 1 on.
using Curve = std::vector<double>;

/// Makes the sizes from 1 on, or the powers of two, of a job with so much work; options count from
/// 0.
enum class SizesOf { kAll, kPowers };
SizeLadder ladder(const Curve& curve, double work, SizesOf sizes = SizesOf::kAll) {
  SizeLadder made;
  for (std::uint32_t n = 1; n <= curve.size(); n = sizes == SizesOf::kAll ? n + 1 : 2 * n) {
    const auto option = static_cast<std::uint32_t>(made.sizes.size());
    made.sizes.push_back({option, n, curve[n - 1] / work});
  }
  return made;
}

DeadlineJob job_of(const Curve& curve, double work, std::optional<double> due = {}) {
  DeadlineJob job;
  job.ladders.push_back(ladder(curve, work));
  job.due = due;
  return job;
}

/// One type; a slot is half a second unless stated.
struct OneType {
  std::vector<DeadlineJob> jobs;
  std::vector<std::uint32_t> devices;
  std::vector<DeviceRelease> releases;
  double slot = 0.5;

  [[nodiscard]] DeadlineInputs inputs() const { return {jobs, devices, releases, slot}; }
  [[nodiscard]] std::vector<char> admit(std::vector<char> before = {}) const {
    before.resize(jobs.size());
    return admit_by_deadline(inputs(), before).promised;
  }
  /// Devices of each job in the first slot.
  [[nodiscard]] std::vector<std::uint32_t> shares(std::vector<char> admitted = {}) const {
    admitted.resize(jobs.size());
    const DeadlineShares found = share_by_deadline(inputs(), admitted);
    std::vector<std::uint32_t> sizes;
    sizes.reserve(jobs.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) sizes.push_back(devices_of(i, found[i]));
    return sizes;
  }
  [[nodiscard]] std::uint32_t devices_of(std::size_t i, std::optional<std::uint32_t> option) const {
    for (const SizeLadder& of_type : jobs[i].ladders) {
      for (const SizeRate& size : of_type.sizes) {
        if (size.option == option) return size.devices;
      }
    }
    return option ? kNothing : 0;
  }
};

const Curve kConcave{1, 1.5};

TEST(DeadlineShares, MeetDeadlinesThatAllDevicesForTheEarliestMiss) {
  // Two jobs of 3 units each are due at 3 s and 3.5 s. If both devices work on one job after the
  // other, the first is done at 2 s and the second at 4 s; with one device each, both at 3 s.
  OneType fleet{{job_of(kConcave, 3, 3), job_of(kConcave, 3, 3.5)}, {2}, {}};
  EXPECT_EQ(fleet.admit(), (std::vector<char>{1, 1}));
  EXPECT_EQ(fleet.shares({1, 1}), (std::vector<std::uint32_t>{1, 1}));
}

TEST(DeadlineShares, TheLevelRisesUntilTheDeadlineIsKept) {
  // One device does 2.5 of 3 units; two from 1.5 s on do 1.5 + 1.5.
  for (const auto& [due, promised] : {std::pair{3.0, 1}, {2.5, 1}, {2.0, 1}, {1.9, 0}}) {
    const OneType fleet{{job_of(kConcave, 3, due)}, {2}, {}};
    EXPECT_EQ(fleet.admit()[0], promised) << due;
  }
  // To be done by 2.5 s the first needs both devices from 1.5 s on: 2 s of one device are left
  // until 3 s.
  for (const auto& [work, promised] : {std::pair{2.0, 1}, {2.1, 0}}) {
    const OneType two{{job_of(kConcave, 3, 2.5), job_of({1}, work, 3.0)}, {2}, {}};
    EXPECT_EQ(two.admit()[1], promised) << work;
  }
}

TEST(DeadlineShares, AJobIsNotAdmittedAtTheCostOfAnAdmittedOne) {
  const DeadlineJob admitted = job_of({1}, 3, 3.2);
  const DeadlineJob earlier = job_of({1}, 1, 1);
  const OneType fleet{{admitted, earlier}, {1}, {}};
  EXPECT_EQ(fleet.admit({1, 0}), (std::vector<char>{1, 0}));
  EXPECT_EQ(fleet.shares({1, 0}), (std::vector<std::uint32_t>{1, 0}));
  const OneType other_way{{earlier, admitted}, {1}, {}};
  EXPECT_EQ(other_way.admit(), (std::vector<char>{1, 0})) << "first come";
}

TEST(DeadlineShares, AJobOfAnUnknownLengthOrAnImpossibleDeadlineIsNotAdmitted) {
  const OneType fleet{{job_of({1}, 1), job_of({1}, 1, 0.9), job_of({1}, 1, -5)}, {3}, {}};
  EXPECT_EQ(fleet.admit(), (std::vector<char>{0, 0, 0}));
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{1, 1, 1})) << "there are devices left";
}

TEST(DeadlineShares, WhatIsLeftGoesFirstToJobsWithoutDevices) {
  OneType fleet{
      {job_of({1, 2, 3, 4}, 100, 200), job_of({1, 2}, 100), job_of({1, 2}, 100)}, {2}, {}};
  EXPECT_EQ(fleet.shares({1, 0, 0}), (std::vector<std::uint32_t>{1, 1, 0}));
  fleet.devices = {3};
  EXPECT_EQ(fleet.shares({1, 0, 0}), (std::vector<std::uint32_t>{1, 1, 1}));
}

TEST(DeadlineShares, ThenToTheJobWhoseDeviceTimeRisesLeast) {
  // A slot of two devices instead of one costs the second job 0.5 (2 - 1.9) device-seconds, the
  // first 0.5 (2 - 1.5); then a third one costs 0.5 (3 - 2.1) - 0.5 (2 - 1.9) = 0.4.
  OneType fleet{{job_of({1, 1.5, 1.6}, 100), job_of({1, 1.9, 2.1}, 100)}, {3}, {}};
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{1, 2}));
  fleet.devices = {4};
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{2, 2}));
  fleet.devices = {5};
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{2, 3}));
}

TEST(DeadlineShares, MoreDevicesNowSaveAnAdmittedJobItsWorstSizeLater) {
  // The first has to run on two devices from 2.5 s on, at 0.75 of a device each: a slot of two
  // devices now saves as much then. For the other job it costs 0.5 (2 - 1.8) device-seconds.
  const OneType fleet{{job_of(kConcave, 3.25, 3), job_of({1, 1.8}, 100)}, {3}, {}};
  EXPECT_EQ(fleet.shares({1, 0}), (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(fleet.shares({0, 0}), (std::vector<std::uint32_t>{1, 2}));
}

TEST(DeadlineShares, OfEqualGainsWhoHasThemKeepsThem) {
  OneType fleet{{job_of({1, 2}, 100), job_of({1, 2}, 100)}, {3}, {}};
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{2, 1}));
  fleet.jobs[1].has = 1;
  EXPECT_EQ(fleet.shares(), (std::vector<std::uint32_t>{1, 2}));
}

TEST(DeadlineShares, AJobDoesNotGrowWhereItsRestartTakesTheSlot) {
  for (const auto& [restart, devices] : {std::pair{0.2, 2U}, {0.3, 1U}}) {
    OneType fleet{{job_of({1, 2}, 100)}, {2}, {}};
    fleet.jobs[0].has = 0;
    fleet.jobs[0].restart = restart;
    EXPECT_EQ(fleet.shares(), std::vector{devices}) << restart;
  }
}

TEST(DeadlineShares, AJobGoesPastSizesThatDoNoMoreInTheSlot) {
  // A restart takes the whole slot, so the job keeps what it has; one of 0.2 s leaves four devices
  // 1.2 units, and one of 0.3 s leaves eight devices 1.6 units but four only 0.8.
  struct Case {
    std::uint32_t has = 0;
    double restart = 0;
    std::uint32_t devices = 0;
  };
  const Curve curve{1, 2, 3, 4};
  for (const auto& [has, restart, devices] :
       {Case{2, 0.6, 4}, {1, 0.6, 2}, {0, 0.6, 1}, {1, 0.2, 4}}) {
    OneType fleet{{DeadlineJob{}}, {4}, {}};
    fleet.jobs[0].ladders.push_back(ladder(curve, 100, SizesOf::kPowers));
    fleet.jobs[0].has = has;
    fleet.jobs[0].restart = restart;
    EXPECT_EQ(fleet.shares(), std::vector{devices}) << has << " " << restart;
  }
  OneType larger{{DeadlineJob{}}, {8}, {}};
  larger.jobs[0].ladders.push_back(ladder({1, 2, 3, 4, 5, 6, 7, 8}, 100, SizesOf::kPowers));
  larger.jobs[0].has = 1;
  larger.jobs[0].restart = 0.3;
  EXPECT_EQ(larger.shares(), std::vector{8U});
}

TEST(DeadlineShares, ARestartCountsAgainstTheDeadline) {
  OneType fleet{{job_of({1}, 3, 3.1)}, {1}, {}};
  fleet.jobs[0].restart = 0.2;
  EXPECT_EQ(fleet.admit()[0], 0);
  fleet.jobs[0].has = 0;
  EXPECT_EQ(fleet.admit()[0], 1);
}

TEST(DeadlineShares, AJobKeepsItsSizeWhereTheRestartAtASmallerOneTakesTooLong) {
  // On two devices it does 3 units by 2 s. Without a restart one device would do in the first slot.
  for (const auto& [restart, devices] : {std::pair{0.0, 1U}, {0.4, 2U}}) {
    OneType fleet{{job_of(kConcave, 2.7, 2), job_of({1}, 100)}, {2}, {}};
    fleet.jobs[0].has = 1;
    fleet.jobs[0].restart = restart;
    EXPECT_EQ(fleet.admit({0, 0})[0], 1);
    EXPECT_EQ(fleet.shares({1, 0})[0], devices) << restart;
  }
}

TEST(DeadlineShares, AJobWithoutADeadlineStaysOnItsType) {
  OneType fleet{{job_of({1}, 3)}, {1, 1}, {}};
  SizeLadder other = ladder({1}, 3);
  other.type = 1;
  other.sizes[0].option = 7;
  fleet.jobs[0].ladders.push_back(other);
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{0})[0], 0U);
  fleet.jobs[0].has = 7;
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{0})[0], 7U);
  fleet.devices = {1, 0};
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{0})[0], 0U);
}

TEST(DeadlineShares, DevicesThatOthersLeaveInTimeCount) {
  for (const auto& [after, promised] : {std::pair{1.0, 1}, {1.1, 0}}) {
    const OneType fleet{{job_of({1}, 2, 3)}, {0}, {{0, 1, after}}};
    EXPECT_EQ(fleet.admit()[0], promised) << after;
    EXPECT_EQ(fleet.shares({1})[0], 0U);
  }
}

TEST(DeadlineShares, DevicesThatOthersHoldAreNotFreeInTheFirstSlot) {
  const OneType fleet{{job_of({1}, 2, 3)}, {0}, {{0, 1, 0}}};
  EXPECT_EQ(fleet.admit()[0], 1);
  EXPECT_EQ(fleet.shares({1}), std::vector{0U});
}

TEST(DeadlineShares, AJobThatStaysHasItsDevicesAndItsWorkUntilItMoves) {
  // The first has two devices for 1 s, then none: the second has them from then on.
  OneType fleet{{job_of({1, 2}, 100), job_of({1, 2}, 4, 3)}, {2}, {}};
  fleet.jobs[0].has = 1;
  EXPECT_EQ(fleet.admit()[1], 1);
  fleet.jobs[0].stays = 1;
  EXPECT_EQ(fleet.admit()[1], 1);
  fleet.jobs[0].stays = 1.5;
  EXPECT_EQ(fleet.admit()[1], 0);
  // A job of 4 units has done 3 of them by then.
  OneType one{{job_of({1, 2}, 4, 2)}, {2}, {}};
  one.jobs[0].has = 1;
  one.jobs[0].restart = 1;
  one.jobs[0].stays = 1.5;
  EXPECT_EQ(one.admit()[0], 1);
  one.jobs[0].left = 1.01;
  EXPECT_EQ(one.admit()[0], 0);
  one.jobs[0].left = 0.7;
  one.jobs[0].due = 1.4;
  EXPECT_EQ(one.admit()[0], 1) << "it is done before it may move";
  one.jobs[0].left = 0.71;
  EXPECT_EQ(one.admit()[0], 0);
}

TEST(DeadlineShares, AJobThatIsLateHasItsLargestSizeUntilItsDeadline) {
  const OneType fleet{{job_of({1}, 100), job_of(kConcave, 100, 3)}, {2}, {}};
  EXPECT_EQ(fleet.shares({0, 1}), (std::vector<std::uint32_t>{0, 2}));
}

TEST(DeadlineShares, APlanIsOnTheTypeOfLeastDeviceTimeUnlessTheJobKeepsItsDeadlineWhereItIs) {
  OneType fleet{{job_of({1}, 3, 4)}, {1, 1}, {}};
  SizeLadder fast = ladder({2}, 3);
  fast.type = 1;
  fast.sizes[0].option = 7;
  fleet.jobs[0].ladders.push_back(fast);
  fleet.slot = 4;
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{1})[0], 7U);
  fleet.jobs[0].has = 0;
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{1})[0], 0U);
  fleet.jobs[0].due = 2;
  EXPECT_EQ(share_by_deadline(fleet.inputs(), std::array<char, 1>{1})[0], 7U);
}

TEST(DeadlineShares, ASizeBeyondWhatIsFreeIsRoundedDown) {
  // The second job may have 1, 2, 4 or 8 devices: beside the three of the first it gets four.
  OneType fleet{{job_of({1}, 10, 10), DeadlineJob{}}, {8}, {}};
  fleet.jobs[0].ladders[0] = {0, {{0, 3, 0.1}}};
  fleet.jobs[1].ladders.push_back(ladder({1, 2, 3, 4, 5, 6, 7, 8}, 40, SizesOf::kPowers));
  fleet.jobs[1].due = 10;
  EXPECT_EQ(fleet.admit(), (std::vector<char>{1, 1}));
  fleet.jobs[1].left = 1.1;  // 44 units: five devices would do
  EXPECT_EQ(fleet.admit(), (std::vector<char>{1, 0}));
}

/// Jobs that come and go on one type, exactly as they are planned.
class ExactRun {
 public:
  ExactRun(std::uint64_t seed, SizesOf sizes) : rng_(seed), sizes_(sizes) {
    devices_ = static_cast<std::uint32_t>(2 + rng_.below(15));
  }

  struct Counts {
    int admitted = 0;
    int refused = 0;
    int late = 0;  ///< of the admitted jobs
  };

  Counts play() {
    for (int round = 0; round < 60; ++round) {
      for (std::uint64_t n = rng_.below(3); n > 0; --n) come();
      step();
    }
    while (!jobs_.empty()) step();
    return counts_;
  }

 private:
  struct Job {
    DeadlineJob plan;
    double due = 0;  ///< time by now_
    bool admitted = false;
  };

  void come() {
    Curve curve;
    double rate = 0;
    double more = 1;
    const std::uint64_t most = 1 + rng_.below(8);
    for (std::uint64_t n = 0; n < most; ++n) {
      rate += more;
      curve.push_back(rate);
      more *= 0.5 + 0.5 * rng_.uniform();
    }
    const double work = 1 + 60 * rng_.uniform();
    Job job;
    job.plan.ladders.push_back(ladder(curve, work, sizes_));
    if (rng_.below(5) != 0) {
      job.due = now_ + work / curve.back() * (0.8 + 4 * rng_.uniform());
      job.plan.due = 0;  // set at each round
    }
    jobs_.push_back(std::move(job));
  }

  void step() {
    std::vector<DeadlineJob> plans;
    std::vector<char> admitted;
    for (Job& job : jobs_) {
      if (job.plan.due) job.plan.due = job.due - now_;
      plans.push_back(job.plan);
      if (job.plan.due.value_or(1) <= 0) plans.back().due.reset();
      admitted.push_back(job.admitted && plans.back().due ? 1 : 0);
      if (job.admitted && !plans.back().due) ++counts_.late;
      job.admitted = job.admitted && plans.back().due;
    }
    const std::array devices{devices_};
    const DeadlineInputs in{plans, devices, {}, kSlot};
    const std::vector<char> promised = admit_by_deadline(in, admitted).promised;
    const DeadlineShares shares = share_by_deadline(in, promised);
    std::uint32_t taken = 0;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      EXPECT_GE(promised[i], admitted[i]);
      jobs_[i].admitted = promised[i] != 0;
      jobs_[i].plan.has = shares[i];
      if (shares[i]) taken += run(jobs_[i], *shares[i]);
    }
    EXPECT_LE(taken, devices_);
    now_ += kSlot;
    std::erase_if(jobs_, [](const Job& job) { return job.plan.left <= 0; });
  }

  /// Runs a job for a slot; returns its devices.
  std::uint32_t run(Job& job, std::uint32_t option) {
    const SizeRate& size = job.plan.ladders[0].sizes[option];
    const double end = now_ + job.plan.left / size.rate;
    job.plan.left -= size.rate * kSlot;
    if (job.plan.left <= 1e-9) {
      job.plan.left = 0;
      counts_.admitted += job.admitted ? 1 : 0;
      counts_.refused += job.plan.due && !job.admitted ? 1 : 0;
      counts_.late += job.admitted && end > job.due + 1e-6 ? 1 : 0;
    }
    return size.devices;
  }

  static constexpr double kSlot = 1;

  Rng rng_;
  SizesOf sizes_;
  std::uint32_t devices_ = 0;
  double now_ = 0;
  std::vector<Job> jobs_;
  Counts counts_;
};

/// The admitted jobs need all devices of the first type. Another job that asks finds room before
/// them, and the last admitted job then has none: all are planned to find that out. The last job
/// that asks is on the other type. `differ`: work by which each asking job differs from the one
/// before.
OneType many_that_ask(std::uint32_t many, double differ) {
  OneType fleet{{}, {many, 1}, {}};
  fleet.jobs.reserve(std::size_t{2} * many);
  for (std::uint32_t i = 0; i < many; ++i) fleet.jobs.push_back(job_of({1}, 10, 10));
  for (std::uint32_t i = 0; i < many; ++i) fleet.jobs.push_back(job_of({1}, 5 - i * differ, 5));
  fleet.jobs.back().ladders.front().type = 1;
  return fleet;
}

std::vector<char> first_half(const OneType& fleet) {
  std::vector<char> admitted(fleet.jobs.size());
  std::fill_n(admitted.begin(), admitted.size() / 2, 1);
  return admitted;
}

TEST(DeadlineShares, AdmissionEndsAfterSoManyPlans) {
  constexpr std::uint32_t kMany = 1000;
  const OneType fleet = many_that_ask(kMany, 1e-6);
  const std::vector<char> admitted = first_half(fleet);
  const DeadlineAdmission found = admit_by_deadline(fleet.inputs(), admitted);
  EXPECT_GE(found.plans, kAdmissionPlans) << "others were not asked";
  EXPECT_LE(found.plans, kAdmissionPlans + std::uint64_t{2} * kMany + 1);
  EXPECT_EQ(found.promised, admitted) << "not even the last";
}

TEST(DeadlineShares, FewerPlansAreMadeForJobsThatAskAgainAndEachHasItsRound) {
  constexpr std::uint32_t kMany = 200;
  constexpr std::uint64_t kRounds = 60;
  OneType fleet = many_that_ask(kMany, 1e-6);
  const std::vector<char> admitted = first_half(fleet);
  for (DeadlineJob& job : fleet.jobs) job.asked = true;
  for (std::uint32_t free = kMany; free < 2 * kMany; free += 30) {
    for (std::uint32_t i = kMany; i < 2 * kMany; ++i) {
      fleet.jobs[i].ladders.front().type = i == free ? 1 : 0;
    }
    DeadlineInputs in = fleet.inputs();
    bool promised = false;
    for (in.round = 0; in.round < kRounds && !promised; ++in.round) {
      const DeadlineAdmission found = admit_by_deadline(in, admitted);
      EXPECT_LE(found.plans, kAskAgainPlans + std::uint64_t{2} * kMany + 1);
      promised = found.promised[free] != 0;
    }
    EXPECT_TRUE(promised) << free;
  }
}

TEST(DeadlineShares, AJobThatIsNewAsksBeforeThoseThatWereRefused) {
  constexpr std::uint32_t kMany = 100;
  OneType fleet = many_that_ask(kMany, 1e-6);
  for (DeadlineJob& job : fleet.jobs) job.asked = true;
  fleet.jobs.back().asked = false;
  DeadlineInputs in = fleet.inputs();
  for (in.round = 0; in.round < 5; ++in.round) {
    EXPECT_EQ(admit_by_deadline(in, first_half(fleet)).promised.back(), 1) << in.round;
  }
}

TEST(DeadlineShares, AJobJustLikeOneThatWasRefusedCostsNoPlan) {
  constexpr std::uint32_t kMany = 1000;
  const OneType fleet = many_that_ask(kMany, 0);
  const DeadlineAdmission found = admit_by_deadline(fleet.inputs(), first_half(fleet));
  EXPECT_EQ(found.promised.back(), 1) << "all are asked";
  EXPECT_LE(found.plans, 5 * kMany);
}

TEST(DeadlineShares, EveryAdmittedJobOfAllSizesIsDoneByItsDeadline) {
  ExactRun::Counts sum;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const ExactRun::Counts counts = ExactRun(seed, SizesOf::kAll).play();
    EXPECT_EQ(counts.late, 0) << "seed " << seed;
    sum.admitted += counts.admitted;
    sum.refused += counts.refused;
  }
  EXPECT_GT(sum.admitted, 100);
  EXPECT_GT(sum.refused, 100);
}

TEST(DeadlineShares, OfJobsOfFewSizesFewOfTheAdmittedAreLate) {
  ExactRun::Counts sum;
  for (std::uint64_t seed = 0; seed < 12; ++seed) {
    const ExactRun::Counts counts = ExactRun(seed, SizesOf::kPowers).play();
    sum.admitted += counts.admitted;
    sum.late += counts.late;
  }
  EXPECT_GT(sum.admitted, 100);
  EXPECT_LE(sum.late * 100, sum.admitted);
}

}  // namespace
}  // namespace orrery
