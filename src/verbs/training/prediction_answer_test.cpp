// verbs/training/prediction_answer_test.cpp - `orrery predict`: every layout of a training, and the
// first of them as text.
#include "verbs/training/prediction_answer.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "verbs/scratch_files_test.hpp"
#include "verbs/training/calibration_answer.hpp"
#include "verbs/training/calibrations_test.hpp"

namespace orrery {
namespace {

const std::string kTraining =
    "apiVersion: orrery/v1\nkind: Training\nname: small\n"
    "model: {family: gpt, layers: 2, width: 64, heads: 4, sequence: 128}\n"
    "data: {paths: [texts]}\n"
    "batch: {sequences: 8, shards: 2}\nsteps: 10\n";

PredictCall call_on(const ScratchFiles& files) {
  return {.files = {.training = files.write("training.yaml", kTraining),
                    .calibration = files.write("node.yaml", calibration_file(some_calibration()))},
          .top = 1,
          .ranks = {}};
}

TEST(PredictionAnswer, TheJsonHasEveryLayoutAndTheTextTheFirst) {
  const ScratchFiles files;
  std::string messages;
  CommandOptions options;
  options.message = [&](const std::string& text) { messages += text; };
  const Result<VerbAnswer> answer = report_prediction(options, call_on(files));
  ASSERT_TRUE(answer) << answer.error().text();
  EXPECT_TRUE(messages.starts_with("orrery: ")) << "the machine is another: " << messages;
  ASSERT_GT(answer->json.size(), 1u);
  double last = 0;
  for (const Json& step : answer->json) {
    const double seconds = step["step_s"].get<double>();
    EXPECT_GE(seconds, last) << "fastest first";
    last = seconds;
    EXPECT_NEAR(step["tokens_per_s"].get<double>() * seconds, 8.0 * 128, 1e-6);
    EXPECT_EQ(step["tp"].get<int>() * step["pp"].get<int>() * step["dp"].get<int>(), step["ranks"]);
    EXPECT_LE(step["ranks"], 2) << "no more were measured";
    EXPECT_EQ(step["shards"], 2);
    EXPECT_GT(step["memory_bytes"], 0.0);
  }
  EXPECT_TRUE(answer->text.starts_with("small: 8 sequences of 128 tokens in 2 shards\n"))
      << answer->text;
  EXPECT_EQ(std::ranges::count(answer->text, '\n'), 3) << answer->text;
}

TEST(PredictionAnswer, RanksThatWereNotMeasuredAreRefused) {
  const ScratchFiles files;
  PredictCall call = call_on(files);
  call.ranks = {5, 5};
  const Result<VerbAnswer> answer = report_prediction({}, call);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().message,
            "small: no prediction for 5 or more ranks: the calibration covers 1 to 2 busy ranks; "
            "measure with `orrery calibrate-node --ranks 5`");
}

TEST(PredictionAnswer, AFileThatIsNoneIsToldByName) {
  const ScratchFiles files;
  PredictCall call = call_on(files);
  call.files.calibration = files.path("none.yaml");
  EXPECT_EQ(report_prediction({}, call).error().text(),
            files.path("none.yaml") + ": No such file or directory");
}

}  // namespace
}  // namespace orrery
