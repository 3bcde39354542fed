// fleet/import/kubernetes_import_test.cpp - invented nodes with the fields of the Kubernetes API.
#include "fleet/import/kubernetes_import.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "fleet/fleet_test.hpp"
#include "fleet/spec/builder.hpp"

namespace orrery {
namespace {

std::string node(const std::string& name, const std::string& labels, const std::string& capacity) {
  return fmt::format(
      R"({{"kind": "Node", "metadata": {{"name": "{}", "labels": {{{}}}}},
        "status": {{"capacity": {{"cpu": "224", "memory": "2113481228Ki"{}}}}}}})",
      name, labels, capacity);
}

std::string gpus(int count) { return fmt::format(R"(, "nvidia.com/gpu": "{}")", count); }

const std::string kH100 = R"("nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3")";

std::string list(const std::string& items) { return "{\"items\": [\n" + items + "\n]}\n"; }

/// Imports a spec, which must succeed, build, and read back from its YAML.
FleetSpec imported(const std::string& items) {
  Result<FleetSpec> spec = read_kubernetes_fleet(test_catalog(), list(items), "n");
  EXPECT_TRUE(spec) << (spec ? "" : spec.error().text());
  if (!spec) return {};
  const Result<Topology> topology = build_topology(*spec, test_catalog());
  EXPECT_TRUE(topology) << (topology ? "" : topology.error().text());
  const std::string yaml = write_fleet_spec(*spec);
  const Result<FleetSpec> back = spec_of(yaml);
  EXPECT_TRUE(back) << (back ? "" : back.error().text()) << yaml;
  return *std::move(spec);
}

std::string error(const std::string& items) {
  const Result<FleetSpec> spec = read_kubernetes_fleet(test_catalog(), list(items), "n");
  return spec ? "read" : spec.error().text();
}

bool tells(const FleetSpec& spec, std::string_view sentence) {
  return spec.description.find(sentence) != std::string::npos;
}

TEST(KubernetesImport, NodesKeepTheirNamesAndHaveTheTypeOfTheirLabels) {
  const FleetSpec spec =
      imported(node("gpu-1", kH100, gpus(8)) + "," + node("gpu-2", kH100, gpus(8)) + "," +
               node("web-1", "", "") + R"(,{"kind": "Pod"})");
  EXPECT_EQ(spec.name, "kubernetes");
  const auto& pods = spec.sites.front().halls.front().pods;
  ASSERT_EQ(pods.size(), 1u);
  ASSERT_EQ(pods[0].racks.size(), 2u);
  EXPECT_EQ(pods[0].racks[0].nodes[0].type, "dgx-h100");
  EXPECT_EQ(pods[0].racks[0].nodes[0].names, "gpu-[1-2]");
  EXPECT_TRUE(tells(spec, "Imported from Kubernetes; nodes: 3."));
  EXPECT_TRUE(tells(spec, "No label tells of switches: all nodes are in one pod."));
  EXPECT_TRUE(tells(spec, "Nodes without GPUs, assumed to be"));
}

TEST(KubernetesImport, LeavesAndSpinesAreRacksAndPods) {
  const auto placed = [](const std::string& spine, const std::string& leaf) {
    return kH100 + R"(, "network.topology.nvidia.com/spine": ")" + spine +
           R"(", "network.topology.nvidia.com/leaf": ")" + leaf + "\"";
  };
  const FleetSpec spec = imported(
      node("a1", placed("s1", "l1"), gpus(8)) + "," + node("a2", placed("s2", "l2"), gpus(8)) +
      "," + node("a3", placed("s1", "l3"), gpus(8)) + "," + node("a4", kH100, gpus(8)));
  const auto& pods = spec.sites.front().halls.front().pods;
  ASSERT_EQ(pods.size(), 3u);
  EXPECT_EQ(pods[0].name, "no-switch");
  EXPECT_EQ(pods[1].name, "s1");
  ASSERT_EQ(pods[1].racks.size(), 2u);
  EXPECT_EQ(pods[1].racks[1].name, "l3");
  EXPECT_TRUE(tells(spec, "Nodes under no switch: 1."));
}

