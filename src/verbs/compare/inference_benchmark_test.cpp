// verbs/compare/inference_benchmark_test.cpp - MLPerf's results beside predictions.
#include "verbs/compare/inference_benchmark.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "verbs/compare/benchmark_answer.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

std::string row(const std::string& id, const std::string& scenario, const std::string& result) {
  return fmt::format(
      R"({{"id": "{}", "group": "mlperf_inf_9", "model": "llama-3.1-8b", "accel": "H100", "n": 8,
          "par": {{"tp": 1, "pp": 1, "dp": 8}}, "engine": "vLLM", "engine_version": "0.9",
          "precision": {{"weights": "fp8"}}, "input_tokens": 300, "output_tokens": 300,
          "scenario": "{}", "result": {}}})",
      id, scenario, result);
}

Result<VerbAnswer> report_of(const std::string& rows) {
  static const Facts kFacts = *Facts::load({});
  const ScratchFiles files;
  return report_benchmark(kFacts, {.name = "mlperf:inference",
                                   .runs = files.write("runs.json", "{\"rows\": [" + rows + "]}")});
}

TEST(InferenceBenchmark, ComparesEachFigureThatWasMeasured) {
  const Result<VerbAnswer> answer = report_of(
      row("a", "offline", R"({"output_tokens_s": 10000})") + "," +
      row("b", "server",
          R"({"output_tokens_s": 20000, "requests_s": 20, "ttft_s": 0.5, "tpot_s": 0.02})") +
      R"(,{"id": "c", "group": "other"})");
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& rows = answer->json["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["measured_output_tokens_s"], 10000.0);
  EXPECT_TRUE(rows[0]["measured_ttft_s"].is_null());
  EXPECT_LT(rows[0]["output_tokens_s_low"], rows[0]["output_tokens_s"]);
  const Json& summary = answer->json["summary"];
  ASSERT_EQ(summary.size(), 4u) << "one figure offline, three of a server";
  const double predicted = rows[0]["output_tokens_s"].get<double>();
  EXPECT_NEAR(summary[0]["bias"].get<double>(), predicted / 10000 - 1, 1e-9);
  EXPECT_NEAR(summary[0]["median_error"].get<double>(), std::abs(predicted / 10000 - 1), 1e-9);
  EXPECT_EQ(summary[3]["figure"], "tpot_s");
  EXPECT_NE(answer->text.find("server, 1 rows, time to the first token: median absolute error "),
            std::string::npos)
      << answer->text;
}

TEST(InferenceBenchmark, SaysWhatIsMissing) {
  const Result<VerbAnswer> none = report_of(R"({"id": "c", "group": "other"})");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("no rows of \"mlperf:inference\""), std::string::npos);
  const Result<VerbAnswer> bad = report_of(
      R"({"id": "d", "group": "mlperf_inf_9", "model": "m", "accel": "no such", "n": 1, "scenario":
      "offline", "result": {}})");
  ASSERT_TRUE(bad) << bad.error().text();
  EXPECT_EQ(bad->json["rows"][0]["id"], "d");
  EXPECT_FALSE(bad->json["rows"][0]["error"].get<std::string>().empty());
}

}  // namespace
}  // namespace orrery
