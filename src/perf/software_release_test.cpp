#include "perf/software_release.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/format/document.hpp"
#include "perf/machine/measured_parts.hpp"
#include "perf/repository_facts_test.hpp"
#include "perf/runs/run_accelerator.hpp"
#include "perf/runs/run_text.hpp"
#include "perf/training/training_constants.hpp"

namespace orrery {
namespace {

nlohmann::json published_runs() {
  const Result<std::string> text =
      read_file(std::string(ORRERY_SOURCE_DIR) + "/data/runs/training_runs.json", 64u << 20);
  EXPECT_TRUE(text) << (text ? "" : text.error().text());
  return nlohmann::json::parse(text.value_or("{}"))["rows"];
}

TEST(SoftwareRelease, KnownReleasesAreThoseOfMeasuredRuns) {
  std::set<std::string> measured;
  for (const auto& row : published_runs()) {
    const std::string release = row.value("release", "");
    if (!release.empty()) measured.insert(release.substr(0, release.find(' ')));
  }
  std::set<std::string> known;
  for (const SoftwareRelease& each : known_releases()) {
    known.emplace(each.name);
    Warnings warnings;
    EXPECT_DOUBLE_EQ(*read_release_text(each.name, warnings), each.years) << each.name;
  }
  EXPECT_EQ(known, measured);
  EXPECT_EQ(newest_release().name, *known.rbegin());
}

TEST(SoftwareRelease, AnUnknownNameListsTheKnownOnesNearestFirst) {
  EXPECT_DOUBLE_EQ(release_named("26.04")->years, 6.25);
  const auto wrong = release_named("26.05");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, ErrorKind::kInput);
  const std::string& text = wrong.error().message;
  EXPECT_NE(text.find("\"26.05\" is not a known release"), std::string::npos) << text;
  EXPECT_LT(text.find("26.02,"), text.find("25.11")) << text;
  EXPECT_NE(text.find("25.09"), std::string::npos) << text;
}

TrainingConstants constants_of(const Machine& machine, const TrainingJob& job,
                               const ParallelPlan& plan) {
  return training_constants(machine, job, stack_of(machine, job, plan), builtin_constants());
}

TEST(SoftwareRelease, AnAssumedReleaseCoversPlansOfMegatronAlone) {
  const ParallelPlan stacked{.tp = 8, .zero = 1};
  const ParallelPlan sharded{.dp = 8, .zero = 3};
  TrainingJob none;
  TrainingJob assumed;
  assumed.release = newest_release().years;
  assumed.release_scope = ReleaseScope::kMegatron;
  for (const char* type : {"b200", "gb200"}) {
    const Machine machine = *machine_of(
        builtin_facts(),
        {.accelerator = *builtin_facts().require<Accelerator>(type), .accelerators = 8});
    EXPECT_GT(constants_of(machine, none, stacked).scale, 1.2) << type;
    EXPECT_NEAR(constants_of(machine, assumed, stacked).scale, 1, 0.05) << type;
    EXPECT_EQ(stack_of(machine, assumed, sharded), TrainingStack::kFsdp);
    EXPECT_EQ(constants_of(machine, assumed, sharded).scale, 1) << type;
  }
  for (const char* type : {"a100-80g", "mi300x", "tpu-v5p", "gaudi3"}) {
    const Machine machine = *machine_of(
        builtin_facts(),
        {.accelerator = *builtin_facts().require<Accelerator>(type), .accelerators = 8});
    EXPECT_EQ(constants_of(machine, assumed, stacked).scale,
              constants_of(machine, none, stacked).scale)
        << type;
  }
}

TEST(SoftwareRelease, TheNewestReleaseOfBlockScaledExpertsIsTakenToo) {
  const Machine machine = *machine_of(
      builtin_facts(),
      {.accelerator = *builtin_facts().require<Accelerator>("gb200"), .accelerators = 64});
  TrainingJob job{.precision = {.format = NumberFormat::kFp8, .scaling = Scaling::kBlock}};
  const double before = constants_of(machine, job, {.tp = 1, .zero = 1}).local_expert_launch;
  job.release = newest_release().years;
  job.release_scope = ReleaseScope::kMegatron;
  EXPECT_LT(constants_of(machine, job, {.tp = 1, .zero = 1}).local_expert_launch, 0.5 * before);
}

TEST(MeasuredParts, TheTableIsThatOfThePublishedRuns) {
  std::map<std::string, std::int64_t> rows;
  for (const auto& row : published_runs()) {
    const auto read = read_accelerator_text(row["accel"].get<std::string>(), builtin_facts(), {});
    ASSERT_TRUE(read) << row["accel"];
    ++rows[read->accelerator->id];
  }
  for (const Accelerator& each : builtin_facts().all<Accelerator>()) {
    EXPECT_EQ(measured_training_runs(each), rows[each.id]) << each.id;
    EXPECT_EQ(training_evidence(each) == RunEvidence::kMeasured, rows[each.id] >= kRunsEnough);
    EXPECT_EQ(evidence_text(each).empty(), rows[each.id] >= kRunsEnough) << each.id;
  }
  EXPECT_EQ(training_evidence(**builtin_facts().require<Accelerator>("trn1")), RunEvidence::kFew);
  EXPECT_EQ(training_evidence(**builtin_facts().require<Accelerator>("gaudi3")),
            RunEvidence::kNone);
  EXPECT_EQ(training_evidence(**builtin_facts().require<Accelerator>("h200-nvl")),
            RunEvidence::kGeneration);
}

}  // namespace
}  // namespace orrery
