#include "verbs/cluster/live_text.hpp"

#include "base/numbers/rng.hpp"
#include "verbs/cluster/live_cluster_test.hpp"

namespace orrery {
namespace {

const LiveText kAtNoon{.colour = Colour::kOff,
                       .now = Instant::parse("2026-11-27T12:00:00Z").value()};

TEST(ShortDurationTest, TheLargestUnitThatFitsIsShown) {
  const auto shown = [](std::int64_t seconds) {
    return short_duration(Duration::seconds(seconds));
  };
  EXPECT_EQ(shown(-5), "0s");
  EXPECT_EQ(shown(0), "0s");
  EXPECT_EQ(shown(59), "59s");
  EXPECT_EQ(shown(60), "1m");
  EXPECT_EQ(shown(3'599), "59m");
  EXPECT_EQ(shown(3'600), "1h");
  EXPECT_EQ(shown(86'399), "23h");
  EXPECT_EQ(shown(86'400), "1d");
  EXPECT_EQ(shown(34'560'000), "400d");
}

TEST(LiveTextTest, AgesCountToNowAndRunTimesToTheEnd) {
  EXPECT_EQ(kAtNoon.ago({}), "");
  EXPECT_EQ(kAtNoon.ago(seconds_from_noon(-125)), "2m ago");
  EXPECT_EQ(kAtNoon.ago(seconds_from_noon(10)), "0s ago");
  v1::Job job = job_named(1, "a", "running");
  EXPECT_EQ(kAtNoon.run_time(job), "");
  *job.mutable_started() = seconds_from_noon(-7'200);
  EXPECT_EQ(kAtNoon.run_time(job), "2h");
  *job.mutable_ended() = seconds_from_noon(-7'150);
  EXPECT_EQ(kAtNoon.run_time(job), "50s");
}

TEST(LiveTextTest, AnOutcomeIsOneLineAndBlamesOnlyWhatDidNotFinish) {
  v1::Job job = job_named(1, "a", "failed");
  job.set_blame("exit\n1");
  EXPECT_EQ(outcome(job), "failed: exit\\n1");
  *job.mutable_started() = seconds_from_noon(0);
  *job.mutable_ended() = seconds_from_noon(60);
  EXPECT_EQ(outcome(job), "failed after 1 min: exit\\n1");
  job.set_phase("finished");
  EXPECT_EQ(outcome(job), "finished after 1 min");
}

TEST(LiveTextTest, AListSaysWhereJobsRunAndWhatOneWouldAskNext) {
  v1::Job running = job_named(7, "train", "running");
  running.set_submitter("ada");
  running.set_tenant("lab");
  running.set_accelerators(40);
  running.set_attempt(2);
  running.set_priority(5);
  running.mutable_progress()->set_done(0.256);
  *running.mutable_since() = seconds_from_noon(-60);
  *running.mutable_started() = seconds_from_noon(-120);
  for (const char* node : {"n0", "n0", "n1", "n2", "n3", "n4"}) {
    running.add_parts()->set_node(node);
  }
  v1::Job waiting = job_named(12, "eval", "queued");
  waiting.set_waiting("waits for 4 h100");
  EXPECT_EQ(kAtNoon.jobs({running, waiting}),
            "ID  NAME   USER  TENANT  STATE    SINCE   TIME  PRIORITY  ACCELERATORS  WHERE\n"
            " 7  train  ada   lab     running  1m ago    2m         5            40  n0, n1, n2, 2 "
            "more  attempt 2, 26 % done\n"
            "12  eval                 queued                        0             0"
            "                      waits for 4 h100\n");
}

TEST(LiveTextTest, NamesOfUsersCannotReachTheTerminal) {
  const std::string evil = "a\x1b[31m\nb";
  v1::Job job = job_named(1, evil, "running");
  job.set_waiting(evil);
  job.set_blame(evil);
  job.set_tenant(evil);
  job.add_notes(evil);
  v1::Node node;
  node.set_name(evil);
  node.set_drain_why(evil);
  node.set_out_why(evil);
  for (const std::string& text : {kAtNoon.jobs({job}), kAtNoon.job(job), kAtNoon.nodes({node}),
                                  kAtNoon.node(node), kAtNoon.job_bills({job})}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_EQ(text.find("\nb"), std::string::npos) << text;
  }
}

TEST(LiveTextTest, AJobShowsItsAttemptsAndItsBill) {
  v1::Job job = job_named(7, "train", "failed");
  job.set_time_limit_s(5'400);
  job.mutable_bill()->set_accelerator_hours(12.345);
  job.mutable_bill()->set_cost_usd(30.5);
  v1::JobAttempt& attempt = *job.add_attempts();
  attempt.set_number(1);
  *attempt.mutable_started() = seconds_from_noon(-120);
  *attempt.mutable_running() = seconds_from_noon(-60);
  *attempt.mutable_stopped() = seconds_from_noon(0);
  attempt.set_exit_status(139);
  attempt.set_exit_rank(3);
  attempt.set_reason("program");
  const std::string text = kAtNoon.job(job);
  EXPECT_NE(text.find("time limit  1 h 30 min"), std::string::npos) << text;
  EXPECT_NE(text.find("12.3 accelerator-hours (lost: 0, idle: 0)"), std::string::npos) << text;
  EXPECT_NE(text.find("$30.50, 0 kWh, 0 kg CO2"), std::string::npos) << text;
  EXPECT_NE(text.find("1  2026-11-27T11:58:00Z   1m  program   139, rank 3"), std::string::npos)
      << text;
}

TEST(LiveTextTest, ANodeLeavesOpenWhatItsDriverDoesNotReport) {
  v1::Node node;
  node.set_name("n1");
  node.set_health("ready");
  node.set_connected(true);
  node.set_accelerators(2);
  node.set_accelerator("h100");
  node.set_other_jobs(2);
  v1::AcceleratorReading& first = *node.mutable_reading()->add_accelerators();
  first.set_power_w(0);
  first.set_clock(0.5);
  node.mutable_reading()->add_accelerators();
  const std::string text = kAtNoon.node(node);
  EXPECT_NE(text.find("jobs          2 of other tenants\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\n     0    0 W   50 %\n"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n     1\n")) << text;
}

TEST(LiveTextTest, ColoursAreOnlyOnATerminal) {
  const std::vector<v1::Job> jobs{job_named(1, "a", "failed")};
  EXPECT_EQ(kAtNoon.colour_code("failed"), "");
  LiveText coloured = kAtNoon;
  coloured.colour = Colour::kOn;
  EXPECT_EQ(coloured.colour_code("failed"), "31");
  EXPECT_EQ(coloured.colour_code("no state"), "");
  EXPECT_NE(coloured.jobs(jobs).find("\x1b[31mfailed"), std::string::npos);
}

TEST(LiveTextTest, ShortDurationsNeverGrowWhereTimesShrink) {
  constexpr std::uint64_t kSeed = 3;
  Rng rng(kSeed);
  const auto seconds_of = [](const std::string& text) {
    const std::map<char, std::int64_t> units{{'s', 1}, {'m', 60}, {'h', 3'600}, {'d', 86'400}};
    return std::stoll(text) * units.at(text.back());
  };
  for (int round = 0; round < 2'000; ++round) {
    const auto seconds = static_cast<std::int64_t>(rng.below(1 + rng.below(20'000'000)));
    const std::int64_t shown = seconds_of(short_duration(Duration::seconds(seconds)));
    ASSERT_LE(shown, seconds) << "seed " << kSeed << ", round " << round;
    ASSERT_LT(seconds, 2 * shown + 1) << "seed " << kSeed << ", round " << round;
  }
}

}  // namespace
}  // namespace orrery
