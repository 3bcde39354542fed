#include "planner/launch/launch_flags.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "planner/launch/megatron_flags.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> cannot(std::string_view program, const std::string& what) {
  return infeasible(fmt::format("{} cannot be told {}", program, what));
}

double micro_batches(const Launch& launch) {
  return launch.job.global_batch / (double{1} * launch.plan.dp * launch.plan.micro_batch);
}

std::uint64_t processes_per_node(const Machine& machine) {
  const auto node = static_cast<std::uint64_t>(std::max(1, machine.node->accelerators_per_node));
  return std::min(machine.ranks, node * machine.ranks_per_accelerator);
}

Result<std::string> deepspeed_config(const Launch& launch) {
  const ParallelPlan& plan = launch.plan;
  if (plan.pp > 1 || plan.cp > 1 || plan.ep > 1) {
    return cannot("a DeepSpeed configuration", "pp, cp or ep: they are set in the program itself");
  }
  if (plan.tp > 1 && plan.zero > 2) {
    return cannot("a DeepSpeed configuration", "ZeRO 3 beside automatic tensor parallelism");
  }
  Json json;
  json["train_batch_size"] = static_cast<std::uint64_t>(launch.job.global_batch);
  json["train_micro_batch_size_per_gpu"] = plan.micro_batch;
  json["gradient_accumulation_steps"] = static_cast<std::uint64_t>(micro_batches(launch));
  switch (launch.job.precision.format) {
    case NumberFormat::kBf16:
      json["bf16"] = {{"enabled", true}};
      break;
    case NumberFormat::kFp16:
      json["fp16"] = {{"enabled", true}};
      break;
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
      break;
    default:
      return cannot("a DeepSpeed configuration",
                    fmt::format("the format {}", word_of(launch.job.precision.format)));
  }
  Json zero = {{"stage", plan.zero}, {"overlap_comm", true}};
  if (plan.offload == Offload::kOptimizer || plan.offload == Offload::kBoth) {
    zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  }
  if (plan.zero == 3 && plan.shard > 0) zero["zero_hpz_partition_size"] = plan.shard;
  json["zero_optimization"] = zero;
  if (plan.tp > 1) json["tensor_parallel"] = {{"autotp_size", plan.tp}};
  if (plan.recompute == Recompute::kFull) {
    const bool to_host = plan.offload == Offload::kActivations || plan.offload == Offload::kBoth;
    json["activation_checkpointing"] = {{"partition_activations", false},
                                        {"cpu_checkpointing", to_host}};
  }
  return json.dump(2) + "\n";
}

Result<std::string> fsdp_config(const Launch& launch) {
  const ParallelPlan& plan = launch.plan;
  if (plan.tp > 1 || plan.pp > 1 || plan.cp > 1 || plan.ep > 1) {
    return cannot("an FSDP configuration", "tp, pp, cp or ep above 1");
  }
  if (plan.zero < 2) return cannot("an FSDP configuration", "ZeRO 0 or 1");
  if (plan.offload == Offload::kActivations || plan.offload == Offload::kBoth) {
    return cannot("an FSDP configuration", "offloading of activations");
  }
  const NumberFormat format = launch.job.precision.format;
  const bool wide = format == NumberFormat::kFp32 || format == NumberFormat::kTf32;
  if (!wide && format != NumberFormat::kBf16 && format != NumberFormat::kFp16 &&
      format != NumberFormat::kFp8) {
    return cannot("an FSDP configuration", fmt::format("the format {}", word_of(format)));
  }
  const std::uint64_t each = processes_per_node(launch.machine);
  const std::uint64_t nodes = std::max<std::uint64_t>(1, plan.ranks() / each);
  std::string text = fmt::format(
      "# The program itself sets micro-batch {} a rank and accumulates {:.0f} of them.\n"
      "# accelerate launch --config_file FILE{} train.py\n",
      plan.micro_batch, micro_batches(launch),
      nodes > 1 ? " --main_process_ip ADDRESS --machine_rank RANK" : "");
  text += fmt::format(
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: {}\n"
      "num_machines: {}\nnum_processes: {}\n{}{}fsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: {}\n"
      "  fsdp_activation_checkpointing: {}\n  fsdp_offload_params: {}\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
      wide ? "'no'" : word_of(format), nodes, plan.ranks(),
      nodes > 1 ? "main_process_port: 29500\n" : "",
      format == NumberFormat::kFp8 ? "fp8_config:\n  fp8_backend: ao\n" : "", plan.zero == 3,
      plan.recompute == Recompute::kFull, plan.offload == Offload::kOptimizer);
  if (plan.shard > 0 && plan.shard < plan.dp) {
    text += fmt::format(
        "parallelism_config:\n  parallelism_config_dp_replicate_size: {}\n"
        "  parallelism_config_dp_shard_size: {}\n",
        plan.dp / plan.shard, plan.shard);
  }
  return text;
}

}  // namespace

RuntimeAbilities abilities_of(Launcher launcher) {
  RuntimeAbilities able;
  switch (launcher) {
    case Launcher::kMegatron:
      able.name = "Megatron";
      able.zero = {0, 1};
      break;
    case Launcher::kDeepspeed:
      able.name = "DeepSpeed";
      able.pipeline_max = 1;
      able.context_max = 1;
      able.expert_max = 1;
      able.zero_with_tensor = {0, 1, 2};
      able.sequence_parallel = {SequenceParallel::kOff};
      able.recompute = {Recompute::kNone, Recompute::kFull};
      able.recompute_extent = RecomputeExtent::kAll;
      break;
    case Launcher::kFsdp:
      able.name = "FSDP";
      able.tensor_max = 1;
      able.pipeline_max = 1;
      able.context_max = 1;
      able.expert_max = 1;
      able.zero = {2, 3};
      able.recompute = {Recompute::kNone, Recompute::kFull};
      able.recompute_extent = RecomputeExtent::kAll;
      break;
  }
  return able;
}

Result<std::string> launch_text(const Launch& launch, Launcher launcher) {
  switch (launcher) {
    case Launcher::kMegatron:
      return megatron_command(launch);
    case Launcher::kDeepspeed:
      return deepspeed_config(launch);
    case Launcher::kFsdp:
      return fsdp_config(launch);
  }
  return std::string();
}

}  // namespace orrery
