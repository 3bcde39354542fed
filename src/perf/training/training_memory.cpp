#include "perf/training/training_memory.hpp"

#include <algorithm>

namespace orrery {
namespace {

constexpr double kMask = 1;  ///< bytes of a drop-out mask's element

/// Bytes of a weight and of an activation. TF32 is stored in 32 bits; formats below 16 bits are
/// made of 16-bit values when they are used.
double element_bytes(NumberFormat format) {
  switch (format) {
    case NumberFormat::kFp64:
    case NumberFormat::kFp64Matrix:
      return 8;
    case NumberFormat::kFp32:
    case NumberFormat::kTf32:
      return 4;
    case NumberFormat::kBf16:
    case NumberFormat::kFp16:
    case NumberFormat::kFp8:
    case NumberFormat::kFp6:
    case NumberFormat::kFp4:
    case NumberFormat::kInt8:
    case NumberFormat::kInt4:
      break;
  }
  return 2;
}

/// Bytes of an operand kept for the backward pass.
double operand_bytes(NumberFormat format) {
  const bool narrow = format == NumberFormat::kFp8 || format == NumberFormat::kFp6 ||
                      format == NumberFormat::kFp4 || format == NumberFormat::kInt8;
  return narrow ? 1 : element_bytes(format);
}

/// Bytes of a parameter's state.
struct StateBytes {
  double weight = 2;
  double gradient = 4;
  double optimizer = 12;  ///< two moments, and a 32-bit copy of a narrower weight
};

StateBytes state_bytes(const TrainingJob& job, const ParallelPlan& plan) {
  const double element = element_bytes(job.precision.format);
  if (element >= 4) return {.weight = element, .gradient = element, .optimizer = 2 * element};
  // Megatron accumulates in 32 bits beside the 16-bit weights; ZeRO 2 and 3 keep 16-bit shards.
  StateBytes bytes{.gradient = plan.zero >= 2 ? 2.0 : 4.0};
  // DeepSpeed's bf16 optimizer of the BLOOM runs holds 16-bit gradients and their flat copy too.
  const bool classic = job.attention == AttentionKernel::kUnfused;
  if (classic && job.precision.format == NumberFormat::kBf16) bytes.gradient = 8;
  return bytes;
}

/// How many ranks share one copy of a state.
struct Sharding {
  double weights = 1;
  double gradients = 1;
  double optimizer = 1;
};

Sharding sharding_of(const ParallelPlan& plan, double replicas) {
  Sharding sharding;
  const double group = plan.shard > 0 ? std::min<double>(plan.shard, replicas) : replicas;
  if (plan.zero >= 1) sharding.optimizer = group;
  if (plan.zero >= 2) sharding.gradients = group;
  if (plan.zero >= 3) sharding.weights = group;
  return sharding;
}

class MemoryCounter {
 public:
  MemoryCounter(const JobWork& work, const ParallelPlan& plan, const MemoryConstants& constants)
      : work_(work), plan_(plan), constants_(constants) {}

  /// Layers [begin, end) of the model, of which as many micro-batches as `in_flight` are kept, with
  /// `end_parameters` of embedding or head.
  struct Stage {
    double begin = 0;
    double end = 0;
    double in_flight = 1;
    double end_parameters = 0;
  };

  [[nodiscard]] TrainingMemory stage(const Stage& stage) const {
    TrainingMemory memory;
    const double replicas = double{1} * plan_.dp * plan_.cp;
    const Sharding dense = sharding_of(plan_, replicas);
    const double expert_ranks = plan_.ep > 1 ? plan_.ep : plan_.tp;
    const Sharding routed = sharding_of(plan_, std::max(1.0, replicas * plan_.tp / expert_ranks));
    double dense_parameters = stage.end_parameters;
    double routed_parameters = 0;
    for (std::size_t i = 0; i < work_.model->kinds.size(); ++i) {
      const LayerWork& kind = work_.model->kinds[i];
      const double here = layers_of(kind, stage);
      dense_parameters += here * (kind.parameters - kind.routed_parameters) / plan_.tp;
      routed_parameters += here * kind.routed_parameters / expert_ranks;
      memory.activations += here * stage.in_flight * kept_of_layer(i, stage.end - stage.begin);
    }
    add_states(dense_parameters, dense, memory);
    add_states(routed_parameters, routed, memory);
    if (plan_.recompute == Recompute::kFull) memory.activations += working_set();
    if (plan_.zero >= 3) memory.gathered = gathered_layers();
    if (plan_.offload == Offload::kOptimizer || plan_.offload == Offload::kBoth) {
      memory.host += memory.optimizer;
      memory.optimizer = 0;
    }
    if (plan_.offload == Offload::kActivations || plan_.offload == Offload::kBoth) {
      const double kept = std::min(memory.activations, 2 * working_set());
      memory.host += memory.activations - kept;
      memory.activations = kept;
    }
    return memory;
  }

