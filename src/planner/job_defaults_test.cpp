#include "planner/job_defaults.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "workload/builtin_models.hpp"
#include "workload/model_catalog.hpp"

namespace orrery {
namespace {

const Model& model(std::string_view name) {
  static const ModelCatalog kModels = *ModelCatalog::load(builtin_models(), "");
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
