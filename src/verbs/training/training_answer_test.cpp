// verbs/training/training_answer_test.cpp - `orrery report`: a run, an unbroken one, a kill and a
// bill.
#include "verbs/training/training_answer.hpp"

#include <gtest/gtest.h>

#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

/// A run of three steps that lost a rank before the last and ended.
TrainingStory broken_story() {
  TrainingStory story{.title = "Training run", .run = {}};
  story.run.steps = {{.step = 1, .loss = 5.5, .seconds = 0.2, .compute_seconds = 0.1, .ranks = 4},
                     {.step = 2, .loss = 5.25, .seconds = 0.2, .compute_seconds = 0.1, .ranks = 4},
                     {.step = 3, .loss = 5, .seconds = 0.4, .compute_seconds = 0.3, .ranks = 3}};
  story.run.generations = {
      {.attempt = 1, .generation = 1, .ranks = 4, .step = 0, .at = 100},
      {.attempt = 1, .generation = 2, .ranks = 3, .step = 2, .at = 103, .lost_at = 102.5},
      {.attempt = 2, .generation = 1, .ranks = 4, .step = 2, .at = 110}};
  story.run.recoveries_s = {0.75};
  story.run.ended_at = 112;
  story.run.state_sha256 = "0123456789abcdef0123";
  return story;
}

TEST(TrainingAnswer, ASummaryOfOneRun) {
  EXPECT_EQ(training_summary(broken_story(), Json::object()).text,
            "3 steps, last loss 5.000000, 200 ms per step\n"
            "generation 1 from step 0: 4 ranks\n"
            "generation 2 from step 2: 3 ranks, one rank was lost\n"
            "generation 1 from step 2: 4 ranks\n"
            "state 0123456789abcdef0123\n");
}

TEST(TrainingAnswer, AKillIsFollowedUpToTheNextStep) {
  TrainingStory story = broken_story();
  story.kill = DeliberateKill{.pids = {11, 12}, .step = 2, .at = 102, .node = "n1"};
  EXPECT_EQ(story.detect_s(), 0.5);
  const VerbAnswer answer = training_summary(story, Json::object());
  EXPECT_NE(answer.text.find("loss of the rank detected after 0.500 s, next step completed 0.750 s "
                             "later\n"),
            std::string::npos);
  EXPECT_EQ(answer.json["detect_s"], 0.5);
  EXPECT_EQ(answer.json["recover_s"], 0.75);
  EXPECT_EQ(answer.json["killed_pids"], Json({11, 12}));
  EXPECT_EQ(answer.json["killed_at_step"], 2);
  EXPECT_EQ(answer.json["killed_node"], "n1");
  story.kill->at = 103;
  EXPECT_FALSE(story.detect_s()) << "what was lost before is not what the kill did";
}

TEST(TrainingAnswer, APredictionIsComparedWithTheMeanOfItsRanks) {
  TrainingStory story = broken_story();
  story.predicted = PredictedStep{.ranks = 4, .seconds = 0.22};
  EXPECT_NEAR(*story.prediction_error(), 0.1, 1e-12);
  const VerbAnswer answer = training_summary(story, Json::object());
  EXPECT_NE(answer.text.find("step of 4 ranks: predicted 220.0 ms, measured 200.0 ms (+10.0 %)\n"),
            std::string::npos)
      << answer.text;
  EXPECT_EQ(answer.json["step_s_mean"], 0.2);
  EXPECT_EQ(answer.json["step_s_predicted"], 0.22);
  story.predicted->ranks = 7;
  EXPECT_FALSE(story.prediction_error()) << "no such steps";
}

TEST(TrainingAnswer, WhatIsUnknownIsNullAndABillIsNumbers) {
  TrainingStory story{.title = "t", .run = {}};
  const Json none = training_summary(story, Json()).json;
  for (const char* key : {"final_loss", "held_out_loss", "step_s_mean", "step_s_predicted",
                          "step_s_prediction_error", "detect_s", "recover_s"}) {
    ASSERT_TRUE(none.contains(key)) << key;
    EXPECT_TRUE(none[key].is_null()) << key;
  }
  EXPECT_EQ(none["steps"], 0);
  EXPECT_EQ(none["attempts"], Json::array());
  EXPECT_FALSE(none.contains("killed_node"));
  EXPECT_FALSE(none.contains("unbroken_final_loss"));
  EXPECT_EQ(none["accelerator_hours"], 0.0);
  const Json billed =
      training_summary(story, {{"accelerator_hours", 1.5}, {"energy_kwh", "much"}}).json;
  EXPECT_EQ(billed["accelerator_hours"], 1.5);
  EXPECT_EQ(billed["energy_kwh"], 0.0);
}

