#include "planner/launch/megatron_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <variant>

#include "base/format/field_writer.hpp"
#include "perf/training/pipeline.hpp"

namespace orrery {
namespace {

tl::unexpected<Error> cannot(const std::string& what) {
  return infeasible("pretrain_gpt.py cannot be told " + what);
}

struct KnownType {
  std::string_view type;      ///< model_type of the configuration
  std::string_view peculiar;  ///< what pretrain_gpt.py lacks; empty: it can build the architecture
};

/// The architectures of workload/models/model_rules.cpp.
constexpr auto kTypes = std::to_array<KnownType>({
    {"llama", ""},
    {"mistral", ""},
    {"mixtral", ""},
    {"qwen2", ""},
    {"qwen2_moe", ""},
    {"qwen3", ""},
    {"qwen3_moe", ""},
    {"deepseek_v2", ""},
    {"deepseek_v3", ""},
    {"kimi_k2", ""},
    {"gpt2", ""},
    {"gpt_oss", ""},
    {"bloom", "positions as biases of the attention scores"},
    {"mpt", "positions as biases of the attention scores"},
    {"opt", "the activation ReLU"},
    {"glm130b", "norms behind the residual, and gated GELU"},
    {"gptj", "attention and feed-forward part side by side"},
    {"falcon", "attention and feed-forward part side by side"},
    {"palm", "attention and feed-forward part side by side"},
    {"gemma2", "four norms a layer"},
    {"gemma3_text", "four norms a layer"},
    {"gemma4_text", "four norms a layer"},
    {"llama4_text", "chunks of attention and layers without positions"},
    {"minimax_m2", "norms over all query heads"},
    {"glm_moe_dsa", "an indexer of sparse attention"},
    {"qwen3_5_moe_text", "layers with linear attention"},
    {"nemotron_h", "layers with state spaces (pretrain_hybrid.py builds those)"},
    {"bert", "attention without a causal mask (pretrain_bert.py builds it)"},
});

std::string number(double value) {
  return value == std::floor(value) ? fmt::format("{:.0f}", value) : fmt::format("{}", value);
}

/// Prints a list of switches as "[0]*3+[1]*58".
std::string pattern_of(const std::vector<bool>& switches) {
  std::string text;
  for (std::size_t i = 0; i < switches.size();) {
    std::size_t end = i;
    while (end < switches.size() && switches[end] == switches[i]) ++end;
    text += fmt::format("{}[{}]*{}", text.empty() ? "" : "+", switches[i] ? 1 : 0, end - i);
    i = end;
  }
  return text;
}

class MegatronCommand {
 public:
  explicit MegatronCommand(const Launch& launch) : launch_(launch), plan_(launch.plan) {}

  Result<std::string> text() {
    const Model& model = *launch_.job.model;
    const auto* transformer = std::get_if<Transformer>(&model.architecture);
    if (transformer == nullptr) return cannot(model.name + ", which is no language model");
    model_ = transformer;
    if (Status fits = check_architecture(); !fits) return forward_error(fits);
    if (Status fits = check_plan(); !fits) return forward_error(fits);
    add_parallelism();
    add_stages();
    add_recompute();
    if (Status added = add_precision(); !added) return forward_error(added);
    add_shape();
    if (Status added = add_positions(); !added) return forward_error(added);
    add_attention();
    if (model_->experts) add_experts();
    add_run();
    return head() + flags_ + "\n";
  }

 private:
  [[nodiscard]] Status check_architecture() const {
    const Model& model = *launch_.job.model;
    const auto known = std::find_if(kTypes.begin(), kTypes.end(),
                                    [&](const KnownType& each) { return each.type == model.type; });
    if (known == kTypes.end()) return cannot("the architecture of " + model.name);
    if (!known->peculiar.empty()) {
      return cannot(fmt::format("the architecture of {}: {}", model.name, known->peculiar));
    }
    if (model_->vision) return cannot("the image tower of " + model.name);
    const bool split_bias = model_->attention.output_bias != model_->mlp_bias;
    if (split_bias)
      return cannot("biases behind attention alone, or in the feed-forward part alone");
    return {};
  }

