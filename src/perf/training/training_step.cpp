#include "perf/training/training_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/numbers/math.hpp"
#include "perf/machine/collective.hpp"
#include "perf/machine/kernel.hpp"
#include "perf/straggler.hpp"
#include "perf/training/pipeline.hpp"

namespace orrery {
namespace {

constexpr double kWideBytes = 2;
/// Bytes an optimizer step moves a parameter: gradient, two moments and the master weight read,
/// the latter three written, the 16-bit weight written.
constexpr double kOptimizerBytes = 4 + 12 + 12 + 2;

double exposed(double communication, double compute, double overlap) {
  return communication - std::min(communication * overlap, compute);
}

LayerCost mean_layer(const JobWork& work, const ParallelPlan& plan,
                     const TrainingConstants& constants) {
  LayerCost mean;
  const double layers = work.model->layers;
  for (std::size_t i = 0; i < work.model->kinds.size(); ++i) {
    const double weight = work.model->kinds[i].layers / layers;
    const LayerCost cost = layer_cost(work, i, plan, constants);
    mean.forward.add(cost.forward, weight);
    mean.backward.add(cost.backward, weight);
    mean.recomputed += weight * cost.recomputed;
    mean.compute_forward += weight * cost.compute_forward;
    mean.compute_backward += weight * cost.compute_backward;
  }
  return mean;
}

/// One step of one plan, put together from the costs of a layer.
class StepCounter {
 public:
  StepCounter(const TrainingJob& job, const ModelWork& model, const ParallelPlan& plan,
              const BlockCosts& blocks)
      : job_(job),
        model_(model),
        plan_(plan),
        blocks_(blocks),
        replicas_(double{1} * plan.dp * plan.cp),
        micro_batches_(job.global_batch / (double{1} * plan.dp * plan.micro_batch)) {}

  Breakdown count(const TrainingConstants& constants, const StepSurroundings& surroundings) {
    constants_ = &constants;
    count_parameters();
    set_recomputed_share();
    deal();
    add_pipeline();
    add_sends();
    if (trained() && plan_.zero < 3) add_data_parallel();
    add_optimizer();
    add_offload(surroundings.host_bandwidth);
    terms_[Term::kLaunch] += constants.step_fixed;
    terms_[Term::kStraggler] = constants.jitter * surroundings.last_rank * terms_.total();
    terms_[Term::kInput] = std::max(0.0, job_.input_seconds - terms_.total());
    return terms_;
  }

 private:
  [[nodiscard]] bool trained() const { return job_.task != TrainingTask::kLora; }

  void count_parameters() {
    for (const LayerWork& kind : model_.kinds) {
      const double share = kind.layers / model_.layers;
      dense_ += share * (kind.parameters - kind.routed_parameters) / plan_.tp;
      routed_ += share * kind.routed_parameters / expert_ranks();
    }
  }

  [[nodiscard]] double expert_ranks() const { return plan_.ep > 1 ? plan_.ep : plan_.tp; }
  /// Ranks that hold the same experts.
  [[nodiscard]] double expert_replicas() const {
    return std::max(1.0, replicas_ * plan_.tp / expert_ranks());
  }
  /// Ranks one copy of sharded state is spread over.
  [[nodiscard]] double shard_ranks() const {
    return plan_.shard > 0 ? std::min<double>(plan_.shard, replicas_) : replicas_;
  }

  /// Full recomputation of only some of a rank's layers.
  void set_recomputed_share() {
    const double layers = std::max(1.0, model_.layers / plan_.pp);
    if (plan_.recompute == Recompute::kFull && plan_.recompute_layers > 0) {
      recomputed_share_ = std::min(1.0, plan_.recompute_layers / layers);
    }
  }

  /// Layers to stages. A prediction module is a layer and a head of its own.
  void deal() {
    layer_ = layer_terms();
    layer_seconds_ = layer_.total();
    head_ = blocks_.ends.head + model_.prediction_layers * (blocks_.ends.head + layer_seconds_);
    stages_ = deal_layers(model_.layers, {plan_.pp, plan_.vpp, head_ / layer_seconds_});
  }

  /// A micro-batch in one layer, both passes, fully sharded parameters gathered.
  [[nodiscard]] Breakdown layer_terms() const {
    Breakdown layer = blocks_.layer.forward;
    layer.add(blocks_.layer.backward, 1);
    layer[Term::kRecompute] += recomputed_share_ * blocks_.layer.recomputed;
    if (plan_.zero >= 3) layer[Term::kShard] += shard_seconds();
    if (trained() && plan_.zero < 2 && micro_batches_ > 1) {
      layer[Term::kElementwise] +=
          pass_seconds(*constants_, constants_->accumulated_bytes * (dense_ + routed_));
    }
    return layer;
  }

