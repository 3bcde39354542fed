// runtime/ranks/planned_layout_test.cpp - a spec and the plan of its job: which values each
// leaves to the other, and which contradict.
#include "runtime/ranks/planned_layout.hpp"

#include <gtest/gtest.h>

#include "base/format/document.hpp"

namespace orrery {
namespace {

Result<TrainingSpec> read(const std::string& keys, const std::optional<ParallelPlan>& plan) {
  const auto document = Document::parse(
      "apiVersion: orrery/v1\nkind: Training\nname: planned\ndata: {paths: [text]}\n" + keys +
          (keys.find("model:") == keys.npos ? "model: {heads: 4}\n" : ""),
      "training.yaml");
  EXPECT_TRUE(document) << (document ? "" : document.error().text());
  return read_training_spec(*document, plan);
}

std::string refusal(const std::string& keys, const ParallelPlan& plan) {
  const auto spec = read(keys, plan);
  EXPECT_FALSE(spec) << keys;
  return spec ? "" : spec.error().text();
}

constexpr auto kBatch = "batch: {sequences: 16, shards: 2}\n";

TEST(PlannedLayout, WhatTheSpecLeavesOpenIsThePlans) {
  const auto spec = read(
      std::string(kBatch) + "model: {layers: 4, width: 64, heads: 4}\n",
      ParallelPlan{
          .tp = 2, .pp = 2, .dp = 2, .zero = 1, .micro_batch = 4, .recompute = Recompute::kFull});
  ASSERT_TRUE(spec) << spec.error().text();
  EXPECT_EQ(spec->layout.tp, 2u);
  EXPECT_EQ(spec->layout.pp, 2u);
  EXPECT_EQ(spec->layout.zero, 1u);
  EXPECT_EQ(spec->batch.micro, 4u);
  EXPECT_EQ(spec->model.recompute, ActivationRecompute::kFull);
}

TEST(PlannedLayout, WithoutAPlanMicroBatchesAreTheLargestUpToEight) {
  EXPECT_EQ(read(kBatch, std::nullopt)->batch.micro, 8u);
  EXPECT_EQ(read("batch: {sequences: 12, shards: 1}\n", std::nullopt)->batch.micro, 6u);
  EXPECT_EQ(read("batch: {sequences: 22, shards: 2}\n", std::nullopt)->batch.micro, 1u);
  EXPECT_EQ(read("batch: {sequences: 16, shards: 2, micro: 2}\n", std::nullopt)->batch.micro, 2u);
}

TEST(PlannedLayout, WhatTheSpecStatesThePlanHasToo) {
  const std::string stated = std::string(kBatch) + "layout: {tp: 2}\n";
  EXPECT_TRUE(read(stated, ParallelPlan{.tp = 2, .micro_batch = 8}));
  const std::string other = refusal(stated, {.tp = 1, .micro_batch = 8});
  EXPECT_NE(other.find("training.yaml:6"), other.npos) << other;
  EXPECT_NE(other.find("layout.tp: the spec says 2, the job's plan 1"), other.npos) << other;
  const std::string micro =
      refusal("batch: {sequences: 16, shards: 2, micro: 8}\n", {.micro_batch = 4});
  EXPECT_NE(micro.find("batch.micro: the spec says 8"), micro.npos) << micro;
}

TEST(PlannedLayout, APlanThatTheTrainerCannotRunIsRefused) {
  EXPECT_NE(refusal(kBatch, {.cp = 2}).find("plan.cp is 2"), std::string::npos);
  EXPECT_NE(refusal(kBatch, {.recompute = Recompute::kSelective}).find("selective"),
            std::string::npos);
  // The model itself refuses the plan: 4 heads are not 3 parts.
  EXPECT_NE(refusal(kBatch, {.tp = 3, .micro_batch = 8}).find("layout.tp"), std::string::npos);
  EXPECT_NE(refusal(kBatch, {.micro_batch = 3}).find("batch.micro"), std::string::npos);
  EXPECT_NE(refusal(kBatch, {.zero = 2, .micro_batch = 8}).find("layout.zero"), std::string::npos);
}

TEST(PlannedLayout, AGangsPlanIsFoundByItsNumber) {
  const std::string text =
      R"({"gangs": [{"gang": 0, "accelerators": 1},
                    {"gang": 1, "plan": {"tp": 2, "dp": 3, "micro_batch": 4, "recompute": "full",
                                         "layout": "tp=2,dp=3"}}]})";
  EXPECT_FALSE(*plan_of_gang(text, 0));
  EXPECT_FALSE(*plan_of_gang(text, 2));
  EXPECT_FALSE(*plan_of_gang("", 0));
  const ParallelPlan expected{.tp = 2, .dp = 3, .micro_batch = 4, .recompute = Recompute::kFull};
  EXPECT_EQ(**plan_of_gang(text, 1), expected);
}

TEST(PlannedLayout, WhatIsNoPlanIsSaid) {
  for (const std::string text :
       {"{", "[]", "{}", R"({"gangs": 1})", R"({"gangs": [{"gang": 0, "plan": 3}]})",
        R"({"gangs": [{"gang": 0, "plan": {"tp": -1}}]})",
        R"({"gangs": [{"gang": 0, "plan": {"tp": "2"}}]})",
        R"({"gangs": [{"gang": 0, "plan": {"tp": 99999999}}]})",
        R"({"gangs": [{"gang": 0, "plan": {"recompute": "some"}}]})"}) {
    const auto plan = plan_of_gang(text, 0);
    ASSERT_FALSE(plan) << text;
    EXPECT_EQ(plan.error().kind, ErrorKind::kInput);
    EXPECT_NE(plan.error().text().find("ORRERY_PLAN"), std::string::npos) << plan.error().text();
  }
}

}  // namespace
}  // namespace orrery