  [[nodiscard]] Status check_plan() const {
    if (launch_.job.task == TrainingTask::kLora) return cannot("low-rank adapters");
    if (plan_.zero >= 2) return cannot("ZeRO 2 or 3 beside its own optimizer");
    if (plan_.offload == Offload::kActivations || plan_.offload == Offload::kBoth) {
      return cannot("offloading of activations");
    }
    if (plan_.offload == Offload::kOptimizer && plan_.zero == 0) {
      return cannot("offloading of an optimizer that is not distributed");
    }
    if (model_->experts && plan_.tp > 1 && plan_.sequence_parallel == SequenceParallel::kOff) {
      return cannot("experts with tensor parallelism but without sequence parallelism");
    }
    const double sequence = launch_.job.sequence.value();
    if (plan_.cp > 1 && std::fmod(sequence, 2.0 * plan_.cp) != 0) {
      return cannot(
          fmt::format("cp {} for sequences of {}, no multiple of 2 cp", plan_.cp, sequence));
    }
    const bool ring = plan_.context_exchange == ContextExchange::kRing;
    if (plan_.cp > 1 && ring && model_->window > 0) {
      return cannot("a ring of context-parallel ranks beside sliding windows");
    }
    const double micro_batches =
        launch_.job.global_batch / (double{1} * plan_.dp * plan_.micro_batch);
    if (plan_.vpp > 1 && std::fmod(micro_batches, plan_.pp) != 0) {
      return cannot(
          fmt::format("{} micro-batches for pp {} with virtual stages: expected a multiple",
                      micro_batches, plan_.pp));
    }
    return {};
  }

  [[nodiscard]] std::string head() const {
    const auto node =
        static_cast<std::uint64_t>(std::max(1, launch_.machine.node->accelerators_per_node));
    const std::uint64_t each =
        std::min(launch_.machine.ranks, node * launch_.machine.ranks_per_accelerator);
    const std::uint64_t nodes = std::max<std::uint64_t>(1, plan_.ranks() / each);
    std::string text =
        "# Megatron-LM, arguments as of its commit d98e8a6 (August 2026); every node runs this.\n"
        "# A plan knows no data: DATA_PATH (prefix of a tokenised data set) and TOKENIZER_MODEL\n"
        "# (a Hugging Face tokenizer) have to be set. LR is no part of a plan either.\n";
    for (const std::string& note : notes_) text += "# " + note + "\n";
    const bool blackwell = launch_.machine.generation.starts_with("blackwell");
    if (!blackwell && (plan_.tp > 1 || plan_.cp > 1)) {
      text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
    }
    const std::string meeting =
        nodes == 1 ? "--standalone"
                   : "--rdzv-backend c10d --rdzv-id \"${JOB_ID:-orrery}\" \\\n  --rdzv-endpoint "
                     "\"${MASTER_ADDR:?address of the first node}:${MASTER_PORT:-29500}\"";
    return text + fmt::format("torchrun --nnodes {} --nproc-per-node {} {} \\\n  pretrain_gpt.py",
                              nodes, each, meeting);
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
    flag("global-batch-size", number(launch_.job.global_batch));
    flag("seq-length", number(launch_.job.sequence.value()));
    if (plan_.zero == 1) {
      flag("use-distributed-optimizer");
      flag("overlap-grad-reduce");
      flag("overlap-param-gather");
    }
    if (plan_.offload == Offload::kOptimizer) {
      flag("optimizer-cpu-offload");
      flag("optimizer-offload-fraction", "1.0");
      flag("use-precision-aware-optimizer");
    }
  }

  void add_stages() {
    const auto layers = static_cast<double>(model_->layers.size());
    flag("num-layers", layers);
    if (model_->prediction_layers > 0) {
      flag("mtp-num-layers", model_->prediction_layers);
      flag("mtp-loss-scaling-factor", "0.1");
    }
    if (plan_.pp == 1) return;
    const StageLayers stages = deal_layers(layers, plan_.pp);
    const double first = stages.most - stages.first;
    const double last = stages.most - stages.last;
    if (first == 0 && last == 0) {
      if (plan_.vpp > 1) flag("num-layers-per-virtual-pipeline-stage", stages.most / plan_.vpp);
    } else if (plan_.vpp == 1) {
      if (first > 0) flag("decoder-first-pipeline-num-layers", stages.first);
      if (last > 0) flag("decoder-last-pipeline-num-layers", stages.last);
    } else if (first <= 1 && last <= 1) {
      // One layer less at an end: embedding and loss count as a layer each.
      if (first > 0) flag("account-for-embedding-in-pipeline-split");
      if (last > 0) flag("account-for-loss-in-pipeline-split");
      flag("num-virtual-stages-per-pipeline-rank", plan_.vpp);
    } else {
      flag("pipeline-model-parallel-layout", "'" + layout_of(stages) + "'");
    }
  }

