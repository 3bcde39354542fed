// `orrery simulate` and `replay` as a user runs them: the files they take, the content of a record,
// and what the report says about repeating the run.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

constexpr const char* kMine =
    "apiVersion: orrery/v1\nkind: Policy\nname: mine\norder: shortest\nblocked: skipped\n";
constexpr const char* kEasy =
    "apiVersion: orrery/v1\nkind: Policy\nname: easy\nblocked: reserves\nmin_run: 1 min\n";
constexpr const char* kFailures =
    R"({"apiVersion": "orrery/v1", "kind": "Failures", "name": "ours", "like": "llama3",
        "failures_per_1000_node_days": 5000})";
const std::string kSmall = "simulate --accelerators h100:16 --generate philly --jobs 20 -o json ";

class SimulateCli : public Cli {
 protected:
  /// One job of 8 accelerators, in the format of philly.
  [[nodiscard]] std::string trace(const std::string& submit, int seconds) const {
    return write("one.csv",
                 fmt::format("timestamp,duration,num_gpus,gpu_time,cluster\n{},{},8,{},a\n", submit,
                             seconds, 8 * seconds));
  }

  struct Carbon {
    double grams = 0;  ///< a kilowatt-hour; PUE is in it
    std::string notes;
  };

  /// Simulates that trace under a carbon series of these rows.
  [[nodiscard]] Carbon with_carbon(const std::string& rows, const std::string& more = "") const {
    const std::string carbon = write("carbon.csv", "datetime (UTC),carbon (gCO2/kWh)\n" + rows);
    const CliRun run =
        orrery("simulate --accelerators h100:8 --format philly --policy fifo --trace " +
               path("one.csv") + " --carbon " + carbon + " -o json " + more);
    EXPECT_EQ(run.code, 0) << run.err;
    const auto answer = nlohmann::json::parse(run.out);
    const auto& figures = answer["policies"][0];
    return {figures["co2_kg"].get<double>() * 1000 / figures["energy_kwh"].get<double>(),
            answer["notes"].dump()};
  }

  /// Replays every run of a record; returns the hashes of their histories.
  [[nodiscard]] std::set<std::string> replayed(const std::string& record) const {
    std::set<std::string> hashes;
    for (const auto& run : std::filesystem::directory_iterator(record)) {
      const CliRun again = orrery("replay -o json " + run.path().string());
      EXPECT_EQ(again.code, 0) << run.path() << ": " << again.err;
      if (again.code == 0) hashes.insert(nlohmann::json::parse(again.out)["history_hash"]);
    }
    return hashes;
  }

  [[nodiscard]] static std::set<std::string> hashes_of(const CliRun& run) {
    std::set<std::string> hashes;
    const auto answer = nlohmann::json::parse(run.out);
    for (const auto& policy : answer["policies"]) {
      hashes.insert(policy["history_hash"]);
    }
    return hashes;
  }
};

/// Jobs by the hour that may run on either type, the new one in 0.6 of the time.
constexpr const char* kEither = R"(apiVersion: orrery/v1
kind: Trace
name: either
jobs:
- submit: 0 h
  run: 4 h
  spec:
    apiVersion: orrery/v1
    kind: Train
    name: first
    goal: cost
    roles: [{accelerators: 8, types: [h100, {type: a100, speed: 0.6}]}]
- submit: 1 h
  run: 2 h
  spec:
    apiVersion: orrery/v1
    kind: Train
    name: second
    goal: cost
    roles: [{accelerators: 16, types: [h100, {type: a100, speed: 0.6}]}]
)";

/// The cells of the only job in a table of jobs, by column.
std::map<std::string, std::string> only_job(const std::string& file) {
  std::ifstream csv(file);
  std::map<std::string, std::string> cells;
  std::string titles;
  std::string values;
  std::getline(csv, titles);
  std::getline(csv, values);
  const auto next = [](std::string& line) {
    const bool quoted = line.starts_with("\"");
    const std::size_t end = std::min(line.find(',', quoted ? line.find('"', 1) : 0), line.size());
    const std::string cell = line.substr(0, end);
    line.erase(0, end + 1);
    return cell;
  };
  while (!titles.empty()) {
    const std::string title = next(titles);
    cells[title] = next(values);
  }
  return cells;
}

