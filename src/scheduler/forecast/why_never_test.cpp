#include "scheduler/forecast/why_never.hpp"

#include "scheduler/request/resolve_test.hpp"

namespace orrery {
namespace {

using Plans = ResolveLab::Plans;

TEST(WhyNever, TheFleetHasNoSuchAccelerator) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 8, types: [tpu-v5p]}]\n")),
            "never: role \"main\": types: the fleet has no google-tpu-v5p; it has "
            "nvidia-h100-sxm5-80g");
}

TEST(WhyNever, TheFleetHasFewer) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 136, types: [h100]}]\n")),
            "never: role \"main\": accelerators: 136 of nvidia-h100-sxm5-80g asked, the fleet has "
            "128");
}

TEST(WhyNever, ANodeHasFewer) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 32, node_accelerators: 16}]\n")),
            "never: role \"main\": node_accelerators: no node of nvidia-h100-sxm5-80g has 16; the "
            "largest has 8");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 102, node_accelerators: 6}]\n")),
            "never: role \"main\": node_accelerators: 17 nodes with 6 of nvidia-h100-sxm5-80g "
            "asked, the fleet has room for 16");
}

TEST(WhyNever, ThePlaceItMustStayInIsTooSmall) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 40, topology: {required: rack}}]\n")),
            "never: role \"main\": topology.required: no rack has 5 nodes of nvidia-h100-sxm5-80g; "
            "the largest has 4");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 72, topology: {required: pod}}]\n")),
            "never: role \"main\": topology.required: no pod has 9 nodes of nvidia-h100-sxm5-80g; "
            "the largest has 8");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 16, topology: {required: node}}]\n")),
            "never: role \"main\": topology.required: no node has 16 of nvidia-h100-sxm5-80g; the "
            "largest has 8");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 16, topology: {required: scale-up}}]\n")),
            "never: role \"main\": topology.required: no node has 16 of nvidia-h100-sxm5-80g; the "
            "largest has 8");
}

TEST(WhyNever, ASegmentIsLargerThanTheScaleUpDomain) {
  ResolveLab lab(example_fleet("gb200-nvl72-8racks"));
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 160, topology: {segment: 20}}]\n")),
            "never: role \"main\": topology.segment: no scale-up domain has 20 nodes of "
            "nvidia-gb200-186g; the largest has 18");
  EXPECT_EQ(
      lab.never(batch("roles: [{accelerators: 576, topology: {segment: 16}}]\n")),
      "never: role \"main\": topology.segment: the fleet does not have enough scale-up domains "
      "with 16 nodes of nvidia-gb200-186g");
  EXPECT_EQ(
      lab.never(batch("roles: [{accelerators: 100, topology: {segment: 16}}]\n")),
      "never: role \"main\": topology.segment: 100 of nvidia-gb200-186g are not whole runs of 16 "
      "nodes");
  EXPECT_TRUE(
      lab.resolve(job_of_yaml(batch("roles: [{accelerators: 512, topology: {segment: 16}}]\n"))));
}

TEST(WhyNever, NothingSpansNodesForASegment) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 32, topology: {segment: 2}}]\n")),
            "never: role \"main\": topology.segment: no scale-up domain of nvidia-h100-sxm5-80g "
            "spans nodes");
  EXPECT_EQ(lab.gang(batch("roles: [{accelerators: 32, topology: {segment: 1}}]\n")).segment, 0u);
}

TEST(WhyNever, ThePlanDoesNotFitTheMemory) {
  ResolveLab lab;
  const std::string text = lab.never(
      "apiVersion: orrery/v1\nkind: Train\nname: job\nroles: [{accelerators: 8, work: {model: "
      "llama-3.1-405b, steps: 10}}]\n",
      Plans::kSearched);
  EXPECT_TRUE(text.starts_with("never: role \"main\": work: ")) << text;
  EXPECT_NE(text.find("GiB a rank, the limit is"), std::string::npos) << text;
}

TEST(WhyNever, NothingRunsTheSoftware) {
  ResolveLab lab(example_fleet("tpu-v5p-pod"));
  EXPECT_EQ(lab.never(batch("software: {framework: megatron-lm}\nroles: [{accelerators: 8}]\n")),
            "never: role \"main\": software.framework: megatron-lm does not run on google-tpu-v5p "
            "(XLA for Cloud TPU (libtpu)); it runs on nvidia-rtx-pro-6000-server-96g");
}

