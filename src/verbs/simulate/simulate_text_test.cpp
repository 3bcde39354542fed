#include "verbs/simulate/simulate_text.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "verbs/simulate/simulate_files_test.hpp"
#include "verbs/simulate/simulate_run.hpp"

namespace orrery {
namespace {

std::size_t count(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

VerbAnswer played(SimulateFiles& files, const PlayWatch& watch = {}) {
  Result<VerbAnswer> answer = simulate({}, files.asked(), watch);
  EXPECT_TRUE(answer) << (answer ? "" : answer.error().text());
  return answer ? *std::move(answer) : VerbAnswer{};
}

TEST(CommandText, HasWhatDiffersFromItsDefaultAsAShellTakesIt) {
  SimulateOptions asked;
  EXPECT_EQ(command_text({}, asked), "orrery simulate");
  asked.machines.accelerators = "h100:8";
  asked.trace.file = "it's a trace.csv";
  asked.trace.rows = {"a=b", "c=$d"};
  asked.trace.bad_rows = SimulateOptions::Flag::kYes;
  asked.restarts.warm = "60 s";
  asked.world.seed = 7;
  CommandOptions options;
  options.catalog_directory = "my catalog";
  EXPECT_EQ(command_text(options, asked),
            "orrery --catalog 'my catalog' simulate --accelerators h100:8 "
            "--trace 'it'\\''s a trace.csv' --where a=b --where 'c=$d' --skip-bad --seed 7 "
            "--warm-restart '60 s'");
}

TEST(CommandText, AnOptionWithTheValueTrueIsNoFlag) {
  SimulateOptions asked;
  asked.scheduling.tenants = "true";
  EXPECT_EQ(command_text({}, asked), "orrery simulate --tenants true");
}

TEST(SimulateText, TwoJobsOfAnHourOneAfterTheOther) {
  SimulateFiles files({{"2020-06-01 00:00:00", 3600}, {"2020-06-01 00:00:00", 3600}});
  const VerbAnswer answer = played(files);
  EXPECT_TRUE(answer.text.starts_with("2 jobs on 8 accelerators (h100:8)\n\npolicy"))
      << answer.text;
  const Json& run = answer.json["policies"][0];
  EXPECT_EQ(run["policy"], "fifo");
  EXPECT_EQ(run["finished"], 2);
  EXPECT_EQ(run["unfinished"], 0);
  EXPECT_EQ(run["jobs"], 2);
  // The second waits for the hour of the first; launches take seconds.
  EXPECT_NEAR(run["makespan_s"].get<double>(), 7200, 60);
  EXPECT_NEAR(run["avg_queueing_s"].get<double>(), 1800, 30);
  EXPECT_NEAR(run["avg_jct_s"].get<double>(), 5400, 60);
  EXPECT_NEAR(run["accelerator_hours_by_type"]["nvidia-h100-sxm5-80g"].get<double>(), 16, 0.2);
  const Accelerator* h100 = builtin_facts().find<Accelerator>("nvidia-h100-sxm5-80g");
  ASSERT_NE(h100, nullptr);
  const double hour = builtin_facts().price(*h100)->on_demand->quantity.value() * 3600;
  EXPECT_NEAR(run["cost_usd"].get<double>(), 16 * hour, 2);
  EXPECT_EQ(answer.json["accelerators"], 8);
  EXPECT_EQ(answer.json["rules"], "orrery");
  EXPECT_FALSE(run.contains("deadlines")) << "no job has one";
  EXPECT_EQ(answer.text.find("tenant"), std::string::npos) << "one tenant needs no table";
}

TEST(SimulateText, EqualInputsGiveEqualHistories) {
  SimulateFiles files({{"2020-06-01 00:00:00", 3600}, {"2020-06-01 00:10:00", 60, 1}});
  files.asked().scheduling.policies = "fifo,fifo:blocking=true,fifo";
  const Json runs = played(files).json["policies"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0]["history_hash"], runs[2]["history_hash"]);
  EXPECT_EQ(runs[1]["policy"], "fifo:blocking=true");
}

TEST(SimulateText, AWindowIsToldWithTheJobsInIt) {
  SimulateFiles files({{"2020-06-01 00:00:00", 60}, {"2020-06-02 00:00:00", 60}});
  files.asked().results.measure = "12 h..2 days";
  const VerbAnswer answer = played(files);
  EXPECT_NE(answer.text.find("\nmeasured: 1 job of 2, submitted in 12 h..2 days, and the device "
                             "use in that window\n"),
            std::string::npos)
      << answer.text;
  EXPECT_EQ(answer.json["policies"][0]["measured"], 1);
  EXPECT_EQ(answer.json["policies"][0]["played"], 2);
}

TEST(SimulateText, AnExplainedJobHasAStory) {
  SimulateFiles files({{"2020-06-01 00:00:00", 3600}, {"2020-06-01 00:00:00", 3600}});
  const std::string name = files.load()->jobs().jobs[1].submission.request.name;
  files.asked().results.explain = name;
  const VerbAnswer answer = played(files);
  EXPECT_NE(answer.text.find("\n" + name + " under fifo\n"), std::string::npos) << answer.text;
  EXPECT_TRUE(answer.json["policies"][0].contains("story"));
  files.asked().results.explain = "nothing-like-it";
  const Result<VerbAnswer> none = simulate({}, files.asked(), {});
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().text().starts_with("--explain: no job \"nothing-like-it\""));
}

TEST(JobsCsv, HasARowForEachJobWithAsManyCellsAsItsHead) {
  SimulateFiles files({{"2020-06-01 00:00:00", 3600}, {"2020-06-01 00:30:00", 3600, 4}});
  files.asked().results.out = files.files().path("out");
  const VerbAnswer answer = played(files);
  EXPECT_TRUE(answer.text.ends_with("\nresults are in " + files.asked().results.out + ": open " +
                                    files.asked().results.out + "/report.html\n"));
  const std::string csv = files.files().read("out/jobs-fifo.csv");
  ASSERT_EQ(count(csv, '\n'), 3U) << csv;
  const std::string head = csv.substr(0, csv.find('\n'));
  EXPECT_TRUE(head.ends_with(",device_hours_nvidia-h100-sxm5-80g")) << head;
  std::size_t at = head.size() + 1;
  for (int row = 0; row < 2; ++row) {
    const std::string line = csv.substr(at, csv.find('\n', at) - at);
    EXPECT_EQ(count(line, ','), count(head, ',')) << line;
    at += line.size() + 1;
  }
  EXPECT_NE(csv.find(",finished,4,1800.000,"), std::string::npos)
      << "the second is submitted half an hour after the begin\n"
      << csv;
  const Result<Document> summary = Document::load(files.files().path("out/summary.json"));
  EXPECT_TRUE(summary) << (summary ? "" : summary.error().text());
  EXPECT_NE(files.files().read("out/report.html").find("Simulation of h100:8"), std::string::npos);
}

TEST(SimulateRun, WatchesEachPolicyOnceAndForgetsTheWatchAfterIt) {
  SimulateFiles files;
  files.asked().scheduling.policies = "fifo,easy";
  std::vector<std::string> told;
  const auto alive = std::make_shared<int>(0);
  played(files, [&](const std::string& label, std::size_t jobs) {
    EXPECT_EQ(alive.use_count(), 1) << "the watch of the policy before is gone";
    told.push_back(fmt::format("{} {}", label, jobs));
    return [alive](Instant, const Simulation&) {};
  });
  EXPECT_EQ(told, (std::vector<std::string>{"fifo 1", "easy 1"}));
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(SimulateRun, WhereResultsCannotBeWrittenIsNamed) {
  SimulateFiles files;
  files.asked().results.out = files.files().write("taken", "") + "/out";
  const Result<VerbAnswer> answer = simulate({}, files.asked(), {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, ErrorKind::kEnvironment);
  EXPECT_TRUE(answer.error().text().starts_with(files.asked().results.out + ": "))
      << answer.error().text();
}

// Their types have other numbers, which must not decide anything.
TEST(SimulateText, GroupsWithCountZeroChangeNoDecision) {
  std::vector<PhillyRow> rows;
  rows.reserve(60);
  for (int i = 0; i < 60; ++i) {
    rows.push_back({fmt::format("2020-06-01 00:{:02}:00", i), 600 * (1 + i * 7 % 11), 1 << i % 5});
  }
  const std::string gone =
      "- name: gone\n  halls: [{pods: [{name: g, racks: [{count: 0, nodes: [{type: dgx-h200, "
      "count: 4}]}]}]}]\n  fabrics: [{type: ib-ndr, topology: fat-tree}]\n";
  const std::string used =
      "- name: used\n  halls: [{pods: [{name: old, racks: [{nodes: [{type: dgx-a100-80g, count: "
      "0}]}]}, {name: new, racks: [{nodes: [{type: dgx-h100, count: 2}, {type: dgx-b200, count: "
      "1}], cooling: in-row-or-dense-air}]}]}]\n";
  const auto figures = [&](const std::string& sites) {
    SimulateFiles files(rows);
    files.asked().machines = {
        .fleet = files.files().write(
            "fleet.yaml", "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n" + sites)};
    files.asked().trace.map = SimulateOptions::Flag::kYes;
    files.asked().scheduling.policies = "hardware-aware,easy,las";
    Json policies = played(files).json["policies"];
    for (Json& each : policies) {
      for (const char* key : {"wall_s", "history_hash", "accelerator_hours_by_type"}) {
        each.erase(key);
      }
    }
    return policies;
  };
  std::string without = used;
  const std::string old = "{name: old, racks: [{nodes: [{type: dgx-a100-80g, count: 0}]}]}, ";
  without.erase(without.find(old), old.size());
  EXPECT_EQ(figures(gone + used), figures(without));
}

TEST(ReportData, NamesTheFleetTheTraceAndItsSeed) {
  SimulateFiles files;
  files.asked().world.seed = 5;
  files.asked().world.failures = "llama3";
  const auto request = files.load();
  Result<PolicyRun> run = run_policy(request->inputs(request->policies()[0]));
  ASSERT_TRUE(run);
  const ReportData data = report_data(*request, files.asked(), {&*run, 1});
  EXPECT_EQ(data.title, "Simulation of h100:8");
  EXPECT_EQ(data.fleet, "h100:8: 8 accelerators in 1 node");
  EXPECT_EQ(data.trace, files.asked().trace.file + ": 1 job");
  EXPECT_EQ(data.seed, 5U);
  EXPECT_EQ(data.failures, "llama3");
  EXPECT_EQ(data.types, std::vector<std::string>{"nvidia-h100-sxm5-80g"});
  EXPECT_EQ(data.policies.size(), 1U);
  EXPECT_EQ(data.time, TimeAxis::kCalendar);
  EXPECT_EQ(data.from, request->begin());
  EXPECT_GE(data.to, data.from);
}

}  // namespace
}  // namespace orrery