  /// Gathering a layer's parameters for the forward and again for the backward pass, reducing its
  /// gradients; hidden behind the computation of a layer as far as it goes.
  [[nodiscard]] double shard_seconds() const {
    const Span span = span_of(constants_->network, shard_ranks(), plan_.tp);
    const double weights = kWideBytes * dense_;
    const double gather = all_gather_seconds(constants_->network, span, weights);
    double forward = gather;
    double backward = (trained() ? 2 : 1) * gather;
    if (routed_ > 0) {
      const Span experts = span_of(constants_->network, expert_replicas(), expert_ranks());
      const double one = all_gather_seconds(constants_->network, experts, kWideBytes * routed_);
      forward += one;
      backward += 2 * one;
    }
    const double copies = replicas_ / shard_ranks();
    if (copies > 1 && trained()) {
      const Span across = span_of(constants_->network, copies, plan_.tp * shard_ranks());
      backward +=
          all_reduce_seconds(constants_->network, across, weights / shard_ranks()) / micro_batches_;
    }
    return exposed(forward, blocks_.layer.compute_forward, constants_->shard_overlap) +
           exposed(backward, blocks_.layer.compute_backward, constants_->shard_overlap);
  }

  void add_pipeline() {
    const double first = stages_.first * layer_seconds_ + blocks_.ends.embedding;
    const double last = stages_.last * layer_seconds_ + head_;
    if (plan_.pp == 1) {
      terms_.add(layer_, micro_batches_ * model_.layers);
      terms_[Term::kEnds] = micro_batches_ * (blocks_.ends.embedding + head_);
      return;
    }
    const double middle = stages_.most * layer_seconds_;
    const double slowest = std::max({first, last, plan_.pp > 2 ? middle : 0});
    // The slowest stage's own work on every micro-batch; the rest of the critical path is bubble.
    double layers = stages_.most;
    double ends = 0;
    if (slowest == last) {
      layers = stages_.last;
      ends = head_;
    } else if (slowest == first) {
      layers = stages_.first;
      ends = blocks_.ends.embedding;
    }
    terms_.add(layer_, micro_batches_ * layers);
    terms_[Term::kEnds] = micro_batches_ * ends;
    const double all = model_.layers * layer_seconds_ + blocks_.ends.embedding + head_;
    terms_[Term::kPipelineBubble] = (all - slowest) / plan_.vpp;
  }

  void add_sends() {
    if (plan_.pp <= 1) return;
    double bytes = exchanged_bytes(job_.precision.format) * plan_.micro_batch *
                   job_.sequence.value() / plan_.cp * model_.hidden;
    // Tensor-parallel ranks hold the same activations: each sends its part, and the receivers
    // gather it inside their domain (scatter-gather, Narayanan et al. 2021).
    bytes /= plan_.tp;
    const double stride = static_cast<double>(plan_.ranks()) / plan_.pp;
    double one = point_to_point_seconds(constants_->network, stride, bytes);
    // Between nodes the host takes part; inside one, the devices copy by themselves.
    if (stride >= static_cast<double>(constants_->network.levels[0].size)) {
      one += constants_->send_launch;
    }
    const double steady = 2 * plan_.vpp * micro_batches_ * one;
    const double ramp = 2 * (plan_.pp - 1.0) * one;
    terms_[Term::kPipelineSend] = (1 - constants_->pipeline_overlap) * steady + ramp;
  }

  /// Reduction of the gradients of the fullest stage, and gathering the updated parameters where
  /// the optimizer's state is sharded; beside the last micro-batch's computation.
  void add_data_parallel() {
    const double ends = std::max(model_.embedding, model_.head) / plan_.tp;
    const double dense = stages_.most * dense_ + ends;
    double seconds = reduction(dense, replicas_, plan_.tp);
    if (routed_ > 0)
      seconds += reduction(stages_.most * routed_, expert_replicas(), expert_ranks());
    double compute =
        stages_.most * (blocks_.layer.compute_backward + blocks_.layer.compute_forward);
    // With virtual stages, gradients of a chunk go out while the other chunks still work.
    if (plan_.vpp > 1) compute *= std::min<double>(plan_.pp, micro_batches_);
    if (plan_.zero == 2) {
      // Sharded gradients are reduced after every micro-batch.
      seconds *= micro_batches_;
      compute *= micro_batches_;
    }
    terms_[Term::kDataParallel] = exposed(seconds, compute, constants_->data_overlap);
  }

