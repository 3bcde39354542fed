#include "planner/launch/launch_flags.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format/document.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/builtin_calibration.hpp"
#include "planner/launch/launch_arguments_test.hpp"
#include "workload/builtin_models.hpp"
#include "workload/models/model_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), {});
  return loaded;
}
const ModelCatalog& models() {
  static const ModelCatalog loaded = *ModelCatalog::load(builtin_models(), {});
  return loaded;
}
const Model& model(std::string_view name) { return (*models().require(name))->model; }

Result<std::string> emitted(std::string_view name, const ParallelPlan& plan, Launcher launcher) {
  const Machine machine = *machine_of(
      catalog(),
      {.accelerator = *catalog().require<Accelerator>("h100"), .accelerators = plan.ranks()});
  const TrainingJob job{
      .model = &model(name), .sequence = Tokens(4096), .global_batch = 1024.0 * plan.dp};
  return launch_text({job, plan, machine}, launcher);
}

bool has(const Result<std::string>& text, const std::string& flag) {
  return text && (*text + "\n").find(flag + " \\\n") != std::string::npos;
}

TEST(LaunchFlags, MegatronGetsEveryDimensionOfThePlan) {
  const auto text = emitted("llama-3.1-405b",
                            {.tp = 8,
                             .pp = 16,
                             .vpp = 4,
                             .dp = 2,
                             .cp = 2,
                             .zero = 1,
                             .micro_batch = 2,
                             .recompute_layers = 5,
                             .sequence_parallel = SequenceParallel::kOn,
                             .recompute = Recompute::kFull,
                             .context_exchange = ContextExchange::kAllToAll},
                            Launcher::kMegatron);
  ASSERT_TRUE(text) << text.error().text();
  EXPECT_NE(text->find("torchrun --nnodes 64 --nproc-per-node 8 --rdzv-backend c10d"),
            std::string::npos);
  for (const char* flag : {"--tensor-model-parallel-size 8",
                           "--pipeline-model-parallel-size 16",
                           "--context-parallel-size 2",
                           "--cp-comm-type a2a",
                           "--sequence-parallel",
                           "--micro-batch-size 2",
                           "--global-batch-size 2048",
                           "--use-distributed-optimizer",
                           "--account-for-embedding-in-pipeline-split",
                           "--account-for-loss-in-pipeline-split",
                           "--num-virtual-stages-per-pipeline-rank 4",
                           "--position-embedding-type rope",
                           "--rotary-base 500000",
                           "--use-rope-scaling",
                           "--hidden-dropout 0.0",
                           "--attention-dropout 0.0",
                           "--norm-epsilon 1e-05",
                           "--vocab-size 128256",
                           "--recompute-granularity full",
                           "--recompute-method block",
                           "--recompute-num-layers 2",
                           "--num-layers 126",
                           "--swiglu",
                           "--group-query-attention",
                           "--bf16"}) {
    EXPECT_TRUE(has(text, flag)) << flag;
  }
}

TEST(LaunchFlags, MegatronGetsExpertsAndLatentAttention) {
  const auto text = emitted("deepseek-v3", {.tp = 1, .dp = 8, .ep = 8}, Launcher::kMegatron);
  ASSERT_TRUE(text);
  for (const char* flag : {"--expert-model-parallel-size 8", "--num-experts 256",
                           "--multi-latent-attention", "--kv-lora-rank 512",
                           "--moe-layer-freq '[0]*3+[1]*58'", "--moe-router-score-function sigmoid",
                           "--moe-router-enable-expert-bias", "--moe-router-num-groups 8",
                           "--moe-router-group-topk 4", "--moe-router-topk-scaling-factor 2.5",
                           "--rotary-scaling-factor 40", "--mtp-num-layers 1", "--qk-layernorm"}) {
    EXPECT_TRUE(has(text, flag)) << flag;
  }
}

struct Checked {
  std::size_t commands = 0;
  std::size_t refused = 0;
};