  /// Every virtual stage written out, in the order of the layers: rank 0 to pp - 1 of the first
  /// chunk, then of the next. The first stage gives up layers from its first chunk on, the last
  /// stage from its last chunk backwards.
  [[nodiscard]] std::string layout_of(const StageLayers& stages) const {
    const auto each = static_cast<std::uint32_t>(stages.most) / plan_.vpp;
    std::vector<std::uint32_t> chunks(std::size_t{plan_.pp} * plan_.vpp, each);
    auto spare = static_cast<std::uint32_t>(stages.most - stages.first);
    for (std::size_t chunk = 0; spare > 0 && chunk < chunks.size(); chunk += plan_.pp) {
      const std::uint32_t given = std::min(spare, chunks[chunk]);
      chunks[chunk] -= given;
      spare -= given;
    }
    spare = static_cast<std::uint32_t>(stages.most - stages.last);
    for (std::size_t chunk = chunks.size(); spare > 0 && chunk >= plan_.pp; chunk -= plan_.pp) {
      const std::uint32_t given = std::min(spare, chunks[chunk - 1]);
      chunks[chunk - 1] -= given;
      spare -= given;
    }
    std::string text = "E";
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) text += '|';
      if (chunks[i] > 0) text += fmt::format("t*{}", chunks[i]);
    }
    for (std::int64_t i = 0; i < model_->prediction_layers; ++i) text += 'm';
    return text + 'L';
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
    return cannot(fmt::format("the format {}", word_of(precision.format)));
  }

  Status add_fp8(Scaling scaling) {
    if (scaling == Scaling::kRow) return cannot("FP8 with one scale a row");
    flag("bf16");
    flag("fp8-format", "hybrid");
    const bool mx = launch_.machine.generation.starts_with("blackwell");
    flag("fp8-recipe", scaling != Scaling::kBlock ? "delayed" : (mx ? "mxfp8" : "blockwise"));
    return {};
  }

  void add_shape() {
    flag("hidden-size", model_->hidden);
    flag("ffn-hidden-size", model_->ffn);
    const bool oss = launch_.job.model->type == "gpt_oss";
    if (oss) {
      flag("quick-geglu");
      flag("glu-linear-offset", "1.0");
      flag("activation-func-clamp-value", "7.0");
    } else if (model_->gated) {
      flag("swiglu");
    }
    flag("normalization", model_->norm_vectors == 1 ? "RMSNorm" : "LayerNorm");
    // 1e-5 is also the value of GPT-2's configuration class.
    if (!model_->norm_epsilon && launch_.job.model->type != "gpt2") {
      notes_.push_back("The configuration states no epsilon of the norms: 1e-5 is assumed.");
    }
    flag("norm-epsilon", model_->norm_epsilon.value_or(1e-5));
    if (!model_->mlp_bias) flag("disable-bias-linear");
    if (!model_->tied) flag("untie-embeddings-and-output-weights");
    flag("hidden-dropout", "0.0");
    flag("attention-dropout", "0.0");
    // Rows of the embedding are distributed over tensor-parallel ranks.
    const std::int64_t tp = plan_.tp;
    flag("vocab-size", model_->vocab);
    flag("padded-vocab-size", (model_->vocab + tp - 1) / tp * tp);
  }

  Status add_positions() {
    const Rotary& rotary = model_->rotary;
    const auto sequence = static_cast<std::int64_t>(launch_.job.sequence.value());
    if (model_->learned_positions > 0) {
      flag("position-embedding-type", "learned_absolute");
      flag("max-position-embeddings", std::max(model_->learned_positions, sequence));
      return {};
    }
    flag("max-position-embeddings", sequence);
    if (!rotary.base) {
      notes_.push_back("The configuration states no rope_theta: 10000 is assumed.");
    }
    const bool yarn = rotary.stretch == Rotary::Stretch::kYarn;
    flag("position-embedding-type", yarn && !model_->latent ? "yarn" : "rope");
    flag("rotary-base", number(rotary.base.value_or(10000)));
    switch (rotary.stretch) {
      case Rotary::Stretch::kNone:
        if (!model_->latent) return {};
        flag("rope-type", "rope");
        flag("no-rope-fusion");
        return {};
      case Rotary::Stretch::kLlama3:
        flag("use-rope-scaling");
        flag("rope-scaling-factor", number(rotary.factor));
        return {};
      case Rotary::Stretch::kYarn:
        add_yarn(rotary);
        return {};
      case Rotary::Stretch::kOther:
        break;
    }
    return cannot("the stretch of rotary positions that the configuration names");
  }

  void add_yarn(const Rotary& rotary) {
    flag("rotary-scaling-factor", number(rotary.factor));
    flag("mscale", number(rotary.mscale));
    flag("mscale-all-dim", number(rotary.mscale_all_dim));
    if (!model_->latent) {
      flag("yarn-original-max-position-embeddings", number(rotary.original_positions));
      flag("yarn-beta-fast", number(rotary.beta_fast));
      flag("yarn-beta-slow", number(rotary.beta_slow));
      if (!rotary.whole_bounds) flag("no-yarn-correction-range-round-to-int");
      return;
    }
    flag("rope-type", "yarn");
    const bool usual = rotary.beta_fast == 32 && rotary.beta_slow == 1 &&
                       (rotary.original_positions == 0 || rotary.original_positions == 4096);
    if (!usual) {
      notes_.push_back(fmt::format(
          "Differs: YaRN betas {} and {}, for which latent attention has no argument (32 and 1).",
          rotary.beta_fast, rotary.beta_slow));
    }
  }

