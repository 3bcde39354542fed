#include "perf/runs/run_plan.hpp"

#include <gtest/gtest.h>

#include "perf/runs/run_file_test.hpp"

namespace orrery {
namespace {

using Cover = RunDevices::Cover;

Result<PlanText> read(const std::string& par, std::uint64_t count,
                      std::string_view id = "nvidia-h100-sxm5-80g", Cover cover = Cover::kAll) {
  const Result<Document> document = Document::parse(par, "runs.json");
  if (!document) return tl::unexpected<Error>(document.error());
  return read_run_plan(document->root(), {accelerator_of(id), count, cover});
}

StatedPlan plan(const std::string& par, std::uint64_t count,
                std::string_view id = "nvidia-h100-sxm5-80g") {
  const Result<PlanText> text = read(par, count, id);
  if (text) return text->plan;
  ADD_FAILURE() << text.error().text();
  return {};
}

std::string error_text(const std::string& par, std::uint64_t count) {
  const Result<PlanText> text = read(par, count);
  return text ? "" : text.error().text();
}

TEST(RunPlan, ReadsWhatIsGivenAndLeavesTheRestOpen) {
  const StatedPlan whole =
      plan(R"({"tp":8,"pp":4,"vp":2,"dp":2,"cp":2,"ep":4,"zero":1,"sp":true,"moe_tp":0})", 128);
  EXPECT_EQ(whole.vpp, 2U);
  EXPECT_EQ(whole.zero, 1U);
  EXPECT_EQ(whole.ep, 4U);
  EXPECT_EQ(whole.sequence_parallel, SequenceParallel::kOn);
  EXPECT_EQ(whole.moe_tp, std::nullopt);
  const StatedPlan open = plan(R"({"tp":8,"pp":null,"dp":null,"fsdp":"see recipe"})", 64);
  EXPECT_EQ(open.tp, 8U);
  EXPECT_EQ(open.pp, std::nullopt);
  EXPECT_EQ(open.shard, std::nullopt);
  EXPECT_EQ(plan("null", 64), StatedPlan{});
}

TEST(RunPlan, CountsShardsBesideOrWithinDataParallelism) {
  const StatedPlan beside = plan(R"({"tp":4,"dp":2,"fsdp":16,"pp":1})", 128, "google-tpu-v5p");
  EXPECT_EQ(beside.dp, 32U);
  EXPECT_EQ(beside.shard, 16U);
  EXPECT_EQ(beside.zero, 3U);
  const StatedPlan within = plan(R"({"tp":1,"dp":64,"fsdp":8,"pp":1})", 64);
  EXPECT_EQ(within.dp, 64U);
  EXPECT_EQ(within.shard, 8U);
  const StatedPlan group = plan(R"({"tp":1,"pp":1,"dp":64,"zero":0,"fsdp_group":32})", 64);
  EXPECT_EQ(group.shard, 32U);
  EXPECT_EQ(group.zero, 3U);
  EXPECT_EQ(plan(R"({"fsdp_group":0,"fsdp":1})", 64), StatedPlan{});
}

TEST(RunPlan, CountsCoresWhereTheLayoutDoes) {
  const Result<PlanText> cores = read(R"({"tp":32,"pp":8,"dp":4})", 512, "aws-trainium1");
  ASSERT_TRUE(cores) << cores.error().text();
  EXPECT_EQ(cores->ranks_per_accelerator, 2U);
  EXPECT_EQ(read(R"({"tp":8,"pp":1,"dp":4})", 32, "aws-trainium1")->ranks_per_accelerator, 1U);
  EXPECT_TRUE(read(R"({"tp":8,"pp":1,"dp":1})", 4, "google-tpu7x"));
  EXPECT_FALSE(read(R"({"tp":32,"pp":8,"dp":4})", 512));
}

TEST(RunPlan, RefusesAProductThatTheAcceleratorsCannotHold) {
  const std::string error = error_text(R"({"tp":8,"pp":2,"dp":2})", 64);
  EXPECT_NE(error.find("runs.json:1:1: \"par\""), std::string::npos) << error;
  EXPECT_NE(error.find("is 32 for 64 accelerators"), std::string::npos) << error;
  EXPECT_NE(error_text(R"({"tp":3,"pp":null})", 64).find("no multiple"), std::string::npos);
  EXPECT_FALSE(error_text(R"({"tp":16777216,"pp":16777216,"dp":16777216,"cp":9})", 64).empty());
}

TEST(RunPlan, TakesAServingLayoutOfOneReplicaForAll) {
  const Result<PlanText> text = read(R"({"tp":4,"pp":1,"dp":1,"layout":"split"})", 16,
                                     "nvidia-b300-sxm-288g", Cover::kReplica);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_EQ(text->plan.dp, 4U);
  EXPECT_EQ(text->warnings.size(), 2U);
  EXPECT_FALSE(read(R"({"tp":4,"pp":1,"dp":3})", 16, "nvidia-b300-sxm-288g", Cover::kReplica));
}

TEST(RunPlan, RefusesSizesBelowOneAndNumbersInQuotes) {
  EXPECT_NE(error_text(R"({"tp":0})", 8).find("\"par\": \"tp\": 0 is out of range"),
            std::string::npos);
  EXPECT_NE(error_text(R"({"dp":-1})", 8).find("\"dp\""), std::string::npos);
  EXPECT_NE(error_text(R"({"pp":1.5})", 8).find("\"pp\""), std::string::npos);
  EXPECT_NE(error_text(R"({"tp":"8"})", 8).find("expected a whole number"), std::string::npos);
  EXPECT_NE(error_text(R"({"zero":4})", 8).find("\"zero\""), std::string::npos);
  EXPECT_NE(error_text("[1]", 8).find("a mapping"), std::string::npos);
}

TEST(RunPlan, WarnsOfUnknownKeys) {
  const Result<PlanText> text = read(R"({"warp":2,"sp":7})", 8);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->warnings.size(), 2U);
}

TEST(RunPlan, WarnsOfADegreeThatIsNoNumberButNotOfAMeshThatOnlyTheRecipeNames) {
  const Result<PlanText> text = read(R"({"ep":"abc","cp":"zz","fsdp":"see recipe"})", 8);
  ASSERT_TRUE(text);
  EXPECT_EQ(text->plan.ep, std::nullopt);
  EXPECT_EQ(text->warnings.size(), 2U);
}

}  // namespace
}  // namespace orrery
