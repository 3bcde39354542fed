#include "executor/managers/manager_spec.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "control/scripted_cluster_test.hpp"
#include "executor/slurm/slurm_setup.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

Result<ManagersSpec> spec_of(const std::string& lines) {
  const Result<Document> document = Document::parse(
      "apiVersion: orrery/v1\nkind: Managers\nmanagers:\n" + lines, "managers.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_managers(*document);
}

/// The nodes n1 to n4.
std::string named_nodes() {
  return one_hall(
      "    - name: su\n      racks:\n      - cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 4, names: \"n[1-4]\"}]\n",
      "  fabrics: [{type: ib-ndr, topology: fat-tree}]\n");
}

TEST(Managers, AreReadWithEachKey) {
  const Result<ManagersSpec> spec = spec_of(R"(
  - name: hpc
    nodes: n[1-4]
    slurm: {config: /s.conf, partition: p, account: a, qos: q, reservation: r, options: [--mem=0],
            output: /o}
    pilots: {nodes: 2, keep: 1, most: 3, time: 2 h, idle: 30 s}
    agent: {program: /bin/a, directory: /d, options: [--emulate, "h100:8"]}
)");
  ASSERT_TRUE(spec) << spec.error().text();
  const ManagerSpec& hpc = spec->managers.at(0);
  EXPECT_EQ(hpc.name, "hpc");
  EXPECT_EQ(hpc.nodes, "n[1-4]");
  EXPECT_EQ(hpc.pilots->nodes, 2u);
  EXPECT_EQ(hpc.pilots->keep, 1u);
  EXPECT_EQ(hpc.pilots->most, 3u);
  EXPECT_EQ(hpc.pilots->time, Seconds(7200));
  EXPECT_EQ(hpc.pilots->idle, Seconds(30));
  const SlurmSetup setup =
      slurm_setup(hpc, {.cluster = 7, .controllers = {"c:1"}, .authority = "PEM", .program = "x"});
  EXPECT_EQ(setup.cluster, 7u);
  EXPECT_EQ(setup.slurm_conf, "/s.conf");
  EXPECT_EQ(setup.partition, "p");
  EXPECT_EQ(setup.account, "a");
  EXPECT_EQ(setup.qos, "q");
  EXPECT_EQ(setup.reservation, "r");
  EXPECT_EQ(setup.sbatch_options, std::vector<std::string>{"--mem=0"});
  EXPECT_EQ(setup.log_file, "/o");
  EXPECT_EQ(setup.agent.program, "/bin/a");
  EXPECT_EQ(setup.agent.directory, "/d");
  EXPECT_EQ(setup.agent.options, (std::vector<std::string>{"--emulate", "h100:8"}));
  EXPECT_EQ(setup.agent.controllers, std::vector<std::string>{"c:1"});
  EXPECT_EQ(setup.agent.authority, "PEM");
}

TEST(Managers, HaveDefaults) {
  const Result<ManagersSpec> spec = spec_of("  - {name: hpc, nodes: n1, slurm: {}}\n");
  ASSERT_TRUE(spec) << spec.error().text();
  const SlurmSetup setup = slurm_setup(spec->managers[0], {.program = "/usr/bin/orrery-agent"});
  EXPECT_EQ(setup.agent.program, "/usr/bin/orrery-agent");
  EXPECT_EQ(setup.agent.directory, "/var/lib/orrery/nodes");
  EXPECT_EQ(setup.log_file, "/dev/null");
}

/// Returns the error of managers.yaml with such lines, or "accepted".
std::string error_of(const std::string& lines) {
  const Result<ManagersSpec> spec = spec_of(lines);
  return spec ? "accepted" : spec.error().text();
}

TEST(Managers, AreRefusedWithTheLineAndColumnOfTheValue) {
  const auto error = error_of;
  EXPECT_EQ(
      error("  - {name: HPC, nodes: n1, slurm: {}}\n"),
      "managers.yaml:4:12: name: expected up to 32 small letters, digits and \"-\", found HPC");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}}\n  - {name: a, nodes: n2, slurm: {}}\n"),
            "managers.yaml:5:12: name: there is another manager \"a\"");
  EXPECT_EQ(error("  - name: a\n    nodes: n1\n    slurm: {}\n    pilots:\n      keep: 0\n"
                  "      time: 5 s\n"),
            "managers.yaml:9:13: pilots.time: expected a time of 2 minutes to 366 days, found 5 s");
  EXPECT_EQ(error("  - name: a\n    nodes: n1\n    slurm: {}\n    pilots:\n      nodes: 0\n"),
            "managers.yaml:8:14: pilots.nodes: expected at least 1, found 0");
  EXPECT_EQ(error("  - {name: a, nodes: \"n[1\", slurm: {}}\n").substr(0, 26),
            "managers.yaml:4:22: nodes:");
  EXPECT_EQ(error("  - {name: a, nodes: \"n1,n1\", slurm: {}}\n"),
            "managers.yaml:4:22: nodes: \"n1\" is named twice");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}}\n  - {name: b, nodes: n1, slurm: {}}\n"),
            "managers.yaml:5:22: nodes: \"n1\" is one of a, too");
  EXPECT_EQ(
      error("  - name: a\n    nodes: \"n[1-3]\"\n    slurm: {}\n    pilots:\n      most: 4\n"),
      "managers.yaml:8:13: pilots.most: expected at most the 3 nodes of the manager, found 4");
  EXPECT_EQ(
      error("  - {name: a, nodes: \"n[1-3]\", slurm: {}, pilots: {most: 2,\n     keep: 3}}\n"),
      "managers.yaml:5:12: pilots.keep: expected at most 2, found 3");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {},\n     agent: {directory: x}}\n"),
            "managers.yaml:5:25: agent.directory: expected an absolute path, found x");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {},\n     jobs: {time: 400 d}}\n").substr(0, 30),
            "managers.yaml:5:19: jobs.time:");
  const Result<Document> other =
      Document::parse("apiVersion: orrery/v1\nkind: Fleet\nmanagers: []\n", "managers.yaml");
  ASSERT_TRUE(other);
  EXPECT_EQ(read_managers(*other).error().text(),
            "managers.yaml:1:1: expected apiVersion orrery/v1 and kind Managers, found orrery/v1 "
            "and Fleet");
}