  [[nodiscard]] double reduction(double parameters, double ranks, double stride) const {
    const Span span = span_of(constants_->network, ranks, stride);
    const double gradients = constants_->gradient_bytes * parameters;
    if (plan_.zero == 0) return all_reduce_seconds(constants_->network, span, gradients);
    return reduce_scatter_seconds(constants_->network, span, gradients) +
           all_gather_seconds(constants_->network, span, kWideBytes * parameters);
  }

  void add_optimizer() {
    if (!trained()) return;
    const double ends = std::max(model_.embedding, model_.head) / plan_.tp;
    const double sharded = plan_.zero >= 1 ? shard_ranks() : 1;
    const double routed_sharded = plan_.zero >= 1 ? expert_replicas() : 1;
    held_ = (stages_.most * dense_ + ends) / sharded + stages_.most * routed_ / routed_sharded;
    terms_[Term::kOptimizer] =
        pass_seconds(*constants_, constants_->optimizer_passes * kOptimizerBytes * held_);
  }

  /// Optimizer state: gradients down, weights up, once a step. Activations: down and up, beside the
  /// computation of a layer. Formula 8: min(link, host) is the machine's host bandwidth.
  void add_offload(double host_bandwidth) {
    if (plan_.offload == Offload::kNone || host_bandwidth <= 0) return;
    double seconds = 0;
    if (plan_.offload != Offload::kActivations) {
      seconds += held_ * (4 + kWideBytes) / host_bandwidth;
    }
    if (plan_.offload != Offload::kOptimizer) {
      const double kept = blocks_.kept_bytes * model_.layers / plan_.pp * micro_batches_;
      seconds += exposed(2 * kept / host_bandwidth,
                         micro_batches_ * model_.layers / plan_.pp * layer_seconds_, 1);
    }
    terms_[Term::kOffload] = seconds;
  }

