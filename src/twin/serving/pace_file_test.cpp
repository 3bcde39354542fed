#include "twin/serving/pace_file.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

std::string error_of(std::string_view text) {
  const Result<EngineStepFit> pace = read_pace(text, "p");
  return pace ? "no error" : pace.error().text();
}

TEST(PaceFile, HasTheTermsThemselves) {
  const Result<EngineStepFit> pace = read_pace(
      R"({"step_s": 0.006, "sequence_s": 3e-5, "context_token_s": 4e-8, "prompt_token_s": 3e-5})",
      "p");
  ASSERT_TRUE(pace) << pace.error().text();
  EXPECT_EQ(
      pace->cost,
      (EngineStepCost{
          .step_s = 0.006, .sequence_s = 3e-5, .context_token_s = 4e-8, .prompt_token_s = 3e-5}));
  EXPECT_EQ(pace->samples, 0U);
}

TEST(PaceFile, ErrorsNameTheLineAndWhatWasExpected) {
  EXPECT_EQ(error_of(""), "p:1:1: the file is empty, expected a log of steps");
  EXPECT_EQ(error_of("{sequence_s: 1}"), "p:1:1: the key \"step_s\" is missing");
  EXPECT_EQ(error_of("{step_s: -1}"), "p:1:1: a term of -1 s, expected 0 to 100");
  EXPECT_EQ(error_of("{step_s: 0}"), "p:1:1: every term is 0, expected one above it");
  EXPECT_EQ(error_of("{step_s: 1, prompt_pair_s: 1}"), "p:1:1: a term of 1 s, expected 0 to 0.001");
  const std::string head =
      "time,prefill_tokens,prefill_pairs,decode_sequences,decode_context,seconds\n";
  EXPECT_EQ(error_of(head), "p: 0 steps, expected at least 10");
  EXPECT_EQ(error_of(head + "1,2,3\n"), "p:2:1: 3 cells, expected 6");
  EXPECT_EQ(error_of(head + "1,2,3,x,5,6\n"), "p:2:1: decode_sequences: \"x\", expected a number");
  EXPECT_EQ(error_of("time,prefill_tokens,seconds\n1,2,3\n"),
            "p:1:1: missing column \"prefill_pairs\"");
}

}  // namespace
}  // namespace orrery
