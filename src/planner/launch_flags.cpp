#include "planner/launch_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "base/field_writer.hpp"
#include "perf/pipeline.hpp"

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

class MegatronFlags {
 public:
  explicit MegatronFlags(const Launch& launch) : launch_(launch), plan_(launch.plan) {}

  Result<std::string> text() {
    const auto* model = std::get_if<Transformer>(&launch_.job.model->architecture);
    if (model == nullptr || model->delta_net || model->mamba) {
      return cannot("pretrain_gpt.py", "the architecture of " + launch_.job.model->name);
    }
    if (plan_.zero >= 2) return cannot("pretrain_gpt.py", "ZeRO 2 or 3 beside its own optimizer");
    if (plan_.offload == Offload::kActivations || plan_.offload == Offload::kBoth) {
      return cannot("pretrain_gpt.py", "offloading of activations");
    }
    add_parallelism();
    add_stages(static_cast<double>(model->layers.size()));
    add_recompute();
    if (Status added = add_precision(); !added) return forward_error(added);
    add_shape(*model);
    add_attention(*model);
    if (model->experts) add_experts(*model);
    return head() + flags_ + "\n";
  }

 private:
  [[nodiscard]] std::string head() const {
    const std::uint64_t each = processes_per_node(launch_.machine);
    return fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py",
                       std::max<std::uint64_t>(1, plan_.ranks() / each), each);
  }

  void flag(std::string_view name) { flags_ += fmt::format(" \\\n  --{}", name); }
  template <class T>
  void flag(std::string_view name, const T& value) {
    flags_ += fmt::format(" \\\n  --{} {}", name, value);
  }

  void add_parallelism() {
    flag("tensor-model-parallel-size", plan_.tp);
    flag("pipeline-model-parallel-size", plan_.pp);
    if (plan_.cp > 1) flag("context-parallel-size", plan_.cp);
    if (plan_.cp > 1 && plan_.context_exchange == ContextExchange::kAllToAll) {
      flag("cp-comm-type", "a2a");
    }
    if (plan_.ep > 1) {
      flag("expert-model-parallel-size", plan_.ep);
      flag("expert-tensor-parallel-size", 1);
    }
    if (plan_.sequence_parallel == SequenceParallel::kOn) flag("sequence-parallel");
    flag("micro-batch-size", plan_.micro_batch);
    flag("global-batch-size", fmt::format("{:.0f}", launch_.job.global_batch));
    flag("seq-length", fmt::format("{:.0f}", launch_.job.sequence.value()));
    flag("max-position-embeddings", fmt::format("{:.0f}", launch_.job.sequence.value()));
    if (plan_.zero == 1) {
      flag("use-distributed-optimizer");
      flag("overlap-grad-reduce");
      flag("overlap-param-gather");
    }
    if (plan_.offload == Offload::kOptimizer) {
      flag("optimizer-cpu-offload");
      flag("optimizer-offload-fraction", "1.0");
    }
  }

  void add_stages(double layers) {
    flag("num-layers", layers);
    if (plan_.pp == 1) return;
    const StageLayers stages = deal_layers(layers, plan_.pp);
    const bool even = stages.first == stages.most && stages.last == stages.most;
    if (stages.first != stages.most) flag("decoder-first-pipeline-num-layers", stages.first);
    if (stages.last != stages.most) flag("decoder-last-pipeline-num-layers", stages.last);
    if (plan_.vpp == 1) return;
    if (even) {
      flag("num-layers-per-virtual-pipeline-stage", stages.most / plan_.vpp);
    } else {
      flag("num-virtual-stages-per-pipeline-rank", plan_.vpp);
    }
  }

  void add_recompute() {
    if (plan_.recompute == Recompute::kNone) return;
    flag("recompute-granularity", word_of(plan_.recompute));
    if (plan_.recompute != Recompute::kFull) return;
    flag("recompute-method", plan_.recompute_layers > 0 ? "block" : "uniform");
    // Megatron counts the layers of one virtual stage.
    const std::uint32_t chunks = std::max(1u, plan_.vpp);
    const std::uint32_t layers = (plan_.recompute_layers + chunks - 1) / chunks;
    flag("recompute-num-layers", std::max(1u, layers));
  }

  Status add_precision() {
    const TrainingPrecision& precision = launch_.job.precision;
    switch (precision.format) {
      case NumberFormat::kBf16:
      case NumberFormat::kFp16:
        flag(word_of(precision.format));
        return {};
      case NumberFormat::kFp32:
      case NumberFormat::kTf32:
        return {};
      case NumberFormat::kFp8:
        return add_fp8(precision.scaling);
      case NumberFormat::kFp4:
        flag("bf16");
        flag("fp4-format", "e2m1");
        return {};
      case NumberFormat::kFp64:
      case NumberFormat::kFp64Matrix:
      case NumberFormat::kFp6:
      case NumberFormat::kInt8:
      case NumberFormat::kInt4:
        break;
    }
    return cannot("pretrain_gpt.py", fmt::format("the format {}", word_of(precision.format)));
  }

  Status add_fp8(Scaling scaling) {
    if (scaling == Scaling::kRow) return cannot("pretrain_gpt.py", "FP8 with one scale a row");
    flag("bf16");
    flag("fp8-format", "hybrid");
    const bool mx = launch_.machine.generation.starts_with("blackwell");
    flag("fp8-recipe", scaling != Scaling::kBlock ? "delayed" : (mx ? "mxfp8" : "blockwise"));
    return {};
  }

  void add_shape(const Transformer& model) {
    flag("hidden-size", model.hidden);
    flag("ffn-hidden-size", model.ffn);
    if (model.gated) flag("swiglu");
    if (model.norm_vectors == 1) flag("normalization", "RMSNorm");
    if (!model.mlp_bias) flag("disable-bias-linear");
    if (!model.tied) flag("untie-embeddings-and-output-weights");
  }

  void add_attention(const Transformer& model) {
    if (model.latent) {
      const LatentAttention& latent = *model.latent;
      flag("num-attention-heads", latent.heads);
      flag("multi-latent-attention");
      if (latent.query_rank > 0) flag("q-lora-rank", latent.query_rank);
      flag("kv-lora-rank", latent.kv_rank);
      flag("qk-head-dim", latent.nope_dim);
      flag("qk-pos-emb-head-dim", latent.rope_dim);
      flag("v-head-dim", latent.value_dim);
      return;
    }
    const bool full = !model.layers.empty() && model.layers.front().mixer == Mixer::kFullAttention;
    const Attention& attention = full ? model.full_attention : model.attention;
    flag("num-attention-heads", attention.heads);
    flag("kv-channels", attention.head_dim);
    if (attention.kv_heads != attention.heads) {
      flag("group-query-attention");
      flag("num-query-groups", attention.kv_heads);
    }
    if (attention.qkv_bias) flag("add-qkv-bias");
  }

  void add_experts(const Transformer& model) {
    const Experts& experts = *model.experts;
    flag("num-experts", experts.count);
    flag("moe-router-topk", experts.active);
    flag("moe-ffn-hidden-size", experts.ffn);
    if (experts.shared_ffn > 0) flag("moe-shared-expert-intermediate-size", experts.shared_ffn);
    flag("moe-grouped-gemm");
    flag("moe-token-dispatcher-type", "alltoall");
    std::string which;
    for (const Layer& layer : model.layers) {
      const bool has = layer.feed_forward == FeedForward::kExperts ||
                       layer.feed_forward == FeedForward::kDenseAndExperts;
      which += fmt::format("{}{}", which.empty() ? "" : ",", has ? 1 : 0);
    }
    if (which.find('0') != std::string::npos) {
      flag("moe-layer-freq", "'[" + which + "]'");
    }
  }

  const Launch& launch_;
  const ParallelPlan& plan_;
  std::string flags_;
};

Result<std::string> deepspeed_config(const Launch& launch) {
  const ParallelPlan& plan = launch.plan;
  if (plan.pp > 1 || plan.cp > 1 || plan.ep > 1) {
    return cannot("a DeepSpeed configuration", "pp, cp or ep: they are set in the program itself");
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
  std::string text = fmt::format(
      "# micro-batch {} a rank, {:.0f} accumulated: both are set in the program\n"
      "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: {}\n"
      "num_machines: {}\nnum_processes: {}\nfsdp_config:\n  fsdp_version: 2\n"
      "  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n  fsdp_reshard_after_forward: {}\n"
      "  fsdp_activation_checkpointing: {}\n  fsdp_offload_params: {}\n"
      "  fsdp_state_dict_type: SHARDED_STATE_DICT\n",
      plan.micro_batch, micro_batches(launch), wide ? "'no'" : word_of(format),
      std::max<std::uint64_t>(1, plan.ranks() / each), plan.ranks(), plan.zero == 3,
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
      return MegatronFlags(launch).text();
    case Launcher::kDeepspeed:
      return deepspeed_config(launch);
    case Launcher::kFsdp:
      return fsdp_config(launch);
  }
  return std::string();
}

}  // namespace orrery
