#include "verbs/local/local_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/document.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/text_table.hpp"
#include "node/machine/host_inventory.hpp"
#include "planner/launch/layout_text.hpp"
#include "runtime/collectives/reduction_tree.hpp"
#include "runtime/kernels/gemm.hpp"
#include "runtime/ranks/planned_layout.hpp"
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
      "the calibration was measured on another machine: {} with {} cores ({}), on {}; this machine "
      "is {} with {} ({})",
      machine.processor, machine.cores, machine.products, machine.measured.text().substr(0, 10),
      host.processor, host.cores, products);
}

/// The step of `ranks` ranks that follow `spec`.
Result<LocalStep> predict(const LocalPlan& plan, const TrainingSpec& spec, std::uint32_t ranks) {
  const std::uint32_t shards = spec.batch.shards;
  const std::uint32_t replicas = ranks / spec.layout.ranks();
  if (replicas == 0 || ranks % spec.layout.ranks() != 0) {
    return infeasible(fmt::format("{} ranks are not a multiple of a replica of tp {} x pp {}",
                                  ranks, spec.layout.tp, spec.layout.pp));
  }
  if (replicas > shards) {
    return infeasible(fmt::format("{} replicas cannot share {} shards", replicas, shards));
  }
  std::uint32_t most = 0;
  for (const LeafRange& owned : share_leaves(shards, replicas)) most = std::max(most, owned.size());
  const bool recomputes = spec.model.recompute == ActivationRecompute::kFull;
  return plan.model.predict({.ranks = ranks,
                             .most_shards = most,
                             .micro = spec.batch.micro,
                             .tp = spec.layout.tp,
                             .pp = spec.layout.pp,
                             .vpp = spec.layout.vpp,
                             .zero = spec.layout.zero,
                             .recompute = recomputes ? Recompute::kFull : Recompute::kNone});
}

}  // namespace

Result<LocalPlan> read_local_plan(const CommandOptions& options, const LocalPlanFiles& files,
                                  const std::optional<ParallelPlan>& followed) {
  const Result<Facts> general = load_facts(options);
  if (!general) return tl::unexpected(general.error());
  Result<Document> training = Document::load(files.training);
  if (!training) return forward_error(training);
  Result<TrainingSpec> spec = read_training_spec(*training, followed);
  if (!spec) return forward_error(spec);
  if (spec->model.experts > 0) {
    return input_error(spec->model.where,
                       "model.experts: the step of a mixture of experts cannot be predicted");
  }
  Result<Document> calibration = Document::load(files.calibration);
  if (!calibration) return forward_error(calibration);
  Result<NodeCalibration> node = read_node_calibration(*calibration);
  if (!node) return forward_error(node);
  const std::string_view precision = word_of(spec->model.precision);
  if (node->machine.precision != precision) {
    return input_error(
        {files.calibration, 1, 1},
        fmt::format("the calibration was measured in {}, but the training multiplies in {}: "
                    "measure with `orrery calibrate-node --precision {}`",
                    node->machine.precision, precision, precision));
  }
  Result<LocalStepModel> model = LocalStepModel::make(*node, general->calibration(),
                                                      {.shape = shape_of(spec->model),
                                                       .sequences = spec->batch.sequences,
                                                       .shards = spec->batch.shards,
                                                       .exchange = files.exchange});
  if (!model) return forward_error(model);
  std::string doubt = doubt_of(node->machine);
  return LocalPlan{*std::move(spec), std::move(node->machine), *std::move(model), std::move(doubt)};
}

Result<LocalStep> predict_step(const LocalPlan& plan, std::uint32_t ranks) {
  return predict(plan, plan.spec, ranks);
}

ParallelPlan parallel_plan(const LocalLayout& layout) {
  return {.tp = layout.tp,
          .pp = layout.pp,
          .vpp = layout.vpp,
          .dp = layout.replicas(),
          .zero = layout.zero,
          .micro_batch = layout.micro,
          .sequence_parallel = layout.tp > 1 ? SequenceParallel::kOn : SequenceParallel::kOff,
          .recompute = layout.recompute};
}

namespace {

std::vector<std::uint32_t> divisors(std::uint32_t whole) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t d = 1; d <= whole; ++d) {
    if (whole % d == 0) found.push_back(d);
  }
  return found;
}

/// All layouts of one training, by what becomes of them.
class LayoutSearch {
 public:
  explicit LayoutSearch(const LocalPlan& plan)
      : plan_(plan), memory_(Bytes(static_cast<double>(host_inventory().memory_bytes))) {}

  Result<std::vector<PlannedStep>> run(const RankRange& range) {
    const std::uint32_t most = std::min(range.most, plan_.model.ranks_max());
    for (std::uint32_t ranks = range.least; ranks <= most; ++ranks) {
      if (Status added = add_ranks(ranks); !added) return forward_error(added);
    }
    if (found_.empty()) return none(range);
    std::ranges::stable_sort(found_, {}, [](const PlannedStep& each) { return each.step.seconds; });
    return std::move(found_);
  }

 private:
  Status add_ranks(std::uint32_t ranks) {
    for (const std::uint32_t tp : divisors(ranks)) {
      for (const std::uint32_t pp : divisors(ranks / tp)) {
        for (const std::uint32_t vpp : chunks_of(pp)) {
          if (Status added = add_stages(ranks, {.tp = tp, .pp = pp, .vpp = vpp}); !added) {
            return added;
          }
        }
      }
    }
    return {};
  }

