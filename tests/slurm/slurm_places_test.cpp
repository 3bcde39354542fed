// tests/slurm/slurm_places_test.cpp - one job file does the same on own nodes, in pilots on a real
// Slurm, and in Slurm jobs of its own: only the directory of the cluster differs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/slurm/pilots_test.hpp"

namespace orrery {
namespace {

/// What a job has come to, which is to be the same wherever it runs.
struct Outcome {
  std::string phase;
  int attempt = 0;
  int exit_status = -1;
  std::vector<std::string> lines;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

class SlurmPlacesTest : public SlurmLiveTest {
 protected:
  /// Writes the file of a job of which each rank prints a line, and ends when it is told to.
  void write_job(const std::string& name, int ranks, int status) const {
    (void)job_file(name, ranks,
                   fmt::format("echo rank $ORRERY_RANK of $ORRERY_WORLD_SIZE, $ORRERY_JOB; {}; "
                               "exit {}",
                               until(name), status));
  }
  /// Runs the job of such a file. Its output is read while it runs, because it stays on the nodes.
  [[nodiscard]] Outcome run(const std::string& name, std::size_t ranks) const {
    std::filesystem::remove(path(name));
    const std::string job = submit(path(name + ".yaml"));
    Outcome outcome;
    EXPECT_TRUE(slurm_->await([&] {
      outcome.lines = lines_of(job);
      return outcome.lines.size() == ranks;
    })) << live("explain " + job).out;
    (void)write(name, "");
    const bool ended = slurm_->await([&] { return shown(job).contains("ended"); });
    EXPECT_TRUE(ended) << live("explain " + job).out;
    if (!ended) return outcome;
    const Json end = shown(job);
    outcome.phase = end.at("phase");
    outcome.attempt = end.at("attempt");
    outcome.exit_status = end.at("attempts").back().value("exit_status", -1);
    return outcome;
  }

 private:
  [[nodiscard]] std::vector<std::string> lines_of(const std::string& job) const {
    std::vector<std::string> lines;
    std::istringstream log(live("logs " + job).out);
    for (std::string line; std::getline(log, line);) lines.push_back(line);
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

TEST_F(SlurmPlacesTest, OneJobFileDoesTheSameOnOwnNodesInPilotsAndInSlurmJobsOfItsOwn) {
  write_job("good", 16, 0);
  write_job("bad", 1, 3);
  (void)begin("own", "");
  const Outcome own_good = run("good", 16);
  const Outcome own_bad = run("bad", 1);
  EXPECT_EQ(live("down").code, 0);
  EXPECT_EQ(own_good.phase, "finished");
  EXPECT_EQ(own_bad.phase, "failed");
  EXPECT_EQ(own_bad.exit_status, 3);
  for (const std::string held : {"pilots: {idle: 3 s}", "jobs: {}"}) {
    const std::string name = held.substr(0, held.find(':'));
    (void)begin(name, managers(Lent{.held = held, .agents = name + "-agents"}));
    EXPECT_EQ(run("good", 16), own_good) << held;
    EXPECT_EQ(run("bad", 1), own_bad) << held;
    EXPECT_EQ(live("down").code, 0);
    // Pilots outlive their controller for a while.
    (void)slurm_->run("scancel --user=root");
    EXPECT_TRUE(slurm_->await([&] { return slurm_->run("squeue -h").output.empty(); }));
  }
}

}  // namespace
}  // namespace orrery
