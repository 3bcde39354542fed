#include "verbs/schedule/submit_request.hpp"

#include <gtest/gtest.h>

#include "base/format/document.hpp"

namespace orrery {
namespace {

JobSpec spec_from(const std::string& text) {
  return read_job_spec(Document::parse(text, "job.yaml").value()).value();
}

std::string refusal(const SubmitOptions& options) {
  const Result<std::string> text = command_job_spec(options, {"true"});
  return text ? "accepted" : text.error().text();
}

TEST(CommandJobSpecTest, EveryOptionIsInTheSpec) {
  const auto text = command_job_spec(
      {.name = "train",
       .tenant = "lab/vision",
       .resources = {.accelerators = 4, .types = {"h100", "a100"}, .cpus = 8, .memory = "64 GiB"},
       .launch = {.framework = "torch",
                  .per = "node",
                  .environment = {"A=1", "B=x=y", "C="},
                  .directory = "/",
                  .output = "out/%j.%t"},
       .terms = {.priority = 5,
                 .time_limit = "90 min",
                 .by = "2026-11-27 18:00",
                 .under = "$5000",
                 .restarts = 2,
                 .hold = true}},
      {"python3", "train.py"});
  ASSERT_TRUE(text) << text.error().text();
  const JobSpec spec = spec_from(*text);
  EXPECT_EQ(spec.name + " " + spec.tenant, "train lab/vision");
  EXPECT_EQ(spec.priority, 5);
  EXPECT_TRUE(spec.hold);
  EXPECT_EQ(spec.restart.max, 2u);
  EXPECT_DOUBLE_EQ(spec.time_limit->value(), 5400);
  EXPECT_EQ(spec.deadline->text(), "2026-11-27T18:00:00Z");
  EXPECT_DOUBLE_EQ(spec.budget->value(), 5000);
  ASSERT_EQ(spec.roles.size(), 1u);
  EXPECT_EQ(spec.roles[0].types.size(), 2u);
  EXPECT_DOUBLE_EQ(spec.roles[0].host.cpu, 8);
  EXPECT_DOUBLE_EQ(spec.roles[0].host.memory.value(), 64.0 * 1024 * 1024 * 1024);
  ASSERT_TRUE(spec.launch);
  EXPECT_EQ(spec.launch->per, LaunchUnit::kNode);
  EXPECT_EQ(spec.launch->directory, "/");
  EXPECT_EQ(spec.launch->output, "out/%j.%t");
  EXPECT_EQ(spec.launch->environment, (std::vector<std::pair<std::string, std::string>>{
                                          {"A", "1"}, {"B", "x=y"}, {"C", ""}}));
}

TEST(CommandJobSpecTest, AJobIsNamedAfterItsProgram) {
  const auto name = [](const std::string& program) {
    return spec_from(command_job_spec({}, {program}).value()).name;
  };
  EXPECT_EQ(name("/usr/bin/python3.11"), "python3.11");
  EXPECT_EQ(name("my prog$"), "my-prog-");
  EXPECT_EQ(name(std::string(100, 'x')).size(), 64u);
}

TEST(CommandJobSpecTest, AWrongValueNamesItsOption) {
  EXPECT_EQ(command_job_spec({}, {}).error().text(), "nothing after --: expected a program to run");
  EXPECT_EQ(refusal({.launch = {.environment = {"A=1", "=x"}}}),
            "--env: \"=x\": expected NAME=VALUE");
  EXPECT_EQ(refusal({.launch = {.environment = {"A"}}}), "--env: \"A\": expected NAME=VALUE");
  EXPECT_EQ(refusal({.launch = {.per = "nodes"}}),
            "--per: \"nodes\" is none of accelerator, node, did you mean \"node\"?");
  EXPECT_EQ(refusal({.launch = {.directory = "/no/such/place"}}),
            "--directory: /no/such/place is not a directory on this machine");
  EXPECT_TRUE(refusal({.resources = {.memory = "64"}}).starts_with("--memory: "));
  EXPECT_TRUE(refusal({.terms = {.time_limit = "soon"}}).starts_with("--time-limit: "));
  EXPECT_EQ(refusal({.terms = {.time_limit = "0 s"}}), "--time-limit: 0 s: expected more than 0");
  EXPECT_TRUE(refusal({.terms = {.by = "tomorrow"}}).starts_with("--by: "));
  EXPECT_EQ(refusal({.terms = {.under = "0"}}), "--under: 0: expected more than 0");
  EXPECT_EQ(refusal({.terms = {.after = {"foo:7"}}}),
            "--after: \"foo\" is not a condition: expected JOB, or ok:JOB, any:JOB or notok:JOB");
  EXPECT_EQ(refusal({.terms = {.after = {"ok:"}}}),
            "after: \"\" is not a name: expected 1 to 64 letters, digits, '-', '_' or '.'");
}

TEST(TakeBoundsTest, MinutesOfUtcAndInstantsAreDeadlines) {
  JobSpec spec;
  for (const char* by : {"2026-11-27 18:00", "2026-11-27T18:00", "2026-11-27T18:00:00Z"}) {
    ASSERT_TRUE(take_bounds(by, "", spec)) << by;
    EXPECT_EQ(spec.deadline->text(), "2026-11-27T18:00:00Z");
  }
  EXPECT_FALSE(spec.budget);
  ASSERT_TRUE(take_bounds("", "250.5", spec));
  EXPECT_DOUBLE_EQ(spec.budget->value(), 250.5);
  for (const char* under : {"nan", "inf", "-1", "$0", "cheap"}) {
    EXPECT_FALSE(take_bounds("", under, spec)) << under;
  }
}

class OverruledSpecTest : public ::testing::Test {
 protected:
  const std::string text_ =
      command_job_spec({.launch = {.environment = {"A=1", "B=2"}}}, {"true"}).value();
};

TEST_F(OverruledSpecTest, WithoutOptionsTheTextIsUnchanged) {
  EXPECT_EQ(overruled_job_spec({}, "not even: [yaml").value(), "not even: [yaml");
}

TEST_F(OverruledSpecTest, OptionsHaveTheLastWord) {
  const auto text = overruled_job_spec({.name = "other",
                                        .launch = {.environment = {"B=3", "C=4"}},
                                        .terms = {.priority = -7, .restarts = 0}},
                                       text_);
  ASSERT_TRUE(text) << text.error().text();
  const JobSpec spec = spec_from(*text);
  EXPECT_EQ(spec.name, "other");
  EXPECT_EQ(spec.priority, -7);
  EXPECT_EQ(spec.restart.max, 0u);
  EXPECT_EQ(spec.launch->environment,
            (std::vector<std::pair<std::string, std::string>>{{"A", "1"}, {"B", "3"}, {"C", "4"}}));
}

TEST_F(OverruledSpecTest, TheSizeOfAFileIsItsOwn) {
  const auto said = [&](const SubmitOptions& options) {
    return overruled_job_spec(options, text_).error().text();
  };
  const std::string rest =
      ": expected no such option with a file: the spec or its #SBATCH lines state the value";
  EXPECT_EQ(said({.resources = {.accelerators = 2}}), "--accelerators" + rest);
  EXPECT_EQ(said({.resources = {.types = {"h100"}}}), "--type" + rest);
  EXPECT_EQ(said({.resources = {.cpus = 1}}), "--cpus" + rest);
  EXPECT_EQ(said({.resources = {.memory = "1 GiB"}}), "--memory" + rest);
  EXPECT_EQ(said({.launch = {.framework = "torch"}}), "--framework" + rest);
  EXPECT_EQ(said({.launch = {.per = "node"}}), "--per" + rest);
}

TEST_F(OverruledSpecTest, AnErrorOfTheFileHasItsPlace) {
  const auto text =
      overruled_job_spec({.name = "x", .file = {.name = "job.yaml"}}, "kind: Batch\nrols: 1\n");
  ASSERT_FALSE(text);
  EXPECT_TRUE(text.error().text().starts_with("job.yaml:")) << text.error().text();
}

TEST(ScriptJobSpecTest, AScriptIsKnownByItsTextOrItsName) {
  EXPECT_TRUE(is_script("job.txt", "#!/bin/sh\n#SBATCH --gpus=1\n"));
  EXPECT_TRUE(is_script("job.sh", ""));
  EXPECT_TRUE(is_script("job.sbatch", ""));
  EXPECT_FALSE(is_script("job.yaml", "kind: Batch\n"));
}

TEST(ScriptJobSpecTest, AnUnknownLineIsAnErrorOrANote) {
  const std::string script = "#!/bin/sh\n#SBATCH --gpus=1\n#SBATCH --no-such-thing\ntrue\n";
  SubmitOptions options{.name = "x", .file = {.name = "a.sbatch"}};
  const auto strict = script_job_spec(options, script);
  ASSERT_FALSE(strict);
  EXPECT_TRUE(strict.error().text().starts_with("a.sbatch:3")) << strict.error().text();
  options.file.lenient = true;
  const auto lenient = script_job_spec(options, script);
  ASSERT_TRUE(lenient) << lenient.error().text();
  EXPECT_EQ(lenient->notes.size(), 1u);
  EXPECT_EQ(spec_from(lenient->text).name, "x");
}

}  // namespace
}  // namespace orrery
