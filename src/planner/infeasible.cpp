#include "planner/infeasible.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/quantity_text.hpp"
#include "planner/launch/layout_text.hpp"

namespace orrery {
namespace {

/// Factors on the number of accelerators that are tried.
constexpr std::uint64_t kGrowthMax = 1024;

std::string gibibytes(double bytes) { return fmt::format("{:.1f} GiB", bytes / (1u << 30)); }

PlanSpace open_space(const PlanSpace& space) {
  PlanSpace open;
  open.abilities = space.abilities;
  return open;
}

bool states_anything(const PlanSpace& s) {
  return !(s.tp.open() && s.pp.open() && s.vpp.open() && s.dp.open() && s.cp.open() &&
           s.ep.open() && s.zero.open() && s.micro_batch.open() && s.shard.open() &&
           s.sequence_parallel.open() && s.recompute.open() && s.offload.open() &&
           s.context_exchange.open());
}

class Explainer {
 public:
  Explainer(const PlannerFacts& facts, const PlanQuestion& question, std::size_t machine)
      : facts_(facts), question_(question), choice_(question.machines[machine]) {}

  Error memory(const NearestFit& nearest) {
    if (nearest.memory.total() <= choice_.machine.memory) return host_memory(nearest);
    try_open();
    try_offload();
    try_growth();
    const double needed = nearest.memory.total();
    helps_.push_back(fmt::format("{} of memory per accelerator", gibibytes(needed)));
    const TrainingMemory& m = nearest.memory;
    return {
        .kind = ErrorKind::kInfeasible,
        .message = fmt::format(
            "{}: out of memory. The layout with the lowest demand ({}) needs {} per rank (weights "
            "{}, "
            "gradients {}, optimizer {}, activations {}, other {}), the limit is {}. What would "
            "help: {}",
            choice_.label, print_layout(nearest.plan), gibibytes(needed), gibibytes(m.weights),
            gibibytes(m.gradients), gibibytes(m.optimizer), gibibytes(m.activations),
            gibibytes(m.transient + m.gathered + m.runtime), gibibytes(choice_.machine.memory),
            fmt::join(helps_, "; "))};
  }

 private:
  /// It fits on the devices, but what it offloads does not fit into the hosts.
  Error host_memory(const NearestFit& nearest) {
    try_open();
    try_growth();
    const Machine& machine = choice_.machine;
    const double ranks = double{1} * std::max(1, machine.node->accelerators_per_node) *
                         machine.ranks_per_accelerator;
    const double needed = nearest.memory.host * ranks;
    helps_.push_back(fmt::format("{} of host memory per node", gibibytes(needed)));
    return {.kind = ErrorKind::kInfeasible,
            .message = fmt::format(
                "{}: out of host memory. The nearest layout ({}) offloads {} per rank, {} per "
                "node, to host memory, and {} has {}. What would help: {}",
                choice_.label, print_layout(nearest.plan), gibibytes(nearest.memory.host),
                gibibytes(needed), machine.node->id,
                gibibytes(machine.host_memory.value_or(0) * ranks), fmt::join(helps_, "; "))};
  }

  /// The layout of the fastest plan, when there is one.
  [[nodiscard]] std::optional<ParallelPlan> fits(const Machine& machine, PlanSpace space) const {
    Result<TrainingModel> model = TrainingModel::make(question_.job, machine, facts_.calibration);
    if (!model) return std::nullopt;
    space.tp_max = space_of(machine).tp_max;
    const SearchResult found = search(*model, space, {.best = 1});
    if (found.best.empty()) return std::nullopt;
    return found.best.front().plan;
  }

  void try_open() {
    if (!states_anything(question_.space)) return;
    if (const auto plan = fits(choice_.machine, open_space(question_.space))) {
      helps_.push_back(fmt::format("another layout, such as {}", print_layout(*plan)));
    }
  }

  void try_offload() {
    if (question_.space.abilities.offload) return;
    for (const Offload offload : {Offload::kOptimizer, Offload::kActivations, Offload::kBoth}) {
      PlanSpace space = question_.space;
      space.offload = offload;
      const auto plan = fits(choice_.machine, space);
      if (!plan) continue;
      helps_.push_back(fmt::format("offloading ({})", print_layout(*plan)));
      return;
    }
  }

  void try_growth() {
    if (!choice_.request) return;
    PlanSpace space = question_.space;
    space.dp = Choice<std::uint32_t>();
    for (std::uint64_t times = 2; times <= kGrowthMax; times *= 2) {
      MachineRequest request = *choice_.request;
      request.accelerators *= times;
      const Result<Machine> machine = machine_of(facts_.catalog, request);
      if (!machine) return;
      const auto plan = fits(*machine, space);
      if (!plan) continue;
      helps_.push_back(
          fmt::format("{} accelerators ({})", request.accelerators, print_layout(*plan)));
      return;
    }
  }

  const PlannerFacts& facts_;
  const PlanQuestion& question_;
  const MachineChoice& choice_;
  std::vector<std::string> helps_;
};

}  // namespace

Error why_no_plan(const PlannerFacts& facts, const PlanQuestion& question, std::size_t machine,
                  const SearchResult& result) {
  if (result.nearest) return Explainer(facts, question, machine).memory(*result.nearest);
  const ErrorKind kind =
      states_anything(question.space) ? ErrorKind::kInput : ErrorKind::kInfeasible;
  const std::string rule =
      result.first_refusal ? result.first_refusal->message : "no layout remains";
  return {.kind = kind,
          .message = fmt::format("{}: no layout obeys the rules: {}",
                                 question.machines[machine].label, rule)};
}

}  // namespace orrery