/// Returns the error of a manager with these options of sbatch, a list in YAML, or "accepted".
std::string error_of_options(const std::string& options) {
  return error_of("  - name: a\n    nodes: n1\n    slurm:\n      options: [" + options + "]\n");
}

TEST(Managers, RefuseOptionsThatChangeWhatAHoldIs) {
  EXPECT_EQ(error_of_options("--mem=0, \"--array=0-1\""),
            "managers.yaml:7:26: slurm.options: \"--array=0-1\": a hold is one job of one "
            "Slurm cluster, without an array");
  EXPECT_EQ(error_of_options("-x, n2"),
            "managers.yaml:7:17: slurm.options: \"-x\": expected \"--exclude=NODES\"");
  EXPECT_EQ(error_of_options("\"-t\", \"5\""),
            "managers.yaml:7:17: slurm.options: \"-t\": pilots.time and jobs.time set it");
  // One list of options on each line.
  std::istringstream refused(R"(--array, 0-1
-a0-1
-Ha0-1
"--arr=0-1"
-M, other
"--clusters=other"
--test-only
--wrap, "true"
"--wrap=true"
-J, x
"--job-name=x"
--comment, x
"--comm=x"
-N2
"--nodes=2"
-n, "8"
"--ntasks=8"
"--time=5"
-o, f
"--error=f"
-e, f
--parsable
-W
--wait
":"
--gres, "gpu:8", ":"
"--"
script.sh
"--mem=0", script.sh
""
"--uid=5"
-Q
"--exclusive=user"
-s
--requeue
"--account=x"
-p, x
"--reservation=x"
"--qos=x"
-A, x
--exclude, n2
"-d, singleton")");
  for (std::string options; std::getline(refused, options);) {
    const std::string error = error_of_options(options);
    EXPECT_TRUE(error.starts_with("managers.yaml:7:")) << options << ' ' << error;
  }
}

