#include "apps/orrery/local_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/document.hpp"
#include "base/field_writer.hpp"
#include "node/host_inventory.hpp"
#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/trainer/gemm.hpp"
#include "runtime/training/node_probe.hpp"

namespace orrery {
namespace {

std::string doubt_of(const CalibratedMachine& machine) {
  const NodeInventory host = host_inventory();
  const std::string products = gemm_identity();
  if (machine.processor == host.processor && machine.cores == host.cores &&
      machine.products == products) {
    return "";
  }
  return fmt::format(
      "the calibration is of another machine, {} with {} cores ({}); this is {} "
      "with {} ({})",
      machine.processor, machine.cores, machine.products, host.processor, host.cores, products);
}

}  // namespace

Result<LocalPlan> read_local_plan(const CommandOptions& options, const LocalPlanFiles& files,
                                  LocalExchange exchange) {
  Result<Calibration> general = load_calibration(options);
  if (!general) return forward_error(general);
  Result<Document> training = Document::load(files.training);
  if (!training) return forward_error(training);
  Result<TrainingSpec> spec = read_training_spec(*training);
  if (!spec) return forward_error(spec);
  if (spec->layout.cut()) {
    return input_error(spec->layout.where,
                       fmt::format("layout: a step of tp {} and zero {} cannot be predicted, only "
                                   "one of tp 1 and zero 0",
                                   spec->layout.tp, spec->layout.zero));
  }
  Result<Document> calibration = Document::load(files.calibration);
  if (!calibration) return forward_error(calibration);
  Result<NodeCalibration> node = read_node_calibration(*calibration);
  if (!node) return forward_error(node);
  const std::string_view precision = word_of(spec->model.precision);
  if (node->machine.precision != precision) {
    return input_error({files.calibration, 1, 1},
                       fmt::format("measured in {}, the training multiplies in {}: measure with "
                                   "`orrery calibrate-node --precision {}`",
                                   node->machine.precision, precision, precision));
  }
  // What goes back first is still there.
  const bool recomputes = spec->model.recompute == ActivationRecompute::kFull;
  const auto recomputed = static_cast<std::uint32_t>(recomputes ? spec->model.layers - 1 : 0);
  Result<LocalStepModel> model = LocalStepModel::make(*node, *general,
                                                      {.shape = shape_of(spec->model),
                                                       .sequences = spec->batch.sequences,
                                                       .shards = spec->batch.shards,
                                                       .exchange = exchange,
                                                       .recomputed_layers = recomputed});
  if (!model) return forward_error(model);
  std::string doubt = doubt_of(node->machine);
  return LocalPlan{*std::move(spec), std::move(node->machine), *std::move(model), std::move(doubt)};
}

Result<LocalStep> predict_step(const LocalPlan& plan, std::uint32_t ranks, std::uint32_t micro) {
  const std::uint32_t shards = plan.spec.batch.shards;
  if (ranks == 0 || ranks > shards) {
    return infeasible(fmt::format("{} ranks cannot share {} shards", ranks, shards));
  }
  std::uint32_t most = 0;
  for (const LeafRange& owned : share_leaves(shards, ranks)) most = std::max(most, owned.size());
  return plan.model.predict({.ranks = ranks, .most_shards = most, .micro = micro});
}

Result<std::vector<LocalStep>> rank_local_steps(const LocalPlan& plan) {
  const TrainingBatch& batch = plan.spec.batch;
  std::vector<LocalStep> steps;
  for (std::uint32_t ranks = 1; ranks <= std::min(batch.shards, plan.model.ranks_max()); ++ranks) {
    for (std::uint32_t micro = 1; micro <= batch.per_shard(); ++micro) {
      if (batch.per_shard() % micro != 0) continue;
      Result<LocalStep> step = predict_step(plan, ranks, micro);
      if (!step) return forward_error(step);
      steps.push_back(*std::move(step));
    }
  }
  std::ranges::stable_sort(steps, {}, &LocalStep::seconds);
  return steps;
}

}  // namespace orrery
