// Deadlines and budgets as a user sees them: refusals at submission, and reports.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/fake_controller_test.hpp"
#include "api/views.hpp"
#include "orrery/v1/orrery.pb.h"
#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

/// Has a controller in this process, once it was started.
class DeadlineCli : public Cli {
 protected:
  void start() {
    controller_.start();
    (void)write("ca.pem", controller_.authority());
    (void)write("cluster.json",
                R"({"ca": "ca.pem", "address": ")" + controller_.address() + R"("})");
  }
  [[nodiscard]] CliRun live(const std::string& arguments) const {
    return orrery("--retry 0 --dir " + path("") + " " + arguments);
  }
  FakeController controller_;
};

// A job of an hour takes an hour and the 5 s until a program runs. Job "waits" has not begun when
// it is looked at.
TEST_F(DeadlineCli, ASimulationTellsWhichDeadlinesWereMissedAndByHowMuch) {
  const std::string trace = write("trace.yaml", R"(apiVersion: orrery/v1
kind: Trace
name: three
epoch: 2026-01-01T00:00:00Z
jobs:
- {name: met, submit: 0 s, run: 3600 s, accelerators: 8, deadline: 2026-01-01T02:00:00Z}
- {name: late, submit: 0 s, run: 3600 s, accelerators: 8, deadline: 2026-01-01T01:30:00Z}
- {name: runs, submit: 0 s, run: 36000 s, accelerators: 8, deadline: 2026-01-01T02:30:00Z}
- {name: free, submit: 0 s, run: 3600 s, accelerators: 8}
- {name: waits, submit: 0 s, run: 3600 s, accelerators: 8, deadline: 2026-02-01T00:00:00Z}
)");
  const std::string asked =
      "simulate --accelerators h100:8 --policy fifo --until "
      "2026-01-01T05:00:00Z --trace " +
      trace + " --out " + path("results");
  const CliRun text = orrery(asked);
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("fifo: 1 of 4 deadlines met, 2 missed by 1 h 30 min on average and 2 h "
                          "30 min at most\n"),
            std::string::npos)
      << text.out;
  const CliRun run = orrery(asked + "2 -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto deadlines = nlohmann::json::parse(run.out)["policies"][0]["deadlines"];
  EXPECT_EQ(deadlines["jobs"], 4);
  EXPECT_EQ(deadlines["met"], 1);
  EXPECT_EQ(deadlines["missed"], 2);
  EXPECT_DOUBLE_EQ(deadlines["mean_late_s"].get<double>(), (1810.0 + 9000.0) / 2);
  EXPECT_DOUBLE_EQ(deadlines["max_late_s"].get<double>(), 9000);
  std::ifstream csv(path("results/jobs-fifo.csv"));
  std::vector<std::string> ends;
  for (std::string line; std::getline(csv, line);) {
    const std::size_t begin = line.find(",yes,");
    ends.push_back(begin == std::string::npos ? "" : line.substr(begin, line.rfind(',') - begin));
  }
  EXPECT_EQ(ends,
            (std::vector<std::string>{"", ",yes,7200.000,0.000", ",yes,5400.000,1810.000",
                                      ",yes,9000.000,9000.000", ",yes,,", ",yes,2678400.000,"}));
}

TEST_F(DeadlineCli, ASimulationWithoutDeadlinesSaysNothingOfThem) {
  const CliRun run =
      orrery("simulate --accelerators h100:16 --generate philly --jobs 5 --policy fifo");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out.find("deadline"), std::string::npos);
}

constexpr const char* kJob =
    "apiVersion: orrery/v1\nkind: Train\nname: train\nestimate: 10 h\n"
    "roles: [{accelerators: 8, types: [h100]}]\n";

