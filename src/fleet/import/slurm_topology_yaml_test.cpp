// fleet/import/slurm_topology_yaml_test.cpp - topologies of topology.yaml beside the same ones of
// topology.conf, and what is refused.
#include "fleet/import/slurm_topology_yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/import/slurm_cluster.hpp"
#include "fleet/import/slurm_import.hpp"
#include "fleet/import/slurm_test.hpp"

namespace orrery {
namespace {

/// Returns pods, leaves and nodes in one line: "spine1(leaf1: n1 n2, leaf2: n3)".
std::string shape(const ImportedCluster& cluster) {
  std::vector<std::string> pods;
  pods.reserve(cluster.pods.size());
  for (const ImportedPod& pod : cluster.pods) {
    std::vector<std::string> leaves;
    leaves.reserve(pod.leaves.size());
    for (const ImportedLeaf& leaf : pod.leaves) {
      std::vector<std::string> names;
      names.reserve(leaf.nodes.size());
      for (const std::uint32_t node : leaf.nodes) names.push_back(cluster.nodes[node].name);
      leaves.push_back(fmt::format("{}: {}", leaf.name, fmt::join(names, " ")));
    }
    pods.push_back(fmt::format("{}({})", pod.name, fmt::join(leaves, ", ")));
  }
  return fmt::format("{}", fmt::join(pods, " "));
}

constexpr std::string_view kOnePod = "pod(rack: n1 n2 n3 n4 n5 n6 n7 n8)";

class SlurmTopologyYaml : public SlurmDirectory {
 protected:
  void SetUp() override {
    SlurmDirectory::SetUp();
    write("slurm.conf", "NodeName=n[1-8] Gres=gpu:h100:8\nNodeName=later State=FUTURE\n");
  }

