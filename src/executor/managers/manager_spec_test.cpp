#include "executor/managers/manager_spec.hpp"

#include <gtest/gtest.h>

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

TEST(Managers, AreRefusedWithTheLine) {
  const auto error = [](const std::string& lines) {
    const Result<ManagersSpec> spec = spec_of(lines);
    return spec ? std::string("accepted") : spec.error().text();
  };
  EXPECT_EQ(
      error("  - {name: HPC, nodes: n1, slurm: {}}\n"),
      "managers.yaml:4:5: name: expected up to 32 small letters, digits and \"-\", found HPC");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}}\n  - {name: a, nodes: n2, slurm: {}}\n"),
            "managers.yaml:5:5: name: there is another manager \"a\"");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}, pilots: {time: 5 s}}\n"),
            "managers.yaml:4:5: pilots.time: expected a time of 2 minutes to 366 days");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}, pilots: {nodes: 0}}\n"),
            "managers.yaml:4:5: pilots.nodes: expected at least 1");
  EXPECT_EQ(error("  - {name: a, nodes: \"n[1\", slurm: {}}\n").substr(0, 25),
            "managers.yaml:4:5: nodes:");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {options: [-x, n2]}}\n"),
            "managers.yaml:4:5: slurm.options: expected \"--exclude=NODES\", found \"-x\"");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {options: [\"--exclusive=user\"]}}\n"),
            "accepted");
  EXPECT_EQ(error("  - {name: a, nodes: \"n1,n1\", slurm: {}}\n"),
            "managers.yaml:4:5: nodes: \"n1\" is named twice");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}}\n  - {name: b, nodes: n1, slurm: {}}\n"),
            "managers.yaml:5:5: nodes: \"n1\" is one of a, too");
  EXPECT_EQ(error("  - {name: a, nodes: \"n[1-3]\", slurm: {}, pilots: {most: 4}}\n"),
            "managers.yaml:4:5: pilots.most: expected at most the 3 nodes of the manager, found 4");
  EXPECT_EQ(error("  - {name: a, nodes: \"n[1-3]\", slurm: {}, pilots: {most: 2, keep: 3}}\n"),
            "managers.yaml:4:5: pilots.keep: expected at most 2, found 3");
  EXPECT_EQ(error("  - {name: a, nodes: n1, slurm: {}, agent: {directory: x}}\n"),
            "managers.yaml:4:5: agent.directory: expected an absolute path, found x");
  const Result<Document> other =
      Document::parse("apiVersion: orrery/v1\nkind: Fleet\nmanagers: []\n", "managers.yaml");
  ASSERT_TRUE(other);
  EXPECT_EQ(read_managers(*other).error().text(),
            "managers.yaml:1:1: expected apiVersion orrery/v1 and kind Managers, found orrery/v1 "
            "and Fleet");
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
            "slurm: %t stands for the tenant of a job, and a pilot has none; expected jobs instead "
            "of pilots");
  EXPECT_EQ(error("slurm: {}, jobs: {most: 2}"),
            "jobs.most: expected at most the 1 nodes of the manager, found 2");
}

}  // namespace
}  // namespace orrery