TEST_F(SimulateCli, PricesOfElectricityActOnBillsAndStartsOfWhatIsOwned) {
  const auto priced = [&](const std::string& dollars, const std::string& more) {
    const std::string prices = write(
        "prices.csv", "datetime (UTC),price (USD/MWh)\n2020-06-01 00:00:00," + dollars + "\n");
    const CliRun run = orrery("simulate --accelerators h100:32,a100:64 -o json --trace " +
                              write("either.yaml", kEither) + ":orrery " + more + " --out " +
                              path("results") + (dollars.empty() ? "" : " --prices " + prices));
    EXPECT_EQ(run.code, 0) << run.err;
    const auto answer = nlohmann::json::parse(run.out);
    return std::tuple(answer["policies"][0]["cost_usd"].get<double>(),
                      slurp(path("results/jobs-hardware-aware.csv")), answer["assumptions"].dump());
  };
  const auto [cheap, cheap_jobs, owned] = priced("10", "--price owned");
  const auto [dear, dear_jobs, same] = priced("5000", "--price owned");
  EXPECT_GT(dear, 2 * cheap);
  EXPECT_NE(dear_jobs, cheap_jobs) << "dear electricity moves starts to the other type";
  EXPECT_NE(owned.find("--price owned"), std::string::npos) << owned;
  const auto [unsaid, unsaid_jobs, assumed] = priced("5000", "");
  EXPECT_EQ(unsaid, dear) << "prices of electricity are paid for what is owned";
  EXPECT_NE(assumed.find("--price owned"), std::string::npos) << assumed;
  const auto [rented, rented_jobs, default_price] = priced("", "");
  EXPECT_NE(default_price.find("--price on-demand"), std::string::npos) << default_price;
  EXPECT_NE(rented, cheap);
}

TEST_F(SimulateCli, PricesOfElectricityThatNothingPaysAreRefused) {
  const std::string prices =
      write("prices.csv", "datetime (UTC),price (USD/MWh)\n2020-06-01 00:00:00,50\n");
  const CliRun rented = orrery(kSmall + "--price on-demand --prices " + prices);
  EXPECT_EQ(rented.code, 2);
  EXPECT_NE(rented.err.find("--price owned"), std::string::npos) << rented.err;
  const std::string fleet = write("fleet.yaml", orrery("fleet generate --system superpod-h100 "
                                                       "--nodes 8")
                                                    .out);
  const std::string of_fleet = "simulate --fleet " + fleet + " --generate philly --jobs 5 -o json ";
  const CliRun plain = orrery(of_fleet + "--prices " + prices);
  EXPECT_EQ(plain.code, 2);
  EXPECT_NE(plain.err.find("ownership: owned"), std::string::npos) << plain.err;
  const CliRun twice = orrery(of_fleet + "--price owned");
  EXPECT_EQ(twice.code, 2);
  EXPECT_NE(twice.err.find("ownership"), std::string::npos) << twice.err;
  const CliRun unknown = orrery(kSmall + "--price leased");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("expected owned or on-demand"), std::string::npos) << unknown.err;
}

constexpr const char* kAlways = "2020-06-01 00:00:00,100\n";
constexpr const char* kMornings = "2020-06-01 00:00:00,100\n2020-06-01 12:00:00,0\n";

TEST_F(SimulateCli, CarbonIsThatOfTheHourAtWhichATraceWithDatesRuns) {
  static_cast<void>(trace("2020-06-01 12:00:00", 3600));
  const Carbon noon = with_carbon(kMornings);
  EXPECT_EQ(noon.grams, 0);
  EXPECT_EQ(noon.notes.find("--carbon"), std::string::npos) << noon.notes;
  static_cast<void>(trace("2019-03-05 01:00:00", 3600));
  const Carbon night = with_carbon(kMornings);
  EXPECT_NEAR(night.grams, with_carbon(kAlways).grams, 1e-6);
  EXPECT_NE(night.notes.find("does not cover 2019-03-05"), std::string::npos) << night.notes;
}

TEST_F(SimulateCli, CarbonOfATraceWithoutDatesBeginsAtTheFirstRowAndTheOutputSaysSo) {
  static_cast<void>(trace("43200", 3600));
  const Carbon run = with_carbon(kMornings);
  EXPECT_NEAR(run.grams, with_carbon(kAlways).grams, 1e-6);
  EXPECT_NE(run.notes.find("starts at its first row, 2020-06-01"), std::string::npos) << run.notes;
}

