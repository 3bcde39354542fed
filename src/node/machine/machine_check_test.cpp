// What a machine is told about itself: each trap is seen, and a good machine has none.
#include "node/machine/machine_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>

#include "base/system/real_clock.hpp"
#include "node/agent/agents_here.hpp"

namespace orrery {
namespace {

MachineFacts good_machine() {
  return {.machine = "node-7",
          .kernel = "6.1.0-13-amd64",
          .cores = 64,
          .memory_bytes = std::uint64_t{512} << 30,
          .core_type = "SKYLAKEX",
          .control_groups = "v2",
          .open_files_max = 1 << 20,
          .disk = {.path = "/srv",
                   .free_bytes = std::uint64_t{1} << 40,
                   .sync = Duration::milliseconds(2)},
          .clock = {.source = "tsc", .synchronised = true},
          .python = {.version = "3.11.2", .packages = {"torch"}},
          .openblas = {"OpenBLAS 0.3.29 DYNAMIC_ARCH", "Sapphirerapids"},
          .devices = {{"NVIDIA H100 80GB HBM3", 8, "NVML, driver 550.54"}}};
}

CheckFinding finding(const MachineFacts& facts, const std::string& check) {
  const std::vector<CheckFinding> all = check_machine(facts);
  const auto found = std::ranges::find(all, check, &CheckFinding::check);
  return found == all.end() ? CheckFinding{} : *found;
}

TEST(MachineCheck, AGoodMachineHasNothingToComplainOf) {
  for (const CheckFinding& each : check_machine(good_machine())) {
    EXPECT_EQ(each.verdict, CheckVerdict::kOk) << each.check << ": " << each.found;
    EXPECT_EQ(each.advice, "") << each.check;
    EXPECT_NE(each.found, "") << each.check;
  }
}

TEST(MachineCheck, HiddenProcessesAreThoseThatTheNewestMountOfProcHides) {
  const std::string open = "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0\n";
  EXPECT_FALSE(hides_processes(open));
  EXPECT_FALSE(hides_processes("proc /jail/proc proc rw,hidepid=2 0 0\n" + open));
  EXPECT_FALSE(hides_processes("proc /proc proc rw,hidepid=off 0 0\n"));
  EXPECT_TRUE(hides_processes(open + "proc /proc proc rw,hidepid=invisible 0 0\n"));
  EXPECT_TRUE(hides_processes("proc /proc proc rw,relatime,hidepid=2 0 0\n"));
  MachineFacts facts = good_machine();
  facts.root_agents = {{"node-0", false}};
  facts.processes_hidden = true;
  EXPECT_EQ(finding(facts, "proc").verdict, CheckVerdict::kOk);
}

TEST(MachineCheck, ANodeNameOfTwoClustersIsListedOnce) {
  MachineFacts facts = good_machine();
  facts.root_agents = {{"node-1", true}, {"node-0", true}, {"node-1", true}};
  EXPECT_NE(finding(facts, "users").found.find("on node-0, node-1:"), std::string::npos)
      << finding(facts, "users").found;
}

TEST(MachineCheck, EachTrapIsSeenAndSaysWhatToDo) {
  struct Trap {
    const char* check;
    CheckVerdict verdict;
    const char* advice;
    std::function<void(MachineFacts&)> set;
  };
  using enum CheckVerdict;
  const Trap traps[] = {
      {"kernel", kProblem, "older than 5.3", [](auto& m) { m.kernel = "5.2.21"; }},
      {"memory", kWarning, "1 GiB", [](auto& m) { m.memory_bytes = 1 << 29; }},
      {"name", kWarning, "--address", [](auto& m) { m.name_trouble = "unknown"; }},
      {"ports", kProblem, "filters", [](auto& m) { m.listen_trouble = "Permission denied"; }},
      {"files", kWarning, "ulimit -n", [](auto& m) { m.open_files_max = 1'024; }},
      {"users", kWarning, "set run_as for each tenant",
       [](auto& m) { m.root_agents = {{"node-0", false}, {"node-1", true}}; }},
      {"proc", kWarning, "hidepid=2", [](auto& m) { m.root_agents = {{"node-0", false}}; }},
      {"control-groups", kWarning, "mount", [](auto& m) { m.control_groups.clear(); }},
      {"control-groups", kWarning, "Delegate", [](auto& m) { m.control_group_trouble = "no"; }},
      {"disk", kProblem, "--dir", [](auto& m) { m.disk.trouble = "Read-only file system"; }},
      {"disk", kProblem, "free some space", [](auto& m) { m.disk.free_bytes = 1 << 20; }},
      {"disk", kWarning, "next boot", [](auto& m) { m.disk.kind = "tmpfs"; }},
      {"disk", kWarning, "on a local disk", [](auto& m) { m.disk.kind = "nfs"; }},
      {"sync", kWarning, "faster", [](auto& m) { m.disk.sync = Duration::milliseconds(80); }},
      {"clock", kProblem, "kernel", [](auto& m) { m.clock.backwards = true; }},
      {"clock", kWarning, "gradually", [](auto& m) { m.clock.jump = Duration::seconds(-3); }},
      {"clock", kWarning, "chrony", [](auto& m) { m.clock.synchronised = false; }},
      {"python", kWarning, "PyTorch", [](auto& m) { m.python = {}; }},
      {"jax", kWarning, "JAX_PROCESS_ID", [](auto& m) { m.python.packages = {"jax"}; }},
      {"accelerators", kWarning, "--discover",
       [](auto& m) { m.devices.clear(), m.device_trouble = {"no"}; }}};
  for (const Trap& trap : traps) {
    MachineFacts facts = good_machine();
    trap.set(facts);
    const CheckFinding found = finding(facts, trap.check);
    EXPECT_EQ(found.verdict, trap.verdict) << trap.check << ": " << found.found;
    EXPECT_NE(found.advice.find(trap.advice), std::string::npos) << found.advice;
  }
}

TEST(MachineCheck, OpenBlasIsWarnedOfWhereItsKernelsAreOlderThanTheProcessor) {
  const auto verdict = [](const char* core_type, const char* kernels) {
    MachineFacts facts = good_machine();
    facts.core_type = core_type;
    facts.openblas = {"OpenBLAS 0.3.21 NO_LAPACKE", kernels};
    return finding(facts, "openblas").verdict;
  };
  EXPECT_EQ(verdict("SKYLAKEX", "Prescott"), CheckVerdict::kWarning);
  EXPECT_EQ(verdict("ZEN", "Barcelona"), CheckVerdict::kWarning);
  EXPECT_EQ(verdict("HASWELL", "Nehalem"), CheckVerdict::kWarning);
  EXPECT_EQ(verdict("SKYLAKEX", "SkylakeX"), CheckVerdict::kOk);
  EXPECT_EQ(verdict("SKYLAKEX", "Zen"), CheckVerdict::kOk);
  EXPECT_EQ(verdict("", "Nehalem"), CheckVerdict::kOk) << "a processor without AVX2 has no better";
  MachineFacts facts = good_machine();
  facts.openblas = {"OpenBLAS 0.3.21 NO_LAPACKE", "Prescott"};
  EXPECT_EQ(finding(facts, "openblas").found, "OpenBLAS 0.3.21 with kernels for Prescott");
}

TEST(MachineCheck, ThisMachineIsLookedAtAndNothingIsLeftBehind) {
  std::string directory = (std::filesystem::temp_directory_path() / "orrery-look-XXXXXX").string();
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  const RealClock clock;
  Discovery accelerators;
  accelerators.accelerators = {{.name = "TPU v4"}, {.name = "TPU v5e"}, {.name = "TPU v4"}};
  accelerators.notes = {"one is odd"};
  const MachineFacts facts = look_at_machine(clock, directory + "/not/there/yet", accelerators);
  EXPECT_EQ(facts.disk.path, directory);
  EXPECT_EQ(facts.disk.trouble, "");
  EXPECT_GT(facts.disk.sync, Duration());
  EXPECT_GT(facts.cores, 0u);
  EXPECT_GT(facts.open_files_max, 0u);
  EXPECT_EQ(facts.listen_trouble, "");
  EXPECT_FALSE(facts.clock.backwards);
  ASSERT_EQ(facts.devices.size(), 2u);
  EXPECT_EQ(facts.devices[0].count, 2u);
  EXPECT_EQ(facts.device_trouble, accelerators.notes);
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace orrery
