// fleet/import/slurm_import_test.cpp - clusters as their Slurm files describe them, and what is
// refused.
#include "fleet/import/slurm_import.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"
#include "fleet/import/host_list.hpp"
#include "fleet/import/slurm_test.hpp"

namespace orrery {
namespace {

constexpr std::string_view kAtlas = R"(# 32 DGX H100, some CPU nodes to come
ClusterName=atlas
SlurmctldHost=ctl1(10.0.0.1)
GresTypes=gpu
SchedulerParameters=bf_interval=60,bf_window=2880
NodeName=DEFAULT CPUs=224 Boards=1 SocketsPerBoard=2 CoresPerSocket=56 \
  ThreadsPerCore=2 RealMemory=2051900 State=UNKNOWN Gres=gpu:h100:8(S:0-1)
NodeName=dgx[001-032] Feature=h100,ib
NodeName=spare[1-4] State=FUTURE
PartitionName=batch Nodes=dgx[001-032] Default=YES MaxTime=INFINITE State=UP
)";

constexpr std::string_view kLeaves = R"(SwitchName=leaf1 Nodes=dgx[001-008] LinkSpeed=400
SwitchName=leaf2 Nodes=dgx[009-016],spare1
SwitchName=leaf3 Nodes=dgx[017-024]
SwitchName=leaf4 Nodes=dgx[025-032]
)";

class SlurmImport : public SlurmDirectory {
 protected:
  void write_slurm(std::string_view text) { write("slurm.conf", std::string(text)); }
  void write_topology(const std::string& text) { write("topology.conf", text); }

  /// Imports a spec, which must succeed, build, and read back from its YAML.
  FleetSpec imported() {
    Result<FleetSpec> spec = import_slurm(test_catalog(), directory());
    EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
    if (!spec) return {};
    Result<Topology> topology = build_topology(*spec, test_catalog());
    EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
    const std::string yaml = write_fleet_spec(*spec);
    Result<FleetSpec> back = spec_of(yaml);
    EXPECT_TRUE(back) << (back ? "" : back.error().text()) << yaml;
    if (back) {
      EXPECT_EQ(write_fleet_spec(*back), yaml);
    }
    return *std::move(spec);
  }

  std::string error_of(std::string_view slurm) {
    write_slurm(slurm);
    return error();
  }
  std::string error() { return shown_error(import_slurm(test_catalog(), directory())); }
};

const std::vector<PodSpec>& pods_of(const FleetSpec& spec) {
  return spec.sites.front().halls.front().pods;
}

/// Returns the names of the nodes of the built fleet, in its order.
std::vector<std::string> node_names(const FleetSpec& spec) {
  Result<Topology> topology = build_topology(spec, test_catalog());
  std::vector<std::string> names;
  for (std::uint32_t i = 0; topology && i < topology->node_count(); ++i) {
    names.push_back(topology->node_name(NodeId(i)));
  }
  return names;
}

bool says(const FleetSpec& spec, std::string_view text) {
  return spec.description.find(text) != std::string::npos;
}

TEST_F(SlurmImport, SecondLevelSwitchesBecomePodsAndLeavesRacks) {
  write_slurm(kAtlas);
  write_topology(std::string(kLeaves) +
                 "SwitchName=spine1 Switches=leaf[1-2]\nSwitchName=spine2 Switches=leaf[3-4]\n"
                 "SwitchName=core Switches=spine[1-2]\n");
  const FleetSpec spec = imported();
  EXPECT_EQ(spec.name, "atlas");
  ASSERT_EQ(pods_of(spec).size(), 2u);
  EXPECT_EQ(pods_of(spec)[1].name, "spine2");
  ASSERT_EQ(pods_of(spec)[1].racks.size(), 2u);
  // 8 x 10.2 kW are more than the densest air class holds: two racks of four.
  const RackSpec& rack = pods_of(spec)[1].racks[0];
  EXPECT_EQ(rack.name, "leaf3");
  EXPECT_EQ(rack.count, 2);
  EXPECT_EQ(rack.cooling, "in-row-or-dense-air");
  ASSERT_EQ(rack.nodes.size(), 1u);
  EXPECT_EQ(rack.nodes[0].type, "dgx-h100");
  EXPECT_EQ(rack.nodes[0].count, 4);
  EXPECT_EQ(rack.nodes[0].names, "dgx[017-024]");
  EXPECT_EQ(rack.nodes[0].where.line, 8);
  EXPECT_EQ(node_names(spec), *expand_host_list("dgx[001-032]"));
  EXPECT_TRUE(says(spec, "Nodes with State=FUTURE, left out: 4."));
}

