// verbs/plan/plan_answer_test.cpp - `orrery plan` as a question and its answer.
#include "verbs/plan/plan_answer.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

/// Asks for two plans of a small search: eight H100, tensor and pipeline sizes given.
PlanCall small_call() {
  PlanCall call;
  call.options.model = "llama-3.1-8b";
  call.options.machines.accelerators = "h100:8";
  call.options.layout.fixed = "tp=1,pp=1,dp=8,micro_batch=1";
  call.options.top = 2;
  return call;
}

TEST(PlanAnswer, TextAndJsonHaveTheSamePlans) {
  const Result<VerbAnswer> answer = report_plan({}, small_call());
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_EQ(answer->json["plans"].size(), 2u);
  for (const Json& plan : answer->json["plans"]) {
    EXPECT_EQ(plan["dp"], 8);
    EXPECT_EQ(plan["machine"], "h100:8");
  }
  EXPECT_LE(answer->json["plans"][0]["step_s"], answer->json["plans"][1]["step_s"]);
  EXPECT_TRUE(answer->text.starts_with("llama-3.1-8b, 512 sequences of 8,192 tokens, bf16\n"));
  EXPECT_NE(answer->text.find("\nStep of plan 2 against plan 1: "), std::string::npos);
  EXPECT_FALSE(answer->json.contains("sensitivity"));
  EXPECT_EQ(answer->text.find("Effect of a 1 % change"), std::string::npos);
}

TEST(PlanAnswer, ProgressIsCountedUpToTheWholeSearch) {
  PlanCall call = small_call();
  SearchCounters last;
  call.progress = [&](const SearchCounters& counters) {
    EXPECT_GE(counters.enumerated, last.enumerated);
    last = counters;
  };
  const Result<VerbAnswer> answer = report_plan({}, call);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_GT(last.enumerated, 0u);
  EXPECT_LE(last.enumerated, answer->json["counters"]["enumerated"].get<std::uint64_t>());
}

TEST(PlanAnswer, SensitivityIsAddedToBothForms) {
  PlanCall call = small_call();
  call.options.layout.fixed += ",zero=1";
  call.sensitivity = Sensitive::kYes;
  const Result<VerbAnswer> answer = report_plan({}, call);
  ASSERT_TRUE(answer) << answer.error().text();
  ASSERT_FALSE(answer->json["sensitivity"].empty());
  const Json& peak = answer->json["sensitivity"][0];
  EXPECT_EQ(peak["figure"], "peak");
  EXPECT_LT(peak["plus_1_percent"]["step"], 0.0);
  EXPECT_GT(peak["minus_1_percent"]["step"], 0.0);
  EXPECT_NE(answer->text.find("\nEffect of a 1 % change of each hardware figure"),
            std::string::npos);
}

TEST(PlanAnswer, TheBestPlanIsShownAsAConfiguration) {
  PlanCall call = small_call();
  call.options.layout.fixed += ",zero=1";
  call.emit = Launcher::kDeepspeed;
  const Result<VerbAnswer> answer = report_plan({}, call);
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_EQ(answer->json["launcher"], "deepspeed");
  EXPECT_EQ(answer->json["text"], answer->text);
  EXPECT_TRUE(answer->json["layout"].get<std::string>().starts_with("tp=1,pp=1,dp=8,zero=1,"));
  const Json written = Json::parse(answer->text);
  EXPECT_EQ(written["train_batch_size"], 512);
  EXPECT_EQ(written["train_micro_batch_size_per_gpu"], 1);
  EXPECT_EQ(written["gradient_accumulation_steps"], 512 / 8);
  EXPECT_EQ(written["zero_optimization"]["stage"], 1);
}

TEST(PlanAnswer, ThePageIsWrittenWhateverIsShown) {
  const ScratchFiles files;
  PlanCall call = small_call();
  call.html = files.path("plan.html");
  call.emit = Launcher::kMegatron;
  ASSERT_TRUE(report_plan({}, call));
  EXPECT_NE(files.read("plan.html").find("<title>Plan of llama-3.1-8b, 512 sequences"),
            std::string::npos);
  call.html = files.path("none/plan.html");
  const Result<VerbAnswer> failed = report_plan({}, call);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().kind, ErrorKind::kEnvironment);
  EXPECT_EQ(failed.error().message, "cannot write " + call.html + ": No such file or directory");
}

TEST(PlanAnswer, ALayoutThatCannotBeIsToldWithTheRule) {
  PlanCall call = small_call();
  call.options.layout.fixed = "tp=8,pp=8";
  const Result<VerbAnswer> answer = report_plan({}, call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "h100:8: no layout obeys the rules: tp 8 x pp 8 does not divide 8 ranks");
}

}  // namespace
}  // namespace orrery