TEST(Managers, AcceptOtherOptionsOfSbatch) {
  for (const char* options :
       {"--mem=0", "--mem, \"0\"", "\"--gres=gpu:h100:8\"", "-G, \"8\"", "-G8", "-C, a100",
        "\"--exclude=n2\"", "\"--time-min=5\"", "\"--ntasks-per-node=1\"", "\"--wait-all-nodes=1\"",
        "-H", "--hold", "-w, n1", "\"--licenses=a:1\"", "\"--nice=5\""}) {
    EXPECT_EQ(error_of_options(options), "accepted") << options;
  }
}

TEST(Managers, LendThoseNodesThatTheFleetHas) {
  const ScriptedCluster cluster({.fleet = named_nodes()});
  ManagerSpec spec{.name = "hpc", .nodes = "n[1-3]"};
  spec.pilots =
      PilotSpec{.nodes = 2, .keep = 1, .most = 2, .time = Seconds(7200), .idle = Seconds(9)};
  const HoldPool pool = pool_of(spec, cluster.topology());
  EXPECT_EQ(pool.manager, "hpc");
  EXPECT_EQ(pool.lent.nodes, (std::vector<NodeId>{NodeId(0), NodeId(1), NodeId(2)}));
  EXPECT_EQ(pool.lent.most, 2u);
  EXPECT_EQ(pool.lent.time, Duration::hours(2));
  EXPECT_EQ(pool.pilot_nodes, 2u);
  EXPECT_EQ(pool.keep, 1u);
  EXPECT_EQ(pool.idle, Duration::seconds(9));
  EXPECT_TRUE(pool.unknown.empty());

  spec.nodes = "n[4-9]";
  const HoldPool less = pool_of(spec, cluster.topology());
  EXPECT_EQ(less.lent.nodes, std::vector<NodeId>{NodeId(3)});
  EXPECT_EQ(less.lent.most, 1u);
  EXPECT_EQ(less.unknown.size(), 5u);
  EXPECT_EQ(less.unknown[0], "n5");
}

TEST(Managers, HoldNodesForOneJobEach) {
  const Result<ManagersSpec> spec = spec_of(
      "  - {name: hpc, nodes: \"n[1-4]\", slurm: {account: \"ai-%t\"}, jobs: {most: 3, time: 6 "
      "h}}\n");
  ASSERT_TRUE(spec) << spec.error().text();
  const ScriptedCluster cluster({.fleet = named_nodes()});
  const HoldPool pool = pool_of(spec->managers[0], cluster.topology());
  EXPECT_EQ(pool.holds_for, HoldsFor::kOneJob);
  EXPECT_EQ(pool.lent.most, 3u);
  EXPECT_EQ(pool.lent.time, Duration::hours(6));
}

TEST(Managers, HaveNodesThatAreNotLent) {
  const Result<ManagersSpec> spec =
      spec_of("  - {name: hpc, nodes: \"n[1-4]\", use: shared, slurm: {config: /s.conf}}\n");
  ASSERT_TRUE(spec) << spec.error().text();
  const ScriptedCluster cluster({.fleet = named_nodes()});
  const HoldPool pool = pool_of(spec->managers[0], cluster.topology());
  EXPECT_EQ(pool.use, PoolUse::kShared);
  EXPECT_EQ(pool.nodes.size(), 4u);
  EXPECT_TRUE(pool.lent.nodes.empty());
  EXPECT_EQ(pool.lent.most, 0u);
}

TEST(Managers, RefuseKeysThatWouldDoNothing) {
  const auto error = [](const std::string& keys) {
    return spec_of("  - {name: hpc, nodes: n1, " + keys + "}\n").error().message;
  };
  EXPECT_EQ(error("use: owned, slurm: {}, pilots: {keep: 1}"),
            "pilots: nodes that are owned are not asked for; expected no such key");
  EXPECT_EQ(error("use: shared, slurm: {account: a}"),
            "slurm.account: nodes that are shared are not asked for; expected no such key");
  EXPECT_EQ(error("slurm: {}, jobs: {}, pilots: {}"),
            "jobs: expected either pilots or jobs, found both");
  EXPECT_EQ(error("slurm: {account: \"%t\"}"),
            "slurm.account: %t stands for the tenant of a job, and a pilot has none; expected jobs "
            "instead "
            "of pilots");
  EXPECT_EQ(error("slurm: {}, jobs: {most: 2}"),
            "jobs.most: expected at most the 1 nodes of the manager, found 2");
}

}  // namespace
}  // namespace orrery