  void add_attention() {
    if (model_->latent) return add_latent(*model_->latent);
    const bool full =
        !model_->layers.empty() && model_->layers.front().mixer == Mixer::kFullAttention;
    const Attention& attention = full ? model_->full_attention : model_->attention;
    flag("num-attention-heads", attention.heads);
    flag("kv-channels", attention.head_dim);
    if (attention.kv_heads != attention.heads) {
      flag("group-query-attention");
      flag("num-query-groups", attention.kv_heads);
    }
    if (attention.qkv_bias) flag("add-qkv-bias");
    if (attention.norm == QueryKeyNorm::kPerHead) flag("qk-layernorm");
    if (attention.sinks) flag("softmax-type", "learnable");
    add_windows();
  }

  void add_windows() {
    std::vector<bool> windowed;
    for (const Layer& layer : model_->layers) {
      windowed.push_back(layer.mixer == Mixer::kSlidingAttention);
    }
    if (std::find(windowed.begin(), windowed.end(), true) == windowed.end()) return;
    // Tokens before the own one.
    flag("window-size", fmt::format("{},0", model_->window - 1));
    if (std::find(windowed.begin(), windowed.end(), false) == windowed.end()) return;
    flag("window-attn-skip-freq", "'" + pattern_of(windowed) + "'");
  }

  void add_latent(const LatentAttention& latent) {
    flag("num-attention-heads", latent.heads);
    flag("kv-channels", latent.value_dim);
    flag("multi-latent-attention");
    if (latent.query_rank > 0) flag("q-lora-rank", latent.query_rank);
    flag("kv-lora-rank", latent.kv_rank);
    flag("qk-head-dim", latent.nope_dim);
    flag("qk-pos-emb-head-dim", latent.rope_dim);
    flag("v-head-dim", latent.value_dim);
    flag("qk-layernorm");
  }

  void add_experts() {
    const Experts& experts = *model_->experts;
    flag("num-experts", experts.count);
    flag("moe-router-topk", experts.active);
    flag("moe-ffn-hidden-size", experts.ffn);
    if (experts.shared_ffn > 0) flag("moe-shared-expert-intermediate-size", experts.shared_ffn);
    if (experts.shared_gate) flag("moe-shared-expert-gate");
    flag("moe-grouped-gemm");
    flag("moe-token-dispatcher-type", "alltoall");
    std::vector<bool> routed;
    for (const Layer& layer : model_->layers) {
      routed.push_back(layer.feed_forward == FeedForward::kExperts);
    }
    if (std::find(routed.begin(), routed.end(), false) != routed.end()) {
      flag("moe-layer-freq", "'" + pattern_of(routed) + "'");
    }
    add_router(experts);
  }

  void add_router(const Experts& experts) {
    const Router& router = experts.router;
    flag("moe-router-dtype", "fp32");
    if (router.score == Router::Score::kSigmoid) {
      flag("moe-router-score-function", "sigmoid");
      flag("moe-router-load-balancing-type", "seq_aux_loss");
      flag("moe-aux-loss-coeff", "1e-4");
      if (experts.routing_bias) {
        flag("moe-router-enable-expert-bias");
        flag("moe-router-bias-update-rate", "1e-3");
      }
    } else {
      flag("moe-router-load-balancing-type", "aux_loss");
      flag("moe-aux-loss-coeff", "1e-3");
      if (!router.normalised || experts.active == 1) flag("moe-router-pre-softmax");
    }
    if (router.scale != 1) flag("moe-router-topk-scaling-factor", number(router.scale));
    if (router.groups > 1 && router.groups_active > 0) {
      flag("moe-router-num-groups", router.groups);
      flag("moe-router-group-topk", router.groups_active);
    }
  }

  void add_run() {
    flag("train-iters", number(std::max(1.0, launch_.steps)));
    flag("lr", "\"${LR:-1e-4}\"");
    flag("tokenizer-type", "HuggingFaceTokenizer");
    flag("tokenizer-model", "\"${TOKENIZER_MODEL:?name or directory of the tokenizer}\"");
    flag("data-path", "\"${DATA_PATH:?prefix of the tokenised data set}\"");
    if (launch_.job.task != TrainingTask::kFineTune) return;
    flag("finetune");
    flag("load", "\"${CHECKPOINT:?directory of the pretrained checkpoint}\"");
  }

  const Launch& launch_;
  const ParallelPlan& plan_;
  const Transformer* model_ = nullptr;
  std::string flags_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<std::string> megatron_command(const Launch& launch) {
  return MegatronCommand(launch).text();
}

}  // namespace orrery
