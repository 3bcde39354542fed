#include "verbs/simulate/simulate_request.hpp"

#include <gtest/gtest.h>

#include "base/format/field_writer.hpp"
#include "verbs/simulate/simulate_files_test.hpp"

namespace orrery {
namespace {

Instant at(const std::string& text) { return *parse_trace_time(text); }

TEST(SimulateOptionsTest, EveryDescribedOptionIsReadBack) {
  SimulateOptions given;
  given.machines = {"fleet.yaml", "h100:8", "owned"};
  given.trace.rows = {"a=b", "c=d"};
  given.trace.bad_rows = SimulateOptions::Flag::kYes;
  given.generated = {"philly", 3, "7 days", 0.25};
  given.world.seed = std::uint64_t{1} << 53;
  given.world.spares = 4;
  given.restarts.policy = "never";
  given.results.measure = "1 day..2 days";
  const Json json = to_json(given);
  EXPECT_EQ(json["seed"], std::uint64_t{1} << 53);
  EXPECT_EQ(json["restart_policy"], "never");
  EXPECT_EQ(json["skip_bad"], "true");
  EXPECT_FALSE(json.contains("out")) << "where results go decides nothing";
  const Result<Document> document = Document::parse(json.dump(), "setup.json");
  ASSERT_TRUE(document);
  SimulateOptions read;
  ASSERT_TRUE(read_struct(document->root(), read, {}));
  EXPECT_EQ(to_json(read), json);
}

TEST(SimulateOptionsTest, RentedUnlessElectricityHasAPriceOrAFileDecides) {
  SimulateOptions asked;
  EXPECT_EQ(price_of_accelerators(asked), "") << "the fleet file decides";
  asked.machines.accelerators = "h100:8";
  EXPECT_EQ(price_of_accelerators(asked), "on-demand");
  asked.world.prices = "prices.csv";
  EXPECT_EQ(price_of_accelerators(asked), "owned");
  asked.machines.price = "on-demand";
  EXPECT_EQ(price_of_accelerators(asked), "on-demand");
}

TEST(SimulateRequestTest, ATraceWithDatesBeginsWithItsFirstJob) {
  const SimulateFiles files({{"2020-06-01 02:00:00", 600}, {"2020-06-01 01:00:00", 600}});
  const auto request = files.load();
  EXPECT_EQ(request->begin(), at("2020-06-01T01:00:00"));
  EXPECT_TRUE(request->dated());
  EXPECT_EQ(request->jobs().jobs.size(), 2U);
  ASSERT_FALSE(request->notes().empty());
  bool noted = false;
  for (const std::string& note : request->notes()) {
    noted |= note.find("line 3 has an earlier submit time than the line before it") != note.npos;
  }
  EXPECT_TRUE(noted);
}

TEST(SimulateRequestTest, RowsAreChosenByColumnAndTime) {
  SimulateFiles files({{"2020-06-01 00:00:00", 60}, {"2020-06-02 00:00:00", 60}});
  files.asked().trace.from = "2020-06-01T12:00:00";
  EXPECT_EQ(files.load()->trace().jobs.size(), 1U);
  EXPECT_EQ(files.load()->begin(), at("2020-06-01T12:00:00")) << "the begin of the window";
  files.asked().trace.rows = {"cluster=a"};
  EXPECT_EQ(files.load()->trace().jobs.size(), 1U);
  files.asked().trace.rows = {"cluster=b"};
  EXPECT_TRUE(files.load()->trace().jobs.empty()) << "no row has this value";
  files.asked().trace.rows = {"cluster"};
  EXPECT_EQ(files.refusal(), "--where: \"cluster\": expected column=value");
}

TEST(SimulateRequestTest, TheFormatMayFollowTheName) {
  SimulateFiles files;
  files.asked().trace.format = "";
  files.asked().trace.file += ":philly";
  EXPECT_EQ(files.load()->trace().jobs.size(), 1U);
  files.asked().trace.format = "phily";
  EXPECT_EQ(files.refusal().substr(0, 10), "--format: ");
}

TEST(SimulateRequestTest, SpecsMayBeTextsInPlaceOfFiles) {
  SimulateFiles files;
  files.asked().files.texts["memory.csv"] =
      "timestamp,duration,num_gpus,gpu_time,cluster\n2020-06-01 00:00:00,60,8,480,a\n";
  files.asked().trace.file = "memory.csv";
  EXPECT_EQ(files.load()->trace().jobs.size(), 1U);
  files.asked().scheduling.policies = "mine.yaml";
  files.asked().files.texts["mine.yaml"] = "apiVersion: orrery/v1\nkind: Policy\nname: mine\n";
  const auto request = files.load();
  EXPECT_EQ(request->policies()[0].label, "mine");
  EXPECT_EQ(request->files().texts.count("mine.yaml"), 1U);
}

TEST(SimulateRequestTest, OptionsThatExcludeEachOtherAreRefused) {
  SimulateFiles files;
  SimulateOptions asked = files.asked();
  asked.machines.fleet = "fleet.yaml";
  asked.files.texts["fleet.yaml"] =
      "apiVersion: orrery/v1\nkind: Fleet\nname: f\nsites:\n- name: s\n  halls:\n  - name: h\n"
      "    pods:\n    - name: p\n      racks:\n      - name: r\n        cooling: "
      "in-row-or-dense-air\n        nodes: [{type: dgx-h100, count: 1}]\n";
  EXPECT_EQ(SimulateFiles::refusal(asked), "expected either --fleet FILE or --accelerators TYPE:N");
  asked.machines.accelerators = "";
  EXPECT_EQ(SimulateFiles::refusal(asked), "accepted");
  asked.machines.price = "owned";
  EXPECT_EQ(SimulateFiles::refusal(asked),
            "--price: owned: expected no --price with fleet.yaml, whose key `ownership` (of a "
            "site, or of the nodes of a rack) decides it");
  asked = files.asked();
  asked.generated.style = "philly";
  EXPECT_EQ(SimulateFiles::refusal(asked), "expected either --trace FILE or --generate STYLE");
  asked = files.asked();
  asked.machines.price = "leased";
  EXPECT_EQ(SimulateFiles::refusal(asked), "--price: \"leased\": expected owned or on-demand");
}

TEST(SimulateRequestTest, AnOptionThatCannotBeReadIsNamed) {
  SimulateFiles files;
  const struct {
    std::string SimulateOptions::Machines::* option;
    const char* text;
    const char* says;
  } machines[] = {
      {&SimulateOptions::Machines::accelerators, "h100",
       "--accelerators: \"h100\": expected TYPE:N, such as h100:64"},
      {&SimulateOptions::Machines::accelerators, "h100:8,h200:x",
       "--accelerators: \"h200:x\": expected TYPE:N, such as h100:64"},
      {&SimulateOptions::Machines::accelerators, "h100:8.5",
       "--accelerators: \"h100:8.5\": expected TYPE:N, such as h100:64"},
  };
  for (const auto& each : machines) {
    SimulateOptions asked = files.asked();
    asked.machines.*each.option = each.text;
    EXPECT_EQ(SimulateFiles::refusal(asked), each.says);
  }
  const struct {
    std::string SimulateOptions::Restarts::* option;
    const char* name;
  } times[] = {{&SimulateOptions::Restarts::restart, "restart"},
               {&SimulateOptions::Restarts::warm, "warm-restart"},
               {&SimulateOptions::Restarts::fencing, "fencing"},
               {&SimulateOptions::Restarts::checkpoint_cost, "checkpoint-cost"},
               {&SimulateOptions::Restarts::checkpoint_interval, "checkpoint-interval"}};
  for (const auto& each : times) {
    SimulateOptions asked = files.asked();
    asked.restarts.*each.option = "0 s";
    EXPECT_EQ(SimulateFiles::refusal(asked),
              fmt::format("--{}: 0 s: expected more than 0", each.name));
  }
  SimulateOptions asked = files.asked();
  asked.restarts.policy = "sometimes";
  EXPECT_TRUE(SimulateFiles::refusal(asked).starts_with(
      "--restart-policy: \"sometimes\" is none of when-safe, at-once, "))
      << SimulateFiles::refusal(asked);
}

TEST(SimulateRequestTest, TheWindowOfMeasurementsTakesDatesAndTimesSinceTheBegin) {
  SimulateFiles files({{"2020-06-01 00:00:00", 60}, {"2020-06-03 00:00:00", 60}});
  files.asked().results.measure = "1 day..3 days";
  auto request = files.load();
  ASSERT_TRUE(request->measure());
  EXPECT_EQ(request->measure()->from, at("2020-06-02T00:00:00"));
  EXPECT_EQ(request->measure()->to, at("2020-06-04T00:00:00"));
  files.asked().results.measure = "2020-06-02..2020-06-04";
  request = files.load();
  ASSERT_TRUE(request->measure());
  EXPECT_EQ(request->measure()->from, at("2020-06-02T00:00:00"));
  EXPECT_EQ(request->measure()->to, at("2020-06-04T00:00:00"));
  files.asked().results.measure = "2020-06-02T00:00:00..";
  request = files.load();
  EXPECT_EQ(request->measure()->from, at("2020-06-02T00:00:00"));
  EXPECT_EQ(request->measure()->to, Instant::max());
  files.asked().results.measure = "..12 h";
  EXPECT_EQ(files.load()->measure()->from, at("2020-06-01T00:00:00"));
  files.asked().results.measure = "3 days..4 days";
  EXPECT_EQ(files.refusal(), "--measure: no job is submitted in 3 days..4 days");
  files.asked().results.measure = "1 day..soon";
  EXPECT_EQ(
      files.refusal(),
      "--measure: \"soon\": expected a date such as 2017-10-02, or a time since the start such "
      "as 1 day");
  files.asked().results.measure = "1 day";
  EXPECT_EQ(files.refusal(), "--measure: \"1 day\": expected FROM..TO");
}

TEST(SimulateRequestTest, PricesOfElectricityNeedANodeThatIsOwned) {
  SimulateFiles files;
  files.asked().world.prices =
      files.files().write("prices.csv",
                          "datetime (UTC),price (USD/MWh)\n2020-06-01 00:00:00,50\n"
                          "2020-06-01 01:00:00,60\n");
  EXPECT_TRUE(files.load()->check_prices(files.asked()));
  files.asked().machines.price = "on-demand";
  const Status rented = files.load()->check_prices(files.asked());
  ASSERT_FALSE(rented);
  EXPECT_EQ(rented.error().text(),
            "--prices: " + files.asked().world.prices +
                ": no node is owned, and the rent includes electricity; --price owned makes the "
                "nodes owned");
}

TEST(SimulateRequestTest, FindsAJobByItsNameOrNamesTheNearest) {
  const SimulateFiles files;
  const auto request = files.load();
  const std::string name = request->jobs().jobs[0].submission.request.name;
  EXPECT_EQ(*request->find(name), JobId(0));
  const Result<JobId> none = request->find(name + "x");
  ASSERT_FALSE(none);
  EXPECT_TRUE(none.error().text().starts_with("--explain: no job \"" + name + "x\""));
}

TEST(SimulateRequestTest, WhatEachRunIsPlayedWithIsAsAsked) {
  SimulateFiles files;
  files.asked().world.seed = 9;
  files.asked().world.spares = 0;
  files.asked().world.until = "2020-06-02T00:00:00";
  files.asked().world.failures = "llama3";
  files.asked().restarts.fencing = "7 min";
  files.asked().restarts.warm = "30 s";
  const auto request = files.load();
  const PolicyRunInputs in = request->inputs(request->policies()[0]);
  EXPECT_EQ(in.seed, 9U);
  EXPECT_EQ(in.label, "fifo");
  EXPECT_EQ(in.until, at("2020-06-02T00:00:00"));
  EXPECT_EQ(in.begin, request->begin());
  EXPECT_EQ(in.timing.fencing, Duration::minutes(7));
  EXPECT_EQ(in.timing.warm_restart, Duration::seconds(30));
  EXPECT_TRUE(in.failures);
  EXPECT_EQ(in.electricity, nullptr);
}

}  // namespace
}  // namespace orrery
