// The files of examples/studies and examples/designs are read whole and run in part.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

std::vector<std::string> examples(const std::string& kind) {
  std::vector<std::string> files;
  for (const auto& file :
       std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/examples/" + kind)) {
    files.push_back(file.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// As a name of a test has it.
std::string word(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

const std::string kExamples = ORRERY_SOURCE_DIR "/examples/";

/// A study whose simulations end after four days, where it does not say itself when.
std::string shortened(std::string study) {
  constexpr std::string_view kBeside = ": ../";
  for (std::size_t at = 0; (at = study.find(kBeside, at)) != std::string::npos;) {
    study.replace(at, kBeside.size(), ": " + kExamples);
  }
  const bool endless = study.find("\n  until: ") == std::string::npos;
  if (endless && study.find("\nrun: simulate\n") != std::string::npos) {
    study.insert(study.find("\nbase:\n") + 7, "  until: 345600\n");
  }
  return study;
}

class ExampleStudy : public Cli, public testing::WithParamInterface<std::string> {};

TEST_P(ExampleStudy, IsReadWholeAndItsFirstCellHasFigures) {
  const std::string text = slurp(kExamples + "studies/" + GetParam() + ".yaml");
  const CliRun run = orrery("study " + write("study.yaml", shortened(text)) + " --cells 1 -o json");
  ASSERT_EQ(run.code, 0) << run.err;
  const auto first = nlohmann::json::parse(run.out)["points"][0];
  EXPECT_FALSE(first["figures"].empty());
  EXPECT_TRUE(std::any_of(first["figures"].begin(), first["figures"].end(), [](const auto& figure) {
    return !figure["mean"].is_null();
  })) << first;
}

INSTANTIATE_TEST_SUITE_P(Of, ExampleStudy, testing::ValuesIn(examples("studies")),
                         [](const auto& info) { return word(info.param); });

/// Story K of the twin: from power, a budget and a mix of work to a fleet with its bill of
/// materials, inside the limits, that the fleet's own reader takes.
struct DesignLimits {
  std::string name;
  double power_watts;
  double budget_usd;
};

class ExampleDesign : public Cli, public testing::WithParamInterface<DesignLimits> {};

TEST_P(ExampleDesign, IsAFleetWithABillInsideItsLimits) {
  const CliRun run =
      orrery("design " + kExamples + "designs/" + GetParam().name +
             ".yaml --candidates h100 --span '1 h' -o json --out " + path("results"));
  ASSERT_EQ(run.code, 0) << run.err;
  const auto design = nlohmann::json::parse(run.out);
  EXPECT_GT(design["accelerators"], 0);
  EXPECT_LE(design["power_max_watts"], GetParam().power_watts);
  EXPECT_LE(design["capex_usd"], GetParam().budget_usd);
  double total = 0;
  for (const auto& row : design["bill"]) {
    if (!row["total_usd"].is_null()) total += row["total_usd"].get<double>();
  }
  EXPECT_NEAR(total, design["capex_usd"], 1) << "the bill's rows sum to the purchase";
  EXPECT_TRUE(design["confirmed"]) << "by the twin";
  const CliRun fleet = orrery("fleet show -o json " + path("results/fleet.yaml"));
  ASSERT_EQ(fleet.code, 0) << fleet.err;
  EXPECT_EQ(nlohmann::json::parse(fleet.out)["accelerators"], design["accelerators"]);
}

const std::vector<DesignLimits> kDesigns{{"forty-megawatts", 40e6, 1.2e9},
                                         {"inference-site", 2e6, 1e18},
                                         {"university-lab", 250e3, 2e6}};

INSTANTIATE_TEST_SUITE_P(Of, ExampleDesign, testing::ValuesIn(kDesigns),
                         [](const auto& info) { return word(info.param.name); });

TEST(Examples, OfDesignsAreAllTried) { EXPECT_EQ(examples("designs").size(), kDesigns.size()); }

}  // namespace
}  // namespace orrery
