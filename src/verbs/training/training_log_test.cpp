// verbs/training/training_log_test.cpp - the files of a training as its log, and what is no such
// file.
#include "verbs/training/training_log.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/numbers/rng.hpp"
#include "verbs/scratch_files_test.hpp"

namespace orrery {
namespace {

const std::string kHeader = "step,loss,norm,rate,seconds,compute,ranks,generation\n";
const std::string kBegin =
    R"({"event": "begin", "at": 100, "attempt": 1, "generation": 1, "ranks": 4, "step": 0})"
    "\n";

Result<TrainingLog> log_of(const ScratchFiles& files, const std::string& losses,
                           const std::string& events) {
  files.write("loss.csv", kHeader + losses);
  files.write("events.jsonl", events);
  return read_training_log(files.path("."));
}

TEST(TrainingLog, StepsAndEventsAreRead) {
  const ScratchFiles files;
  const Result<TrainingLog> log = log_of(
      files, "1,5.5,0.1,0.001,0.25,0.2,4,1\n2,5.25,0.1,0.001,0.5,0.3,3,2,0.01\n",
      kBegin + R"({"event": "regrouped", "at": 110, "attempt": 1, "generation": 2, "ranks": 3,)"
               R"( "step": 1, "lost_at": 108.5, "memory": "sockets", "layout": {"tp": 1, "pp": 1,)"
               R"( "ep": 1, "zero": 1, "micro_batch": 2, "recompute": "full"}})"
               "\n"
               R"({"event": "recovered", "at": 111, "recover_s": 2.5})"
               "\n"
               R"({"event": "checkpoint", "at": 112, "step": 2})"
               "\n"
               R"({"event": "evaluated", "at": 113, "held_out_loss": 5.75})"
               "\n"
               R"({"event": "something new", "at": 113})"
               "\n"
               R"({"event": "end", "at": 114, "state_sha256": "abc"})"
               "\n");
  ASSERT_TRUE(log) << log.error().text();
  ASSERT_EQ(log->steps.size(), 2u);
  EXPECT_EQ(log->steps[0].loss, 5.5);
  EXPECT_EQ(log->steps[0].seconds, 0.25);
  EXPECT_EQ(log->steps[0].compute_seconds, 0.2);
  EXPECT_EQ(log->steps[1].ranks, 3u);
  EXPECT_EQ(log->steps[1].generation, 2u);
  ASSERT_EQ(log->generations.size(), 2u);
  EXPECT_FALSE(log->generations[0].lost_at);
  EXPECT_EQ(log->generations[1].lost_at, 108.5);
  EXPECT_EQ(log->memory, TrainingLog::Memory::kSockets);
  EXPECT_EQ(log->recoveries_s, std::vector{2.5});
  EXPECT_EQ(log->checkpoints, std::vector<std::uint64_t>{2});
  EXPECT_EQ(log->held_out_loss, 5.75);
  EXPECT_EQ(log->ended_at, 114);
  EXPECT_EQ(log->state_sha256, "abc");
  ASSERT_TRUE(log->layout);
  EXPECT_EQ(log->layout->zero, 1u);
  EXPECT_EQ(log->layout->micro_batch, 2u);
  EXPECT_EQ(log->layout->vpp, 1u) << "older files do not state it";
  EXPECT_EQ(log->layout->recompute, Recompute::kFull);
}

TEST(TrainingLog, HalfALastLineIsThatOfAProcessThatWasKilled) {
  const ScratchFiles files;
  const Result<TrainingLog> log =
      log_of(files, "1,5.5,0,0,0.25,0.2,4,1\n2,5.", kBegin + R"({"event": "che)");
  ASSERT_TRUE(log) << log.error().text();
  EXPECT_EQ(log->steps.size(), 1u);
  EXPECT_EQ(log->generations.size(), 1u);
}

TEST(TrainingLog, ALineThatIsWrongIsToldWithItsPlace) {
  const ScratchFiles files;
  const std::string losses = files.path(".") + "/loss.csv";
  const Result<TrainingLog> few = log_of(files, "1,5.5,0,0,0.25,0.2,4,1\n2,5.25\n", kBegin);
  ASSERT_FALSE(few);
  EXPECT_EQ(few.error().text(), losses + ":3:1: expected 8 numbers, found 2");
  const Result<TrainingLog> word = log_of(files, "1,nonsense,0,0,0.25,0.2,4,1\n", kBegin);
  ASSERT_FALSE(word);
  EXPECT_EQ(word.error().text(), losses + ":2:1: expected 8 numbers");
  const Result<TrainingLog> empty = log_of(files, "\n", kBegin);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().text(), losses + ":2:1: expected 8 numbers");
  const Result<TrainingLog> event = log_of(files, "", kBegin + "{}\n");
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().text(), files.path(".") +
                                      "/events.jsonl:2:1: expected an event of a training, a JSON "
                                      "object");
  const Result<TrainingLog> list = log_of(files, "", "[1]\n");
  ASSERT_FALSE(list);
  EXPECT_EQ(list.error().where.line, 1);
}

TEST(TrainingLog, ADirectoryWithoutFilesIsToldByTheMissingFile) {
  const ScratchFiles files;
  const Result<TrainingLog> none = read_training_log(files.path("none"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().text(), files.path("none") + "/loss.csv: cannot be read");
  files.write("loss.csv", kHeader);
  EXPECT_EQ(read_training_log(files.path(".")).error().text(),
            files.path(".") + "/events.jsonl: cannot be read");
}

TEST(TrainingLog, NoStepsHaveNoMedianAndNoRanks) {
  const TrainingLog log;
  EXPECT_EQ(log.median_step_s(), 0);
  EXPECT_EQ(log.usual_ranks(), 0u);
  EXPECT_EQ(log.mean_step_s(4), 0);
  EXPECT_EQ(log.layout_text(), "");
}

TEST(TrainingLog, TheLayoutHasTheReplicasOfMostSteps) {
  TrainingLog log;
  for (const std::uint32_t ranks : {8U, 8U, 8U, 4U}) log.steps.push_back({.ranks = ranks});
  log.layout = ParallelPlan{.tp = 2, .micro_batch = 2};
  EXPECT_EQ(log.usual_ranks(), 8u);
  EXPECT_EQ(log.layout_text(), "tp=2,pp=1,dp=4,micro_batch=2");
}

TEST(TrainingLog, AMeanIsThatOfTheStepsOfItsRanks) {
  TrainingLog log;
  log.steps = {{.seconds = 1, .ranks = 4}, {.seconds = 3, .ranks = 4}, {.seconds = 9, .ranks = 2}};
  EXPECT_EQ(log.mean_step_s(4), 2);
  EXPECT_EQ(log.mean_step_s(2), 9);
  EXPECT_EQ(log.mean_step_s(3), 0);
}

// Half of the steps are no longer than the median, and half no shorter, in whatever order they
// came.
TEST(TrainingLog, AMedianPartsTheStepsInHalves) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Rng rng(seed);
    TrainingLog log;
    log.steps.resize(1 + rng.below(20));
    for (TrainedStep& step : log.steps) step.seconds = static_cast<double>(rng.below(5));
    const double median = log.median_step_s();
    std::size_t shorter = 0;
    std::size_t longer = 0;
    for (const TrainedStep& step : log.steps) {
      shorter += step.seconds < median ? 1 : 0;
      longer += step.seconds > median ? 1 : 0;
    }
    EXPECT_LE(shorter, log.steps.size() / 2);
    EXPECT_LE(longer, log.steps.size() / 2);
  }
}

}  // namespace
}  // namespace orrery
