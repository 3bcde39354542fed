// tests/slurm/slurm_faults_test.cpp - slurmctld, slurmd, slurmstepd, munged, agents and the
// controller are killed every three seconds, pilots are cancelled and others submit work, while
// jobs run in pilots: each job ends well, none runs twice at once, and no work of others is
// touched.
//
// ORRERY_SLURM_FAULTS faults (8), chosen by ORRERY_TEST_SEED.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "tests/end_to_end/test_seed.hpp"
#include "tests/slurm/pilots_test.hpp"

namespace orrery {
namespace {

int faults_wanted() {
  const char* given = std::getenv("ORRERY_SLURM_FAULTS");
  return given == nullptr ? 8 : std::atoi(given);
}

class SlurmFaultsTest : public SlurmPilotTest {
 protected:
  /// Submits a job of one node. Its first rank holds a lock while it runs, so that two runs at once
  /// are seen.
  void submit_one() {
    const std::string name = std::to_string(jobs_.size());
    const std::string accelerators = std::to_string(2 << rng_.below(3));
    const std::string seconds = std::to_string(1 + rng_.below(4));
    const std::string script = "if [ $RANK = 0 ]; then exec 9>>" + path("lock-" + name) +
                               "; flock -n 9 || echo " + name + " >>" + path("doubled") +
                               "; fi; sleep " + seconds + "; echo ended >>" + path("ended-" + name);
    jobs_.push_back(submit("--accelerators " + accelerators + " -- sh -c '" + script + "'"));
  }
  void submit_gang() { gangs_.push_back(submit("--accelerators 16 -- sleep 2")); }

  void pause(int seconds) const {
    for (int i = 0; i < seconds; ++i) (void)slurm_->run("sleep 1");
  }
  [[nodiscard]] std::string any_node() { return "n" + std::to_string(1 + rng_.below(3)); }

  void restart_slurmctld() {
    note("slurmctld");
    slurm_->kill_controller();
    pause(static_cast<int>(rng_.below(3)));
    const Status again = slurm_->start_controller();
    EXPECT_TRUE(again) << again.error().text();
  }
  void restart_munge() {
    note("munged");
    slurm_->kill_munge();
    const Status again = slurm_->start_munge();
    EXPECT_TRUE(again) << again.error().text();
  }
  void strike() {
    switch (rng_.below(8)) {
      case 0:
      case 1:
        return restart_slurmctld();
      case 2:
        note("scancel of a pilot");
        return (void)slurm_->run(
            "scancel $(squeue -h -t RUNNING -o '%i %j' | grep ' orr-' | cut -d' ' -f1 | head -1)");
      case 3: {
        const std::string node = any_node();
        note("slurmd of " + node);
        slurm_->kill_slurmd(node);
        return slurm_->start_slurmd(node);
      }
      case 4:
        note("the agent of a node");
        return (void)slurm_->run("pkill -KILL -f '[o]rrery-agent --node " + any_node() + " --dir " +
                                 path("lent") + "'");
      case 5:
        return restart_munge();
      case 6: {
        const std::string node = any_node();
        note("slurmstepd of the agent of " + node);
        return kill_slurmstepd(node);
      }
      default:
        note("the controller");
        EXPECT_EQ(::kill(std::stoi(slurp(path("c/orreryd.pid"))), SIGKILL), 0);
        EXPECT_EQ(live("up").code, 0);
    }
  }
  [[nodiscard]] bool ends_well(const std::string& job) const {
    return slurm_->await([&] {
      resume_nodes();
      return phase(job) == "finished";
    });
  }
  void note(const std::string& what) { std::cout << "fault: " << what << '\n' << std::flush; }

  Rng rng_ = Rng::stream(test_seed(), "faults of Slurm");
  std::vector<std::string> jobs_;
  std::vector<std::string> gangs_;
};

TEST_F(SlurmFaultsTest, NothingIsLostOrDoubledWhateverIsKilled) {
  const int faults = faults_wanted();
  for (int fault = 0; fault < faults; ++fault) {
    for (int i = 0; i < 3; ++i) submit_one();
    if (fault % 3 == 0) submit_gang();
    (void)slurm_->run("sbatch -N 1 --exclusive -J others -o /dev/null --wrap 'sleep 2'");
    pause(3);
    strike();
    resume_nodes();
  }
  EXPECT_EQ(slurm_->run("squeue -h --states=CANCELLED --name=others").output, "");
  // A slurmctld that was killed may show a job as running for minutes that has ended.
  (void)slurm_->run("scancel --name=others");
  for (std::size_t job = 0; job < jobs_.size(); ++job) {
    EXPECT_TRUE(ends_well(jobs_[job])) << live("explain " + jobs_[job]).out << live("holds").out;
    EXPECT_NE(slurp(path("ended-" + std::to_string(job))), "");
    if (HasFailure()) return;
  }
  for (const std::string& gang : gangs_) {
    EXPECT_TRUE(ends_well(gang)) << live("explain " + gang).out << live("holds").out;
  }
  EXPECT_EQ(slurp(path("doubled")), "") << "jobs that ran twice at once";
  EXPECT_TRUE(slurm_->await([&] { return slurm_->run("squeue -h | grep orr-").output.empty(); }))
      << slurm_->run("squeue").output << live("holds").out;
  std::cout << faults << " faults, " << jobs_.size() + gangs_.size() << " jobs" << '\n'
            << std::flush;
}

}  // namespace
}  // namespace orrery