  /// Beside all kept activations, where the backward pass begins: logits of a micro-batch and their
  /// gradient in 16 bits, the head's weight gradient in 32 bits before it is added up.
  [[nodiscard]] double head_transient() const {
    const double tokens = plan_.micro_batch * work_.job->sequence.value() / plan_.cp;
    const double weight = trained() && plan_.zero < 3 ? 4 * work_.model->head : 0;
    const double logit = constants_.logit_bytes * element_ / 2;  // the constant is that of 16 bits
    return (logit * tokens * work_.model->vocab + weight) / plan_.tp;
  }

  /// Transient memory in the backward pass of a layer: the gradient of its widest activation and
  /// that of its largest weight.
  [[nodiscard]] double layer_transient() const {
    const double tokens = plan_.micro_batch * work_.job->sequence.value() / plan_.cp;
    double most = 0;
    for (const LayerWork& kind : work_.model->kinds) {
      const double width = std::max(kind.gates * kind.ffn_width, 2 * kind.query_width);
      const double weight = trained() && plan_.zero < 3 ? 4 * kind.largest_weight : 0;
      most = std::max(most, (element_ * tokens * width + weight) / plan_.tp);
    }
    return most;
  }

 private:
  [[nodiscard]] bool trained() const { return work_.job->task != TrainingTask::kLora; }

  /// With virtual stages a rank's layers are spread over the model: the mean mix of kinds.
  [[nodiscard]] double layers_of(const LayerWork& kind, const Stage& stage) const {
    if (plan_.vpp > 1) return kind.layers * (stage.end - stage.begin) / work_.model->layers;
    return kind.before[static_cast<std::size_t>(stage.end)] -
           kind.before[static_cast<std::size_t>(stage.begin)];
  }

  void add_states(double parameters, const Sharding& sharding, TrainingMemory& memory) const {
    const StateBytes bytes = state_bytes(*work_.job, plan_);
    memory.weights += bytes.weight * parameters / sharding.weights;
    if (work_.job->task == TrainingTask::kLora) return;
    memory.gradients += bytes.gradient * parameters / sharding.gradients;
    memory.optimizer += bytes.optimizer * parameters / sharding.optimizer;
  }

  /// Mean over the layers of a stage, of which only some may be recomputed.
  [[nodiscard]] double kept_of_layer(std::size_t kind, double layers) const {
    const double kept = kept_activations(work_, kind, plan_, plan_.recompute);
    if (plan_.recompute != Recompute::kFull || plan_.recompute_layers == 0) return kept;
    const double share = std::min(1.0, plan_.recompute_layers / std::max(1.0, layers));
    return share * kept + (1 - share) * kept_activations(work_, kind, plan_, Recompute::kNone);
  }

  /// All activations of the one layer that is being recomputed.
  [[nodiscard]] double working_set() const {
    double most = 0;
    for (std::size_t i = 0; i < work_.model->kinds.size(); ++i) {
      most = std::max(most, kept_activations(work_, i, plan_, Recompute::kNone));
    }
    return most;
  }

  /// Whole parameters and gradients of the layers in use.
  [[nodiscard]] double gathered_layers() const {
    double most = 0;
    for (const LayerWork& kind : work_.model->kinds) most = std::max(most, kind.parameters);
    return most / plan_.tp * element_ * constants_.gathered_layers;
  }