TEST(WhyNever, NoSiteHasTheLabel) {
  ResolveLab lab(example_fleet("two-regions"));
  EXPECT_EQ(lab.never(batch("residency: [apac, moon]\nroles: [{accelerators: 8}]\n")),
            "never: residency: no site is labelled apac or moon; there is eu, us");
  EXPECT_EQ(lab.never(batch("residency: [eu]\nroles: [{accelerators: 264}]\n")),
            "never: role \"main\": accelerators: 264 of nvidia-h100-sxm5-80g asked, the fleet has "
            "256 at stockholm");
}

TEST(WhyNever, NoAcceleratorIsOfTheExportClass) {
  ResolveLab lab;
  EXPECT_EQ(
      lab.never(batch("export_classes: [us-not-3a090]\nroles: [{accelerators: 8}]\n")),
      "never: role \"main\": export_classes: nvidia-h100-sxm5-80g is of class us-eccn-3a090a, "
      "asked is us-not-3a090");
}

TEST(WhyNever, TheHostIsTooSmall) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 8, host: {memory: 300 GiB}}]\n")),
            "never: role \"main\": host.memory: 8 of nvidia-h100-sxm5-80g on a node need 2400 GiB, "
            "the largest node has 2048");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 1, host: {cpu: 500}}]\n")),
            "never: role \"main\": host.cpu: 1 of nvidia-h100-sxm5-80g on a node need 500 cores, "
            "the largest node has 112");
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 1, host: {cxl: 64 GiB}}]\n")),
            "never: role \"main\": host.cxl: 1 of nvidia-h100-sxm5-80g on a node need 64 GiB, the "
            "largest node has 0");
}

TEST(WhyNever, NoTorusHasTheSlice) {
  ResolveLab tpus(example_fleet("tpu-v5p-pod"));
  EXPECT_EQ(tpus.never(batch("roles: [{types: [tpu-v5p], accelerators: 24, topology: {slice: [3, "
                             "8, 1]}}]\n")),
            "never: role \"main\": topology.slice: no torus of google-tpu-v5p has a slice of 3 x 8 "
            "x 1");
  EXPECT_EQ(tpus.never(batch("roles: [{accelerators: 106}]\n")),
            "never: role \"main\": topology.slice: 106 of google-tpu-v5p are no cuboid of its "
            "torus");
  ResolveLab gpus;
  EXPECT_EQ(gpus.never(batch("roles: [{accelerators: 8, topology: {slice: [2, 2, 2]}}]\n")),
            "never: role \"main\": topology.slice: no torus of nvidia-h100-sxm5-80g has a slice of "
            "2 x 2 x 2");
}

TEST(WhyNever, TheGangsWouldNeedMorePlacesToSpreadOver) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 1, replicas: 5, topology: {spread: {level: "
                            "rack}}}]\n")),
            "never: role \"main\": topology.spread: 5 gangs, 1 in a rack, the fleet has 4");
  EXPECT_TRUE(lab.resolve(job_of_yaml(batch(
      "roles: [{accelerators: 1, replicas: 8, topology: {spread: {level: rack, most: 2}}}]\n"))));
}

TEST(WhyNever, TheGangsFitOneByOneOnly) {
  ResolveLab lab;
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 64, replicas: 3}]\n")),
            "never: role \"main\": replicas: 3 gangs of 64 are 192 accelerators, the fleet has 128 "
            "of its types");
  EXPECT_EQ(lab.never(batch("roles: [{name: a, accelerators: 96}, {name: b, accelerators: 40}]\n")),
            "never: roles: each gang would fit, but not all of them at once");
}

TEST(WhyNever, NothingIsAloneInSoManyRacks) {
  ResolveLab lab(built(one_hall(
      "    - name: pod\n      racks:\n      - count: 2\n        cooling: in-row-or-dense-air\n"
      "        nodes: [{type: dgx-h100, count: 2}]\n")));
  EXPECT_TRUE(
      lab.resolve(job_of_yaml(batch("roles: [{accelerators: 8, topology: {exclusive: rack}}]\n"))));
  EXPECT_EQ(lab.never(batch("roles: [{accelerators: 8, replicas: 3, topology: {exclusive: "
                            "rack}}]\n")),
            "never: roles: each gang would fit, but not all of them at once");
}

}  // namespace
}  // namespace orrery
