// verbs/plan/planned_job_test.cpp - which jobs can be planned for machines like this one.
#include "verbs/plan/planned_job.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

/// Returns the error of a job with these roles and this launch.
std::string refusal_of(const std::string& roles, const std::string& launch) {
  const std::string text = "apiVersion: orrery/v1\nkind: Train\nname: t\n" + roles + launch;
  const Result<PlannedJob> job =
      plan_job({}, {.text = text, .name = "job.yaml"}, "no-calibration.yaml");
  return job ? "it was accepted" : job.error().text();
}

const std::string kTrains = "launch:\n  command: [bin/orrery-train, no-training.yaml]\n";
const std::string kRole = "roles:\n- accelerators: 4\n";

TEST(PlannedJob, OnlyAJobOfTheTrainerCanBePlanned) {
  const std::string expected =
      "only a job of orrery-train can be planned: expected launch.command: [orrery-train, SPEC]";
  for (const char* command : {"[python3, train.py]", "[orrery-train]", "[orrery-train, --help]",
                              "[my-orrery-train, x]"}) {
    const std::string refused =
        refusal_of(kRole, std::string("launch:\n  command: ") + command + "\n");
    EXPECT_TRUE(refused.starts_with("job.yaml:")) << refused;
    EXPECT_TRUE(refused.ends_with(": " + expected)) << command << ": " << refused;
  }
}

TEST(PlannedJob, AJobHasOneRoleWithANumberOfAccelerators) {
  const std::string two =
      refusal_of("roles:\n- {name: a, accelerators: 1}\n- {name: b, accelerators: 1}\n", kTrains);
  EXPECT_TRUE(two.ends_with("only a job with one role can be planned, found 2")) << two;
  const std::string none = refusal_of("roles:\n- cpu_cores: 4\n", kTrains);
  EXPECT_TRUE(none.starts_with("job.yaml:5:")) << none;
}

TEST(PlannedJob, ALayoutThatIsStatedIsNotPlannedAgain) {
  const std::string refused = refusal_of("roles:\n- accelerators: 4\n  layout: {tp: 2}\n", kTrains);
  EXPECT_TRUE(refused.starts_with("job.yaml:6:")) << refused;
  EXPECT_TRUE(refused.ends_with("expected no layout in a job that is to be planned")) << refused;
}

TEST(PlannedJob, TheTrainingIsLookedForWhereTheJobStarts) {
  EXPECT_EQ(refusal_of(kRole, kTrains + "  directory: /nowhere\n"),
            "/nowhere/no-training.yaml: No such file or directory");
}

}  // namespace
}  // namespace orrery
