// node/launch/launch_environment_test.cpp - the launch contract, framework by framework.
#include "node/launch/launch_environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/system/real_env.hpp"
#include "node/launch/launch_order.hpp"
#include "node/machine/usable_cores.hpp"

namespace orrery {
namespace {

using Expected = std::map<std::string, std::string>;

/// Ranks 2 and 0 of four are here, on devices 1 and 3 of the second node.
GangLayout layout() {
  return {.gang = 7,
          .nodes = {{"n0", {1, 3}}, {"n1", {2, 0}}},
          .here = 1,
          .master_port = 29500,
          .restarts = 2};
}
RankShare share() { return {.gang = 7, .devices = 0b1010, .ranks = {2, 0}}; }

LaunchFacts facts(LaunchStyle style) {
  return {.job = "big",
          .tenant = "a/b",
          .attempt = {JobId(5), 3},
          .plan = "{}",
          .progress = "/run/p",
          .hostfile = "/run/h",
          .rankfile = "/run/r",
          .style = style,
          .command = {"prog"},
          .restarts_max = 9,
          .threads = 4};
}

/// What every process gets.
Expected common(Expected more) {
  more.merge(Expected{{"PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
                      {"OMP_NUM_THREADS", "4"},
                      {"ORRERY_JOB", "big"},
                      {"ORRERY_JOB_ID", "5"},
                      {"ORRERY_ATTEMPT", "3"},
                      {"ORRERY_TENANT", "a/b"},
                      {"ORRERY_PLAN", "{}"},
                      {"ORRERY_PROGRESS", "/run/p"},
                      {"ORRERY_MEMBERSHIP", "/run/membership"},
                      {"ORRERY_RANK", "2"},
                      {"ORRERY_LOCAL_RANK", "0"},
                      {"ORRERY_WORLD_SIZE", "4"},
                      {"ORRERY_GANG", "7"},
                      {"ORRERY_ADDRESS", "n1"},
                      {"ORRERY_MASTER", "n1:29500"}});
  return more;
}

Expected as_map(const Variables& variables) { return {variables.begin(), variables.end()}; }

Expected first(const LaunchFacts& with) {
  return as_map(rank_starts(with, layout(), share()).at(0).environment);
}

Expected torch() {
  return {{"RANK", "2"},
          {"LOCAL_RANK", "0"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_WORLD_SIZE", "2"},
          {"GROUP_RANK", "1"},
          {"GROUP_WORLD_SIZE", "2"},
          {"ROLE_RANK", "2"},
          {"ROLE_NAME", "default"},
          {"ROLE_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "n1"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RESTART_COUNT", "2"},
          {"TORCHELASTIC_MAX_RESTARTS", "9"},
          {"TORCHELASTIC_RUN_ID", "big-3"},
          {"TORCHELASTIC_USE_AGENT_STORE", "False"},
          {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"}};
}

TEST(LaunchEnvironment, TellsEachFrameworkItsOwnVariablesAndNoOthers) {
  EXPECT_EQ(first(facts(LaunchStyle::kNative)), common({}));
  EXPECT_EQ(first(facts(LaunchStyle::kTorch)), common(torch()));
  Expected deepspeed = torch();
  deepspeed.merge(Expected{{"CROSS_RANK", "1"}, {"CROSS_SIZE", "2"}, {"LOCAL_SIZE", "2"}});
  EXPECT_EQ(first(facts(LaunchStyle::kDeepspeed)), common(deepspeed));
  EXPECT_EQ(first(facts(LaunchStyle::kTensorflow)),
            common({{"TF_CONFIG",
                     R"({"cluster":{"worker":["n1:29501","n0:29500","n1:29500","n0:29501"]},)"
                     R"("task":{"type":"worker","index":2}})"}}));
  EXPECT_EQ(first(facts(LaunchStyle::kJax)), common({{"JAX_COORDINATOR_ADDRESS", "n1:29500"},
                                                     {"JAX_NUM_PROCESSES", "4"},
                                                     {"JAX_PROCESS_ID", "2"}}));
}

TEST(LaunchEnvironment, NamesTheRoleOfTheGangThatThePlanSays) {
  LaunchFacts with = facts(LaunchStyle::kTorch);
  with.plan = R"({"gangs": [{}, {}, {}, {}, {}, {}, {}, {"role": "actor"}, {"role": 3}]})";
  EXPECT_EQ(first(with).at("ROLE_NAME"), "actor");
  EXPECT_EQ(as_map(rank_starts(with, layout(), share()).at(1).environment).at("ORRERY_LOCAL_RANK"),
            "1");
  for (const char* plan : {"", "[]", "no json", R"({"gangs": 7})", R"({"gangs": [{}]})"}) {
    with.plan = plan;
    EXPECT_EQ(first(with).at("ROLE_NAME"), "default") << plan;
  }
}

TEST(LaunchEnvironment, StartsMpirunOnceWhereRankZeroIsAndTellsItOfAllNodes) {
  LaunchFacts with = facts(LaunchStyle::kMpi);
  with.devices = DeviceList::kCuda;
  const std::vector<RankStart> starts = rank_starts(with, layout(), share());
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].rank, 0u);
  EXPECT_EQ(starts[0].slots, (std::vector<RankSlot>{{7, 1}, {7, 3}}));
  Expected expected = common({{"CUDA_VISIBLE_DEVICES", "1,3"},
                              {"ORRERY_HOSTFILE", "/run/h"},
                              {"ORRERY_RANKFILE", "/run/r"}});
  expected.erase("ORRERY_RANK");
  expected.erase("ORRERY_LOCAL_RANK");
  expected.erase("ORRERY_WORLD_SIZE");
  EXPECT_EQ(as_map(starts[0].environment), expected);
  GangLayout other = layout();
  other.here = 0;
  EXPECT_TRUE(rank_starts(with, other, {.gang = 7, .devices = 3, .ranks = {1, 3}}).empty());
  EXPECT_EQ(mpi_hostfile(layout(), LaunchUnit::kAccelerator), "n0 slots=2\nn1 slots=2\n");
  EXPECT_EQ(mpi_rankfile(layout(), LaunchUnit::kAccelerator, 8),
            "rank 0=n1 slot=0-7\nrank 1=n0 slot=0-7\nrank 2=n1 slot=0-7\nrank 3=n0 slot=0-7\n");
  EXPECT_EQ(mpi_hostfile(layout(), LaunchUnit::kNode), "n0 slots=1\nn1 slots=1\n");
  EXPECT_EQ(mpi_rankfile(layout(), LaunchUnit::kNode, 8),
            "rank 0=n0 slot=0-7\nrank 1=n1 slot=0-7\n");
  // Emulated nodes are one machine.
  other.nodes[1].address = "n0";
  EXPECT_EQ(mpi_hostfile(other, LaunchUnit::kAccelerator), "n0 slots=4\n");
}

TEST(LaunchEnvironment, StartsTorchrunOncePerNode) {
  LaunchFacts with = facts(LaunchStyle::kTorch);
  with.command = {"/opt/bin/torchrun", "a.py"};
  with.per = LaunchUnit::kNode;
  const std::vector<RankStart> starts = rank_starts(with, layout(), share());
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].slots, (std::vector<RankSlot>{{7, 1}, {7, 3}}));
  Expected expected = common({{"PET_NNODES", "2"},
                              {"PET_NPROC_PER_NODE", "2"},
                              {"PET_NODE_RANK", "1"},
                              {"PET_RDZV_BACKEND", "c10d"},
                              {"PET_RDZV_ENDPOINT", "n0:29500"},
                              {"PET_RDZV_ID", "big-3"},
                              {"PET_MAX_RESTARTS", "0"}});
  expected["OMP_NUM_THREADS"] = "8";
  expected["ORRERY_RANK"] = "1";
  expected["ORRERY_WORLD_SIZE"] = "2";
  expected["ORRERY_MASTER"] = "n0:29500";
  EXPECT_EQ(as_map(starts[0].environment), expected);
}

TEST(LaunchEnvironment, TellsAScriptOfSlurmOfItsJobAndHoldsEveryNodeForIt) {
  LaunchFacts with = facts(LaunchStyle::kSlurm);
  with.job = "big[3]";
  with.devices = DeviceList::kCuda;
  with.environment = {{"SLURM_NTASKS", "6"}, {"SLURM_JOB_ID", "77"}};
  const std::vector<RankStart> starts = rank_starts(with, layout(), share());
  ASSERT_EQ(starts.size(), 1u);
  EXPECT_EQ(starts[0].slots.size(), 2u);
  Expected all = as_map(starts[0].environment);
  EXPECT_EQ(all["SLURM_JOB_ID"], "5");
  EXPECT_EQ(all["SLURM_JOB_NAME"], "big");
  EXPECT_EQ(all["SLURM_JOB_NODELIST"], "n[0-1]");
  EXPECT_EQ(all["SLURM_NNODES"], "2");
  EXPECT_EQ(all["SLURM_NODEID"], "1");
  EXPECT_EQ(all["SLURM_GPUS_ON_NODE"], "2");
  EXPECT_EQ(all["SLURM_RESTART_COUNT"], "2");
  EXPECT_EQ(all["SLURM_NTASKS"], "6");
  EXPECT_EQ(all["CUDA_VISIBLE_DEVICES"], "1,3");
  EXPECT_EQ(all["ORRERY_STEP_PORT"], "29532");
}

TEST(LaunchEnvironment, ListsDevicesAsTheProgramCountsThem) {
  const auto listed = [](LaunchStyle style, DeviceList list, const std::string& name) {
    LaunchFacts with = facts(style);
    with.devices = list;
    std::vector<std::string> values;
    for (const RankStart& start : rank_starts(with, layout(), share())) {
      values.push_back(as_map(start.environment)[name]);
    }
    return values;
  };
  using Lists = std::vector<std::string>;
  // LOCAL_RANK is an index into the list; a style without it must list only the process's own
  // device.
  EXPECT_EQ(listed(LaunchStyle::kTorch, DeviceList::kCuda, "CUDA_VISIBLE_DEVICES"),
            (Lists{"1,3", "1,3"}));
  EXPECT_EQ(listed(LaunchStyle::kJax, DeviceList::kCuda, "CUDA_VISIBLE_DEVICES"),
            (Lists{"1", "3"}));
  EXPECT_EQ(listed(LaunchStyle::kNative, DeviceList::kRocm, "ROCR_VISIBLE_DEVICES"),
            (Lists{"1", "3"}));
  EXPECT_EQ(listed(LaunchStyle::kJax, DeviceList::kTpu, "TPU_VISIBLE_CHIPS"), (Lists{"1", "3"}));
  LaunchFacts named = facts(LaunchStyle::kNative);
  named.devices = DeviceList::kNeuron;
  named.device_names = {"0-1", "2-3", "4-5", "6-7"};
  named.per = LaunchUnit::kNode;
  EXPECT_EQ(first(named)["NEURON_RT_VISIBLE_CORES"], "2-3,6-7");
}

TEST(LaunchEnvironment, TheContractWinsOverTheSpecAndTheSpecOverDefaults) {
  LaunchFacts with = facts(LaunchStyle::kTorch);
  with.openblas_core_type = "SKYLAKEX";
  EXPECT_EQ(first(with)["OPENBLAS_CORETYPE"], "SKYLAKEX");
  with.environment = {{"RANK", "77"}, {"OMP_NUM_THREADS", "1"}, {"OPENBLAS_CORETYPE", "ZEN"}};
  EXPECT_EQ(first(with)["RANK"], "2");
  EXPECT_EQ(first(with)["OMP_NUM_THREADS"], "1");
  EXPECT_EQ(first(with)["OPENBLAS_CORETYPE"], "ZEN");
}

TEST(LaunchEnvironment, KnowsFrameworksAndPlatforms) {
  EXPECT_EQ(launch_style_of("pytorch"), LaunchStyle::kTorch);
  EXPECT_EQ(launch_style_of("megatron-lm"), LaunchStyle::kTorch);
  EXPECT_EQ(launch_style_of("llama-cpp"), LaunchStyle::kNative);
  EXPECT_EQ(device_list_of("xla-tpu"), DeviceList::kTpu);
  EXPECT_EQ(device_list_of("cpu"), DeviceList::kNone);
}

TEST(LaunchEnvironment, CountsNoCoreOfThisMachineTwice) {
  RealStorage storage;
  const std::uint32_t threads = usable_threads();
  const std::uint32_t cores = physical_cores(storage);
  EXPECT_GE(cores, 1u);
  EXPECT_LE(cores, threads);
  const auto several = storage.read_file("/sys/devices/system/cpu/smt/active", 8);
  if (several.value_or("") == "0\n") {
    EXPECT_EQ(cores, threads);
  }
}

TEST(LaunchEnvironment, LimitsWhatRanksUseTogetherToWhatEachAskedFor) {
  std::vector<RankShare> shares = {{.gang = 0, .devices = 3, .ranks = {0, 1}},
                                   {.gang = 4, .devices = 4, .ranks = {7}}};
  KeeperLaunch launch;
  const auto limits = [&](const std::vector<RankNeeds>& needs) {
    launch.needs = needs;
    return limits_of(shares, launch);
  };
  EXPECT_EQ(limits({}), (GroupLimits{}));
  EXPECT_EQ(limits({{0, 1500, 1024}, {4, 250, 512}}),
            (GroupLimits{.cpu = 3250, .memory = std::uint64_t{2560} << 20}));
  EXPECT_EQ(limits({{0, 1500, 1024}, {4, 250, 0}}), (GroupLimits{.cpu = 3250}));
  EXPECT_EQ(limits({{0, 1500, 1024}}), (GroupLimits{}));
  // Where devices are processors a lower clock lowers the limit: a part of the request, else of
  // them.
  launch.device_cpu = 4000;
  EXPECT_EQ(limits({{0, 1500, 0}}), (GroupLimits{}));
  shares[0].clock = 0.6;
  EXPECT_EQ(limits({{0, 1500, 0}}), (GroupLimits{.cpu = 1800 + 4000}));
  shares[1].share = kWholeDevice / 2;
  shares[1].clock = 0.5;
  EXPECT_EQ(limits({}), (GroupLimits{.cpu = 4800 + 1000}));
  launch.device_cpu = 0;
  EXPECT_EQ(limits({}), (GroupLimits{})) << "a driver sees to it";
}

TEST(LaunchEnvironment, LeadsJaxToThePackagesOfTheNodeBehindTheJobsOwn) {
  const auto path = [](const std::string& framework, const Variables& own) {
    const NodeProgram program{.framework = framework, .command = {"p"}, .environment = own};
    const auto launch = keeper_launch({}, program, {.python = "/opt/python"});
    return as_map(launch.value().facts.environment)["PYTHONPATH"];
  };
  EXPECT_EQ(path("jax", {}), "/opt/python");
  EXPECT_EQ(path("jax", {{"PYTHONPATH", "/mine:/ours"}}), "/mine:/ours:/opt/python");
  EXPECT_EQ(path("pytorch", {}), "");
}

}  // namespace
}  // namespace orrery