/// Emits about `wanted` of the layouts that the rules leave the model on 64 accelerators.
Checked check_megatron(const Model& model, std::size_t wanted) {
  static const Calibration calibration = *Calibration::load(builtin_calibration(), {});
  static const LauncherArguments known = launcher_arguments("megatron");
  Checked checked;
  const Machine machine = *machine_of(
      catalog(), {.accelerator = *catalog().require<Accelerator>("h100"), .accelerators = 64});
  const auto* language = std::get_if<Transformer>(&model.architecture);
  const double longest = language != nullptr ? static_cast<double>(language->positions_max) : 0;
  const TrainingJob job{.model = &model,
                        .sequence = Tokens(longest > 0 ? std::min(8192.0, longest) : 8192),
                        .global_batch = 512};
  const Result<TrainingModel> training = TrainingModel::make(job, machine, calibration);
  if (!training) return checked;
  PlanSpace space = space_of(machine);
  space.abilities = abilities_of(Launcher::kMegatron);
  std::vector<ParallelPlan> plans;
  for (const Split& split : splits_of(*training, space).splits) {
    for (const StageSplit& stages : split.stages) {
      ParallelPlan plan{.tp = split.tp,
                        .pp = stages.pp,
                        .vpp = stages.vpp,
                        .dp = stages.dp,
                        .cp = split.cp,
                        .ep = split.ep,
                        .zero = 1,
                        .micro_batch = split.micro_batch};
      if (plan.tp > 1) plan.sequence_parallel = SequenceParallel::kOn;
      plans.push_back(plan);
    }
  }
  const std::size_t every = std::max<std::size_t>(1, plans.size() / wanted);
  for (std::size_t i = 0; i < plans.size(); i += every) {
    ParallelPlan plan = plans[i];
    plan.recompute = static_cast<Recompute>(i / every % 3);
    if (i % 2 == 1) plan.offload = Offload::kOptimizer;
    const Result<std::string> text = launch_text({job, plan, machine, 1000}, Launcher::kMegatron);
    if (!text) {
      ++checked.refused;
      EXPECT_EQ(text.error().kind, ErrorKind::kInfeasible);
      continue;
    }
    ++checked.commands;
    const TorchrunCall call = read_torchrun(*text);
    for (const std::string& wrong : wrong_arguments(call, known)) {
      ADD_FAILURE() << model.name << ": " << wrong << "\n" << *text;
    }
    for (const std::string& rule : broken_megatron_rules(call)) {
      ADD_FAILURE() << model.name << ": " << rule << "\n" << *text;
    }
    const double counted = count_parameters(model).total;
    EXPECT_NEAR(megatron_parameters(call) / counted, 1, 2e-3) << model.name << *text;
    if (testing::Test::HasFailure()) break;
  }
  return checked;
}