TEST_F(SimulateCli, CarbonGoesOnForAsLongAsTheRunAndNoFurtherThanUntil) {
  static_cast<void>(trace("2020-06-01 00:00:00", 800 * 86400));
  const double always = with_carbon(kAlways).grams;
  EXPECT_NEAR(with_carbon(kMornings).grams, always / 2, always / 1000);
  EXPECT_NEAR(with_carbon(kMornings, "--until 2020-06-01T12:00:00").grams, always, 1e-6);
}

TEST_F(SimulateCli, ATraceWithoutRunTimesIsRefused) {
  const std::string sia = write("sia.csv",
                                "name,time,application,num_replicas,batch_size\n"
                                "cifar10-0,107,cifar10,2,2048\n");
  const CliRun run =
      orrery("simulate --accelerators h100:8 --policy fifo --format sia --trace " + sia);
  EXPECT_EQ(run.code, 2) << run.out;
  EXPECT_NE(run.err.find("no job of the trace states a run time"), std::string::npos) << run.err;
  static_cast<void>(trace("0", 60));
  const CliRun timed = orrery(
      "simulate --accelerators h100:8 --policy fifo --format philly --trace " + path("one.csv"));
  EXPECT_EQ(timed.code, 0) << timed.err;
}

TEST_F(SimulateCli, OrdersByWhenJobsWillBeDoneAreRefusedWithoutRunTimes) {
  for (const std::string policy : {"themis", "elasticflow"}) {
    const CliRun run =
        orrery(fmt::format("{}--policy fifo,{} --information blind", kSmall, policy));
    EXPECT_EQ(run.code, 2);
    const std::string why = fmt::format("{} orders jobs by their end times", policy);
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
    EXPECT_EQ(orrery(fmt::format("{}--policy {} --information estimate", kSmall, policy)).code, 0);
  }
}

TEST_F(SimulateCli, JobsAreNotedWhoseTimesRunBackwards) {
  const std::string rows = write("back.csv",
                                 "timestamp,duration,num_gpus\n2020-06-01 00:01:00,60,1\n"
                                 "2020-06-01 00:00:00,60,1\n");
  const CliRun run =
      orrery("simulate --accelerators h100:8 --policy fifo --format philly --trace " + rows);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("line 3 has an earlier submit time than the line before it"),
            std::string::npos)
      << run.out;
}

TEST_F(SimulateCli, EventsHappenAtTheirTimes) {
  static_cast<void>(trace("0", 3600));
  const std::string asked =
      "simulate --accelerators h100:16 --policy fifo --format philly "
      "--restart '60 s' -o json --trace " +
      path("one.csv");
  const auto ends = [&](const std::string& events) {
    const CliRun run = orrery(
        asked + " --events " +
        write("e.yaml", "apiVersion: orrery/v1\nkind: Events\nname: day\nevents:\n" + events));
    EXPECT_EQ(run.code, 0) << run.err;
    const auto answer = nlohmann::json::parse(run.out);
    EXPECT_NE(answer["notes"].dump().find("events of day"), std::string::npos) << run.out;
    return answer["policies"][0]["makespan_s"].get<double>();
  };
  const double plain = ends("- {at: 30 d, drain: site, now: true}\n");
  const double drained = ends("- {at: 0 s, drain: site, now: true}\n- {at: 2 h, resume: site}\n");
  EXPECT_NEAR(drained - plain, 7200, 60) << "nothing starts for two hours";
  const CliRun wrong =
      orrery(asked + " --events " +
             write("w.yaml",
                   "apiVersion: orrery/v1\nkind: Events\nevents:\n- {at: 1 h, drain: nobody}\n"));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_NE(wrong.err.find("w.yaml:4"), std::string::npos) << wrong.err;
}

