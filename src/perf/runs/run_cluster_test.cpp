#include "perf/runs/run_cluster.hpp"

#include <gtest/gtest.h>

#include "perf/runs/run_file_test.hpp"

namespace orrery {
namespace {

ClusterFacts read(std::string_view text, std::uint64_t count,
                  std::string_view id = "nvidia-h100-sxm5-80g") {
  return read_cluster_text(text, count, accelerator_of(id));
}

BytesPerSecond gigabits(double value) { return BytesPerSecond(value * 1e9 / 8); }

TEST(RunCluster, FindsNothingInTextThatSaysNothing) {
  EXPECT_EQ(read("", 8), ClusterFacts{});
  EXPECT_EQ(read("H100 80GB BF16 (Large Scale, >= 128 GPUs)", 512), ClusterFacts{});
  EXPECT_EQ(read("),(;; x 7 Gb/s-", 512).slices, std::nullopt);
}

TEST(RunCluster, AddsUpTheAdaptersOfANode) {
  const ClusterFacts dgx =
      read("DGX A100 80GB (NVLink3 300 GB/s/dir/GPU; 8x HDR200 IB per node)", 32);
  EXPECT_EQ(dgx.node_bandwidth, gigabits(1600));
  EXPECT_EQ(dgx.node_accelerators, 8U);
  EXPECT_EQ(dgx.fabric, "ib-hdr");
  const ClusterFacts omni = read("8 GPU/node, NVLink3; 4x Omni-Path 100 Gb/s per node", 320);
  EXPECT_EQ(omni.node_bandwidth, gigabits(400));
  EXPECT_EQ(omni.node_accelerators, 8U);
  EXPECT_EQ(omni.fabric, "omni-path-100");
  EXPECT_EQ(read("DGX H100 (NVLink4, 8x NDR400)", 48).node_bandwidth, gigabits(3200));
  EXPECT_EQ(read("nodes with 2 x 25 GB/s InfiniBand", 48).node_bandwidth, gigabits(400));
}

TEST(RunCluster, TakesARateOfTheNodeOrOfADevice) {
  const ClusterFacts roce = read("A100 40GB with 1600 Gbps node-node interconnect (RoCE)", 128);
  EXPECT_EQ(roce.node_bandwidth, gigabits(1600));
  EXPECT_EQ(roce.fabric, "roce-200-th4");
  EXPECT_EQ(read("A100 nodes x8, 800 Gb/s per node", 64).node_accelerators, 8U);
  EXPECT_EQ(read("A100 nodes x8, 800 Gb/s per node", 64).node_bandwidth, gigabits(800));
  EXPECT_EQ(read("8 GPUs per node, 400 Gb/s per GPU RoCE", 64).node_bandwidth, gigabits(3200));
  EXPECT_EQ(read("8 GPUs per node, 400 Gb/s per GPU RoCE", 64).fabric, "roce-400-th5");
  EXPECT_EQ(read("HDR200", 64).node_bandwidth, std::nullopt);
  EXPECT_EQ(read("HDR200", 64).fabric, "ib-hdr");
}

TEST(RunCluster, CountsTheDevicesOfANode) {
  EXPECT_EQ(read("2xXE9680x8H100-SXM-80GB", 16).node_accelerators, 8U);
  EXPECT_EQ(read("1xXE8640x4H100-SXM-80GB", 4).node_accelerators, 4U);
  EXPECT_EQ(read("64xNVIDIA DGX H100", 512).node_accelerators, 8U);
  EXPECT_EQ(read("36xNVIDIA GB200", 144, "nvidia-gb200-186g").node_accelerators, 4U);
  EXPECT_EQ(read("DGX-GB300", 256, "nvidia-gb300-279g").node_accelerators, 4U);
  EXPECT_EQ(read("2xMI300X", 16, "amd-mi300x").node_accelerators, 8U);
  EXPECT_EQ(read("96 DGX A100 40GB", 768).node_accelerators, 8U);
  EXPECT_EQ(read("1 node 8x B200", 8).node_accelerators, 8U);
  EXPECT_EQ(read("8x B200", 8).node_accelerators, std::nullopt);
}

TEST(RunCluster, CountsSlicesInChipsAlsoWhereTheirNameCountsCores) {
  const ClusterFacts two =
      read("2 slice(s) x 64 chips, ICI 3D torus in slice, DCN across", 128, "google-tpu-v5p");
  EXPECT_EQ(two.slices, 2U);
  EXPECT_EQ(two.slice_accelerators, 64U);
  EXPECT_EQ(two.fabric, "google-dcn-jupiter");
  const ClusterFacts four = read("4 x v5e-256 (16x16 ICI 2D torus)", 1024, "google-tpu-v5e");
  EXPECT_EQ(four.slices, 4U);
  EXPECT_EQ(four.slice_accelerators, 256U);
  EXPECT_EQ(read("2x v5p-256", 256, "google-tpu-v5p").slice_accelerators, 128U);
  EXPECT_EQ(read("2x v5p-256", 300, "google-tpu-v5p").slices, std::nullopt);
}

TEST(RunCluster, KnowsTheDomainAndTheGenerationOfEfa) {
  EXPECT_EQ(read("2 racks NVL72", 144, "nvidia-gb200-186g").scale_up_domain, 72U);
  const ClusterFacts trainium = read("32 nodes trn1/trn1n, EFA", 512, "aws-trainium1");
  EXPECT_EQ(trainium.fabric, "aws-efa-v2");
  EXPECT_EQ(trainium.node_accelerators, 16U);
  EXPECT_EQ(read("p5en, EFA", 512, "nvidia-h200-sxm-141g").fabric, "aws-efa-v3");
  EXPECT_EQ(read("EFA", 512, "nvidia-b200-sxm-180g").fabric, "aws-efa-v4");
}

TEST(RunCluster, NamesOnlyFabricsOfTheCatalog) {
  for (const std::string_view text :
       {"HDR", "NDR400", "XDR", "OPA", "EFA", "EFAv3", "EFAv4", "Slingshot", "Spectrum-X", "RoCE",
        "8x 800 Gb/s RoCE", "8x 400 Gb/s RoCE", "8x 200 Gb/s InfiniBand", "DCN"}) {
    const std::string fabric = read(text, 64).fabric;
    EXPECT_NE(built_in().hardware.find<ScaleOutFabric>(fabric), nullptr) << text << " " << fabric;
  }
}

}  // namespace
}  // namespace orrery
