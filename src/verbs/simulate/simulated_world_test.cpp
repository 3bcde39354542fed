#include "verbs/simulate/simulated_world.hpp"

#include <gtest/gtest.h>

#include "verbs/simulate/simulate_files_test.hpp"

namespace orrery {
namespace {

constexpr const char* kCarbonHead = "datetime (UTC),carbon (gCO2/kWh)\n";

bool noted(const SimulateRequest& request, const std::string& words) {
  for (const std::string& note : request.notes()) {
    if (note.find(words) != note.npos) return true;
  }
  return false;
}

TEST(SimulatedWorld, FailuresAreAProfileAFileOrNone) {
  SimulateFiles files;
  const auto of = [&](const std::string& name) {
    files.asked().world.failures = name;
    const auto request = files.load();
    return request == nullptr ? std::nullopt : request->inputs(request->policies()[0]).failures;
  };
  EXPECT_FALSE(of("none"));
  ASSERT_TRUE(of("llama3"));
  files.asked().files.texts["mine.yaml"] =
      "apiVersion: orrery/v1\nkind: Failures\nname: ours\nlike: llama3\n"
      "failures_per_1000_node_days: 5000\n";
  ASSERT_TRUE(of("mine.yaml"));
  EXPECT_DOUBLE_EQ(of("mine.yaml")->failures_per_1000_node_days, 5000);
  files.asked().world.failures = "llama";
  EXPECT_TRUE(files.refusal().starts_with("--failures: ")) << files.refusal();
}

TEST(SimulatedWorld, NodesArriveAfterATimeOverATimeOrNever) {
  SimulateFiles files;
  files.asked().machines.accelerators = "h100:32";
  const auto arrivals = [&](const std::string& list) {
    files.asked().world.arrivals = list;
    const auto request = files.load();
    return request->inputs(request->policies()[0]).arrivals;
  };
  EXPECT_TRUE(arrivals("").empty());
  const auto begin = files.load()->begin();
  const std::vector<Instant> spread = arrivals("h100:2 days:6 h");
  ASSERT_EQ(spread.size(), 4U);
  EXPECT_EQ(spread.front(), begin + Duration::hours(48));
  EXPECT_EQ(spread.back(), begin + Duration::hours(54));
  EXPECT_EQ(arrivals("h100:1 h"), std::vector<Instant>(4, begin + Duration::hours(1)));
  EXPECT_EQ(arrivals("h100:never"), std::vector<Instant>(4, Instant::max()));
}

TEST(SimulatedWorld, AnArrivalThatCannotBeReadIsRefused) {
  SimulateFiles files;
  const auto refusal = [&](const std::string& list) {
    files.asked().world.arrivals = list;
    return files.refusal();
  };
  EXPECT_EQ(refusal("mi300x:never"), "--arrivals: no amd-mi300x in this fleet");
  EXPECT_TRUE(refusal("h1000:never").starts_with("--arrivals: ")) << refusal("h1000:never");
  EXPECT_TRUE(refusal("h100:soon").starts_with("--arrivals: ")) << refusal("h100:soon");
  EXPECT_TRUE(refusal("h100").starts_with("--arrivals: \"\" is not a time")) << refusal("h100");
  EXPECT_EQ(refusal("h100:1 h:0 s"), "--arrivals: 0 s: expected more than 0");
}

TEST(SimulatedWorld, ASeriesRepeatsWhereItDoesNotCoverTheTrace) {
  SimulateFiles files;
  files.asked().world.carbon =
      files.files().write("carbon.csv", std::string(kCarbonHead) +
                                            "2019-01-01 00:00:00,100\n2019-01-01 01:00:00,300\n");
  auto request = files.load();
  EXPECT_TRUE(noted(*request,
                    "--carbon: the series starts at 2019-01-01T00:00:00Z and does not "
                    "cover 2020-06-01T00:00:00Z; it repeats every 2 h"));
  const PolicyRunInputs in = request->inputs(request->policies()[0]);
  ASSERT_NE(in.carbon, nullptr);
  EXPECT_NEAR(in.carbon->at(request->begin()).value(), 100 / 3.6e6, 1e-9);
  EXPECT_NEAR(in.carbon->at(request->begin() + Duration::minutes(90)).value(), 300 / 3.6e6, 1e-9);
}

TEST(SimulatedWorld, ASeriesTooDenseForACenturyEndsEarlierUnlessTheRunDoes) {
  SimulateFiles files;
  // The steps that a series may have are used up in two years.
  files.asked().world.carbon =
      files.files().write("carbon.csv", std::string(kCarbonHead) +
                                            "2020-06-01 00:00:00,100\n2020-06-01 00:01:00,300\n");
  const auto dense = files.load();
  EXPECT_TRUE(noted(*dense, "--carbon: the series is too dense and is used for "));
  EXPECT_TRUE(
      noted(*dense, " only; after that its last row applies (--until ends the run earlier)"));
  const PolicyRunInputs in = dense->inputs(dense->policies()[0]);
  ASSERT_NE(in.carbon, nullptr);
  const auto grams_after = [&](Duration time) {
    return in.carbon->at(dense->begin() + time).value() * 3.6e6;
  };
  EXPECT_NEAR(grams_after(Duration::hours(365 * 24)), 100, 1e-6) << "it repeats";
  EXPECT_NEAR(grams_after(Duration::hours(3 * 365 * 24)), 300, 1e-6) << "its last row";
  files.asked().world.until = "2020-06-01T06:00:00";
  EXPECT_FALSE(noted(*files.load(), "too dense"));
}

TEST(SimulatedWorld, EventsAreCountedAndTheirTenantsMustBeThoseOfTheSimulation) {
  SimulateFiles files;
  files.asked().world.events = "events.yaml";
  files.asked().files.texts["events.yaml"] =
      "apiVersion: orrery/v1\nkind: Events\nname: a day\nevents:\n"
      "- {at: 1 h, tenants: other.yaml}\n";
  files.asked().files.texts["other.yaml"] =
      "apiVersion: orrery/v1\nkind: Tenants\nname: t\ntenants:\n- name: default\n- name: blue\n";
  EXPECT_EQ(files.refusal(),
            "other.yaml:1:1: expected the tenants of the simulation, in their order");
  files.asked().scheduling.tenants = "same.yaml";
  files.asked().files.texts["same.yaml"] = files.asked().files.texts["other.yaml"];
  EXPECT_TRUE(noted(*files.load(), "events of a day: 1 operator actions, 0 faults"));
  EXPECT_TRUE(noted(*files.load(), "tenants of t"));
}

TEST(SimulatedWorld, AnEndThatIsNoTimeIsRefused) {
  SimulateFiles files;
  files.asked().world.until = "tomorrow";
  EXPECT_TRUE(files.refusal().starts_with("--until: ")) << files.refusal();
}

}  // namespace
}  // namespace orrery
