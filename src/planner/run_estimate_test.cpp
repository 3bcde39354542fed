#include "planner/run_estimate.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/format/document.hpp"
#include "perf/repository_facts_test.hpp"
#include "workload/builtin_models.hpp"

namespace orrery {
namespace {

const ModelCatalog& models() {
  static const Result<ModelCatalog> kModels = ModelCatalog::load(builtin_models(), {});
  return *kModels;
}

Result<RunFile> parse(const nlohmann::json& rows) {
  return RunFile::parse(nlohmann::json({{"rows", rows}}).dump(), "runs.json",
                        {builtin_facts(), models()});
}

Result<TrainingEstimate> estimate_row(const nlohmann::json& row) {
  const Result<RunFile> file = parse(nlohmann::json::array({row}));
  EXPECT_TRUE(file) << (file ? "" : file.error().text());
  const auto* run = std::get_if<TrainingRun>(&file->runs.at(0));
  if (run == nullptr) {
    return tl::unexpected<Error>(std::get<BadRow>(file->runs.at(0)).error);
  }
  return estimate(*run, builtin_facts(), builtin_constants());
}

nlohmann::json llama_row() {
  return nlohmann::json::parse(R"({"id": "a", "model": {"name": "Llama3 70B", "seq": 8192},
    "accel": "H100", "n": 64, "cluster": "DGX-H100",
    "par": {"tp": 4, "pp": 8, "vp": 5, "dp": 2, "cp": 1, "ep": 1, "zero": 1, "sp": true},
    "mbs": 1, "gbs": 256, "recompute": "none", "precision": "FP8-CS", "flash_attn": true,
    "release": "26.04 NeMo Container"})");
}

TEST(RunEstimate, reads_only_what_a_prediction_may_read) {
  nlohmann::json row = llama_row();
  const Result<TrainingEstimate> plain = estimate_row(row);
  ASSERT_TRUE(plain) << plain.error().text();
  row["id"] = "another";
  row["group"] = "secret";
  row["source"] = "somebody";
  row["fold"] = 3;
  row["notes"] = "measured twice";
  row["derived"] = {"step_s"};
  row["result"] = {{"step_s", 1.0}};
  row["simumax"] = {{"step_s", 2.0}};
  row["raw"] = {{"x", 1}};
  const Result<TrainingEstimate> decorated = estimate_row(row);
  ASSERT_TRUE(decorated) << decorated.error().text();
  EXPECT_EQ(plain->cost.seconds, decorated->cost.seconds);
  EXPECT_EQ(plain->seconds_low, decorated->seconds_low);
  EXPECT_EQ(plain->cost.memory.total(), decorated->cost.memory.total());
}

TEST(RunEstimate, lies_inside_its_interval) {
  const Result<TrainingEstimate> one = estimate_row(llama_row());
  ASSERT_TRUE(one);
  EXPECT_LT(one->seconds_low, one->cost.seconds);
  EXPECT_GT(one->seconds_high, one->cost.seconds);
}

TEST(RunEstimate, an_unknown_qualifier_or_key_widens_the_interval_but_is_no_error) {
  nlohmann::json row = llama_row();
  const Result<TrainingEstimate> known = estimate_row(row);
  row["precision"] = "FP8-CS (wobbly)";
  row["par"]["warp"] = 9;
  const Result<TrainingEstimate> odd = estimate_row(row);
  ASSERT_TRUE(odd) << odd.error().text();
  EXPECT_FALSE(odd->warnings.empty());
  EXPECT_LT(odd->seconds_low, known->seconds_low);
  EXPECT_GT(odd->seconds_high, known->seconds_high);
}

TEST(RunEstimate, a_row_without_a_layout_gets_the_planners_and_says_so) {
  nlohmann::json row = llama_row();
  row["par"] = nullptr;
  row["mbs"] = nullptr;
  const Result<TrainingEstimate> guessed = estimate_row(row);
  ASSERT_TRUE(guessed) << guessed.error().text();
  EXPECT_EQ(guessed->plan.ranks(), 64U);
  EXPECT_TRUE(guessed->fits);
  ASSERT_FALSE(guessed->warnings.empty());
  EXPECT_NE(guessed->warnings.back().find("best layout"), std::string::npos);
}

TEST(RunEstimate, an_impossible_split_is_an_error_at_its_row) {
  nlohmann::json row = llama_row();
  row["gbs"] = 255;
  const Result<TrainingEstimate> wrong = estimate_row(row);
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().text().find("runs.json:1"), std::string::npos) << wrong.error().text();
  EXPECT_NE(wrong.error().text().find("global batch 255"), std::string::npos);
}

TEST(RunEstimate, every_row_of_the_published_file_gets_a_prediction_or_a_reason) {
  const Result<RunFile> file =
      RunFile::load(ORRERY_SOURCE_DIR "/data/runs/training_runs.json", builtin_facts(), models());
  ASSERT_TRUE(file) << file.error().text();
  EXPECT_EQ(file->runs.size(), 728U);
  std::size_t predicted = 0;
  for (const orrery::Run& run : file->runs) {
    const auto* training = std::get_if<TrainingRun>(&run);
    if (training == nullptr) {
      EXPECT_FALSE(std::get<BadRow>(run).error.message.empty());
      continue;
    }
    const Result<TrainingEstimate> one = estimate(*training, builtin_facts(), builtin_constants());
    if (!one) {
      EXPECT_FALSE(one.error().message.empty());
      continue;
    }
    ++predicted;
    EXPECT_GT(one->cost.seconds, 0) << training->id;
    EXPECT_NEAR(one->cost.terms.total(), one->cost.seconds, 1e-9 * one->cost.seconds);
  }
  EXPECT_GE(predicted, 720U);
}

}  // namespace
}  // namespace orrery