TEST_F(SlurmImport, SpinesWithTheSameLeavesAreOnePod) {
  write_slurm(kAtlas);
  write_topology("SwitchName=spine1 Switches=leaf[1-4]\nSwitchName=spine2 Switches=leaf[1-4]\n" +
                 std::string(kLeaves));
  const FleetSpec spec = imported();
  ASSERT_EQ(pods_of(spec).size(), 1u);
  EXPECT_EQ(pods_of(spec)[0].name, "spine1");
  EXPECT_EQ(pods_of(spec)[0].racks.size(), 4u);
}

TEST_F(SlurmImport, TheNetworkIsAssumedFromTheNicsAndSaidToBe) {
  write_slurm(kAtlas);
  write_topology(std::string(kLeaves) + "SwitchName=top Switches=leaf[1-4]\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(spec.sites[0].fabrics.size(), 1u);
  const FabricSpec& fabric = spec.sites[0].fabrics[0];
  EXPECT_EQ(fabric.type, "ib-ndr");
  EXPECT_EQ(fabric.topology, FabricTopology::kFatTree);
  EXPECT_TRUE(fabric.node_types.empty());
  EXPECT_FALSE(fabric.unit_nodes) << "8 nodes of 8 NICs do not fit one leaf of 64 ports";
  EXPECT_TRUE(says(spec,
                   "Slurm does not tell the kind of network: a fat tree of ib-ndr without "
                   "oversubscription is assumed from NICs of 8 x 400 Gb/s."));
}

TEST_F(SlurmImport, LeavesThatOneSwitchCanHoldAreTheNetworks) {
  write_slurm("NodeName=g[1-12] Gres=gpu:gh200:1\n");
  write_topology(
      "SwitchName=a Nodes=g[1-8]\nSwitchName=b Nodes=g[9-12]\n"
      "SwitchName=top Switches=a,b\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(spec.sites[0].fabrics.size(), 1u);
  EXPECT_EQ(spec.sites[0].fabrics[0].unit_nodes, 8);
}

TEST_F(SlurmImport, ADifferentRateGetsItsOwnNetworkOrNone) {
  write_slurm(
      "NodeName=a[1-4] Gres=gpu:a100:8\nNodeName=h[1-4] Gres=gpu:h200:8\n"
      "NodeName=v[1-4] Gres=gpu:v100:8\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(spec.sites[0].fabrics.size(), 2u);
  EXPECT_EQ(spec.sites[0].fabrics[0].type, "ib-hdr");
  EXPECT_EQ(spec.sites[0].fabrics[0].node_types, std::vector<std::string>{"dgx-a100-80g"});
  EXPECT_EQ(spec.sites[0].fabrics[1].name, "compute-2");
  EXPECT_EQ(spec.sites[0].fabrics[1].type, "ib-ndr");
  EXPECT_TRUE(says(spec, "No network is written for nodes with NICs of 4 x 100 Gb/s"));
}

TEST_F(SlurmImport, AFleetTooLargeForThreeLevelsGetsNoNetwork) {
  write_slurm("NodeName=n[1-9000] Gres=gpu:h100:8\n");
  const FleetSpec spec = imported();
  EXPECT_TRUE(spec.sites[0].fabrics.empty());
  EXPECT_TRUE(says(spec, "or none for so many nodes"));
}

TEST_F(SlurmImport, NodesWithoutGpusAreTheCatalogsCpuNodeAndSaidToBe) {
  write_slurm(
      "NodeName=gpu[01-04] Gres=gpu:a100:8,nic:2 RealMemory=2000000\n"
      "NodeName=cpu[1-10] CPUs=128 RealMemory=512000 Feature=genoa\n"
      "NodeName=login1 Gres=mps:400\n");
  write_topology("SwitchName=s1 Nodes=gpu[01-04],cpu[1-10]\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(pods_of(spec).size(), 2u);
  const std::vector<RackSpec>& racks = pods_of(spec)[0].racks;
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0].name, "s1-dgx-a100-80g");
  EXPECT_EQ(racks[0].count, 1) << "4 x 6.5 kW fit one rack";
  EXPECT_EQ(racks[1].nodes[0].type, "cpu-epyc-2s");
  EXPECT_EQ(racks[1].nodes[0].names, "cpu[1-10]");
  EXPECT_EQ(pods_of(spec)[1].name, "no-switch");
  EXPECT_EQ(pods_of(spec)[1].racks[0].nodes[0].names, "login1");
  EXPECT_TRUE(says(
      spec,
      "Nodes without GPUs, assumed to be cpu-epyc-2s whatever their CPUs and memory are: 11."));
  EXPECT_TRUE(says(spec, "Nodes under no switch: 1."));
  EXPECT_EQ(spec.sites[0].fabrics[0].node_types, std::vector<std::string>{"dgx-a100-80g"});
}

TEST_F(SlurmImport, WithoutTopologyAllNodesAreInOnePodOfEqualRacks) {
  write_slurm("NodeName=n[1-9] Gres=gpu:h100:8\n");
  const FleetSpec spec = imported();
  EXPECT_EQ(spec.name, "slurm");
  ASSERT_EQ(pods_of(spec).size(), 1u);
  const std::vector<RackSpec>& racks = pods_of(spec)[0].racks;
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0].nodes[0].count, 5);
  EXPECT_EQ(racks[1].nodes[0].count, 4);
  EXPECT_TRUE(says(spec, "Without topology.conf all nodes are in one pod."));
}