  ImportedCluster cluster() {
    Result<ImportedCluster> read = read_slurm_cluster(test_catalog(), directory());
    EXPECT_TRUE(read) << (read ? "" : read.error().text());
    return read ? *std::move(read) : ImportedCluster{};
  }
  ImportedCluster cluster_of(const std::string& yaml) {
    write("topology.yaml", yaml);
    return cluster();
  }
  ImportedCluster cluster_of_conf(const std::string& conf) {
    std::filesystem::remove(path("topology.yaml"));
    write("topology.conf", conf);
    ImportedCluster read = cluster();
    std::filesystem::remove(path("topology.conf"));
    return read;
  }
  std::string refused(const std::string& yaml) {
    write("topology.yaml", yaml);
    return shown_error(read_slurm_cluster(test_catalog(), directory()));
  }
};

constexpr const char* kTree = R"(---
# a comment
- topology: default
  cluster_default: true
  tree:
    switches:
      - switch: spine1
        children: leaf[1-2]
      - switch: spine2
        children: leaf3
      - switch: leaf1
        nodes: n[1-2],later
      - {switch: leaf2, nodes: "n[3-4]"}
      - switch: leaf3
        nodes: n5,n7
)";

TEST_F(SlurmTopologyYaml, ATreeIsThatOfTheSameLinesInTopologyConf) {
  const ImportedCluster read = cluster_of(kTree);
  EXPECT_EQ(shape(read),
            "spine1(leaf1: n1 n2, leaf2: n3 n4) spine2(leaf3: n5 n7) no-switch(no-switch: n6 n8)");
  EXPECT_EQ(read.topology, ImportedTopology::kSwitches);
  EXPECT_EQ(read.unlisted_nodes, 2u);
  const ImportedCluster conf = cluster_of_conf(
      "SwitchName=spine1 Switches=leaf[1-2]\nSwitchName=spine2 Switches=leaf3\n"
      "SwitchName=leaf1 Nodes=n[1-2],later\nSwitchName=leaf2 Nodes=n[3-4]\n"
      "SwitchName=leaf3 Nodes=n5,n7\n");
  EXPECT_EQ(shape(read), shape(conf));
  EXPECT_EQ(read.notes, conf.notes);
}

TEST_F(SlurmTopologyYaml, TheSpecOfATreeIsThatOfTheSameLinesInTopologyConf) {
  write("topology.conf",
        "SwitchName=top Switches=a,b\nSwitchName=a Nodes=n[1-4]\n"
        "SwitchName=b Nodes=n[5-8]\n");
  const Result<FleetSpec> conf = import_slurm(test_catalog(), directory());
  std::filesystem::remove(path("topology.conf"));
  write("topology.yaml",
        "topology: x\ntree:\n  switches:\n  - {switch: top, children: 'a,b'}\n"
        "  - {switch: a, nodes: 'n[1-4]'}\n  - {switch: b, nodes: 'n[5-8]'}\n");
  const Result<FleetSpec> yaml = import_slurm(test_catalog(), directory());
  ASSERT_TRUE(conf && yaml) << (yaml ? "" : yaml.error().text());
  EXPECT_EQ(write_fleet_spec(*yaml), write_fleet_spec(*conf));
}

struct WrittenSwitch {
  std::string name;
  bool leaf = true;
  std::string below;
};

/// Leaves of one to three nodes under spines of one to three leaves, in any order; a few of each
/// are left out.
std::vector<WrittenSwitch> random_tree(Rng& rng) {
  std::vector<WrittenSwitch> tree;
  tree.reserve(16);
  std::vector<std::string> free;
  free.reserve(8);
  for (std::uint64_t node = 1; node <= 8;) {
    const std::uint64_t last = std::min<std::uint64_t>(8, node + rng.below(3));
    const std::string name = fmt::format("leaf{}", node);
    if (rng.below(6) > 0) {
      tree.push_back({name, true, fmt::format("n[{}-{}]", node, last)});
      free.push_back(name);
    }
    if (!free.empty() && (free.size() == 3 || rng.below(3) == 0)) {
      tree.push_back(
          {fmt::format("spine{}", node), false, fmt::format("{}", fmt::join(free, ","))});
      free.clear();
    }
    node = last + 1;
  }
  if (tree.empty()) tree.push_back({"leaf", true, "n1"});
  for (std::size_t i = tree.size(); i > 1; --i) std::swap(tree[i - 1], tree[rng.below(i)]);
  return tree;
}

TEST_F(SlurmTopologyYaml, RandomTreesAreThoseOfTopologyConf) {
  Rng rng(11);
  for (int round = 0; round < 100; ++round) {
    std::string yaml = "- topology: t\n  tree:\n    switches:\n";
    std::string conf;
    for (const auto& [name, leaf, below] : random_tree(rng)) {
      fmt::format_to(std::back_inserter(yaml), "    - switch: {}\n      {}: {}\n", name,
                     leaf ? "nodes" : "children", below);
      fmt::format_to(std::back_inserter(conf), "SwitchName={} {}={}\n", name,
                     leaf ? "Nodes" : "Switches", below);
    }
    EXPECT_EQ(shape(cluster_of(yaml)), shape(cluster_of_conf(conf))) << "round " << round << yaml;
  }
}

TEST_F(SlurmTopologyYaml, BlocksAreThoseOfTheSameLinesInTopologyConf) {
  const std::string blocks =
      "  blocks:\n  - block: b1\n    nodes: n[1-4]\n  - {block: b2, nodes: 'n[5-8]'}\n";
  const ImportedCluster conf =
      cluster_of_conf("BlockName=b1 Nodes=n[1-4]\nBlockName=b2 Nodes=n[5-8]\n");
  for (const char* sizes : {"", "  block_sizes: [4, 8, 16]\n", "  block_sizes: 4\n",
                            "  block_sizes: []\n", "  block_sizes: [1, 32768]\n"}) {
    const ImportedCluster read = cluster_of("topology: x\nblock:\n" + (sizes + blocks));
    EXPECT_EQ(read.topology, ImportedTopology::kBlocks);
    EXPECT_EQ(shape(read), "pod(b1: n1 n2 n3 n4, b2: n5 n6 n7 n8)");
    EXPECT_EQ(shape(read), shape(conf));
  }
}

TEST_F(SlurmTopologyYaml, AFlatTopologyIsOnePod) {
  for (const char* flat :
       {"true", "True", "'on'", "{alpha_step_rank: true}", "{alpha_step_rank: No}", "{}"}) {
    const ImportedCluster read = cluster_of(fmt::format("- topology: x\n  flat: {}\n", flat));
    EXPECT_EQ(shape(read), kOnePod);
    EXPECT_EQ(read.topology, ImportedTopology::kNone);
    EXPECT_EQ(read.notes.back(), "The topology is flat: all nodes are in one pod.");
  }
}

TEST_F(SlurmTopologyYaml, TheFirstClusterDefaultIsReadAndTheOthersAreNamed) {
  const auto three = [&](const char* a, const char* b, const char* c) {
    return cluster_of(
        fmt::format("- {{topology: a, flat: true{}}}\n"
                    "- {{topology: b, block: {{blocks: {{block: all, nodes: 'n[1-8]'}}}}{}}}\n"
                    "- {{topology: c, tree: {{switches: {{switch: top, nodes: n1}}}}{}}}\n",
                    a, b, c));
  };
  const char* yes = ", cluster_default: true";
  const char* no = ", cluster_default: false";
  EXPECT_EQ(shape(three(no, yes, "")), "pod(all: n1 n2 n3 n4 n5 n6 n7 n8)");
  EXPECT_EQ(cluster().notes.back(), "Topology b of topology.yaml is read, left out: a, c.");
  EXPECT_EQ(three("", yes, yes).topology, ImportedTopology::kBlocks);
  EXPECT_EQ(three("", "", ", cluster_default: Y").topology, ImportedTopology::kSwitches);
  EXPECT_EQ(cluster().notes.back(), "Topology c of topology.yaml is read, left out: a, b.");
  EXPECT_EQ(shape(three("", "", no)), kOnePod) << "without a default the first is one";
  EXPECT_EQ(cluster().notes.back(), "Topology a of topology.yaml is read, left out: b, c.");
}

TEST_F(SlurmTopologyYaml, NothingElseIsReadWhereTheFileExists) {
  write("topology.conf", "SwitchName=\"never closed\n");
  EXPECT_EQ(cluster_of(kTree).notes.back(), "Ignored because topology.yaml exists: topology.conf.");
  write("slurm.conf", "TopologyPlugin=topology/block\nNodeName=n[1-8],later Gres=gpu:h100:8\n");
  EXPECT_EQ(cluster_of(kTree).notes.back(),
            "Ignored because topology.yaml exists: topology.conf, TopologyPlugin.");
}

TEST_F(SlurmTopologyYaml, KindsThatAreNotUnderstoodAreOnePodAndNamedWithTheirLine) {
  EXPECT_EQ(shape(cluster_of("- topology: r\n  ring:\n    rings:\n    - ring: a\n"
                             "      nodes: n[1-8]\n")),
            kOnePod);
  EXPECT_EQ(cluster().notes.back(),
            "topology.yaml:2:3: \"ring\" is not understood: all nodes are in one pod.");
  cluster_of("topology: t\ntorus3d: {toruses: [{name: a, dims: {x: 2, y: 2, z: 2}}]}\n");
  EXPECT_EQ(cluster().notes.back(),
            "topology.yaml:2:1: \"torus3d\" is not understood: all nodes are in one pod.");
}

TEST_F(SlurmTopologyYaml, WhatScontrolShowsOfATreeIsRead) {
  const ImportedCluster read = cluster_of(
      "- topology: t\n  cluster_default: true\n  block: {}\n  flat: {}\n  ring: {}\n"
      "  torus3d: {}\n  tree:\n    switches:\n"
      "    - {switch: top, children: 'a', nodes: ''}\n"
      "    - {switch: a, children: '', nodes: 'n[1-8]'}\n");
  EXPECT_EQ(shape(read), "top(a: n1 n2 n3 n4 n5 n6 n7 n8)");
}

TEST_F(SlurmTopologyYaml, TheTopologyOfSingleNodesIsIgnoredAndCounted) {
  write("slurm.conf",
        "NodeName=n[1-6] Gres=gpu:h100:8\nNodeName=n[7-8] Gres=gpu:h100:8 Topology=t:a\n");
  const ImportedCluster read = cluster_of("- topology: t\n  flat: true\n");
  EXPECT_EQ(read.notes.front(), "Nodes whose own Topology= is ignored: 2.");
}

TEST_F(SlurmTopologyYaml, WrongKeysAndValuesAreRefusedAtTheirPlace) {
  EXPECT_EQ(refused(""), "topology.yaml:1:1: the file is empty");
  EXPECT_EQ(refused("[]\n"), "topology.yaml:1:1: the list of topologies is empty");
  EXPECT_EQ(refused("topology/tree\n"),
            "topology.yaml:1:1: expected a list of topologies, found \"topology/tree\"");
  EXPECT_EQ(
      refused("- topology: t\n  treee: {}\n"),
      "topology.yaml:2:3: unknown key \"treee\", did you mean \"tree\"?; known here: topology, "
      "cluster_default, block, flat, ring, torus3d, tree");
  EXPECT_EQ(refused("- flat: true\n"), "topology.yaml:1:3: the key \"topology\" is missing");
  EXPECT_EQ(refused("- topology: t\n  cluster_default: 1\n  flat: true\n"),
            "topology.yaml:2:20: expected true or false, found \"1\"");
  EXPECT_EQ(refused("- topology: t\n  flat: {alpha_step_rank: 2}\n"),
            "topology.yaml:2:27: expected true or false, found \"2\"");
  EXPECT_EQ(refused("- topology: t\n  flat: {rank: true}\n"),
            "topology.yaml:2:10: unknown key \"rank\"; known here: alpha_step_rank");
  EXPECT_EQ(refused("- topology: t\n  ring: a\n"),
            "topology.yaml:2:9: expected a mapping, found \"a\"");
  EXPECT_EQ(refused("- {topology: t, flat: true}\n- {topology: t, flat: true}\n"),
            "topology.yaml:2:3: a second topology \"t\", the first is at topology.yaml:1:3");
}

TEST_F(SlurmTopologyYaml, ATopologyIsOfExactlyOneKind) {
  for (const char* none : {"", "  flat: false\n", "  tree: {}\n", "  block:\n"}) {
    EXPECT_EQ(
        refused(fmt::format("- topology: t\n{}", none)),
        "topology.yaml:1:3: topology \"t\": expected one of: block, flat, ring, torus3d, tree");
  }
  EXPECT_EQ(refused("- topology: t\n  tree: {switches: {switch: a, nodes: n1}}\n  flat: true\n"),
            "topology.yaml:2:3: topology \"t\" has both \"flat\" and \"tree\"; expected one kind");
}

TEST_F(SlurmTopologyYaml, SwitchesMustBeATreeOfKnownNodes) {
  const auto tree = [&](const std::string& switches) {
    return refused("- topology: t\n  tree:\n    switches:\n" + switches);
  };
  EXPECT_EQ(refused("- topology: t\n  tree: {switch: a}\n"),
            "topology.yaml:2:10: unknown key \"switch\", did you mean \"switches\"?; known here: "
            "switches");
  EXPECT_EQ(refused("- topology: t\n  tree: {switches: s1}\n"),
            "topology.yaml:2:20: expected a list of switches, found \"s1\"");
  EXPECT_EQ(
      tree("    - {switch: a, node: n1}\n"),
      "topology.yaml:4:19: unknown key \"node\", did you mean \"nodes\"?; known here: switch, "
      "children, nodes");
  EXPECT_EQ(tree("    - {nodes: n1}\n"), "topology.yaml:4:7: the key \"switch\" is missing");
  EXPECT_EQ(tree("    - switch: a\n"),
            "topology.yaml:4:7: \"a\": expected either nodes or children");
  EXPECT_EQ(tree("    - {switch: a, nodes: n1, children: b}\n"),
            "topology.yaml:4:7: \"a\": expected either nodes or children");
  EXPECT_EQ(tree("    - switch: a\n      nodes: [n1, n2]\n"),
            "topology.yaml:5:14: expected text, found a list");
  EXPECT_EQ(tree("    - switch: a\n      nodes: n[1-9]\n"),
            "topology.yaml:5:14: slurm.conf has no node \"n9\"");
  EXPECT_EQ(tree("    - switch: a\n      nodes: n[1-\n"),
            "topology.yaml:5:14: a \"[\" without its \"]\"");
  EXPECT_EQ(tree("    - {switch: a, nodes: n1}\n    - {switch: b, nodes: n1}\n"),
            "topology.yaml:5:26: n1 stands under \"a\" already");
  EXPECT_EQ(tree("    - {switch: a, nodes: n1}\n    - {switch: a, nodes: n2}\n"),
            "topology.yaml:5:7: a second \"a\", the first is at topology.yaml:4:7");
  EXPECT_EQ(tree("    - {switch: leaf1, nodes: n1}\n    - {switch: b, children: laef1}\n"),
            "topology.yaml:5:29: there is no switch \"laef1\", did you mean \"leaf1\"?");
  EXPECT_EQ(tree("    - {switch: a, children: b}\n    - {switch: b, children: a}\n"),
            "topology.yaml:4:7: \"a\" is below itself; expected a tree");
}

TEST_F(SlurmTopologyYaml, BlocksMustHaveNodesAndSizesThatSlurmTakes) {
  const auto block = [&](const std::string& text) {
    return refused("- topology: t\n  block:\n" + text);
  };
  EXPECT_EQ(block("    block_sizes: [4]\n"), "topology.yaml:3:5: the key \"blocks\" is missing");
  EXPECT_EQ(block("    blocks: []\n"), "topology.yaml:3:13: the list of blocks is empty");
  EXPECT_EQ(block("    blocks: [{block: a}]\n"), "topology.yaml:3:14: \"a\": expected nodes");
  EXPECT_EQ(block("    blocks: [{block: a, children: b}]\n"),
            "topology.yaml:3:25: unknown key \"children\"; known here: block, nodes");
  EXPECT_EQ(block("    block_sizes: [4, 12]\n"),
            "topology.yaml:3:22: block size 12: expected 4 times a power of two up to 32768");
  EXPECT_EQ(block("    block_sizes: [1, 65536]\n"),
            "topology.yaml:3:22: block size 65536: expected 1 times a power of two up to 32768");
  EXPECT_EQ(block("    block_sizes: {a: 1}\n"),
            "topology.yaml:3:18: expected a list of sizes, found a mapping");
  EXPECT_FALSE(block("    block_sizes: [0]\n").empty());
}

TEST_F(SlurmTopologyYaml, BadFilesAreOneErrorOfTheUser) {
  EXPECT_EQ(refused("- topology: \xfe\n"), "topology.yaml:1:13: byte 0xfe is not valid UTF-8 text");
  std::filesystem::remove(path("topology.yaml"));
  std::filesystem::create_directory(path("topology.yaml"));
  EXPECT_EQ(shown_error(read_slurm_cluster(test_catalog(), directory())),
            "topology.yaml: not a regular file");
}

}  // namespace
}  // namespace orrery
