#include "perf/training/training_estimate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <variant>

#include "base/format/field_writer.hpp"
#include "base/numbers/math.hpp"

namespace orrery {
namespace {

/// Tokens a step where a row gives no batch: what interfaces.md takes for --global-batch.
double default_batch_tokens(const Model& model) {
  return count_parameters(model).total > 100e9 ? 16.0 * (1 << 20) : 4.0 * (1 << 20);
}

class QuestionBuilder {
 public:
  QuestionBuilder(const TrainingRun& run, const Catalog& catalog) : run_(run), catalog_(catalog) {}

  Result<RunQuestion> build() {
    if (run_.micro_batch && std::floor(*run_.micro_batch) != *run_.micro_batch) {
      return input_error(run_.where, fmt::format("mbs {}: expected a whole number of sequences",
                                                 *run_.micro_batch));
    }
    Result<Machine> machine = machine_of(catalog_, machine_request());
    if (!machine) return forward_error(machine);
    question_.machine = *std::move(machine);
    if (run_.power_limit) limit_power();
    set_job();
    set_layout();
    set_recompute();
    return question_;
  }

 private:
  [[nodiscard]] bool tpu() const { return run_.accelerator->kind == AcceleratorKind::kTpu; }

  [[nodiscard]] MachineRequest machine_request() const {
    MachineRequest request{.accelerator = run_.accelerator,
                           .accelerators = run_.count,
                           .ranks_per_accelerator = run_.ranks_per_accelerator,
                           .node_accelerators = run_.cluster.node_accelerators,
                           .node_bandwidth = run_.cluster.node_bandwidth,
                           .scale_up_domain = run_.cluster.scale_up_domain};
    if (!run_.cluster.fabric.empty()) {
      request.fabric = catalog_.find<ScaleOutFabric>(run_.cluster.fabric);
    }
    if (run_.cluster.slice_accelerators) {
      request.slice_accelerators = *run_.cluster.slice_accelerators;
    } else if (tpu() && run_.cluster.slices) {
      request.slice_accelerators = run_.count / std::max(1u, *run_.cluster.slices);
    }
    return request;
  }

  /// The clock falls until the power fits, P ~ 0.30 + 0.70 f^2.4 of the rating (formula 11); matrix
  /// products follow the clock.
  void limit_power() {
    const std::optional<Watts> rating = run_.accelerator->tdp;
    if (!rating || *run_.power_limit >= *rating) return;
    const double share = std::max(0.05, (*run_.power_limit / *rating - 0.30) / 0.70);
    const double clock = math::pow(share, 1 / 2.4);
    for (double& peak : question_.machine.peak) peak *= clock;
  }

  void set_job() {
    question_.job = {.model = &run_.model,
                     .sequence = run_.sequence,
                     .global_batch = run_.global_batch.value_or(0),
                     .precision = run_.precision,
                     .task = run_.task,
                     .attention = run_.attention,
                     .release = run_.release};
    question_.batch_known = run_.global_batch.has_value();
    if (question_.batch_known) return;
    const double sequences = default_batch_tokens(run_.model) / run_.sequence.value();
    const double ranks = static_cast<double>(question_.machine.ranks);
    question_.job.global_batch =
        tpu() ? std::max(1.0, std::ceil(sequences / ranks)) * ranks : std::max(1.0, sequences);
  }

  void set_layout() {
    const StatedPlan& stated = run_.plan;
    ParallelPlan& plan = question_.plan;
    plan.tp = stated.tp.value_or(1);
    plan.pp = stated.pp.value_or(1);
    plan.vpp = stated.vpp.value_or(1);
    plan.cp = stated.cp.value_or(1);
    plan.ep = stated.ep.value_or(1);
    plan.zero = stated.zero.value_or(1);
    plan.shard = stated.shard.value_or(0);
    plan.sequence_parallel = stated.sequence_parallel.value_or(SequenceParallel::kOff);
    // Tables of the Megatron Core releases leave it out; their recipes always switch it on.
    if (run_.release && plan.tp > 1) plan.sequence_parallel = SequenceParallel::kOn;
    if (tpu()) return set_mesh();
    question_.layout_open = !stated.tp || !stated.pp || !stated.dp || !run_.micro_batch;
    plan.dp = stated.dp.value_or(1);
    plan.micro_batch = static_cast<std::uint32_t>(run_.micro_batch.value_or(1));
  }

