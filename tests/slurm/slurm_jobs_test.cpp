// tests/slurm/slurm_jobs_test.cpp - one Slurm job for each job: it has the job's time and account,
// its nodes are for that job alone, and it is one whatever is killed or cancelled.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/slurm/pilots_test.hpp"

namespace orrery {
namespace {

class SlurmJobsTest : public SlurmLiveTest {
 protected:
  void SetUp() override {
    SlurmLiveTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    const CliRun up =
        begin("c", managers(Lent{.held = "jobs: {}", .slurm = ", account: \"ai-%t\""}));
    ASSERT_EQ(up.code, 0) << up.err;
  }
  /// Submits the file of a job that runs until there is a file.
  [[nodiscard]] std::string submit_file(const std::string& name, int accelerators) const {
    return submit(job_file(name, accelerators, until("go")));
  }
  /// Returns the Slurm jobs of a job, with their time limits, accounts, nodes and numbers.
  [[nodiscard]] std::vector<std::string> jobs_of(const std::string& job,
                                                 const std::string& options = "") const {
    return squeue("-job-" + job + "-", options + " --format=' %j %l %a %D %i'");
  }
  [[nodiscard]] static std::string last_word(const std::string& line) {
    return line.substr(line.find_last_of(' ') + 1);
  }
};

TEST_F(SlurmJobsTest, EachJobHasASlurmJobAndNodesOfItsOwn) {
  const std::string other = sbatch("--nodes=1");
  ASSERT_TRUE(runs_in_slurm(other));
  const std::string first = submit_file("first", 4);
  const std::string second = submit_file("second", 4);
  ASSERT_TRUE(reaches(first, "running")) << live("explain " + first).out;
  ASSERT_TRUE(reaches(second, "running")) << live("explain " + second).out;
  EXPECT_NE(nodes_of(first), nodes_of(second)) << "one node has room for both";
  for (const std::string& job : {first, second}) {
    const std::vector<std::string> jobs = jobs_of(job);
    ASSERT_EQ(jobs.size(), 1u) << slurm_->run("squeue").output;
    EXPECT_NE(jobs[0].find(" 16:00 ai-default 1 "), std::string::npos) << jobs[0];
  }
  const std::string third = submit_file("third", 8);
  ASSERT_TRUE(slurm_->await([&] { return jobs_of(third).size() == 1; }))
      << live("explain " + third).out;
  EXPECT_NE(jobs_of(third)[0].find(" 16:00 ai-default 1 "), std::string::npos);
  EXPECT_EQ(phase(third), "queued");
  const CliRun cancel = live("cancel " + third);
  EXPECT_EQ(cancel.code, 0) << cancel.err;
  EXPECT_TRUE(slurm_->await([&] { return jobs_of(third).empty(); }))
      << slurm_->run("squeue").output;
  (void)write("go", "");
  EXPECT_EQ(state_of(other), "RUNNING\n");
  (void)slurm_->run("scancel " + other);
  EXPECT_TRUE(finishes(first) && finishes(second)) << live("holds").out;
  EXPECT_TRUE(slurm_->await([&] { return slurm_->run("squeue -h").output.empty(); }))
      << slurm_->run("squeue").output << live("holds").out;
  EXPECT_EQ(slurm_->run("squeue -h --states=all").output.find("pilot-"), std::string::npos);
}

TEST_F(SlurmJobsTest, AJobGoesOnInItsSlurmJobWhenTheControllerIsKilledAndInANewOneAfterScancel) {
  const std::string job = submit_file("ranks", 16);
  ASSERT_TRUE(reaches(job, "running")) << live("explain " + job).out;
  const std::vector<std::string> before = jobs_of(job);
  ASSERT_EQ(before.size(), 1u);
  kill_controller_and_restart();
  EXPECT_TRUE(slurm_->await([&] {
    const Json now = holds();
    return now.size() == 1 && now[0].at("manager_id") == last_word(before[0]) &&
           now[0].at("agents") == 2;
  })) << holds();
  EXPECT_EQ(phase(job), "running");
  EXPECT_EQ(shown(job).at("attempt"), 1);
  EXPECT_EQ(jobs_of(job), before);
  (void)slurm_->run("scancel " + last_word(before[0]));
  ASSERT_TRUE(slurm_->await([&] {
    const Json now = shown(job);
    return now.at("attempt") == 2 && now.at("phase") == "running";
  })) << live("explain " + job).out;
  const std::vector<std::string> after = jobs_of(job);
  ASSERT_EQ(after.size(), 1u) << slurm_->run("squeue").output;
  EXPECT_NE(last_word(after[0]), last_word(before[0]));
  (void)write("go", "");
  EXPECT_TRUE(finishes(job)) << live("explain " + job).out;
  EXPECT_EQ(jobs_of(job, "--states=all").size(), 2u);
  EXPECT_EQ(slurp(path("doubled")), "");
  EXPECT_EQ(node_faults(), 0);
}

}  // namespace
}  // namespace orrery
