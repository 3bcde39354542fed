#include "scheduler/request/resolve_test.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "scheduler/tenants/tenants_spec.hpp"

namespace orrery {
namespace {

using Plans = ResolveLab::Plans;

std::vector<std::uint32_t> sizes_of(const RoleRequest& role) {
  std::vector<std::uint32_t> sizes;
  sizes.reserve(role.options.size());
  for (const GangOption& option : role.options) sizes.push_back(option.gang.devices);
  return sizes;
}

std::vector<std::string> types_of(const ResolveLab& lab, const RoleRequest& role) {
  std::vector<std::string> types;
  for (const GangOption& option : role.options) {
    const std::string& id = lab.topology().accelerator(option.gang.type).id;
    if (types.empty() || types.back() != id) types.push_back(id);
  }
  return types;
}

TEST(Resolve, AGangFillsNodesUnlessToldOtherwise) {
  ResolveLab lab;
  EXPECT_EQ(lab.gang(batch("roles: [{accelerators: 32}]\n")).node_devices, 8u);
  EXPECT_EQ(lab.gang(batch("roles: [{accelerators: 3}]\n")).node_devices, 3u);
  const GangRequest gang = lab.gang(batch("roles: [{accelerators: 32, node_accelerators: 4}]\n"));
  EXPECT_EQ(gang.node_devices, 4u);
  EXPECT_EQ(gang.devices, 32u);
  EXPECT_EQ(gang.share, kWholeDevice);
  EXPECT_EQ(gang.sites, ~std::uint64_t{0});
}

TEST(Resolve, HostNeedsAndSharesAreRoundedUp) {
  ResolveLab lab;
  const GangRequest gang = lab.gang(
      batch("roles: [{accelerators: 1, share: 0.2501, host: {cpu: 1.0005, memory: 1500 kB, disk: "
            "1.5 GiB}}]\n"));
  EXPECT_EQ(gang.share, 251);
  EXPECT_EQ(gang.host.cpu, 1001u);
  EXPECT_EQ(gang.host.memory, 2u);
  EXPECT_EQ(gang.host.disk, 2u);
  EXPECT_EQ(lab.gang(batch("roles: [{accelerators: 1, share: 0.29}]\n")).share, 290);
}

TEST(Resolve, WishesAboutTheTopologyAreTakenOver) {
  ResolveLab lab(example_fleet("gb200-nvl72-8racks"));
  const GangRequest gang = lab.gang(batch(
      "roles: [{accelerators: 64, topology: {required: pod, preferred: scale-up, segment: 16, "
      "exclusive: node, rails_aligned: true}}]\n"));
  EXPECT_EQ(gang.required, TopologyLevel::kPod);
  EXPECT_EQ(gang.preferred, TopologyLevel::kScaleUp);
  EXPECT_EQ(gang.segment, 16u);
  EXPECT_EQ(gang.exclusive, TopologyLevel::kNode);
  EXPECT_TRUE(gang.rails_aligned);
}

TEST(Resolve, ALevelTheTypeDoesNotHaveIsTheOneItMeans) {
  ResolveLab lab;
  const GangRequest gang = lab.gang(
      batch("roles: [{accelerators: 8, topology: {required: scale-up, exclusive: scale-up}}]\n"));
  EXPECT_EQ(gang.required, TopologyLevel::kNode);
  EXPECT_EQ(gang.preferred, TopologyLevel::kNode);
  EXPECT_EQ(gang.exclusive, TopologyLevel::kNode);
}

TEST(Resolve, SpreadOverScaleUpDomainsInsideNodesIsOverNodes) {
  ResolveLab lab;
  const std::string role = "accelerators: 2, topology: {spread: {level: scale-up}}, replicas: ";
  const JobRequest job = lab.request(batch("roles: [{" + role + "16}]\n"));
  EXPECT_EQ(job.roles.front().spread->level, TopologyLevel::kNode);
  EXPECT_EQ(lab.never(batch("roles: [{" + role + "17}]\n")),
            "never: role \"main\": topology.spread: 17 gangs, 1 in a node, the fleet has 16");
}

TEST(Resolve, TypesStandInTheOrderOfTheSpec) {
  ResolveLab lab(example_fleet("scarce-mixed"));
  const JobRequest job = lab.request(
      batch("estimate: 20 min\nroles: [{accelerators: 1, types: [l4, {type: a100, speed: 2}]}]\n"));
  const RoleRequest& role = job.roles.front();
  ASSERT_EQ(role.options.size(), 2u);
  EXPECT_EQ(role.options[0].gang.type, lab.type("l4"));
  EXPECT_EQ(role.options[0].speed, 1);
  EXPECT_EQ(role.options[1].gang.type, lab.type("a100"));
  EXPECT_EQ(role.options[1].speed, 2);
  EXPECT_EQ(job.estimate, Duration::minutes(20));
}

TEST(Resolve, AnyTypeMeansTheFastestFirstAndNoCpu) {
  ResolveLab lab(example_fleet("scarce-mixed"));
  const JobRequest job = lab.request(batch("roles: [{accelerators: 1}]\n"));
  EXPECT_EQ(types_of(lab, job.roles.front()),
            (std::vector<std::string>{"amd-mi300x", "nvidia-h100-sxm5-80g", "nvidia-a100-sxm4-80g",
                                      "nvidia-l4"}));
}

TEST(Resolve, AFleetOfCpusAloneIsUsed) {
  ResolveLab lab(example_fleet("laptop"));
  EXPECT_EQ(lab.request(batch("roles: [{accelerators: 1}]\n")).roles.front().options.size(), 1u);
}

TEST(Resolve, TypesThatCannotRunItAreNotedWithWhatWouldHelp) {
  ResolveLab lab(example_fleet("scarce-mixed"));
  const JobRequest job = lab.request(batch(
      "software: {framework: tensorrt-llm}\nroles: [{accelerators: 1, types: [mi300x, tpu-v4, "
      "h100]}]\n"));
  const RoleRequest& role = job.roles.front();
  EXPECT_EQ(types_of(lab, role), std::vector<std::string>{"nvidia-h100-sxm5-80g"});
  ASSERT_EQ(role.excluded.size(), 2u);
  EXPECT_EQ(role.excluded[0].type, "amd-mi300x");
  EXPECT_EQ(role.excluded[0].why.kind, RejectionKind::kStack);
  EXPECT_EQ(role.excluded[0].why.reason,
            "software.framework: tensorrt-llm does not run on amd-mi300x (AMD ROCm); it runs on "
            "nvidia-h100-sxm5-80g");
  EXPECT_EQ(role.excluded[1].why.kind, RejectionKind::kNever);
}

TEST(Resolve, OptionsThatFitStayWhenOthersNeverDo) {
  ResolveLab lab(example_fleet("scarce-mixed"));
  const JobRequest job = lab.request(batch("roles: [{accelerators: 64, types: [h100, a100]}]\n"));
  const RoleRequest& role = job.roles.front();
  EXPECT_EQ(types_of(lab, role), std::vector<std::string>{"nvidia-a100-sxm4-80g"});
  ASSERT_EQ(role.excluded.size(), 1u);
  EXPECT_EQ(role.excluded[0].why.reason,
            "accelerators: 64 of nvidia-h100-sxm5-80g asked, the fleet has 32");
}

TEST(Resolve, AnElasticRoleMayHaveSensibleSizesLargestFirst) {
  ResolveLab lab;
  const JobRequest job =
      lab.request(batch("estimate: 1 h\nroles: [{accelerators_min: 3, accelerators_max: 40}]\n"));
  const RoleRequest& role = job.roles.front();
  EXPECT_EQ(sizes_of(role), (std::vector<std::uint32_t>{40, 32, 16, 8, 4, 3}));
  EXPECT_EQ(role.devices_min, 3u);
  EXPECT_EQ(role.devices_max, 40u);
  EXPECT_TRUE(role.elastic());
  EXPECT_DOUBLE_EQ(role.options.front().speed, 1);
  EXPECT_DOUBLE_EQ(role.options[3].speed, 0.2);
}

TEST(Resolve, SizesOfALayoutAreWholeReplicas) {
  ResolveLab lab;
  const RoleRequest role =
      lab.request(batch("roles: [{accelerators_min: 6, accelerators_max: 54, layout: {tp: 3, pp: "
                        "2}}]\n"))
          .roles.front();
  EXPECT_EQ(sizes_of(role), (std::vector<std::uint32_t>{54, 48, 24, 12, 6}));
}

TEST(Resolve, SizesBeyondTheFleetAreLeftOut) {
  ResolveLab lab;
  const RoleRequest role =
      lab.request(batch("roles: [{accelerators_min: 64, accelerators_max: 512}]\n")).roles.front();
  EXPECT_EQ(sizes_of(role), (std::vector<std::uint32_t>{128, 64}));
  EXPECT_EQ(role.devices_max, 128u);
}

TEST(Resolve, ElasticSizesAreWholeSegments) {
  ResolveLab lab(example_fleet("gb200-nvl72-8racks"));
  const RoleRequest role =
      lab.request(batch("roles: [{accelerators_min: 64, accelerators_max: 500, node_accelerators: "
                        "4, topology: {segment: 16}}]\n"))
          .roles.front();
  EXPECT_EQ(sizes_of(role), (std::vector<std::uint32_t>{256, 128, 64}));
}

TEST(Resolve, WorkWithoutASizeHasTheSizesThatHaveAPlan) {
  ResolveLab lab;
  const std::string yaml =
      "apiVersion: orrery/v1\nkind: Train\nname: job\nroles: [{work: {model: llama-3.1-70b, steps: "
      "100, global_batch: 512}}]\n";
  const RoleRequest role = lab.request(yaml, Plans::kSearched).roles.front();
  EXPECT_EQ(sizes_of(role), (std::vector<std::uint32_t>{128, 64, 32, 16}));
  EXPECT_EQ(role.steps, 100);
  ASSERT_TRUE(role.work);
  for (const GangOption& option : role.options) {
    EXPECT_EQ(option.plan, (PlanKey{*role.work, lab.type("h100"), option.gang.devices}));
  }
}

TEST(Resolve, EqualWorkIsTheSameWork) {
  ResolveLab lab;
  const std::string role = "roles: [{accelerators: 8, work: {model: llama-3.1-8b, steps: ";
  const JobRequest a = lab.request(batch(role + "10}}]\n"));
  const JobRequest b = lab.request(batch(role + "20}}]\n"));
  EXPECT_EQ(a.roles[0].work, b.roles[0].work);
  EXPECT_EQ(lab.works().size(), 1u);
}

TEST(Resolve, AGangOnATorusGetsItsMostCubicSlice) {
  ResolveLab lab(example_fleet("tpu-v5p-pod"));
  using Slice = std::array<std::uint32_t, 3>;
  const auto slice = [&](const std::string& role) {
    return lab.gang(batch("roles: [{" + role + "}]\n")).slice;
  };
  Slice cube = slice("accelerators: 128");
  std::sort(cube.begin(), cube.end());
  EXPECT_EQ(cube, (Slice{4, 4, 8}));
  EXPECT_EQ(slice("accelerators: 4"), Slice{});
  EXPECT_EQ(slice("accelerators: 128, topology: {slice: [4, 4, 8]}"), (Slice{4, 4, 8}));
  EXPECT_EQ(slice("accelerators: 16, topology: {slice: [4, 4]}"), (Slice{4, 4, 1}));
}

TEST(Resolve, ResidencyNamesTheSites) {
  ResolveLab lab(example_fleet("two-regions"));
  EXPECT_EQ(lab.gang(batch("residency: [us]\nroles: [{accelerators: 8}]\n")).sites, 2u);
  EXPECT_EQ(lab.gang(batch("residency: [us, eu]\nroles: [{accelerators: 8}]\n")).sites,
            ~std::uint64_t{0});
}

TEST(Resolve, DataStandAtASiteOfTheFleet) {
  ResolveLab lab(example_fleet("two-regions"));
  const JobRequest job =
      lab.request(batch("data: [{site: ashburn, size: 6 TB}]\nroles: [{accelerators: 8}]\n"));
  ASSERT_EQ(job.data.size(), 1u);
  EXPECT_EQ(job.data[0].site, 1);
  EXPECT_EQ(job.data[0].size, Bytes(6e12));
  EXPECT_EQ(lab.wrong(batch("data: [{site: ashborn, size: 6 TB}]\nroles: [{accelerators: 8}]\n")),
            "job.yaml:4:8: site: the fleet has no site \"ashborn\", did you mean \"ashburn\"?");
}

TEST(Resolve, ATenantIsOneOfTheTree) {
  ResolveLab lab;
  EXPECT_EQ(lab.wrong(batch("tenant: defualt\nroles: [{accelerators: 8}]\n")),
            "job.yaml:1:1: tenant: there is no tenant \"defualt\", did you mean \"default\"?");
  TenantsSpec tree;
  tree.tenants.push_back({.name = "lab"});
  tree.tenants.push_back({.name = "lab/vision"});
  lab.set_tenants(*build_tenant_tree(tree, lab.topology()));
  const JobRequest job = lab.request(batch("tenant: lab/vision\nroles: [{accelerators: 8}]\n"));
  EXPECT_EQ(job.tenant, TenantId(2));
}

TEST(Resolve, NamesNobodyKnowsAreErrorsWithTheirPosition) {
  ResolveLab lab;
  const std::string type = lab.wrong(batch("roles: [{accelerators: 8, types: [h1000]}]\n"));
  EXPECT_TRUE(type.starts_with("job.yaml:4:")) << type;
  EXPECT_NE(type.find("h1000"), std::string::npos) << type;
  const std::string image =
      lab.wrong(batch("software: {image: nvcr.io/pytorch}\nroles: [{accelerators: 8}]\n"));
  EXPECT_NE(image.find("software.image: ranks run on the node's own system"), std::string::npos)
      << image;
  const std::string software =
      lab.wrong(batch("software: {framework: pytorhc}\nroles: [{accelerators: 8}]\n"));
  EXPECT_TRUE(software.starts_with("job.yaml:4:")) << software;
  EXPECT_NE(software.find("pytorch"), std::string::npos) << software;
  const std::string export_class =
      lab.wrong(batch("export_classes: [us-not-3a091]\nroles: [{accelerators: 8}]\n"));
  EXPECT_NE(export_class.find("us-not-3a090"), std::string::npos) << export_class;
  const std::string model =
      lab.wrong(batch("roles: [{accelerators: 8, work: {model: lama-3.1-8b, steps: 1}}]\n"));
  EXPECT_NE(model.find("llama-3.1-8b"), std::string::npos) << model;
}

TEST(Resolve, ADeadlineThatHasPassedIsAnError) {
  ResolveLab lab;
  const std::string yaml = batch("deadline: 2026-12-04T07:00:00Z\nroles: [{accelerators: 8}]\n");
  EXPECT_EQ(lab.request(yaml).deadline, *Instant::parse("2026-12-04T07:00:00Z"));
  lab.set_now(*Instant::parse("2026-12-04T07:00:00Z"));
  EXPECT_NE(lab.wrong(yaml).find("is in the past"), std::string::npos);
}

TEST(Resolve, BatchAndFineTuneYieldUnlessTheySayOtherwise) {
  ResolveLab lab;
  const std::string roles = "roles: [{accelerators: 8}]\n";
  const auto kind = [&](const std::string& name) {
    return lab.request("apiVersion: orrery/v1\nkind: " + name + "\nname: job\n" + roles);
  };
  EXPECT_TRUE(kind("Batch").preemptible);
  EXPECT_TRUE(kind("FineTune").preemptible);
  EXPECT_FALSE(kind("Train").preemptible);
  EXPECT_FALSE(kind("Serve").preemptible);
  EXPECT_FALSE(lab.request(batch("preemptible: false\n" + roles)).preemptible);
}

TEST(Resolve, CheckpointsAreThoseOfTheSpecOrTheUsual) {
  ResolveLab lab;
  const std::string train = "apiVersion: orrery/v1\nkind: Train\nname: job\n";
  const std::string roles = "roles: [{accelerators: 8}]\n";
  const JobRequest stated =
      lab.request(train + "checkpoint: {interval: 30 min, cost: 10 s, restart: 3 min}\n" + roles);
  EXPECT_EQ(stated.checkpoint_interval, Duration::minutes(30));
  EXPECT_EQ(stated.checkpoint_cost, Duration::seconds(10));
  EXPECT_EQ(stated.restart, Duration::minutes(3));
  const JobRequest usual = lab.request(train + roles, Plans::kSearched);
  EXPECT_EQ(usual.checkpoint_interval, Duration::hours(1));
  EXPECT_EQ(usual.restart, Duration::seconds(60));  // the catalog's, of 8 accelerators
  EXPECT_EQ(lab.request(batch(roles)).checkpoint_interval, Duration::max());
}

TEST(Resolve, TheRestIsTakenOver) {
  ResolveLab lab;
  const JobRequest job = lab.request(batch(
      "priority: 7\ngoal: energy\nbudget: $50\ntime_limit: 2 h\nestimate: 1 h\nroles: [{name: "
      "w, accelerators: 8, replicas: 3, topology: {spread: {level: rack, most: 2}}}]\n"));
  EXPECT_EQ(job.name, "job");
  EXPECT_EQ(job.kind, JobKind::kBatch);
  EXPECT_EQ(job.priority, 7);
  EXPECT_EQ(job.goal, JobGoal::kEnergy);
  EXPECT_EQ(job.budget, Dollars(50));
  EXPECT_EQ(job.time_limit, Duration::hours(2));
  EXPECT_EQ(job.estimate, Duration::hours(1));
  const RoleRequest& role = job.roles.front();
  EXPECT_EQ(role.name, "w");
  EXPECT_EQ(role.gangs, 3u);
  ASSERT_TRUE(role.spread);
  EXPECT_EQ(role.spread->level, TopologyLevel::kRack);
  EXPECT_EQ(role.spread->most, 2u);
  EXPECT_FALSE(role.elastic());
}

TEST(Resolve, RolesMayShareTypesAsLongAsSomeChoiceFits) {
  ResolveLab lab(example_fleet("scarce-mixed"));
  EXPECT_TRUE(lab.resolve(job_of_yaml(
      batch("roles: [{name: a, accelerators: 32, types: [h100, a100]}, {name: b, accelerators: 32, "
            "types: [h100]}]\n"))));
}

/// An example job with the fleet it suits.
struct Example {
  std::string job;
  std::string fleet;
  std::vector<std::string> tenants;
};

TEST(Resolve, EveryExampleRunsOnAFleetOfTheExamples) {
  for (const Example& example :
       {Example{"batch-fractions", "scarce-mixed", {"research", "research/vision"}},
        Example{"dlrm-two-roles", "scarce-mixed", {"products", "products/ranking"}},
        Example{"finetune-elastic", "scarce-mixed", {"products", "products/assistant"}},
        Example{"nvl72-segments", "gb200-nvl72-8racks", {"research", "research/foundation"}},
        Example{"pretrain-deadline", "superpod-h100", {"research", "research/foundation"}},
        Example{"residency-eu", "two-regions", {"health", "health/records"}},
        Example{"serve-small", "superpod-h100", {"products", "products/assistant"}},
        Example{"tpu-slice", "tpu-v5p-pod", {"research", "research/foundation"}}}) {
    ResolveLab lab(example_fleet(example.fleet));
    TenantsSpec tree;
    for (const std::string& tenant : example.tenants) tree.tenants.push_back({.name = tenant});
    lab.set_tenants(*build_tenant_tree(tree, lab.topology()));
    const Result<JobSpec> spec =
        load_job_spec(std::string(ORRERY_SOURCE_DIR) + "/examples/jobs/" + example.job + ".yaml");
    ASSERT_TRUE(spec) << (spec ? "" : spec.error().text());
    const Result<JobRequest> request = lab.resolve(*spec, Plans::kSearched);
    EXPECT_TRUE(request) << example.job << ": " << (request ? "" : request.error().text());
  }
}

}  // namespace
}  // namespace orrery