TEST(LaunchFlags, EveryMegatronCommandIsOneThatItsParserAccepts) {
  std::size_t emitted_models = 0;
  for (const CatalogModel& each : models().all()) {
    const Checked checked = check_megatron(each.model, 40);
    if (checked.commands > 0) ++emitted_models;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(emitted_models, 35u);
}

TEST(LaunchFlags, ThePlanOfTheReadmeStarts) {
  // 126 layers on 16 stages of 8 virtual ones: 7 layers of an end are no multiple of 8.
  const auto text = emitted("llama-3.1-405b",
                            {.tp = 8,
                             .pp = 16,
                             .vpp = 8,
                             .dp = 128,
                             .zero = 1,
                             .sequence_parallel = SequenceParallel::kOn},
                            Launcher::kMegatron);
  ASSERT_TRUE(text) << text.error().text();
  const TorchrunCall call = read_torchrun(*text);
  EXPECT_EQ(broken_megatron_rules(call), std::vector<std::string>());
  EXPECT_EQ(wrong_arguments(call, launcher_arguments("megatron")), std::vector<std::string>());
  const std::vector<int> stages = megatron_stages(call);
  ASSERT_EQ(stages.size(), 128u);
  EXPECT_EQ(stages.front(), 0);
  EXPECT_EQ(stages.back(), 0);
  EXPECT_EQ(stages[1], 1);
}

TEST(LaunchFlags, StagesThatGiveSeveralLayersAreWrittenOut) {
  // 61 layers on 16 stages of 2: one layer less at the first stage, two less at the last.
  const auto text = emitted("deepseek-v3", {.pp = 16, .vpp = 2, .dp = 8, .ep = 8, .zero = 1},
                            Launcher::kMegatron);
  ASSERT_TRUE(text) << text.error().text();
  const TorchrunCall call = read_torchrun(*text);
  EXPECT_EQ(broken_megatron_rules(call), std::vector<std::string>());
  const std::vector<int> stages = megatron_stages(call);
  ASSERT_EQ(stages.size(), 32u);
  EXPECT_EQ(stages[0] + stages[16], 3);
  EXPECT_EQ(stages[15] + stages[31], 2);
}

/// "zero_optimization.stage" and the like of a configuration.
void add_keys(const DocumentNode& node, const std::string& prefix, std::set<std::string>& keys) {
  for (const DocumentNode::Entry& entry : node.entries()) {
    const std::string key = prefix + std::string(entry.key.text());
    if (entry.value.kind() == NodeKind::kMapping) {
      add_keys(entry.value, key + ".", keys);
    } else {
      keys.insert(key);
    }
  }
}

TEST(LaunchFlags, ConfigurationsHaveOnlyKeysThatTheirReadersKnow) {
  for (const auto& [launcher, name] :
       {std::pair{Launcher::kDeepspeed, "deepspeed"}, {Launcher::kFsdp, "accelerate"}}) {
    const LauncherArguments known = launcher_arguments(name);
    std::size_t texts = 0;
    for (const std::uint32_t zero : {0u, 1u, 2u, 3u}) {
      for (const std::uint32_t tp : {1u, 2u}) {
        for (const Offload offload : {Offload::kNone, Offload::kOptimizer, Offload::kBoth}) {
          const ParallelPlan plan{.tp = tp,
                                  .dp = 32 / tp,
                                  .zero = zero,
                                  .shard = zero == 3 ? 8u : 0u,
                                  .recompute = Recompute::kFull,
                                  .offload = offload};
          const auto text = emitted("llama-3.1-8b", plan, launcher);
          if (!text) continue;
          ++texts;
          const Result<Document> file = Document::parse(*text, name);
          ASSERT_TRUE(file) << *text;
          std::set<std::string> keys;
          add_keys(file->root(), "", keys);
          for (const std::string& key : keys) EXPECT_TRUE(known.keys.contains(key)) << key;
        }
      }
    }
    EXPECT_GE(texts, 4u) << name;
  }
}

TEST(LaunchFlags, DeepspeedNeverGetsZero3BesideTensorParallelism) {
  EXPECT_EQ(
      emitted("llama-3.1-70b", {.tp = 2, .dp = 32, .zero = 3}, Launcher::kDeepspeed).error().kind,
      ErrorKind::kInfeasible);
  const Machine machine = *machine_of(
      catalog(), {.accelerator = *catalog().require<Accelerator>("h100"), .accelerators = 64});
  PlanSpace space = space_of(machine);
  space.abilities = abilities_of(Launcher::kDeepspeed);
  const auto stages_at = [&](std::uint32_t tp) {
    return state_choices(space, {.tp = tp}, {.dp = 64 / tp}).zero;
  };
  EXPECT_EQ(stages_at(2), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(stages_at(1), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  space.tp = 2u;
  space.zero = 3u;
  EXPECT_FALSE(check_declared(space));
}

TEST(LaunchFlags, DeepspeedBatchIsTheProductOfItsParts) {
  const auto text = emitted("llama-3.1-8b",
                            {.tp = 2,
                             .dp = 4,
                             .zero = 2,
                             .micro_batch = 4,
                             .recompute = Recompute::kFull,
                             .offload = Offload::kOptimizer},
                            Launcher::kDeepspeed);
  ASSERT_TRUE(text);
  const auto json = nlohmann::json::parse(*text);
  const int product = json["train_micro_batch_size_per_gpu"].get<int>() *
                      json["gradient_accumulation_steps"].get<int>() * 4;
  EXPECT_EQ(json["train_batch_size"], product);
  EXPECT_EQ(json["zero_optimization"]["stage"], 2);
  EXPECT_EQ(json["zero_optimization"]["offload_optimizer"]["device"], "cpu");
  EXPECT_EQ(json["tensor_parallel"]["autotp_size"], 2);
  EXPECT_TRUE(json.contains("activation_checkpointing"));
}

TEST(LaunchFlags, FsdpConfigurationIsYamlWithItsShards) {
  const auto text =
      emitted("llama-3.1-8b", {.dp = 32, .zero = 3, .shard = 8, .recompute = Recompute::kFull},
              Launcher::kFsdp);
  ASSERT_TRUE(text);
  EXPECT_TRUE(Document::parse(*text, "fsdp.yaml"));
  EXPECT_NE(text->find("num_machines: 4\nnum_processes: 32\nmain_process_port: 29500\n"),
            std::string::npos);
  EXPECT_NE(text->find("fsdp_reshard_after_forward: true"), std::string::npos);
  EXPECT_NE(text->find("fsdp_activation_checkpointing: true"), std::string::npos);
  EXPECT_NE(text->find("dp_replicate_size: 4\n  parallelism_config_dp_shard_size: 8"),
            std::string::npos);
}

TEST(LaunchFlags, WhatAProgramCannotBeToldIsRefused) {
  EXPECT_EQ(emitted("llama-3.1-8b", {.pp = 2, .dp = 4}, Launcher::kDeepspeed).error().kind,
            ErrorKind::kInfeasible);
  EXPECT_FALSE(emitted("llama-3.1-8b", {.tp = 2, .dp = 4, .zero = 3}, Launcher::kFsdp));
  EXPECT_FALSE(emitted("llama-3.1-8b", {.dp = 8, .zero = 1}, Launcher::kFsdp));
  EXPECT_FALSE(emitted("llama-3.1-8b", {.dp = 8, .zero = 3}, Launcher::kMegatron));
  EXPECT_FALSE(emitted("vit-l-16", {.dp = 8}, Launcher::kMegatron));
  const auto bloom = emitted("bloom-176b", {.dp = 8}, Launcher::kMegatron);
  ASSERT_FALSE(bloom);
  EXPECT_NE(bloom.error().message.find("biases of the attention scores"), std::string::npos);
}

TEST(LaunchFlags, AbilitiesLeaveOnlyPlansThatCanBeEmitted) {
  for (const Launcher launcher : {Launcher::kMegatron, Launcher::kDeepspeed, Launcher::kFsdp}) {
    const RuntimeAbilities able = abilities_of(launcher);
    for (const std::uint32_t zero : able.zero) {
      EXPECT_TRUE(emitted("llama-3.1-8b", {.dp = 8, .zero = zero}, launcher)) << able.name << zero;
    }
  }
}

}  // namespace
}  // namespace orrery
