#include "planner/launch_flags.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/document.hpp"
#include "hardware/builtin_catalog.hpp"
#include "workload/builtin_models.hpp"
#include "workload/model_catalog.hpp"

namespace orrery {
namespace {

const Catalog& catalog() {
  static const Catalog loaded = *Catalog::load(builtin_catalog(), "");
  return loaded;
}
const Model& model(std::string_view name) {
  static const ModelCatalog loaded = *ModelCatalog::load(builtin_models(), "");
  return (*loaded.require(name))->model;
}

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
  EXPECT_TRUE(text->starts_with("torchrun --nnodes 64 --nproc-per-node 8 pretrain_gpt.py"));
  for (const char* flag :
       {"--tensor-model-parallel-size 8", "--pipeline-model-parallel-size 16",
        "--context-parallel-size 2", "--cp-comm-type a2a", "--sequence-parallel",
        "--micro-batch-size 2", "--global-batch-size 2048", "--use-distributed-optimizer",
        "--decoder-first-pipeline-num-layers 7", "--decoder-last-pipeline-num-layers 7",
        "--num-virtual-stages-per-pipeline-rank 4", "--recompute-granularity full",
        "--recompute-method block", "--recompute-num-layers 2", "--num-layers 126", "--swiglu",
        "--group-query-attention", "--bf16"}) {
    EXPECT_TRUE(has(text, flag)) << flag;
  }
}

TEST(LaunchFlags, MegatronGetsExpertsAndLatentAttention) {
  const auto text = emitted("deepseek-v3", {.tp = 1, .dp = 8, .ep = 8}, Launcher::kMegatron);
  ASSERT_TRUE(text);
  for (const char* flag : {"--expert-model-parallel-size 8", "--num-experts 256",
                           "--multi-latent-attention", "--kv-lora-rank 512"}) {
    EXPECT_TRUE(has(text, flag)) << flag;
  }
  EXPECT_NE(text->find("--moe-layer-freq '[0,0,0,1,"), std::string::npos);
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
  EXPECT_NE(text->find("num_machines: 4\nnum_processes: 32\n"), std::string::npos);
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
