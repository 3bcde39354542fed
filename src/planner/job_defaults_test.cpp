#include "planner/job_defaults.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

const Model& model(std::string_view name) {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), {});
  return (*kModels.require(name))->model;
}

TEST(JobDefaults, PrecisionsAreReadWithoutRegardToCase) {
  const Result<TrainingPrecision> block = precision_named("MXFP8");
  ASSERT_TRUE(block);
  EXPECT_EQ(block->format, NumberFormat::kFp8);
  EXPECT_EQ(block->scaling, Scaling::kBlock);
  const Result<TrainingPrecision> wrong = precision_named("bf61");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message,
            "\"bf61\" is not known, did you mean \"bf16\"?; bf16, fp8, mxfp8 and nvfp4 are among "
            "those known");
}

TEST(JobDefaults, ASequenceIsNoLongerThanTheModelWasMadeForUnlessStated) {
  EXPECT_EQ(*sequence_of(model("llama-3.1-8b"), std::nullopt), 8192);
  EXPECT_EQ(*sequence_of(model("gpt-3-175b"), std::nullopt), 2048);
  EXPECT_EQ(*sequence_of(model("gpt-3-175b"), 4096), 4096);
  for (const double wrong : {0.0, 1.5, -4.0, 1e12, std::nan("")}) {
    EXPECT_FALSE(sequence_of(model("llama-3.1-8b"), wrong)) << wrong;
  }
}

TEST(JobDefaults, ABatchIsSixteenMebitokensOfALargeModelAndFourOfASmall) {
  EXPECT_EQ(*batch_of(model("llama-3.1-405b"), {.sequence = 8192}), 2048);
  EXPECT_EQ(*batch_of(model("llama-3.1-8b"), {.sequence = 8192}), 512);
  EXPECT_EQ(*batch_of(model("llama-3.1-8b"), {.stated = 7, .sequence = 8192}), 7);
  EXPECT_FALSE(batch_of(model("llama-3.1-8b"), {.stated = 0.5}));
}

TEST(JobDefaults, SamplesHaveABatchOfTheirOwn) {
  EXPECT_EQ(*batch_of(model("vit-h-14"), {.sequence = 257}), 4096);
  EXPECT_EQ(*batch_of(model("wan2.1-14b"), {.sequence = 75600}), 256);
  const std::vector<std::uint64_t> ranks = {1024};
  EXPECT_EQ(*batch_of(model("wan2.1-14b"), {.sequence = 75600, .ranks = ranks}), 1024);
}

TEST(JobDefaults, ARunHasTheLengthOfItsTask) {
  TrainingJob job{.model = &model("llama-3.1-8b")};
  const double parameters = count_parameters(*job.model).total;
  EXPECT_EQ(run_length_of(job, std::nullopt).length, 20 * parameters);
  EXPECT_EQ(run_length_of(job, 5e9).length, 5e9);
  EXPECT_EQ(run_length_of(job, 5e9).assumption, "");
  job.task = TrainingTask::kLora;
  EXPECT_EQ(run_length_of(job, std::nullopt).length, 3901.0 * 8192);
  EXPECT_NE(run_length_of(job, std::nullopt).assumption.find("MLPerf"), std::string::npos);
  job.task = TrainingTask::kFineTune;
  EXPECT_EQ(run_length_of(job, std::nullopt).length, 100e6);
  job.model = &model("dit-xl-2");
  const RunLength images = run_length_of(job, std::nullopt);
  EXPECT_EQ(images.unit, SampleUnit::kImages);
  EXPECT_FALSE(images.length);
  EXPECT_EQ(print_run(images.unit, 1'200'000), "1,200,000 images");
}

TEST(JobDefaults, ABatchIsDividedByTheOddPartOfEachSize) {
  for (const std::vector<std::uint64_t>& ranks :
       {std::vector<std::uint64_t>{72}, {24, 40}, {7 * 64}, {96, 160, 224}}) {
    const double batch = *batch_of(model("llama-3.1-8b"), {.sequence = 8192, .ranks = ranks});
    for (std::uint64_t count : ranks) {
      while (count % 2 == 0) count /= 2;
      EXPECT_EQ(std::fmod(batch, static_cast<double>(count)), 0) << batch << " by " << count;
    }
    EXPECT_NEAR(batch, 512, 52);
  }
}

}  // namespace
}  // namespace orrery
