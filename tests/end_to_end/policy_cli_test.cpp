// Policies as a user gives them to `orrery simulate`: the names of their files, and which of their
// keys are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/end_to_end/cli.hpp"

namespace orrery {
namespace {

const std::string kOnSixteen = "simulate --accelerators h100:16 ";

class PolicyCli : public Cli {
 protected:
  /// A policy file of this order.
  [[nodiscard]] std::string policy(const std::string& name, const std::string& order) const {
    return write(name, "apiVersion: orrery/v1\nkind: Policy\nname: fifo\norder: " + order + "\n");
  }
};

// The second policy is named by its path, since the first has the file name.
TEST_F(PolicyCli, PoliciesOfOneFileNameLoseNothing) {
  std::filesystem::create_directory(path("d"));
  const std::string both =
      policy("d/f.yaml", "shortest") + "," + policy("d.f.yaml", "submitted") + ",fifo,fifo ";
  const CliRun run = orrery(kOnSixteen + "--generate philly --jobs 20 --load 3 -o json --policy " +
                            both + "--out " + path("results") + " --record " + path("record"));
  ASSERT_EQ(run.code, 0) << run.err;
  std::string usual = path("d_f_yaml");
  for (char& c : usual) c = c == '/' ? '_' : c;
  for (const std::string& name :
       {usual, usual + "-2", std::string("fifo"), std::string("fifo-2")}) {
    EXPECT_FALSE(slurp(path("results/jobs-" + name + ".csv")).empty()) << name;
    EXPECT_EQ(orrery("replay " + path("record/" + name)).code, 0) << name;
  }
  EXPECT_NE(slurp(path("results/jobs-" + usual + ".csv")),
            slurp(path("results/jobs-" + usual + "-2.csv")));
  const std::string notes = nlohmann::json::parse(run.out)["notes"].dump();
  EXPECT_NE(notes.find("d.f.yaml are named " + usual + "-2: " + usual), notes.npos) << notes;
}

// An error in an option names the key, an error in a file its line.
TEST_F(PolicyCli, AKeyWithoutEffectIsRefusedWhereAPolicyIsAskedFor) {
  const std::string work = kOnSixteen + "--generate philly --jobs 5 --policy ";
  const CliRun option = orrery(work + "easy:max_stretch=1");
  EXPECT_EQ(option.code, 2);
  EXPECT_NE(option.err.find("--policy: max_stretch: has no effect under easy (it needs"),
            std::string::npos)
      << option.err;
  const std::string file = policy("mine.yaml", "submitted\nqueue_limits: [60]");
  const std::string job = write("job.yaml",
                                "apiVersion: orrery/v1\nkind: Batch\nname: one\n"
                                "roles: [{accelerators: 8}]\n");
  const std::string queue = "schedule --fleet " ORRERY_SOURCE_DIR
                            "/tests/scenarios/fleets/one-rack.yaml " +
                            job + " --policy ";
  for (const std::string& verb : {work, queue}) {
    const CliRun run = orrery(verb + file);
    EXPECT_EQ(run.code, 2) << verb;
    EXPECT_NE(run.err.find("mine.yaml:5:1: queue_limits: has no effect under fifo"),
              std::string::npos)
        << run.err;
  }
}

}  // namespace
}  // namespace orrery
