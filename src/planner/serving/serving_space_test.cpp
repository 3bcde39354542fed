#include "planner/serving/serving_space.hpp"

#include <cmath>

#include "planner/serving/serving_test.hpp"

namespace orrery {
namespace {

std::vector<ServingPlan> layouts(std::string_view model, std::uint32_t devices) {
  return serving_layouts(*serving_shape_of(served_model(model)), devices);
}

TEST(ServingSpace, ADenseModelIsDividedByTensorAndPipelineRanksAlone) {
  const std::vector<ServingPlan> plans = layouts("llama-3.1-70b", 8);
  ASSERT_EQ(plans.size(), 10u);  // 1 + 2 + 3 + 4 ways for 1, 2, 4 and 8 devices
  for (const ServingPlan& plan : plans) {
    EXPECT_EQ(plan.ep, 1);
    EXPECT_EQ(plan.attention_dp, 1);
    EXPECT_EQ(plan.replicas, 1);
    EXPECT_LE(devices_of(plan), 8);
  }
  EXPECT_EQ(print_layout(plans.front()), "tp=1");
}

TEST(ServingSpace, ExpertsAreSharedByWholeStagesAndDividedEvenly) {
  const ServingShape shape = *serving_shape_of(served_model("deepseek-v3"));
  bool groups = false;
  for (const ServingPlan& plan : serving_layouts(shape, 64)) {
    EXPECT_EQ(std::fmod(128, plan.tp), 0) << print_layout(plan);
    EXPECT_TRUE(plan.ep == 1 || plan.ep == plan.tp * plan.attention_dp) << print_layout(plan);
    EXPECT_TRUE(plan.attention_dp == 1 || plan.ep > 1) << print_layout(plan);
    EXPECT_EQ(std::fmod(256, plan.ep), 0) << print_layout(plan);
    groups = groups || plan.attention_dp == 64;
  }
  EXPECT_TRUE(groups);
}

TEST(ServingSpace, TensorRanksDivideTheHeads) {
  ServingShape shape = *serving_shape_of(served_model("llama-3.1-8b"));
  for (ServingLayer& layer : shape.kinds) layer.attention.heads = 12;
  for (const ServingPlan& plan : serving_layouts(shape, 16)) EXPECT_LE(plan.tp, 4);
}

TEST(ServingSpace, NoInstanceIsLargerThanTheLargestTried) {
  for (const ServingPlan& plan : layouts("llama-3.1-70b", 9000)) {
    EXPECT_LE(devices_of(plan), kInstanceMax);
  }
}

TEST(ServingSpace, AnInstanceTakesAPowerOfTwoOfEachDomain) {
  EXPECT_EQ(domains_of({.tp = 8}, 8), 1);
  EXPECT_EQ(domains_of({.tp = 8, .pp = 4}, 8), 4);
  EXPECT_EQ(domains_of({.tp = 64}, 72), 1);
  EXPECT_EQ(domains_of({.tp = 64, .pp = 2}, 72), 2);
  EXPECT_EQ(domains_of({.tp = 8}, 6), 2);  // 4 of each 6
}

TEST(ServingSpace, FormatsAreThoseTheAcceleratorHasRatesFor) {
  const Model& model = served_model("llama-3.1-8b");
  const auto words = [&](std::string_view type, const std::vector<NumberFormat>& stated) {
    std::vector<std::string> all;
    for (const ServingNumbers& each : serving_numbers(accelerator_named(type), model, stated)) {
      all.push_back(print_numbers(each));
    }
    return all;
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("a100-80g", {}), (Words{"bf16", "int8"}));
  EXPECT_EQ(words("h100", {}), (Words{"bf16", "fp8"}));
  EXPECT_EQ(words("b200", {}), (Words{"bf16", "fp8", "fp4"}));
  EXPECT_EQ(words("v100-32g", {NumberFormat::kBf16}), Words{"fp16"});
  EXPECT_EQ(words("h100", {NumberFormat::kFp4}), Words{"fp4 weights, bf16 products"});
  EXPECT_EQ(words("h100", {NumberFormat::kInt4}), Words{"int4 weights, bf16 products"});
}

TEST(ServingSpace, NothingIsWiderThanThePublishedWeights) {
  const auto numbers = serving_numbers(accelerator_named("h100"), served_model("gpt-oss-120b"), {});
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_EQ(print_numbers(numbers[0]), "fp4 weights, bf16 products");
}

}  // namespace
}  // namespace orrery
