#include "workload/trace/trace_generator.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace orrery {
namespace {

Trace sample(TraceStyle style, std::uint32_t jobs) {
  return generate_trace({.style = style, .accelerators = 4096, .jobs = jobs}, 7);
}

double share_of(const Trace& trace, TraceStatus status) {
  const auto count = std::count_if(trace.jobs.begin(), trace.jobs.end(),
                                   [&](const TraceJob& job) { return job.status == status; });
  return static_cast<double>(count) / static_cast<double>(trace.jobs.size());
}

double time_share_of(const Trace& trace, TraceStatus status) {
  double sum = 0;
  for (const TraceJob& job : trace.jobs) {
    if (job.status == status) sum += accelerator_seconds(job);
  }
  return sum / trace.accelerator_seconds();
}

// The fraction of jobs with at most this run time.
double ran_within(const Trace& trace, double seconds) {
  const auto count = std::count_if(trace.jobs.begin(), trace.jobs.end(), [&](const TraceJob& job) {
    return job.run.count_seconds() <= seconds;
  });
  return static_cast<double>(count) / static_cast<double>(trace.jobs.size());
}

double mean_size(const Trace& trace) {
  double sum = 0;
  for (const TraceJob& job : trace.jobs) sum += job.accelerators;
  return sum / static_cast<double>(trace.jobs.size());
}

double mean_run(const Trace& trace) {
  double sum = 0;
  for (const TraceJob& job : trace.jobs) sum += job.run.count_seconds();
  return sum / static_cast<double>(trace.jobs.size());
}

// Shares of jobs within 1 point, of accelerator-seconds within 4: a few long jobs hold most of
// them.
void expect_published_ends(const Trace& trace, TraceStyle style) {
  const TraceStatistics& published = trace_statistics(style);
  constexpr std::array kEnds = {TraceStatus::kCompleted, TraceStatus::kCancelled,
                                TraceStatus::kFailed};
  for (std::size_t i = 0; i < kEnds.size(); ++i) {
    EXPECT_NEAR(share_of(trace, kEnds[i]), published.ends[i], 0.01);
    EXPECT_NEAR(time_share_of(trace, kEnds[i]), published.ends_by_time[i], 0.04);
  }
}

TEST(TraceGenerator, PhillyHasThePublishedQuantilesSizesAndEnds) {
  const Trace trace = sample(TraceStyle::kPhilly, 100'000);
  EXPECT_NEAR(ran_within(trace, 97), 0.10, 0.02);
  EXPECT_NEAR(ran_within(trace, 1580), 0.50, 0.02);
  EXPECT_NEAR(ran_within(trace, 10'917), 0.90, 0.02);
  EXPECT_NEAR(ran_within(trace, 255'553), 0.99, 0.003);
  EXPECT_NEAR(mean_run(trace) / 13'408, 1, 0.15);
  std::map<std::uint32_t, double> sizes;
  for (const TraceJob& job : trace.jobs) sizes[job.accelerators] += 1e-5;
  EXPECT_NEAR(sizes[1], 0.955, 0.02);
  EXPECT_NEAR(sizes[4], 0.024, 0.01);
  EXPECT_NEAR(sizes[8], 0.014, 0.01);
  expect_published_ends(trace, TraceStyle::kPhilly);
}

TEST(TraceGenerator, HeliosHasThePublishedMeansMedianAndEnds) {
  const Trace trace = sample(TraceStyle::kHelios, 40'000);
  EXPECT_NEAR(ran_within(trace, 206), 0.50, 0.02);
  EXPECT_NEAR(mean_run(trace) / 6651.681, 1, 0.15);
  EXPECT_NEAR(mean_size(trace) / 3.716, 1, 0.3);
  expect_published_ends(trace, TraceStyle::kHelios);
}

TEST(TraceGenerator, AcmeHasThePublishedMeansMedianAndEnds) {
  const Trace trace = sample(TraceStyle::kAcme, 40'000);
  EXPECT_NEAR(ran_within(trace, 122), 0.50, 0.02);
  EXPECT_NEAR(mean_run(trace) / 1414.335, 1, 0.15);
  EXPECT_NEAR(mean_size(trace) / 5.68, 1, 0.3);
  expect_published_ends(trace, TraceStyle::kAcme);
}

TEST(TraceGenerator, AsksForTheLoadThatWasAskedFor) {
  const Duration span = Duration::hours(720);
  const Trace by_span = generate_trace(
      {.accelerators = 512, .utilisation = 0.9, .span = span, .start = Instant::from_ns(1)}, 3);
  const double capacity = 512 * span.count_seconds();
  EXPECT_NEAR(by_span.accelerator_seconds() / capacity, 0.9, 0.009);
  EXPECT_GE(by_span.first_submit(), Instant::from_ns(1));
  EXPECT_LE(by_span.last_submit(), Instant::from_ns(1) + span);

  const Trace by_jobs = generate_trace({.accelerators = 512, .utilisation = 0.5, .jobs = 5'000}, 3);
  EXPECT_EQ(by_jobs.jobs.size(), 5'000u);
  const Duration taken = by_jobs.last_submit() - by_jobs.first_submit();
  EXPECT_NEAR(by_jobs.accelerator_seconds() / (512 * taken.count_seconds()), 0.5, 0.02);
}

// One job had up to a quarter of the work, so that seeds differed by a factor of four in jobs.
TEST(TraceGenerator, EverySeedMeetsTheLoadOfASpanWithTheSameNumberOfJobs) {
  for (const TraceStyle style : {TraceStyle::kPhilly, TraceStyle::kHelios, TraceStyle::kAcme}) {
    const Duration span = Duration::hours(24 * std::int64_t{7});
    const TraceShape shape{.style = style, .accelerators = 512, .utilisation = 0.8, .span = span};
    const double work = 0.8 * 512 * span.count_seconds();
    std::set<std::size_t> numbers;
    for (std::uint64_t seed = 1; seed <= 8; ++seed) {
      const Trace trace = generate_trace(shape, seed);
      numbers.insert(trace.jobs.size());
      EXPECT_NEAR(trace.accelerator_seconds() / work, 1, 0.01);
      for (const TraceJob& job : trace.jobs) {
        ASSERT_LE(accelerator_seconds(job), 0.06 * work);
        ASSERT_LE(job.run.count_seconds(), 0.6 * span.count_seconds());
        ASSERT_LE(job.submit.ns(), span.count_ns());
      }
    }
    EXPECT_EQ(numbers.size(), 1u);
    const Trace twice = generate_trace(
        {.style = style, .accelerators = 512, .utilisation = 0.8, .span = span * 2}, 1);
    EXPECT_GT(twice.jobs.size(), *numbers.begin() * 3 / 2) << "twice the span, more jobs";
  }
}

TEST(TraceGenerator, SameShapeAndSeedGiveTheSameTrace) {
  const TraceShape shape{.style = TraceStyle::kHelios, .accelerators = 64, .jobs = 500};
  const auto text = [](const Trace& trace) {
    std::string all;
    for (const TraceJob& job : trace.jobs) {
      all += job.name + job.user + job.tenant + std::to_string(job.submit.ns()) +
             std::to_string(job.run.count_ns()) + std::to_string(job.accelerators) +
             std::to_string(static_cast<int>(job.status)) + "\n";
    }
    return all;
  };
  EXPECT_EQ(text(generate_trace(shape, 1)), text(generate_trace(shape, 1)));
  EXPECT_NE(text(generate_trace(shape, 1)), text(generate_trace(shape, 2)));
}

TEST(TraceGenerator, SubmitsComeInBurstsOfOneUserAndByTheHour) {
  const Trace trace = generate_trace(
      {.accelerators = 4096, .utilisation = 0.05, .jobs = 20'000, .users = 50, .tenants = 4}, 11);
  int same_user = 0;
  std::map<std::int64_t, int> by_day_of_week;
  std::map<std::string, std::set<std::string>> tenants_of;
  for (std::size_t i = 0; i < trace.jobs.size(); ++i) {
    const TraceJob& job = trace.jobs[i];
    if (i > 0 && job.user == trace.jobs[i - 1].user) ++same_user;
    by_day_of_week[job.submit.ns() / Duration::hours(24).count_ns() % 7] += 1;
    tenants_of[job.user].insert(job.tenant);
  }
  EXPECT_GT(same_user, 12'000) << "next to each other in bursts";
  EXPECT_GT(by_day_of_week[1], 2 * by_day_of_week[2])
      << "1970 began on a Thursday: a Friday has 2.8 times the jobs of a Saturday";
  for (const auto& [user, tenants] : tenants_of) EXPECT_EQ(tenants.size(), 1u) << user;
  EXPECT_LE(tenants_of.size(), 50u);
  EXPECT_GT(tenants_of.size(), 30u);
}

TEST(TraceGenerator, NoJobIsLargerThanTheCluster) {
  const Trace trace =
      generate_trace({.style = TraceStyle::kAcme, .accelerators = 8, .jobs = 2'000}, 5);
  for (const TraceJob& job : trace.jobs) ASSERT_LE(job.accelerators, 8u);
}

TEST(TraceGenerator, ATinyTraceIsATrace) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Trace trace =
        generate_trace({.accelerators = 100'000, .utilisation = 10, .jobs = 1}, seed);
    ASSERT_EQ(trace.jobs.size(), 1u);
    EXPECT_GE(trace.jobs[0].run, Duration::seconds(1));
  }
}

TEST(TraceGenerator, ShapesThatCannotBeAreRefused) {
  const auto message = [](const TraceShape& shape) {
    const Status status = check_trace_shape(shape);
    return status ? "fine" : status.error().message;
  };
  EXPECT_EQ(message({.jobs = 10}), "fine");
  EXPECT_EQ(message({.span = Duration::hours(24)}), "fine");
  EXPECT_EQ(message({}), "expected either the number of jobs or the span of the trace");
  EXPECT_EQ(message({.jobs = 1, .span = Duration::hours(24)}),
            "expected either the number of jobs or the span of the trace");
  EXPECT_NE(message({.accelerators = 0, .jobs = 1}), "fine");
  EXPECT_NE(message({.jobs = 0}), "fine");
  EXPECT_NE(message({.utilisation = 0, .jobs = 1}), "fine");
  EXPECT_NE(message({.utilisation = std::nan(""), .jobs = 1}), "fine");
  EXPECT_NE(message({.span = Duration::minutes(1)}), "fine");
  EXPECT_NE(message({.accelerators = 4'000'000'000, .span = Duration::hours(80'000)}), "fine");
  EXPECT_NE(message({.accelerators = 1, .jobs = 10'000'000}), "fine");
}

}  // namespace
}  // namespace orrery
