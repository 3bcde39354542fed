#include "workload/gavel_throughputs.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace orrery {
namespace {

constexpr std::string_view kText = R"json({
  "v100": {
    "('LM (batch size 5)', 1)": {"null": 2.5, "('A3C', 1)": [1.0, 2.0]},
    "('LM (batch size 5)', 2)": {"null": 4},
    "('It, odd', 1)": {"null": 1e-3}
  },
  "k80": {"('A3C', 1)": {"null": 0.0}}
})json";

std::string error(std::string_view text) {
  const Result<GavelThroughputs> read = GavelThroughputs::read(text, "t.json");
  return read ? "read" : read.error().text();
}

TEST(GavelThroughputs, AreLookedUpByAcceleratorTypeAndScale) {
  const Result<GavelThroughputs> read = GavelThroughputs::read(kText, "t.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->steps_per_second("v100", {"LM (batch size 5)", 1}), 2.5);
  EXPECT_EQ(read->steps_per_second("v100", {"LM (batch size 5)", 2}), 4.0);
  EXPECT_EQ(read->steps_per_second("v100", {"It, odd", 1}), 1e-3);
  EXPECT_EQ(read->steps_per_second("v100", {"LM (batch size 5)", 4}), std::nullopt);
  EXPECT_EQ(read->steps_per_second("v100", {"LM", 1}), std::nullopt);
  EXPECT_EQ(read->steps_per_second("p100", {"LM (batch size 5)", 1}), std::nullopt);
}

TEST(GavelThroughputs, GiveTheRunTimeOfAllSteps) {
  const Result<GavelThroughputs> read = GavelThroughputs::read(kText, "t.json");
  ASSERT_TRUE(read);
  TraceJob job;
  job.model = "LM (batch size 5)";
  job.accelerators = 2;
  job.steps = 10;
  EXPECT_EQ(read->run_time("v100", job), Duration::milliseconds(2'500));
  job.model = "A3C";
  job.accelerators = 1;
  EXPECT_EQ(read->run_time("k80", job), std::nullopt) << "it cannot run there";
}

TEST(GavelThroughputs, OtherFilesAreRefused) {
  EXPECT_EQ(error("[1]"), "t.json:1:1: expected a mapping of accelerators to throughputs");
  EXPECT_EQ(error(R"({"v100": {"LM": {"null": 1}}})"),
            "t.json:1:11: \"LM\" is not a job type, expected \"('TYPE', SCALE)\"");
  for (const char* key : {"('', 1)", "('a', 0)", "('a', -1)", "('a', 1", "('a' 1)", "('a', 1x)",
                          "('a', 4294967296)", "('', )"}) {
    EXPECT_NE(error(std::string("{\"v100\": {\"") + key + "\": {\"null\": 1}}}"), "read") << key;
  }
  for (const char* value : {"-1", "\"fast\"", "1e999", "[1]", "null"}) {
    EXPECT_NE(error(std::string("{\"v100\": {\"('a', 1)\": {\"null\": ") + value + "}}}"), "read")
        << value;
  }
  EXPECT_EQ(error("\x1f\x8b"), "t.json: the gzip file ends too early: is it whole?");
}

TEST(GavelThroughputs, ThePublicFileHasItsTypes) {
  const std::filesystem::path folder = ORRERY_SOURCE_DIR "/../shared/data/traces/gavel";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no public traces at " << folder;
  const Result<GavelThroughputs> read =
      GavelThroughputs::load(folder / "simulation_throughputs.json.gz");
  ASSERT_TRUE(read) << read.error().text();
  const std::optional<double> alone =
      read->steps_per_second("k80", {"ResNet-18 (batch size 16)", 1});
  ASSERT_TRUE(alone);
  EXPECT_NEAR(*alone, 4.7953, 1e-4);
  EXPECT_TRUE(read->steps_per_second("v100_unconsolidated", {"ResNet-18 (batch size 16)", 8}));
}

}  // namespace
}  // namespace orrery