TEST_F(SimulateCli, WhatHasNoPublishedPriceHasNoCost) {
  static_cast<void>(trace("0", 60));
  const std::string asked =
      " --policy fifo --format philly --trace " + path("one.csv") + " -o json";
  const CliRun run = orrery("simulate --accelerators k80:8 --out " + path("k80") + asked);
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(only_job(path("k80/jobs-fifo.csv")).at("cost_usd"), "");
  const auto played = nlohmann::json::parse(run.out)["policies"][0];
  EXPECT_TRUE(played["cost_usd"].is_null()) << run.out;
  EXPECT_TRUE(played["fleet_cost_usd"].is_null()) << run.out;
  EXPECT_EQ(played["unpriced"], nlohmann::json::parse(R"(["nvidia-k80"])"));
  const CliRun priced = orrery("simulate --accelerators h100:8" + asked);
  ASSERT_EQ(priced.code, 0) << priced.err;
  EXPECT_GT(nlohmann::json::parse(priced.out)["policies"][0]["cost_usd"], 0) << priced.out;
}

/// Steps a second on two of three types.
constexpr const char* kRates = R"json({
  "v100": {"('LM (batch size 5)', 8)": {"null": 10}},
  "k80": {"('LM (batch size 5)', 8)": {"null": 4}}
})json";

TEST_F(SimulateCli, MeasuredRatesHoldForTheirTypesInWhateverOrderTheFleetNamesThem) {
  const std::string job =
      "LM (batch size 5)\tpython3 main.py\t/data\t-s\t0\t36000\t8\t1\t-1.000000\t0\n";
  const std::string rest = " --policy fifo -o json --trace " + write("two.trace", job + job) +
                           ":gavel --throughputs " + write("rates.json", kRates);
  for (const char* fleet : {"v100:8,k80:8,p100:8", "k80:8,p100:8,v100:8"}) {
    const CliRun run = orrery("simulate --accelerators " + std::string(fleet) + rest);
    ASSERT_EQ(run.code, 0) << run.err;
    const auto answer = nlohmann::json::parse(run.out);
    EXPECT_NEAR(answer["policies"][0]["avg_jct_s"].get<double>(), 6'300, 30) << fleet;
    EXPECT_NE(answer["notes"].dump().find("which run only on the types with a rate: 2;"),
              std::string::npos);
  }
}

TEST_F(SimulateCli, UnlikeTypesWithoutRatesAreRefused) {
  const std::string asked = "simulate --accelerators h100:8,k80:8 --generate philly --jobs 5 ";
  const CliRun run = orrery(asked);
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("its rate on each is unknown"), std::string::npos) << run.err;
  EXPECT_EQ(orrery(asked + "--map").code, 0);
}

TEST_F(SimulateCli, BillsAreToldApartByTypeOfAcceleratorInTheSummaryAndForEachJob) {
  const std::string h100 = "nvidia-h100-sxm5-80g";
  const std::string a100 = "nvidia-a100-sxm4-80g";
  const CliRun run = orrery(
      "simulate --accelerators h100:16,a100:16 --generate philly --jobs 40 --map --policy fifo "
      "--failures llama3 -o json --out " +
      path("results"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto policy = nlohmann::json::parse(run.out)["policies"][0];
  std::map<std::string, double> hours;
  double held = 0;
  std::string line;
  std::ifstream csv(path("results/jobs-fifo.csv"));
  ASSERT_TRUE(std::getline(csv, line));
  EXPECT_TRUE(line.ends_with(",device_hours_" + h100 + ",device_hours_" + a100)) << line;
  while (std::getline(csv, line)) {
    std::vector<std::string> cells;
    std::istringstream row(line);
    for (std::string cell; std::getline(row, cell, ',');) cells.push_back(cell);
    ASSERT_EQ(cells.size(), 28U) << line;
    held += std::stod(cells[9]);
    hours[h100] += std::stod(cells[26]);
    hours[a100] += std::stod(cells[27]);
  }
  EXPECT_GT(hours[h100], 0);
  EXPECT_GT(hours[a100], 0);
  EXPECT_NEAR(hours[h100] + hours[a100], held, 0.01);
  for (const auto& [type, sum] : hours) {
    EXPECT_NEAR(policy["accelerator_hours_by_type"][type].get<double>(), sum, 0.01) << type;
  }
}

TEST_F(SimulateCli, FiguresMayBeOfTheJobsOfAWindowAlone) {
  const std::string asked = "simulate --accelerators h100:64 --generate philly --span '2 days' ";
  const CliRun text = orrery(asked + "--measure '12 h..1 day' --out " + path("results"));
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("submitted in 12 h..1 day"), std::string::npos) << text.out;
  std::ifstream csv(path("results/jobs-hardware-aware.csv"));
  std::size_t measured = 0;
  for (std::string line; std::getline(csv, line);) {
    if (line.find(",yes,") != std::string::npos) ++measured;
  }
  const CliRun json = orrery(asked + "--measure '12 h..1 day' -o json");
  const auto policy = nlohmann::json::parse(json.out)["policies"][0];
  EXPECT_EQ(policy["measured"], measured);
  EXPECT_GT(policy["played"], 2 * measured);
  EXPECT_NE(orrery(asked + "--measure 12").err.find("expected FROM..TO"), std::string::npos);
  EXPECT_NE(orrery(asked + "--measure '90 d..'").err.find("no job is submitted"),
            std::string::npos);
}

constexpr const char* kTwoRoles = R"(apiVersion: orrery/v1
kind: Trace
name: roles
jobs:
- submit: 0 s
  run: 1 h
  spec:
    apiVersion: orrery/v1
    kind: Batch
    name: two-roles
    roles:
    - {name: learner, accelerators: 8}
    - {name: actors, accelerators: 8, replicas: 4}
)";