TEST(KubernetesImport, SharedAndCutGpusCountAsWhole) {
  const std::string shared = R"("nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-SHARED",
    "nvidia.com/gpu.count": "8")";
  const std::string cut = R"("nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb",
    "nvidia.com/gpu.count": "8")";
  const FleetSpec spec = imported(node("a1", shared, gpus(32)) + "," + node("a2", cut, gpus(56)));
  EXPECT_EQ(spec.sites.front().halls.front().pods[0].racks[0].nodes[0].names, "a[1-2]");
}

TEST(KubernetesImport, NamesOfTheSameDevicesCountOnce) {
  const std::string type = R"("k8s.amazonaws.com/accelerator": "NVIDIA-H100-80GB-HBM3")";
  const std::string devices = R"(, "aws.amazon.com/neuron": "8", "aws.amazon.com/neurondevice": "8",
    "aws.amazon.com/neuroncore": "16")";
  const FleetSpec spec = imported(node("a1", type, devices));
  EXPECT_EQ(spec.sites.front().halls.front().pods[0].racks[0].nodes[0].type, "dgx-h100");
  const std::string wrong = R"(, "aws.amazon.com/neuron": "8", "aws.amazon.com/neurondevice": "x")";
  EXPECT_EQ(error(node("a1", type, wrong)),
            "n:2:1: node a1: its accelerators are no whole number from 0 to 1024, expected one");
}

TEST(KubernetesImport, ANodeIsRefusedWhereAValueNestsTooDeep) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_EQ(error(node("a1", kH100, R"(, "nvidia.com/gpu": )" + deep)),
            "n:3:1: the value nests deeper than 64, expected at most that");
}

TEST(KubernetesImport, AnInstanceTypeOfTheCatalogDecides) {
  const FleetSpec spec =
      imported(node("a1", R"("node.kubernetes.io/instance-type": "dgx-h100")", gpus(8)));
  EXPECT_EQ(spec.sites.front().halls.front().pods[0].racks[0].nodes[0].type, "dgx-h100");
}

TEST(KubernetesImport, TheControlPlaneIsLeftOut) {
  const FleetSpec spec = imported(node("cp", R"("node-role.kubernetes.io/control-plane": "")", "") +
                                  "," + node("a1", kH100, gpus(8)));
  EXPECT_TRUE(tells(spec, "Nodes of the control plane, left out: 1."));
}

TEST(KubernetesImport, ANodeThatIsWrongIsNamedWithItsLine) {
  EXPECT_EQ(error(node("a1", R"("nvidia.com/gpu.product": "NVIDIA-H1000")", gpus(8))).substr(0, 17),
            "n:2:1: node a1: \"");
  EXPECT_EQ(error(node("a1", "", gpus(8))),
            "n:2:1: node a1: it has 8 accelerators and no label with their type, expected one of "
            "nvidia.com/gpu.product, amd.com/gpu.product-name, cloud.google.com/gke-accelerator, "
            "cloud.google.com/gke-tpu-accelerator, k8s.amazonaws.com/accelerator");
  EXPECT_EQ(error(node("a1", kH100, gpus(-1))),
            "n:2:1: node a1: its accelerators are no whole number from 0 to 1024, expected one");
  EXPECT_EQ(error(node("a1", kH100, gpus(3))).substr(0, 61),
            "n:2:1: node a1: no node type of the catalog has 3 x nvidia-h1");
  EXPECT_EQ(error(node("a1", "", "") + "," + node("a1", "", "")),
            "n:3:1: a second node a1, expected one");
  EXPECT_EQ(error(node("A b", "", "")),
            "n:2:1: metadata.name is \"A b\", expected the name of a node");
  EXPECT_EQ(error(""), "n: no node to import; expected what \"kubectl get nodes -o json\" prints");
}

}  // namespace
}  // namespace orrery