  const TrainingJob& job_;
  const ModelWork& model_;
  const ParallelPlan& plan_;
  const BlockCosts& blocks_;
  const TrainingConstants* constants_ = nullptr;
  double replicas_;
  double micro_batches_;
  double dense_ = 0;   ///< parameters of a mean layer on this rank, without routed experts
  double routed_ = 0;  ///< in routed experts
  double held_ = 0;    ///< parameters whose optimizer state this rank holds
  Breakdown layer_;
  double layer_seconds_ = 0;
  double head_ = 0;  ///< seconds of a micro-batch on the last stage beside its layers
  StageLayers stages_;
  double recomputed_share_ = 1;
  Breakdown terms_;
};

Status must_divide(double whole, double part, std::string_view what, std::string_view rule) {
  if (part > 0 && std::fmod(whole, part) == 0) return {};
  return input_error({},
                     fmt::format("{} {}: {}", what, whole, fmt::format(fmt::runtime(rule), part)));
}

}  // namespace

Result<TrainingModel> TrainingModel::make(const TrainingJob& job, const Machine& machine,
                                          const Calibration& calibration) {
  Result<ModelWork> work = work_of(*job.model);
  if (!work) return forward_error(work);
  TrainingModel model;
  model.job_ = job;
  // A sample of an image or video model has the tokens it has.
  if (!work->token_model) model.job_.sequence = Tokens(sample_tokens(*job.model));
  model.work_ = *std::move(work);
  model.attention_flops_ = attention_flops_of(model.work_, model.job_);
  const ParallelPlan whole;
  const ParallelPlan sharded{.zero = 3};
  const TrainingStack stacked_stack = job.stack.value_or(stack_of(machine, job, whole));
  const TrainingStack sharded_stack = job.stack.value_or(stack_of(machine, job, sharded));
  model.stacked_ = training_constants(machine, job, stacked_stack, calibration);
  model.sharded_ = training_constants(machine, job, sharded_stack, calibration);
  model.memory_constants_ = memory_constants(machine, calibration);
  model.memory_limit_ = machine.memory;
  model.host_limit_ = machine.host_memory;
  model.surroundings_ = {.host_bandwidth = machine.host_bandwidth,
                         .last_rank = expected_max_of_normals(static_cast<double>(machine.ranks))};
  model.ranks_ = machine.ranks;
  // The datasheet's, whatever a power cap leaves of it.
  const Accelerator& accelerator = *machine.accelerator;
  const std::optional<FlopsPerSecond> wide = accelerator.rate(
      accelerator.rate(NumberFormat::kBf16) ? NumberFormat::kBf16 : NumberFormat::kFp16);
  model.peak_ =
      wide ? wide->value() * static_cast<double>(machine.ranks) / machine.ranks_per_accelerator
           : machine.peak_of(NumberFormat::kBf16) * static_cast<double>(machine.ranks);
  const double narrow = machine.peak_of(job.precision.format);
  model.format_peak_ = model.peak_;
  // The datasheet's ratio of the formats, so that a power cap changes neither.
  if (narrow > 0 && machine.peak_of(NumberFormat::kBf16) > 0) {
    model.format_peak_ *= narrow / machine.peak_of(NumberFormat::kBf16);
  }
  const double per_sequence = forward_flops(*job.model, job.sequence).value() *
                              (model.work_.token_model ? job.sequence.value() : 1);
  const double passes = job.task == TrainingTask::kLora ? 2 : 3;
  model.model_flops_ = passes * per_sequence * job.global_batch;
  return model;
}

double TrainingModel::fullness(const TrainingMemory& memory) const {
  const double device = memory.total() / memory_limit_;
  if (!host_limit_ || memory.host <= 0) return device;
  return std::max(device, memory.host / *host_limit_);
}

Status TrainingModel::check(const ParallelPlan& plan) const {
  if (plan.ranks() != ranks_) {
    return input_error({}, fmt::format("tp {} x cp {} x pp {} x dp {} is {} ranks, expected {}",
                                       plan.tp, plan.cp, plan.pp, plan.dp, plan.ranks(), ranks_));
  }
  for (const LayerWork& kind : work_.kinds) {
    if (kind.heads <= 0) continue;
    if (Status fits = must_divide(kind.heads, plan.tp, "attention heads", "no multiple of tp {}");
        !fits) {
      return fits;
    }
  }
  if (Status fits = must_divide(job_.sequence.value(), plan.cp, "sequence", "no multiple of cp {}");
      !fits) {
    return fits;
  }
  // Embedding and head may count as layers of their own.
  if (plan.pp * plan.vpp > work_.layers + 2) {
    return input_error({}, fmt::format("{} layers with embedding and head are fewer than pp {} x "
                                       "vpp {} stages",
                                       work_.layers, plan.pp, plan.vpp));
  }
  if (plan.vpp > 1 && plan.pp == 1) {
    return input_error({}, fmt::format("vpp {} needs pp above 1", plan.vpp));
  }
  const auto routes = [](const LayerWork& kind) { return kind.experts > 0; };
  if (plan.ep > 1 && std::none_of(work_.kinds.begin(), work_.kinds.end(), routes)) {
    return input_error({}, fmt::format("ep {}: the model has no experts", plan.ep));
  }
  for (const LayerWork& kind : work_.kinds) {
    if (kind.experts <= 0) continue;
    if (Status fits = must_divide(kind.experts, plan.ep, "experts", "no multiple of ep {}");
        !fits) {
      return fits;
    }
  }
  return must_divide(job_.global_batch, double{1} * plan.dp * plan.micro_batch, "global batch",
                     "no multiple of dp x micro-batch = {}");
}

const TrainingConstants& TrainingModel::constants(const ParallelPlan& plan) const {
  return plan.zero >= 2 && plan.tp == 1 && plan.pp == 1 ? sharded_ : stacked_;
}

BlockCosts TrainingModel::block_costs(const ParallelPlan& plan) const {
  return block_costs_with(plan, constants(plan));
}

Breakdown TrainingModel::reprice(const ParallelPlan& plan, const Placement& placement) const {
  TrainingConstants here = constants(plan);
  here.network = network_at(here.network, placement);
  const BlockCosts blocks = block_costs_with(plan, here);
  return StepCounter(job_, work_, plan, blocks).count(here, surroundings_);
}

BlockCosts TrainingModel::block_costs_with(const ParallelPlan& plan,
                                           const TrainingConstants& constants) const {
  const JobWork work = job_work();
  BlockCosts blocks{.layer = mean_layer(work, plan, constants),
                    .ends = ends_cost(work, plan, constants)};
  for (std::size_t i = 0; i < work_.kinds.size(); ++i) {
    blocks.kept_bytes +=
        kept_activations(work, i, plan, plan.recompute) * work_.kinds[i].layers / work_.layers;
  }
  return blocks;
}

Breakdown TrainingModel::step_terms(const ParallelPlan& plan, const BlockCosts& blocks) const {
  return StepCounter(job_, work_, plan, blocks).count(constants(plan), surroundings_);
}

TrainingMemory TrainingModel::memory(const ParallelPlan& plan) const {
  return training_memory(job_work(), plan, memory_constants_);
}

StepCost TrainingModel::evaluate(const ParallelPlan& plan) const {
  StepCost cost{.terms = step_terms(plan, block_costs(plan)), .memory = memory(plan)};
  cost.seconds = cost.terms.total();
  return cost;
}

}  // namespace orrery