TEST(TrainingAnswer, GenerationsAreListedByAttempt) {
  const Json attempts = training_summary(broken_story(), Json::object()).json["attempts"];
  ASSERT_EQ(attempts.size(), 2u);
  EXPECT_EQ(attempts[0]["attempt"], 1);
  ASSERT_EQ(attempts[0]["generations"].size(), 2u);
  EXPECT_EQ(attempts[0]["generations"][1],
            Json::parse(R"({"generation": 2, "ranks": 3, "step": 2, "at": 103.0})"));
  EXPECT_EQ(attempts[1]["generations"].size(), 1u);
}

TEST(TrainingAnswer, TwoRunsEndedEqualOnlyIfBothEnded) {
  TrainingStory story = broken_story();
  EXPECT_FALSE(story.ended_equal()) << "there is one run";
  story.unbroken = story.run;
  EXPECT_TRUE(story.ended_equal());
  EXPECT_TRUE(
      training_summary(story, Json())
          .text.ends_with("state 0123456789abcdef0123 of the unbroken run: equal, bit for bit\n"));
  story.unbroken->state_sha256 = "ff";
  EXPECT_FALSE(story.ended_equal());
  EXPECT_TRUE(
      training_summary(story, Json()).text.ends_with("state ff of the unbroken run: DIFFERENT\n"));
  story.run.state_sha256 = story.unbroken->state_sha256 = "";
  EXPECT_FALSE(story.ended_equal()) << "neither ended";
}

const std::string kLosses =
    "step,loss,norm,rate,seconds,compute,ranks,generation\n"
    "1,5.5,0,0,0.25,0.2,4,1\n";
const std::string kBegin =
    R"({"event": "begin", "at": 100, "attempt": 1, "generation": 1, "ranks": 4, "step": 0})"
    "\n";

std::string ended(const std::string& state) {
  return kBegin + R"({"event": "end", "at": 114, "state_sha256": ")" + state + "\"}\n";
}

TEST(TrainingAnswer, FilesOfTwoRunsAreComparedAndThePageIsWritten) {
  const ScratchFiles files;
  files.write("run/loss.csv", kLosses);
  files.write("run/events.jsonl", ended("aa"));
  files.write("whole/loss.csv", kLosses);
  files.write("whole/events.jsonl", ended("bb"));
  TrainingReportCall call{.run = files.path("run"),
                          .unbroken = files.path("whole"),
                          .job = files.write("job.json", R"({"bill": {"energy_kwh": 2.5}})"),
                          .kill = "",
                          .out = files.path("page.html"),
                          .prediction = {}};
  const Result<JudgedAnswer> different = report_training({}, call);
  ASSERT_TRUE(different) << different.error().text();
  ASSERT_FALSE(different->verdict);
  EXPECT_EQ(different->verdict.error().kind, ErrorKind::kInfeasible);
  EXPECT_EQ(different->verdict.error().message,
            "the two runs did not end in the same state, or did not both end");
  EXPECT_EQ(different->shown.json["energy_kwh"], 2.5);
  EXPECT_EQ(different->shown.json["unbroken_state_sha256"], "bb");
  EXPECT_NE(files.read("page.html").find("lost accelerator-hours"), std::string::npos);
  files.write("whole/events.jsonl", ended("aa"));
  const Result<JudgedAnswer> equal = report_training({}, call);
  ASSERT_TRUE(equal) << equal.error().text();
  EXPECT_TRUE(equal->verdict);
}

TEST(TrainingAnswer, FilesThatAreNoneAreToldByName) {
  const ScratchFiles files;
  files.write("run/loss.csv", kLosses);
  files.write("run/events.jsonl", kBegin);
  TrainingReportCall call;
  call.run = files.path("run");
  call.kill = files.write("kill.json", R"({"pids": [1], "step": 2, "at": "noon", "node": "n"})");
  EXPECT_EQ(report_training({}, call).error().text(),
            call.kill + ":1:1: expected pids, step, at and node");
  call.kill = files.write("list.json", "[]");
  EXPECT_EQ(report_training({}, call).error().text(), call.kill + ":1:1: expected a JSON object");
  call.kill = "";
  call.prediction.training = "t.yaml";
  EXPECT_EQ(report_training({}, call).error().text(),
            "--training and --calibration: expected both or neither");
}

TEST(TrainingAnswer, ThePageHasEachGenerationAndWhyItBegan) {
  TrainingStory story = broken_story();
  story.kill = DeliberateKill{.pids = {1}, .step = 2, .at = 102, .node = "<n1>"};
  const std::string html = training_html(story);
  EXPECT_NE(html.find("start of the run"), std::string::npos);
  EXPECT_NE(html.find("a rank was lost"), std::string::npos);
  EXPECT_NE(html.find("a rank joined or left"), std::string::npos);
  EXPECT_NE(html.find("0123456789abcdef..."), std::string::npos);
  EXPECT_EQ(html.find("<n1>"), std::string::npos) << "a name of a node is no markup";
  EXPECT_FALSE(training_html({.title = "nothing", .run = {}}).empty());
}

}  // namespace
}  // namespace orrery
