// executor/slurm/sbatch_answer_test.cpp - what sbatch of Slurm 22.05 said when it was asked for
// what it does not give.
#include "executor/slurm/sbatch_answer.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(SbatchAnswerTest, TheIdIsTheWholeAnswer) {
  EXPECT_EQ(read_sbatch("17\n"), "17");
  EXPECT_EQ(read_sbatch("17;orrery\n"), "17");
  for (const auto* text : {"", "17", "\n", "17\n18\n", "17 \n", "-1\n", "Submitted batch job 17\n",
                           "12345678901\n", ";orrery\n"}) {
    EXPECT_FALSE(read_sbatch(text)) << text;
  }
  EXPECT_FALSE(is_slurm_job_id("--full"));
  EXPECT_FALSE(is_slurm_job_id("17_1"));
}

TEST(SbatchAnswerTest, ARefusalHasItsKindAndSlurmsWords) {
  const auto refused = [](std::string_view text) { return read_sbatch_errors(text).refused; };
  const SbatchFailure partition = read_sbatch_errors(
      "sbatch: error: invalid partition specified: nope\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  EXPECT_EQ(partition.refused, HoldRefusal::kNever);
  EXPECT_EQ(partition.text,
            "invalid partition specified: nope; Batch job submission failed: Invalid partition "
            "name specified");
  for (const auto* text :
       {"Batch job submission failed: Requested reservation is invalid",
        "Batch job submission failed: Requested node configuration is not available",
        "Batch job submission failed: Invalid feature specification",
        "Batch job submission failed: Node count specification invalid",
        "Batch job submission failed: Invalid node name specified",
        "sbatch: unrecognized option '--bogus'\nTry \"sbatch --help\" for more information"}) {
    EXPECT_EQ(refused(text), HoldRefusal::kNever) << text;
  }
  EXPECT_EQ(refused("Batch job submission failed: Job violates accounting/QOS policy (job submit "
                    "limit, user's size and/or time limits)"),
            HoldRefusal::kQuota);
  EXPECT_EQ(
      refused("Batch job submission failed: User's group not permitted to use this partition"),
      HoldRefusal::kAuth);
  EXPECT_EQ(refused("Batch job submission failed: Unable to contact slurm controller (connect "
                    "failure)"),
            HoldRefusal::kBusy);
  EXPECT_EQ(refused("something new"), HoldRefusal::kBusy);
}

TEST(SbatchAnswerTest, ABrokenConnectionLeavesOpenWhetherThereIsAJob) {
  for (const auto* text :
       {"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (receive "
        "failure)\n",
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received\n",
        ""}) {
    EXPECT_EQ(read_sbatch_errors(text).refused, std::nullopt) << text;
  }
}

TEST(SbatchAnswerTest, WordsOfAnyBytesAreOneLine) {
  const SbatchFailure failure = read_sbatch_errors("\n\nsbatch: error: a\x1b[2J\xff\nerror: b");
  EXPECT_EQ(failure.text, "a?[2J?; b");
  EXPECT_LT(read_sbatch_errors(std::string(100'000, 'x')).text.size(), 500u);
}

}  // namespace
}  // namespace orrery