TEST_F(DeadlineCli, OneCommandTrainsByFridayUnderAnAmount) {
  start();
  v1::SubmitJobRequest heard;
  controller_.on("SubmitJob", [&](const FakeController::Heard& call) {
    EXPECT_TRUE(heard.ParseFromString(call.request));
    v1::SubmitJobResponse response;
    response.set_id(7);
    response.set_name("train");
    response.set_note("it starts at the next decision");
    return answer_with(response);
  });
  const std::string asked =
      "submit " + write("train.yaml", kJob) + " --by '2100-11-27 18:00' --under '$5000'";
  const CliRun run = live(asked);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "job 7 (train) accepted\n");
  EXPECT_EQ(run.err, "note: it starts at the next decision\n");
  EXPECT_FALSE(heard.dry_run());
  EXPECT_NE(heard.spec().find("2100-11-27T18:00:00Z"), std::string::npos) << heard.spec();
  EXPECT_NE(heard.spec().find("budget: $5k"), std::string::npos) << heard.spec();
  const CliRun dry = live(asked + " --dry-run");
  EXPECT_EQ(dry.out, heard.spec()) << "the spec goes on";
  EXPECT_EQ(dry.err, "note: it starts at the next decision\n");
  EXPECT_TRUE(heard.dry_run());
}

TEST_F(DeadlineCli, ADryRunNeedsNoCluster) {
  const CliRun run = live("submit --dry-run --by 2100-11-27T18:00:00+02:00 -- true");
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("2100-11-27T16:00:00Z"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("deadline and budget were not checked, no cluster was found"),
            std::string::npos)
      << run.err;
}

TEST_F(DeadlineCli, WhatIsNoTimeOrAmountIsRefused) {
  const CliRun time = orrery("submit --dry-run --by friday -- true");
  EXPECT_EQ(time.code, 2);
  EXPECT_NE(time.err.find("--by: \"friday\" is not a time"), std::string::npos) << time.err;
  const CliRun amount = orrery("submit --dry-run --under much -- true");
  EXPECT_EQ(amount.code, 2);
  EXPECT_NE(amount.err.find("--under: "), std::string::npos) << amount.err;
}

TEST_F(DeadlineCli, ScheduleSaysWhetherDeadlineAndBudgetCanBeKept) {
  const std::string asked = "schedule --fleet " ORRERY_SOURCE_DIR
                            "/tests/scenarios/fleets/one-rack.yaml " +
                            write("train.yaml", kJob);
  const CliRun plain = orrery(asked);
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_EQ(plain.out.find("budget"), std::string::npos) << plain.out;
  const CliRun kept = orrery(asked + " --by '2100-11-27 18:00' --under '$5000'");
  EXPECT_NE(kept.out.find("train: on 8 nvidia-h100-sxm5-80g it takes 10 h and costs $"),
            std::string::npos)
      << kept.out;
  EXPECT_NE(kept.out.find(" of its budget of $5k; it starts at the next decision, "),
            std::string::npos)
      << kept.out;
  const CliRun dear = orrery(asked + " --under '$10'");
  EXPECT_NE(dear.out.find("train: budget: its cheapest placement, 8 "
                          "nvidia-h100-sxm5-80g, costs $"),
            std::string::npos)
      << dear.out;
  const CliRun explained = orrery(asked + " --under '$10' --explain train");
  EXPECT_NE(explained.out.find("  why         its cheapest placement, 8 nvidia-h100"),
            std::string::npos)
      << explained.out;
  const auto json = nlohmann::json::parse(orrery(asked + " --under '$10' -o json").out);
  EXPECT_EQ(json["bounds"][0]["job"], "train");
  EXPECT_EQ(json["bounds"][0]["note"], "");
}

TEST_F(DeadlineCli, AJobThatHasFinishedSaysByHowMuchItWasLate) {
  start();
  v1::Job job;
  job.set_id(7);
  job.set_name("train");
  job.set_phase("finished");
  job.set_spec(
      "apiVersion: orrery/v1\nkind: Batch\nname: train\nroles: [{accelerators: 1}]\n"
      "deadline: 2026-01-02T00:00:00Z\n");
  const auto told = [&](const std::string& ended) {
    *job.mutable_ended() = timestamp_of(Instant::parse(ended).value());
    controller_.on("GetJob", [job](const FakeController::Heard&) { return answer_with(job); });
    return live("job 7").out;
  };
  EXPECT_NE(told("2026-01-01T20:00:00Z").find("2026-01-02T00:00:00Z, met\n"), std::string::npos);
  EXPECT_NE(told("2026-01-02T03:30:00Z").find("2026-01-02T00:00:00Z, 3 h 30 min late\n"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