TEST_F(SimulateCli, TheTableOfJobsCountsAllRolesAndNamesKindTenantModelAndNodes) {
  const CliRun run = orrery("simulate --accelerators h100:48 --policy fifo --trace " +
                            write("roles.yaml", kTwoRoles) + " --out " + path("results"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("1 job of roles on 48 accelerators (h100:48)"), std::string::npos)
      << run.out;
  const auto job = only_job(path("results/jobs-fifo.csv"));
  EXPECT_EQ(job.at("job"), "two-roles");
  EXPECT_EQ(job.at("accelerators"), "40");
  EXPECT_EQ(job.at("nodes"), "5");
  EXPECT_EQ(job.at("kind"), "Batch");
  EXPECT_EQ(job.at("tenant"), "default");
  EXPECT_EQ(job.at("queueing_after_start_s"), "0.000");
  EXPECT_NE(job.at("cost_usd"), "");
  const std::string report = slurp(path("results/report.html"));
  EXPECT_NE(report.find("h100:48: 48 accelerators in 6 nodes"), std::string::npos);
}

TEST_F(SimulateCli, RowsThatWereLeftOutAreCountedEvenIfThereAreNone) {
  static_cast<void>(trace("0", 60));
  const std::string asked = "simulate --accelerators h100:8 --policy fifo --skip-bad --trace ";
  const CliRun sound = orrery(asked + path("one.csv") + ":philly");
  EXPECT_NE(sound.out.find("note: all rows of the trace could be read"), std::string::npos)
      << sound.out;
  const CliRun torn = orrery(
      asked + write("torn.csv", "timestamp,duration,num_gpus\n0,60,1\n0,sixty,1\n") + ":philly");
  EXPECT_NE(torn.out.find("note: 1 row of the trace could not be read and was skipped"),
            std::string::npos)
      << torn.out << torn.err;
}

TEST_F(SimulateCli, RowsThatTellOfNoRunAreCounted) {
  const std::string asked = "simulate --accelerators t4:8 --policy fifo --trace " +
                            write("tasks.csv",
                                  "a,worker,2,Terminated,0,60,600,29,100,T4\n"
                                  "b,worker,2,Waiting,,,600,29,100,T4\n"
                                  "c,worker,2,Waiting,,,600,29,100,T4\n");
  const CliRun text = orrery(asked);
  EXPECT_NE(text.out.find("note: 2 rows of the trace without a start were left out; the first is "
                          "line 2"),
            std::string::npos)
      << text.out << text.err;
  const CliRun json = orrery(asked + " -o json");
  EXPECT_NE(json.out.find("\"left_out_rows\": 2"), std::string::npos) << json.out;
}

TEST_F(SimulateCli, SpecsMayEndInYamlYmlOrJsonOrStandBehindASlash) {
  for (const std::string suffix : {".json", ".yml", ".yaml", ""}) {
    const CliRun run = orrery(kSmall + "--failures " + write("failures" + suffix, kFailures) +
                              " --policy " + write("policy" + suffix, kMine));
    ASSERT_EQ(run.code, 0) << suffix << ": " << run.err;
    EXPECT_EQ(nlohmann::json::parse(run.out)["policies"][0]["policy"], "mine");
  }
  const CliRun queue = orrery("schedule --fleet " ORRERY_SOURCE_DIR
                              "/examples/fleets/superpod-h100.yaml " ORRERY_SOURCE_DIR
                              "/examples/jobs/serve-small.yaml --policy " +
                              path("policy.yml"));
  EXPECT_EQ(queue.code, 0) << queue.err;
  EXPECT_NE(orrery(kSmall + "--policy none.yml").err.find("none.yml"), std::string::npos);
  EXPECT_NE(orrery(kSmall + "--failures lama3").err.find("llama3"), std::string::npos);
}

TEST_F(SimulateCli, ARecordOfFilesReplaysWhenTheFilesAreGone) {
  std::filesystem::create_directory(path("parts"));
  static_cast<void>(write("parts/dream.yaml",
                          "apiVersion: orrery/v1\nkind: Catalog\nname: mine\naccelerators:\n"
                          "- {id: dream, like: h100, name: A dream, confidence: assumed}\n"
                          "nodes:\n- {id: dream-8, like: dgx-h100, accelerator: dream}\n"));
  const std::string tenants = write(
      "t.yaml", "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n- {name: default}\n");
  const std::string easy = write("easy.yaml", kEasy);
  const CliRun run =
      orrery("--catalog " + path("parts") + " " + kSmall + "--policy easy," + easy + "," +
             write("m.yml", kMine) + " --failures " + write("f.json", kFailures) + " --tenants " +
             tenants + " --record " + path("records"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto policies = nlohmann::json::parse(run.out)["policies"];
  EXPECT_EQ(policies[0]["policy"], "easy");
  EXPECT_EQ(policies[1]["policy"], easy) << "the name of the built-in policy is taken";
  EXPECT_EQ(policies[2]["policy"], "mine");
  EXPECT_EQ(hashes_of(run).size(), 3U);
  for (const char* file : {"easy.yaml", "m.yml", "f.json", "t.yaml", "parts"}) {
    std::filesystem::remove_all(path(file));
  }
  EXPECT_EQ(replayed(path("records")), hashes_of(run));
}

// The first pass finds no plan; in the next one the job waits for better hardware.
TEST_F(SimulateCli, TheStoryOfAJobSaysWhatItWaitsForWhenItsPlanIsMade) {
  const std::string examples = ORRERY_SOURCE_DIR "/examples/";
  const CliRun run = orrery("simulate --fleet " + examples + "fleets/scarce-mixed.yaml --trace " +
                            examples + "stories/c-scarce-gpus/cost.yaml --explain tuning");
  ASSERT_EQ(run.code, 0) << run.err;
  const std::size_t plan = run.out.find("a plan for it is being made");
  const std::size_t choice = run.out.find("by choice, for nvidia-h100-sxm5-80g");
  EXPECT_LT(plan, choice) << run.out;
  EXPECT_NE(choice, std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("a plan for it is being made", plan + 1), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("+178 % run time"), std::string::npos) << run.out;
}

/// The options of --help, without those that change no run.
std::set<std::string> options_of_help(const std::string& help) {
  std::set<std::string> options;
  for (std::size_t at = help.find("\n  --"); at != std::string::npos;
       at = help.find("\n  --", at + 1)) {
    options.insert(help.substr(at + 3, help.find_first_of(" ,\n", at + 3) - at - 3));
  }
  for (const char* output : {"--out", "--record", "--explain", "--help"}) options.erase(output);
  return options;
}

std::string command_in(const std::string& html) {
  const std::size_t begin = html.find("<code>orrery ") + 6;
  std::string command = html.substr(begin, html.find("</code>", begin) - begin);
  for (const auto& [entity, text] :
       {std::pair{"&quot;", "\""}, {"&apos;", "'"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}) {
    for (std::size_t at = command.find(entity); at != std::string::npos;
         at = command.find(entity, at + 1)) {
      command.replace(at, std::string_view(entity).size(), text);
    }
  }
  return command;
}

TEST_F(SimulateCli, TheCommandInTheReportNamesEveryOptionAndRunsTheSameAgain) {
  const std::string prices =
      write("it's prices.csv", "datetime (UTC),price (USD/MWh)\n2020-06-01 00:00:00,50\n");
  const std::string carbon =
      write("carbon.csv", "datetime (UTC),carbon (gCO2/kWh)\n2020-06-01 00:00:00,50\n");
  std::string generated = orrery("fleet generate --system superpod-h100 --nodes 8").out;
  generated.insert(generated.find("  halls:"), "  ownership: owned\n");
  const std::string fleet = write("fleet.yaml", generated);
  static_cast<void>(trace("2020-06-01 00:00:00", 3600));
  const std::string tenants = write(
      "t.yaml", "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n- {name: default}\n");
  const std::string world =
      " --tenants " + tenants +
      " --policy fifo --information estimate --seed 7 --failures llama3 --events " +
      write("events.yaml", "apiVersion: orrery/v1\nkind: Events\nevents: [{at: 1 h, tenants: " +
                               tenants + "}]\n") +
      " " + "--arrivals 'h100:1 h' --spares 1 --restart '90 s' --warm-restart '45 s' " +
      "--restart-policy when-safe --fencing " +
      "'15 min' --checkpoint-cost '20 s' --checkpoint-interval '30 min' --prices \"" + prices +
      "\" --carbon " + carbon;
  const std::string made =
      "simulate --accelerators h100:32 --price owned --generate helios --span '1 d' --load 0.9 "
      "--map --until 432000 --measure '1 h..20 h'" +
      world;
  const std::string read = "simulate --fleet " + fleet + " --trace " + path("one.csv") +
                           " --format philly --where cluster=a --from 2020-01-01T00:00:00 --to "
                           "2020-12-31T00:00:00 --skip-bad" +
                           world;
  const std::string few =
      "simulate --accelerators v100:8 --generate philly --jobs 5 --rules gavel --policy fifo "
      "--throughputs " +
      write("rates.json", R"({"v100": {}})");
  std::string commands;
  for (const std::string& asked : {made, read, few}) {
    const CliRun run = orrery(asked + " -o json --out " + path("results"));
    ASSERT_EQ(run.code, 0) << asked << ": " << run.err;
    const std::string command = command_in(slurp(path("results/report.html")));
    const CliRun again = orrery(command.substr(command.find(' ') + 1) + " -o json");
    ASSERT_EQ(again.code, 0) << command << ": " << again.err;
    EXPECT_EQ(hashes_of(again), hashes_of(run)) << command;
    commands += command + " ";
  }
  const std::set<std::string> of_services = {
      "--requests", "--serve",     "--half",  "--speed",      "--pace",  "--model",
      "--replicas", "--kv-tokens", "--crash", "--cold-start", "--scale", "--gateways"};
  for (const std::string& option : options_of_help(orrery("simulate --help").out)) {
    if (of_services.contains(option)) continue;
    EXPECT_NE(commands.find(" " + option + " "), std::string::npos) << option << " in " << commands;
  }
}

struct RulesAndPolicies {
  const char* rules;
  const char* policies;  ///< policies that the rules know
  std::size_t count;
};

/// By the rules of every simulator.
class RecordsUnder : public SimulateCli, public testing::WithParamInterface<RulesAndPolicies> {};

TEST_P(RecordsUnder, EveryPolicyReplaysToTheSameHistory) {
  const std::string policies = write("mine.yaml", kMine) + "," + GetParam().policies;
  const CliRun run = orrery(kSmall + "--failures llama3 --rules " + GetParam().rules +
                            " --policy " + policies + " --record " + path("records"));
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["policies"].size(), GetParam().count + 1);
  EXPECT_EQ(replayed(path("records")), hashes_of(run));
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RecordsUnder,
    testing::Values(RulesAndPolicies{"orrery",
                                     "fifo,sjf,srtf,srsf,las,tiresias,easy,conservative,capacity,"
                                     "hardware-aware,hardware-aware:version=1",
                                     11},
                    RulesAndPolicies{"helios", "fifo,sjf", 2},
                    RulesAndPolicies{"muri", "fifo,srtf,srsf", 3},
                    RulesAndPolicies{"gavel", "fifo", 1}),
    [](const auto& info) { return std::string(info.param.rules); });

TEST_F(SimulateCli, ATraceOfRunTimesOfZeroIsToldSo) {
  const CliRun run = orrery("simulate --accelerators h100:8 --policy fifo --trace " +
                            trace("2026-01-01T00:00:00", 0) + " --format philly");
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("states a run time above 0 s or a number of steps"), std::string::npos)
      << run.err;
}

}  // namespace
}  // namespace orrery
