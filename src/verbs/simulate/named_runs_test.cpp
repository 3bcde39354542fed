#include "verbs/simulate/named_runs.hpp"

#include <gtest/gtest.h>

#include <set>

#include "verbs/simulate/simulate_files_test.hpp"

namespace orrery {
namespace {

struct Read {
  std::vector<NamedRun> runs;
  std::vector<std::string> notes;
  std::string error;
};

Read read(const SimulateOptions& asked, Information information = Information::kOracle) {
  const Result<ReplayRules> rules = replay_rules("orrery");
  SpecFiles files = asked.files;
  RunNotes notes;
  Result<std::vector<NamedRun>> runs = named_runs(asked, information, {*rules, files, notes});
  if (!runs) return {.error = runs.error().text()};
  return {*std::move(runs), notes.notes, ""};
}

SimulateOptions policies(const std::string& list) {
  SimulateOptions asked;
  asked.scheduling.policies = list;
  return asked;
}

std::string policy_file(const std::string& name) {
  return "apiVersion: orrery/v1\nkind: Policy\nname: " + name + "\n";
}

TEST(NamedRuns, AnOptionAfterACommaBelongsToThePolicyBefore) {
  const Read of = read(policies("fifo:blocking=true,node_fit=best,srtf,easy"));
  ASSERT_EQ(of.runs.size(), 3U) << of.error;
  EXPECT_EQ(of.runs[0].label, "fifo:blocking=true,node_fit=best");
  EXPECT_EQ(of.runs[0].asked, of.runs[0].label);
  EXPECT_EQ(of.runs[1].label, "srtf");
  EXPECT_EQ(of.runs[2].label, "easy");
}

TEST(NamedRuns, AFileHasItsOwnNameUnlessThatIsTaken) {
  SimulateOptions asked = policies("a.yaml,b.yaml,c.yaml");
  asked.files.texts = {{"a.yaml", policy_file("mine")},
                       {"b.yaml", policy_file("mine")},
                       {"c.yaml", policy_file("fifo")}};
  const Read of = read(asked);
  ASSERT_EQ(of.runs.size(), 3U) << of.error;
  EXPECT_EQ(of.runs[0].label, "mine");
  EXPECT_EQ(of.runs[1].label, "b.yaml");
  EXPECT_EQ(of.runs[2].label, "c.yaml") << "built-in policies keep their names";
}

TEST(NamedRuns, FilesOfRunsHavePlainAndDifferentNames) {
  SimulateOptions asked = policies("fifo:blocking=true,fifo,fifo:blocking=true");
  asked.results.out = "results";
  const Read of = read(asked);
  ASSERT_EQ(of.runs.size(), 3U) << of.error;
  EXPECT_EQ(of.runs[0].file_name, "fifo_blocking_true");
  EXPECT_EQ(of.runs[1].file_name, "fifo");
  EXPECT_EQ(of.runs[2].file_name, "fifo_blocking_true-2");
  ASSERT_EQ(of.notes.size(), 1U);
  EXPECT_EQ(of.notes[0],
            "the files of fifo:blocking=true are named fifo_blocking_true-2: fifo_blocking_true "
            "is the name for another policy");
  asked.results.out = "";
  EXPECT_TRUE(read(asked).notes.empty()) << "no files are written";
}

TEST(NamedRuns, ANameCannotLeaveTheDirectory) {
  SimulateOptions asked = policies("x/../p.yaml");
  asked.files.texts = {{"x/../p.yaml", policy_file("\"../../etc\"")}};
  const Read of = read(asked);
  ASSERT_EQ(of.runs.size(), 1U) << of.error;
  EXPECT_EQ(of.runs[0].label, "../../etc");
  EXPECT_EQ(of.runs[0].file_name, "______etc");
}

TEST(NamedRuns, UnknownPoliciesAreRefused) {
  EXPECT_TRUE(read(policies("fifo,esay")).error.starts_with("--policy: "));
  EXPECT_NE(read(policies("fifo,esay")).error.find("easy"), std::string::npos);
  EXPECT_TRUE(read(policies("")).error.starts_with("--policy: "));
  SimulateOptions asked = policies("bad.yaml");
  asked.files.texts = {{"bad.yaml", "apiVersion: orrery/v1\nkind: Policy\nname: x\nordr: y\n"}};
  EXPECT_TRUE(read(asked).error.starts_with("bad.yaml:4:1: ")) << read(asked).error;
}

TEST(NamedRuns, PoliciesThatOrderByEndTimesAreRefusedWhereThoseAreHidden) {
  std::set<std::string> refused;
  for (const std::string_view name : policy_names()) {
    const std::string policy(name);
    for (const Information known : {Information::kOracle, Information::kEstimate}) {
      EXPECT_EQ(read(policies(policy), known).error, "") << policy;
    }
    const Read blind = read(policies(policy), Information::kBlind);
    if (blind.error.empty()) continue;
    refused.insert(policy);
    EXPECT_EQ(blind.error, "--policy: " + policy +
                               " orders jobs by their end times, which are unknown with "
                               "--information blind: expected oracle or estimate");
  }
  EXPECT_EQ(refused, (std::set<std::string>{"elasticflow", "themis"}));
}

}  // namespace
}  // namespace orrery
