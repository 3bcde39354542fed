// verbs/compare/estimate_answer_test.cpp - predictions of rows: a table for each kind, and what has
// none.
#include "verbs/compare/estimate_answer.hpp"

#include <gtest/gtest.h>

#include "perf/repository_facts_test.hpp"
#include "verbs/scratch_files_test.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

const std::string kTraining =
    R"({"id": "train-1", "model": "llama-3.1-8b", "accel": "H100", "n": 8, "seq": 8192,
        "gbs": 128, "mbs": 1, "par": {"tp": 1, "pp": 1, "dp": 8, "zero": 1}, "precision": "bf16"})";
const std::string kServing =
    R"({"id": "serve-1", "model": "llama-3.1-8b", "accel": "H100", "n": 2, "par": {"tp": 1},
        "engine": "vllm", "precision": "bf16", "input_tokens": 500, "output_tokens": 100})";
const std::string kUnknown =
    R"({"id": "bad-1", "model": "no such model", "accel": "H100", "n": 8, "seq": 8192})";

EstimateReport report_of(const std::string& rows) {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  const Result<RunFile> file =
      RunFile::parse("[" + rows + "]", "runs.json", {builtin_facts(), kModels});
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  return file ? estimate_rows({builtin_facts(), builtin_constants()}, file->runs)
              : EstimateReport{};
}

TEST(EstimateAnswer, ATrainingIsARowOfTheFirstTable) {
  const EstimateReport report = report_of(kTraining);
  EXPECT_EQ(report.refusals, "");
  EXPECT_EQ(report.closing, "");
  EXPECT_TRUE(report.answer.text.starts_with("run      model")) << report.answer.text;
  EXPECT_NE(
      report.answer.text.find("\ntrain-1  llama-3.1-8b  nvidia-h100-sxm5-80g  8  tp1 pp1 dp8"),
      std::string::npos)
      << report.answer.text;
  EXPECT_EQ(report.answer.text.find("TTFT"), std::string::npos);
  ASSERT_EQ(report.answer.json.size(), 1u);
  const Json& row = report.answer.json[0];
  EXPECT_EQ(row["id"], "train-1");
  EXPECT_EQ(row["plan"]["dp"], 8);
  EXPECT_LE(row["step_s_low"], row["step_s"]);
  EXPECT_GE(row["step_s_high"], row["step_s"]);
  double sum = 0;
  for (const auto& [name, seconds] : row["breakdown"].items()) sum += seconds.get<double>();
  EXPECT_NEAR(sum, row["step_s"].get<double>(), 1e-9 * sum);
}

TEST(EstimateAnswer, AServiceIsARowOfTheSecondTable) {
  const EstimateReport report = report_of(kServing);
  EXPECT_TRUE(report.answer.text.starts_with("run      model")) << report.answer.text;
  EXPECT_NE(report.answer.text.find("TTFT (s)"), std::string::npos) << report.answer.text;
  EXPECT_NE(report.answer.text.find("  2 x tp=1  "), std::string::npos) << report.answer.text;
  EXPECT_EQ(report.answer.text.find("step (s)"), std::string::npos) << "no empty table";
  EXPECT_EQ(report.answer.json[0]["plan"]["replicas"], 2);
  EXPECT_GT(report.answer.json[0]["output_tokens_s"], 0.0);
}

TEST(EstimateAnswer, BothTablesArePartedByAnEmptyLine) {
  const EstimateReport report = report_of(kServing + "," + kTraining);
  const std::size_t trainings = report.answer.text.find("step (s)");
  const std::size_t services = report.answer.text.find("TTFT (s)");
  ASSERT_NE(trainings, std::string::npos);
  ASSERT_NE(services, std::string::npos);
  EXPECT_LT(trainings, services);
  EXPECT_NE(report.answer.text.find("\n\nrun "), std::string::npos) << report.answer.text;
  ASSERT_EQ(report.answer.json.size(), 2u) << "in the order of the file";
  EXPECT_EQ(report.answer.json[0]["id"], "serve-1");
  EXPECT_EQ(report.answer.json[1]["id"], "train-1");
}

TEST(EstimateAnswer, ARowWithoutAPredictionStopsNoOther) {
  const EstimateReport report = report_of(kUnknown + "," + kTraining);
  EXPECT_TRUE(report.refusals.starts_with("bad-1: runs.json:1:")) << report.refusals;
  EXPECT_NE(report.refusals.find("no model \"no such model\" in the catalog"), std::string::npos);
  EXPECT_EQ(report.closing, "rows without a prediction: 1; see the reasons above\n");
  EXPECT_NE(report.answer.text.find("train-1"), std::string::npos);
  ASSERT_EQ(report.answer.json.size(), 2u);
  EXPECT_EQ(report.answer.json[0]["id"], "bad-1");
  EXPECT_TRUE(report.answer.json[0]["error"].get<std::string>().starts_with("runs.json:1:"));
}

TEST(EstimateAnswer, NoRowsAreAnEmptyTable) {
  const EstimateReport report = report_of("");
  EXPECT_TRUE(report.answer.text.starts_with("run  model  accelerator  n  layout  step (s)"))
      << report.answer.text;
  EXPECT_EQ(report.answer.json, Json::array());
  EXPECT_EQ(report.closing, "");
}

TEST(EstimateAnswer, AFileThatIsNoneIsToldByName) {
  const ScratchFiles files;
  const Result<EstimateReport> none = report_estimates({}, files.path("none.json"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), files.path("none.json") + ": No such file or directory");
}

}  // namespace
}  // namespace orrery