  const JobWork& work_;
  const ParallelPlan& plan_;
  const MemoryConstants& constants_;
  double element_ = element_bytes(work_.job->precision.format);
};

}  // namespace

double kept_activations(const JobWork& work, std::size_t kind, const ParallelPlan& plan,
                        Recompute recompute) {
  const LayerWork& layer = work.model->kinds[kind];
  const double tp = plan.tp;
  const double tokens = plan.micro_batch * work.job->sequence.value() / plan.cp;
  const double kept = plan.sequence_parallel == SequenceParallel::kOn ? tokens / tp : tokens;
  const double hidden = work.model->hidden;
  const double element = element_bytes(work.job->precision.format);
  if (recompute == Recompute::kFull) return element * kept * hidden;
  const bool unfused = work.job->attention == AttentionKernel::kUnfused;
  // Inputs of both norms; of the products that follow them, in the format of those.
  const double operand = operand_bytes(work.job->precision.format);
  double bytes = (element + operand) * 2 * kept * hidden;
  bytes +=
      tokens * ((element + operand) * layer.query_width + element * layer.key_value_width) / tp;
  bytes += tokens * (element * layer.gates + operand) * layer.ffn_width / tp;
  bytes += element * tokens * layer.scan_width / tp;
  if (unfused) {
    bytes += 2 * kMask * kept * hidden;
    if (recompute == Recompute::kNone) {
      // Softmax, its drop-out mask and the result.
      bytes += (2 * element + kMask) * layer.heads * work.job->sequence.value() * tokens / tp;
    }
  }
  const double visits = tokens / tp * layer.experts_active;
  // Permuted inputs, both products of the expert, and its results until they are weighed.
  if (layer.experts > 0) {
    bytes += visits *
             ((element + operand) * hidden + (element * layer.gates + operand) * layer.expert_ffn);
  }
  return bytes;
}

MemoryConstants memory_constants(const Machine& machine, const Calibration& calibration) {
  const bool xla = machine.accelerator->kind == AcceleratorKind::kTpu;
  const auto value = [&](std::string_view special, std::string_view general) {
    return xla ? calibration.first_of({special, general}) : calibration.first_of({general});
  };
  return {.runtime = value("memory.runtime.xla", "memory.runtime"),
          .fragmentation = value("memory.fragmentation.xla", "memory.fragmentation"),
          .logit_bytes = value("memory.logit.xla", "memory.logit"),
          .gathered_layers = value("memory.gathered.xla", "memory.gathered")};
}

TrainingMemory training_memory(const JobWork& work, const ParallelPlan& plan,
                               const MemoryConstants& constants) {
  const MemoryCounter counter(work, plan, constants);
  const ModelWork& model = *work.model;
  StageLayers stages = deal_layers(model.layers, plan.pp);
  // Stacks before flash attention did not thin the first stage for the embedding.
  if (work.job->attention == AttentionKernel::kUnfused) stages.first = stages.most;
  const double micro_batches =
      std::max(1.0, work.job->global_batch / (double{1} * plan.dp * plan.micro_batch));
  const double interleaved =
      plan.vpp > 1 ? 1 + (plan.pp - 1.0) / (double{1} * plan.pp * plan.vpp) : 1;
  const double embedding = model.embedding / plan.tp;
  const double head = (model.tied && plan.pp == 1 ? 0 : model.head) / plan.tp;
  const auto kept = [&](double stages_behind) {
    return std::min(micro_batches, stages_behind) * interleaved;
  };
  TrainingMemory worst = counter.stage({.begin = 0,
                                        .end = stages.first,
                                        .in_flight = kept(plan.pp),
                                        .end_parameters = embedding + (plan.pp == 1 ? head : 0)});
  worst.transient = plan.pp == 1 ? std::max(counter.head_transient(), counter.layer_transient())
                                 : counter.layer_transient();
  const auto consider = [&worst](TrainingMemory memory, double transient) {
    memory.transient = transient;
    const double host = std::max(memory.host, worst.host);
    if (memory.allocated() > worst.allocated()) worst = memory;
    worst.host = host;
  };
  if (plan.pp > 1) {
    consider(counter.stage({.begin = model.layers - stages.last,
                            .end = model.layers,
                            .in_flight = plan.vpp > 1 ? interleaved : 1,
                            .end_parameters = head}),
             std::max(counter.head_transient(), counter.layer_transient()));
  }
  if (plan.pp > 2) {
    consider(counter.stage({.begin = stages.first,
                            .end = std::min(model.layers, stages.first + stages.most),
                            .in_flight = kept(plan.pp - 1.0)}),
             counter.layer_transient());
  }
  worst.runtime = constants.runtime + constants.fragmentation * worst.allocated();
  return worst;
}

}  // namespace orrery
