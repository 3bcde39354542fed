#include "scheduler/rounds/goodput_assignment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <deque>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

struct Way {
  std::uint32_t type;
  std::uint32_t devices;
  double speed;
};

JobRequest request_of(std::span<const Way> ways) {
  JobRequest request;
  RoleRequest role;
  for (const Way& way : ways) {
    GangRequest gang;
    gang.type = FleetTypeId(way.type);
    gang.devices = way.devices;
    role.options.push_back({gang, way.speed, std::nullopt});
  }
  request.roles.push_back(role);
  return request;
}

double total(std::span<const GoodputJob> jobs, const GoodputAssignment& parts) {
  double sum = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    for (std::uint32_t o = 0; o < parts[i].size(); ++o) {
      sum += parts[i][o] * goodput_gain(jobs[i], o);
    }
  }
  return sum;
}

/// The best of all assignments of whole jobs.
double best(std::span<const GoodputJob> jobs, std::vector<std::uint32_t> left) {
  if (jobs.empty()) return 0;
  double most = best(jobs.subspan(1), left);
  const std::vector<GangOption>& options = jobs.front().request->roles.front().options;
  for (std::uint32_t o = 0; o < options.size(); ++o) {
    const GangRequest& gang = options[o].gang;
    if (left[gang.type.value()] < gang.devices) continue;
    std::vector<std::uint32_t> rest = left;
    rest[gang.type.value()] -= gang.devices;
    most = std::max(most, goodput_gain(jobs.front(), o) + best(jobs.subspan(1), rest));
  }
  return most;
}

TEST(GoodputAssignment, GainsAreThoseOfTheObjective) {
  const JobRequest request = request_of(std::array{Way{0, 1, 1}, Way{0, 4, 4}});
  const GoodputJob waits{.request = &request, .age = 100, .restart = 60};
  EXPECT_NEAR(goodput_gain(waits, 0), 0.1, 1e-12);
  EXPECT_NEAR(goodput_gain(waits, 1), 0.6, 1e-12);  // 1.1 - 4^-0.5
  GoodputJob runs{.request = &request, .has = 0, .age = 940, .restart = 60};
  EXPECT_NEAR(goodput_gain(runs, 0), 0.1, 1e-12);
  EXPECT_NEAR(goodput_gain(runs, 1), 1.1 - 1 / std::sqrt(4 * 0.94), 1e-12);
  runs.restarts = 3;
  EXPECT_NEAR(goodput_gain(runs, 1), 1.1 - 1 / std::sqrt(4 * 0.76), 1e-12);
  runs.restarts = 20;  // the restart factor is 0
  EXPECT_NEAR(goodput_gain(runs, 1), -1.1, 1e-12);
}

TEST(GoodputAssignment, SharesAFleetRatherThanGivingAllToOne) {
  // Four devices, two jobs of linear speed-up: two devices each, because 2^-0.5 is convex.
  const JobRequest request =
      request_of(std::array{Way{0, 1, 1}, Way{0, 2, 2}, Way{0, 3, 3}, Way{0, 4, 4}});
  const std::array<GoodputJob, 2> jobs{{{.request = &request}, {.request = &request}}};
  const GoodputAssignment found = assign_goodput(jobs, std::array{4U});
  EXPECT_NEAR(found[0][1], 1, 1e-9);
  EXPECT_NEAR(found[1][1], 1, 1e-9);
}

TEST(GoodputAssignment, DoesNotMoveAJobForLessThanItsRestart) {
  const JobRequest request = request_of(std::array{Way{0, 1, 1.1}, Way{1, 1, 1}});
  GoodputJob runs{.request = &request, .has = 1, .age = 600, .restart = 60};
  EXPECT_NEAR(assign_goodput(std::array{runs}, std::array{1U, 1U})[0][1], 1, 1e-9);
  runs.age = 60'000;
  EXPECT_NEAR(assign_goodput(std::array{runs}, std::array{1U, 1U})[0][0], 1, 1e-9);
}

TEST(GoodputAssignment, IsNoWorseThanTheBestOfWholeJobsAndSplitsNoMoreThanThereAreTypes) {
  Rng rng(11);
  for (int round = 0; round < 30; ++round) {
    std::deque<JobRequest> requests;
    std::vector<GoodputJob> jobs;
    for (int i = 0; i < 6; ++i) {
      const double slow = 0.3 + 0.6 * rng.uniform();
      requests.push_back(request_of(
          std::array{Way{0, 4, 3.5}, Way{0, 2, 2}, Way{1, 4, 3.5 * slow}, Way{1, 2, 2 * slow}}));
      jobs.push_back({.request = &requests.back(), .age = 1000 * rng.uniform(), .restart = 60});
      if (rng.below(2) == 0) jobs.back().has = static_cast<std::uint32_t>(rng.below(4));
    }
    const std::vector<std::uint32_t> devices{8, 6};
    const GoodputAssignment found = assign_goodput(jobs, devices);
    EXPECT_GE(total(jobs, found), best(jobs, devices) - 0.01);
    int split = 0;
    for (const std::vector<double>& parts : found) {
      split += std::any_of(parts.begin(), parts.end(),
                           [](double part) { return part > 1e-6 && part < 1 - 1e-6; });
    }
    EXPECT_LE(split, 2);
  }
}

TEST(GoodputAssignment, TreatsJobsThatAskForTheSameAsOne) {
  JobRequest request = request_of(std::array{Way{0, 2, 1}});
  std::vector<GoodputJob> jobs(5, GoodputJob{.request = &request});
  const double apart = total(jobs, assign_goodput(jobs, std::array{7U}));
  request.class_id = ClassId(3);
  const GoodputAssignment found = assign_goodput(jobs, std::array{7U});
  EXPECT_NEAR(total(jobs, found), apart, 1e-9);
  EXPECT_NEAR(found[0][0], 1, 1e-9);
  EXPECT_NEAR(found[3][0], 0.5, 1e-9);
  EXPECT_NEAR(found[4][0], 0, 1e-9);
}

TEST(GoodputAssignment, TakesRunningJobsThatAreAlikeTogether) {
  // Different ages give few restart steps, so that thousands of running jobs are a small program.
  const JobRequest request = request_of(std::array{Way{0, 2, 2}, Way{0, 1, 1}});
  std::vector<GoodputJob> jobs;
  jobs.reserve(4000);
  for (int i = 0; i < 4000; ++i) {
    jobs.push_back({.request = &request, .has = 1, .age = 600.0 + i, .restart = 60});
  }
  const GoodputAssignment found = assign_goodput(jobs, std::array{6000U});
  double devices = 0;
  for (const std::vector<double>& parts : found) devices += 2 * parts[0] + parts[1];
  EXPECT_NEAR(devices, 6000, 1e-6);
}

}  // namespace
}  // namespace orrery