  /// Parameters sharded over the slice, one program, no accumulation. Sequences fewer than ranks
  /// are split among them.
  void set_mesh() {
    ParallelPlan& plan = question_.plan;
    const double ranks = static_cast<double>(question_.machine.ranks);
    plan.zero = 3;
    // The compiler shards activations over the tensor axis between its products too.
    if (plan.tp > 1) plan.sequence_parallel = SequenceParallel::kOn;
    double replicas = ranks / (plan.tp * plan.pp * plan.cp);
    if (run_.plan.dp) replicas = *run_.plan.dp;
    if (!run_.plan.dp && question_.job.global_batch < replicas) {
      plan.cp = static_cast<std::uint32_t>(
          std::max(1.0, std::floor(replicas / question_.job.global_batch)));
      replicas = std::floor(replicas / plan.cp);
    }
    plan.dp = static_cast<std::uint32_t>(std::max(1.0, replicas));
    const double batch = question_.job.global_batch / plan.dp;
    plan.micro_batch = static_cast<std::uint32_t>(std::max(1.0, std::floor(batch)));
    const std::uint64_t slice = question_.machine.tiers.front().size;
    if (plan.shard == 0 && slice < question_.machine.ranks && run_.cluster.slices) {
      plan.shard = static_cast<std::uint32_t>(slice / plan.tp);
    }
  }

  void set_recompute() {
    ParallelPlan& plan = question_.plan;
    plan.recompute = run_.recompute.mode.value_or(Recompute::kNone);
    plan.recompute_layers = run_.recompute.layers;
    plan.recompute_kept = run_.recompute.kept;
    plan.offload = run_.recompute.offload;
    question_.recompute_open = !run_.recompute.mode;
  }

  const TrainingRun& run_;
  const Catalog& catalog_;
  RunQuestion question_;
};

}  // namespace

void close_recompute(RunQuestion& question, const TrainingModel& model) {
  if (!question.recompute_open) return;
  const auto fits = [&] { return model.fits(model.memory(question.plan)); };
  question.plan.recompute_layers = 0;
  for (const Recompute mode : {Recompute::kNone, Recompute::kSelective}) {
    question.plan.recompute = mode;
    if (fits()) return;
  }
  // Recipes of releases recompute single cheap operators instead of layers.
  if (question.job.release) return;
  question.plan.recompute = Recompute::kFull;
  const auto layers = static_cast<std::uint32_t>(model.work().layers / question.plan.pp);
  for (std::uint32_t n = 1; n < layers; ++n) {
    question.plan.recompute_layers = n;
    if (fits()) return;
  }
  question.plan.recompute_layers = 0;
  // TPU programs may keep layer inputs, then the optimizer's state, in host memory.
  if (question.machine.accelerator->kind != AcceleratorKind::kTpu || fits()) return;
  for (const Offload offload : {Offload::kActivations, Offload::kBoth}) {
    question.plan.offload = offload;
    if (fits()) return;
  }
}

TrainingMemory memory_of(const RunQuestion& question, const TrainingModel& model) {
  const TrainingMemory memory = model.memory(question.plan);
  if (!question.recompute_open || model.fits(memory)) return memory;
  RunQuestion roomier = question;
  roomier.job.release.reset();
  close_recompute(roomier, model);
  return model.memory(roomier.plan);
}

std::string kind_of_question(const RunQuestion& question) {
  const TrainingStack stack =
      question.job.stack.value_or(stack_of(question.machine, question.job, question.plan));
  const auto* transformer = std::get_if<Transformer>(&question.job.model->architecture);
  const bool experts = transformer != nullptr && transformer->experts.has_value();
  return "training." + std::string(word_of(stack)) + (experts ? ".experts" : ".dense");
}

Result<RunQuestion> question_of(const TrainingRun& run, const Catalog& catalog) {
  return QuestionBuilder(run, catalog).build();
}

}  // namespace orrery