  /// Into which a stage's layers can be cut.
  [[nodiscard]] std::vector<std::uint32_t> chunks_of(std::uint32_t stages) const {
    const auto layers = static_cast<std::uint32_t>(plan_.spec.model.layers);
    if (stages == 1 || layers % stages != 0) return {1};
    return divisors(layers / stages);
  }

  Status add_stages(std::uint32_t ranks, ParallelPlan plan) {
    const std::uint32_t most = ranks / (plan.tp * plan.pp) > 1 ? 1 : 0;
    for (plan.zero = 0; plan.zero <= most; ++plan.zero) {
      if (Status added = add_layout(ranks, plan); !added) return added;
    }
    return {};
  }

  Status add_layout(std::uint32_t ranks, ParallelPlan plan) {
    for (const std::uint32_t micro : divisors(plan_.spec.batch.per_shard())) {
      plan.micro_batch = micro;
      for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
        plan.recompute = recompute;
        if (Status added = add(ranks, plan); !added) return added;
      }
    }
    return {};
  }

  Status add(std::uint32_t ranks, const ParallelPlan& plan) {
    TrainingSpec spec = plan_.spec;
    Status can = follow(plan, spec);
    // What is computed again where the spec says so, and nowhere else, is one layout, not two.
    const bool recomputes = spec.model.recompute == ActivationRecompute::kFull;
    if (recomputes != (plan.recompute == Recompute::kFull)) return {};
    if (can) can = check(spec);
    if (can && ranks / spec.layout.ranks() > spec.batch.shards) {
      can = input_error(spec.batch.where,
                        fmt::format("batch.shards: {} shards are too few for {} replicas",
                                    spec.batch.shards, ranks / spec.layout.ranks()));
    }
    if (!can) {
      if (!refused_) refused_ = can.error();
      return {};
    }
    const RankMemory memory = rank_memory(spec, ranks / spec.layout.ranks());
    // Figures of another machine say nothing of its memory.
    if (plan_.doubt.empty() && memory.total() * ranks > memory_) {
      if (!least_ || memory.total() * ranks < *least_) least_ = memory.total() * ranks;
      return {};
    }
    Result<LocalStep> step = predict(plan_, spec, ranks);
    if (!step) return forward_error(step);
    found_.push_back({*std::move(step), memory});
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> none(const RankRange& range) const {
    if (least_) {
      return infeasible(fmt::format(
          "{}: no layout fits: the smallest needs {} for all ranks together, this machine has {}",
          plan_.spec.name, print(*least_), print(memory_)));
    }
    if (refused_) return tl::unexpected(*refused_);
    return infeasible(
        fmt::format("{}: no prediction for {} or more ranks: the calibration covers 1 to {} busy "
                    "ranks; measure with `orrery calibrate-node --ranks {}`",
                    plan_.spec.name, range.least, plan_.model.ranks_max(), range.least));
  }

  const LocalPlan& plan_;
  Bytes memory_;
  std::vector<PlannedStep> found_;
  std::optional<Error> refused_;
  std::optional<Bytes> least_;
};

}  // namespace

const PlannedStep& best_of(const std::vector<PlannedStep>& steps) {
  constexpr double kAlike = 1.15;
  const auto rank = [](const PlannedStep& planned) {
    const LocalLayout& layout = planned.step.layout;
    const bool cut = layout.tp * layout.pp > 1 || layout.zero > 0;
    return std::pair(cut ? 1 : 0, -std::int64_t{layout.replicas()});
  };
  const PlannedStep* best = &steps.front();
  for (const PlannedStep& each : steps) {
    if (each.step.seconds > kAlike * steps.front().step.seconds) break;
    if (rank(each) < rank(*best)) best = &each;
  }
  return *best;
}

std::string local_plan_text(const LocalPlan& plan, const std::vector<PlannedStep>& steps) {
  TextTable table({{"ranks", Align::kRight},
                   {"layout"},
                   {"shards per replica", Align::kRight},
                   {"step", Align::kRight},
                   {"tokens/s", Align::kRight},
                   {"products", Align::kRight},
                   {"exchange", Align::kRight},
                   {"memory per rank", Align::kRight}});
  for (const PlannedStep& planned : steps) {
    const LocalStep& step = planned.step;
    const double whole = step.terms.total();
    double exchange = 0;
    for (const Term term : {Term::kDataParallel, Term::kTensorParallel, Term::kPipelineSend}) {
      exchange += step.terms[term];
    }
    table.add(
        {fmt::format("{}", step.layout.ranks), print_layout(parallel_plan(step.layout)),
         fmt::format("{}", step.layout.most_shards), fmt::format("{:.1f} ms", 1000 * step.seconds),
         fmt::format("{:.0f}", static_cast<double>(plan.spec.tokens_per_step()) / step.seconds),
         fmt::format("{:.0f} %", 100 * step.terms[Term::kMatmul] / whole),
         fmt::format("{:.0f} %", 100 * exchange / whole), print(planned.memory.total())});
  }
  return fmt::format("{}: {} sequences of {} tokens in {} shards\n", plan.spec.name,
                     plan.spec.batch.sequences, plan.spec.model.sequence, plan.spec.batch.shards) +
         table.text();
}

Result<std::vector<PlannedStep>> plan_local_steps(const LocalPlan& plan, const RankRange& ranks) {
  return LayoutSearch(plan).run(ranks);
}

}  // namespace orrery
