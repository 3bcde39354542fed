// verbs/compare/benchmark_answer_test.cpp - measurements beside predictions: which rows, and their
// means.
#include "verbs/compare/benchmark_answer.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

const Facts& facts() {
  static const Facts kFacts = *Facts::load({});
  return kFacts;
}

/// Returns a row of llama-3.1-8b on eight H100, with more keys at its end.
std::string row(const std::string& id, const std::string& keys) {
  return fmt::format(
      R"({{"id": "{}", "model": "llama-3.1-8b", "accel": "H100", "n": 8, "seq": 8192, "gbs": 128,
          "mbs": 1, "par": {{"tp": 1, "pp": 1, "dp": 8, "zero": 1}}, "precision": "bf16", {}}})",
      id, keys);
}

Result<VerbAnswer> report_of(const std::string& rows, const std::string& name) {
  const ScratchFiles files;
  return report_benchmark(
      facts(), {.name = name, .runs = files.write("runs.json", "{\"rows\": [" + rows + "]}")});
}

TEST(BenchmarkAnswer, TheMeansAreThoseOfTheRowsOfOneGroup) {
  const Result<VerbAnswer> answer =
      report_of(row("a", R"("group": "mlperf_x", "result": {"step_s": 10})") + "," +
                    row("b", R"("group": "mlperf_x", "result": {"step_s": 20})") + "," +
                    row("c", R"("group": "mlperf_x", "result": {})") + "," +
                    row("d", R"("group": "mlperf_y", "result": {"step_s": 30})"),
                "mlperf:x");
  ASSERT_TRUE(answer) << answer.error().text();
  const Json& rows = answer->json["rows"];
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0]["id"], "a");
  EXPECT_EQ(rows[0]["measured_step_s"], 10.0);
  EXPECT_TRUE(rows[2]["measured_step_s"].is_null());
  EXPECT_EQ(answer->json["compared"], 2) << "c was not measured";
  const double predicted = rows[0]["step_s"].get<double>();
  const double first = predicted / 10 - 1;
  const double second = predicted / 20 - 1;
  EXPECT_NEAR(answer->json["bias"].get<double>(), (first + second) / 2, 1e-12);
  EXPECT_NEAR(answer->json["mape"].get<double>(), (std::abs(first) + std::abs(second)) / 2, 1e-12);
  EXPECT_NE(answer->text.find(fmt::format("{:+.1f} %\n", first * 100)), std::string::npos)
      << answer->text;
  EXPECT_NE(answer->text.find("\n2 rows with measurement and prediction: "), std::string::npos);
}

TEST(BenchmarkAnswer, ARateOfSamplesIsAStepOfTheKnownBatch) {
  const Result<VerbAnswer> answer =
      report_of(row("a", R"("group": "mlperf_x", "result": {"samples_s": 64})") + "," +
                    row("b", R"("group": "mlperf_x", "result": {"samples_s": 0})"),
                "mlperf:x");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["rows"][0]["measured_step_s"], 2.0);
  EXPECT_TRUE(answer->json["rows"][1]["measured_step_s"].is_null());
}

TEST(BenchmarkAnswer, AMeasurementIsInsideItsInterval) {
  const std::string once = row("a", R"("group": "mlperf_x", "result": {"step_s": 1e9})");
  const Result<VerbAnswer> far = report_of(once, "mlperf:x");
  ASSERT_TRUE(far) << far.error().text();
  EXPECT_EQ(far->json["inside_interval"], 0.0);
  const double predicted = far->json["rows"][0]["step_s"].get<double>();
  const Result<VerbAnswer> near = report_of(
      row("a", fmt::format(R"("group": "mlperf_x", "result": {{"step_s": {}}})", predicted)),
      "mlperf:x");
  ASSERT_TRUE(near) << near.error().text();
  EXPECT_EQ(near->json["inside_interval"], 1.0);
  EXPECT_NEAR(near->json["mape"].get<double>(), 0, 1e-12);
}

TEST(BenchmarkAnswer, ARowThatCannotBePredictedSaysWhy) {
  const Result<VerbAnswer> answer = report_of(
      R"({"id": "a", "group": "mlperf_x", "model": "nothing", "accel": "H100", "n": 8, "seq": 8},)"
      R"({"id": "b", "group": "mlperf_x", "model": "llama-3.1-8b", "accel": "H100", "n": 1,
          "engine": "vllm", "input_tokens": 5, "output_tokens": 5, "precision": "bf16"})",
      "mlperf:x");
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["rows"][0]["id"], "a");
  EXPECT_NE(answer->json["rows"][0]["error"].get<std::string>().find("no model \"nothing\""),
            std::string::npos);
  EXPECT_EQ(answer->json["rows"][1]["error"], "a serving run");
  EXPECT_EQ(answer->json["compared"], 0);
  EXPECT_EQ(answer->json["mape"], 0.0) << "no rows divide by no zero";
}

TEST(BenchmarkAnswer, AnUnknownBenchmarkIsAnsweredWithThoseThatThereAre) {
  const Result<VerbAnswer> answer =
      report_of(row("a", R"("group": "mlperf_y")") + "," + row("b", R"("group": "mlperf_a")") +
                    "," + row("c", R"("group": "mlperf_y")") + "," +
                    row("d", R"("group": "other")") + "," + row("e", R"("group": 5)"),
                "mlperf:x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message, "no rows of \"mlperf:x\"; available: mlperf:a, mlperf:y");
}

TEST(BenchmarkAnswer, AFileWithoutRowsIsRefused) {
  const ScratchFiles files;
  const std::string path = files.write("runs.json", "{\"runs\": 3}");
  const Result<VerbAnswer> answer = report_benchmark(facts(), {.name = "mlperf:x", .runs = path});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().text(), path + ": expected a run file: {\"rows\": [...]} as JSON");
}

}  // namespace
}  // namespace orrery