TEST_F(SlurmImport, TheGpuTypeMayStandInGresConfOrInAFeature) {
  write_slurm("NodeName=a[1-2],b[1-2] Gres=gpu:8\nNodeName=c1 Gres=gpu:8 Features=ib,l40s,genoa\n");
  write("gres.conf",
        "AutoDetect=off\nNodeName=a[1-2] Name=gpu Type=H100 File=/dev/nvidia[0-3]\n"
        "NodeName=a[1-2] Name=gpu Type=h100 File=/dev/nvidia[4-7]\n"
        "NodeName=b[1-2] Name=gpu Type=nvidia_a100-sxm4-80gb\nName=mps Count=100\n");
  const FleetSpec spec = imported();
  const std::vector<RackSpec>& racks = pods_of(spec)[0].racks;
  ASSERT_EQ(racks.size(), 3u);
  EXPECT_EQ(racks[0].nodes[0].type, "dgx-h100");
  EXPECT_EQ(racks[1].nodes[0].type, "dgx-a100-80g");
  EXPECT_EQ(racks[2].nodes[0].type, "l40s-8");
  EXPECT_TRUE(says(spec, "Nodes whose GPU type is taken from a feature: 1."));
}

TEST_F(SlurmImport, ProductNamesAsAutoDetectWritesThemAreKnown) {
  write_slurm(
      "NodeName=n1 Gres=gpu:nvidia_h100_80gb_hbm3:8\n"
      "NodeName=n2 Gres=gpu:tesla_v100-sxm2-32gb:no_consume:8\n"
      "NodeName=n3 Gres=gpu:h100:4(S:0),gpu:H100:4(S:1)\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(pods_of(spec)[0].racks.size(), 2u);
  EXPECT_EQ(pods_of(spec)[0].racks[0].nodes[0].names, "n[1,3]");
}

TEST_F(SlurmImport, BlocksBecomeRacksOfOneScaleUpDomain) {
  write_slurm("NodeName=t[01-36] Gres=gpu:gb200:4\n");
  write_topology("BlockName=b1 Nodes=t[01-18]\nBlockName=b2 Nodes=t[19-36]\nBlockSizes=18\n");
  const FleetSpec spec = imported();
  ASSERT_EQ(pods_of(spec).size(), 1u);
  ASSERT_EQ(pods_of(spec)[0].racks.size(), 2u);
  EXPECT_EQ(pods_of(spec)[0].racks[1].nodes[0].count, 18);
  EXPECT_TRUE(says(spec, "assumed to be one"));
}

TEST_F(SlurmImport, ARackIsNeverMoreThanAScaleUpDomain) {
  write_slurm("NodeName=t[01-40] Gres=gpu:gb200:4\n");
  const FleetSpec spec = imported();
  const std::vector<RackSpec>& racks = pods_of(spec)[0].racks;
  ASSERT_EQ(racks.size(), 2u);
  EXPECT_EQ(racks[0].count, 2);
  EXPECT_EQ(racks[0].nodes[0].count, 18);
  EXPECT_EQ(racks[1].nodes[0].count, 4);
}

TEST_F(SlurmImport, SwitchAndClusterNamesBecomeNamesOfASpec) {
  write_slurm("ClusterName=\"my cluster\"\nNodeName=n[1-2] Gres=gpu:h100:8\n");
  write_topology("SwitchName=a:1 Nodes=n1\nSwitchName=a/1 Nodes=n2\n");
  const FleetSpec spec = imported();
  EXPECT_EQ(spec.name, "my-cluster");
  EXPECT_EQ(pods_of(spec)[0].racks[0].name, "a-1");
  EXPECT_EQ(pods_of(spec)[0].racks[1].name, "a-1-2");
}

TEST_F(SlurmImport, AnyNodeNamesInAnyOrderAreKept) {
  Rng rng(7);
  const std::vector<std::string> stems = {"n", "gpu-a", "x1y", "h9-", ""};
  for (int round = 0; round < 20; ++round) {
    std::vector<std::string> names;
    for (std::uint64_t at = 0; names.size() < 60; at += 1 + rng.below(3) / 2) {
      const std::string& stem = stems[rng.below(stems.size())];
      names.push_back(fmt::format("{}{:0{}}", stem, at + 5, rng.below(2) == 0 ? 1 : 3));
      if (rng.below(9) == 0) names.push_back(fmt::format("{}{}z", stem, at));
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    for (std::size_t i = names.size(); i > 1; --i) {
      if (rng.below(4) == 0) std::swap(names[i - 1], names[rng.below(i)]);
    }
    write_slurm(fmt::format("NodeName={} Gres=gpu:l4:4\n", fmt::join(names, ",")));
    EXPECT_EQ(node_names(imported()), names);
  }
}

TEST_F(SlurmImport, AnUnknownGpuTypeNamesTheNearest) {
  EXPECT_EQ(error_of("NodeName=n1 Gres=gpu:h10O:8\n"),
            "slurm.conf:1:13: \"h10O\" is not in the catalog's accelerators, did you mean "
            "\"h100\"?");
}

TEST_F(SlurmImport, ANodeTypeTheCatalogLacksNamesThoseItHas) {
  EXPECT_EQ(error_of("A=1\nNodeName=n1 Gres=gpu:h200-nvl:3\n"),
            "slurm.conf:2:13: no node type of the catalog has 3 x nvidia-h200-nvl-141g, it has "
            "h200-nvl-8 (8); add yours with --catalog");
}

TEST_F(SlurmImport, OneTypeOfGpuANode) {
  EXPECT_EQ(error_of("NodeName=n1 Gres=gpu:a100:4,gpu:v100:4\n"),
            "slurm.conf:1:13: several types of GPU on one node (\"a100\" and \"v100\"); a node of "
            "a fleet has accelerators of one type");
  write("gres.conf", "Name=gpu Type=a100\nName=gpu Type=v100\n");
  EXPECT_EQ(error_of("NodeName=n1 Gres=gpu:8\n"),
            "slurm.conf:1:13: gres.conf gives n1 GPUs of several types (\"a100\" and \"v100\"); "
            "write Gres=gpu:TYPE:COUNT here");
}

TEST_F(SlurmImport, GpusWithoutATypeAreRefused) {
  EXPECT_EQ(error_of("NodeName=n1 Gres=gpu:8\n"),
            "slurm.conf:1:13: neither Gres, gres.conf nor Features says of what type the GPUs of "
            "n1 are; write Gres=gpu:TYPE:8 here");
  for (const char* gres : {"gpu:h100:8x:2", "gpu:h100:", "gpu:h100:5000", "gpu:h100:8(S:0"}) {
    EXPECT_EQ(error_of(fmt::format("NodeName=n1 Gres={}\n", gres)),
              fmt::format("slurm.conf:1:13: Gres \"{}\": expected gpu:TYPE:COUNT, COUNT at most "
                          "1024",
                          gres));
  }
}

TEST_F(SlurmImport, WrongNodesAreRefusedAtTheirLine) {
  EXPECT_EQ(error_of("NodeName=n[1-\n"), "slurm.conf:1:1: a \"[\" without its \"]\"");
  EXPECT_EQ(error_of("NodeName=n[4-1]\n"),
            "slurm.conf:1:1: \"4-1\" is not a range such as 001-128");
  EXPECT_EQ(error_of("NodeName=n[1-4]\nNodeName=n3\n"),
            "slurm.conf:2:1: a second node n3, the first is at slurm.conf:1:1");
  EXPECT_EQ(error_of("NodeName=n3 State=FUTURE\nNodeName=n3\n"),
            "slurm.conf:2:1: a second node n3, the first is with State=FUTURE");
  EXPECT_EQ(error_of("NodeName=n/1\n"), "slurm.conf:1:1: \"n/1\" is not a host name");
  EXPECT_EQ(error_of("NodeName=a[1-1048576],b\n"), "slurm.conf:1:1: more than 1048576 names");
  EXPECT_EQ(error_of("NodeName=b[1-9]\nNodeName=a[1-1048570]\n"),
            "slurm.conf:2:1: more than 1048576 nodes");
  EXPECT_EQ(error_of("ClusterName=x\n"), "slurm.conf: no node to import; expected NodeName lines");
}

TEST_F(SlurmImport, SwitchesMustBeATreeOfKnownNodes) {
  write_slurm("NodeName=n[1-4] Gres=gpu:h100:8\n");
  const auto refused = [&](const std::string& topology) {
    write_topology(topology);
    return error();
  };
  EXPECT_EQ(refused("SwitchName=a Nodes=n[1-5]\n"),
            "topology.conf:1:14: slurm.conf has no node \"n5\"");
  EXPECT_EQ(refused("SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n2\n"),
            "topology.conf:2:14: n2 stands under \"a\" already");
  EXPECT_EQ(refused("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"),
            "topology.conf:2:1: a second \"a\", the first is at topology.conf:1:1");
  EXPECT_EQ(refused("SwitchName=a\n"),
            "topology.conf:1:1: \"a\": expected either Nodes= or Switches=");
  EXPECT_EQ(refused("SwitchName=a Nodes=n1 Switches=b\n"),
            "topology.conf:1:1: \"a\": expected either Nodes= or Switches=");
  EXPECT_EQ(refused("SwitchName=leaf1 Nodes=n1\nSwitchName=top Switches=laef1\n"),
            "topology.conf:2:16: there is no switch \"laef1\", did you mean \"leaf1\"?");
  EXPECT_EQ(refused("SwitchName=l1 Nodes=n1\nSwitchName=l2 Nodes=n2\nSwitchName=x Switches=l1\n"
                    "SwitchName=y Switches=l[1-2]\n"),
            "topology.conf:4:14: \"l1\" is below \"x\" already; expected a tree, or spines with "
            "the same leaves");
  EXPECT_EQ(refused("SwitchName=l Nodes=n1\nSwitchName=x Switches=l,y\nSwitchName=y Switches=x\n"),
            "topology.conf:2:1: \"x\" is below itself; expected a tree");
  EXPECT_EQ(refused("SwitchName=a Nodes=n1\nBlockName=b Nodes=n2\n"),
            "topology.conf:2:1: SwitchName and BlockName lines in one file");
}

TEST_F(SlurmImport, BadFilesAreOneErrorOfTheUser) {
  EXPECT_EQ(error(), "slurm.conf: No such file or directory");
  EXPECT_EQ(error_of("Include slurm.conf\n"),
            "slurm.conf:1:1: cannot include slurm.conf: it would include itself");
  EXPECT_EQ(error_of("NodeName=n1 Reason=\"never closed\n"),
            "slurm.conf:1:20: the quote of \"never closed is never closed");
  EXPECT_EQ(error_of("NodeName=n1 Reason=\xfe\n"),
            "slurm.conf:1:20: byte 0xfe is not valid UTF-8 text");
  EXPECT_EQ(error_of(std::string(10'000'000, 'g')),
            "slurm.conf:1:1: more than the 8 MiB a Slurm configuration may have with all it "
            "includes");
  write_slurm("NodeName=n1 Gres=gpu:h100:8\n");
  write("gres.conf", "NodeName=n[ Name=gpu Type=h100\n");
  EXPECT_EQ(error(), "gres.conf:1:1: a \"[\" without its \"]\"");
}

}  // namespace
}  // namespace orrery
