#include "scheduler/plans/plan_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "planner/launch/layout_text.hpp"
#include "planner/launch/training_stack.hpp"
#include "planner/serving/serving_plan.hpp"

namespace orrery {
namespace {

/// Number of plans of a search among which different ones are selected.
constexpr std::size_t kSearched = 64;

tl::unexpected<Rejection> reject(RejectionKind kind, std::string reason) {
  return tl::unexpected(Rejection{kind, {}, std::move(reason)});
}

double gibibytes(double bytes) { return bytes / (1u << 30); }

TrainingJob job_of(const Work& work) {
  const TrainingWork& training = *work.training();
  return {.model = work.model,
          .sequence = training.sequence,
          .global_batch = training.global_batch,
          .precision = training.precision,
          .task = training.task};
}

/// Plans of equal degrees use the network in the same way.
auto degrees(const ParallelPlan& plan) { return std::tuple(plan.tp, plan.cp, plan.pp, plan.ep); }

std::optional<DollarsPerSecond> price_of(const Economics& economics,
                                         const std::optional<DevicePower>& power) {
  if (!economics.price.value) return std::nullopt;
  const DollarsPerSecond hire = economics.price.value->hire;
  if (!economics.owned) return hire;
  if (!power) return std::nullopt;
  const Site& site = *economics.site.value;
  return hire + power->total() * site.pue * site.electricity;
}

/// Draw, price and clock of a device whose time divides like this.
void set_running(PlannedWork& planned, const Economics& economics, const PowerLoad& load) {
  if (economics.power.value) {
    const Result<DevicePower> power = power_at(*economics.power.value, load);
    if (power) planned.power = *power;
    planned.clock_bound = clock_bound_of(*economics.power.value, load);
  }
  planned.price = price_of(economics, planned.power);
}

/// A training job on its piece.
class TrainingPlanner {
 public:
  TrainingPlanner(const PlanSources& sources, const Work& work) : sources_(sources), work_(work) {}

  Status prepare(const FleetPiece& piece) {
    Result<MachineChoice> choice = machine_with(sources_.topology, piece, sources_.economics);
    if (!choice) return forward_error(choice);
    choice_ = *std::move(choice);
    if (Status capped = apply_power_cap(sources_.facts, choice_.economics.power, choice_.machine);
        !capped) {
      return capped;
    }
    Result<TrainingModel> model =
        TrainingModel::make(job_of(work_), choice_.machine, sources_.facts.calibration);
    if (!model) return forward_error(model);
    model_ = std::make_shared<const TrainingModel>(*std::move(model));
    return {};
  }

  [[nodiscard]] SearchResult find(std::size_t best) const {
    return search(*model_, space_of(choice_.machine), {.best = best});
  }

  [[nodiscard]] PlanEntry plan(std::size_t best) const {
    const SearchResult found = find(std::max(best, kSearched));
    if (found.best.empty()) return why_none(found);
    Result<Economics> economics =
        economics_of(sources_.facts, choice_.machine, model_->work(), choice_.economics);
    if (!economics) return reject(RejectionKind::kNever, economics.error().message);
    std::vector<PlannedWork> plans;
    for (const RankedPlan& ranked : found.best) {
      const bool alike = std::any_of(plans.begin(), plans.end(), [&](const PlannedWork& other) {
        return degrees(other.training()->plan) == degrees(ranked.plan);
      });
      if (plans.size() == best) break;
      if (!alike) plans.push_back(planned(ranked, *economics));
    }
    return plans;
  }

 private:
  [[nodiscard]] PlanEntry why_none(const SearchResult& found) const {
    const std::string& label = choice_.label;
    if (!found.nearest) {
      return reject(
          RejectionKind::kNever,
          fmt::format("{}: no layout obeys the rules: {}", label,
                      found.first_refusal ? found.first_refusal->message : "none is left to try"));
    }
    const TrainingMemory& memory = found.nearest->memory;
    if (memory.total() <= choice_.machine.memory) {
      return reject(RejectionKind::kMemory,
                    fmt::format("{}: the layout that comes nearest ({}) offloads {:.1f} GiB a rank "
                                "to host memory, where {:.1f} GiB are",
                                label, print_layout(found.nearest->plan), gibibytes(memory.host),
                                gibibytes(choice_.machine.host_memory.value_or(0))));
    }
    return reject(RejectionKind::kMemory,
                  fmt::format("{}: the least hungry layout ({}) needs {:.1f} GiB a rank, the limit "
                              "is {:.1f} GiB",
                              label, print_layout(found.nearest->plan), gibibytes(memory.total()),
                              gibibytes(choice_.machine.memory)));
  }

  [[nodiscard]] PlannedWork planned(const RankedPlan& ranked, const Economics& economics) const {
    PlannedTraining training{.plan = ranked.plan,
                             .model = model_,
                             .scale_out_quality = choice_.machine.tiers.back().quality,
                             .reliability = economics.reliability.value};
    const Result<Bytes> checkpoint = checkpoint_bytes(
        sources_.facts.calibration, model_->work().parameters, CheckpointContent::kFull);
    if (checkpoint) training.checkpoint = *checkpoint;
    PlannedWork planned{.devices = static_cast<std::uint32_t>(economics.accelerators),
                        .step_seconds = ranked.cost.seconds,
                        .how = std::move(training)};
    if (const std::optional<PowerLoad> load = power_load_of(ranked.cost)) {
      set_running(planned, economics, *load);
    }
    return planned;
  }

  const PlanSources& sources_;
  const Work& work_;
  MachineChoice choice_;
  std::shared_ptr<const TrainingModel> model_;
};

std::optional<FleetPool> largest_pool(const PlanSources& sources, FleetTypeId type) {
  std::optional<FleetPool> largest;
  for (FleetPool& pool : fleet_pools(sources.topology, sources.economics)) {
    if (pool.type != type || (largest && pool.accelerators <= largest->accelerators)) continue;
    largest = std::move(pool);
  }
  return largest;
}

/// A service on the accelerators of one type.
class ServicePlanner {
 public:
  ServicePlanner(const PlanSources& sources, const Work& work) : sources_(sources) {
    const ServiceWork& serving = *work.serving();
    question_.model = work.model;
    question_.input = serving.input;
    question_.output = serving.output;
    question_.rate = serving.rate;
    question_.limits = serving.limits;
    question_.formats = {serving.weights};
  }

  /// Rejection: not so many of that type, no engine, a figure out of range.
  tl::expected<void, Rejection> prepare(const FleetPiece& piece) {
    std::optional<FleetPool> pool = largest_pool(sources_, piece.type);
    const std::uint64_t most = pool ? pool->accelerators : 0;
    const std::string& id = sources_.topology.accelerator(piece.type).id;
    if (piece.accelerators == 0 || piece.accelerators > most) {
      return reject(RejectionKind::kNever,
                    fmt::format("{}:{}: the most in like nodes of one site are {}", id,
                                piece.accelerators, most));
    }
    question_.machines = {{.label = fmt::format("{}:{}", id, piece.accelerators),
                           .accelerator = pool->accelerator,
                           .node = pool->node,
                           .accelerators = piece.accelerators,
                           .domain = pool->domain,
                           .economics = std::move(pool->economics)}};
    if (!engine_runs()) {
      return reject(RejectionKind::kStack,
                    fmt::format("{} does not run on {}", question_.engine, id));
    }
    const ServingChoice& choice = question_.machines.front();
    Result<Economics> economics = running_costs_of(sources_.facts, *choice.node, choice.economics);
    if (!economics) return reject(RejectionKind::kNever, economics.error().message);
    economics_ = *std::move(economics);
    const bool priced = economics_.price.value && (!economics_.owned || economics_.power.value);
    question_.objective = priced                   ? ServingObjective::kCost
                          : economics_.power.value ? ServingObjective::kEnergy
                                                   : ServingObjective::kRack;
    return {};
  }

  [[nodiscard]] PlanEntry plan(std::size_t best) {
    question_.best = best;
    const Result<ServingAnswer> answer = plan_serving(sources_.facts, question_);
    if (!answer) return why_none(answer.error());
    std::vector<PlannedWork> plans;
    for (const ServingOffer& offer : answer->plans) plans.push_back(planned(offer));
    return plans;
  }

 private:
  [[nodiscard]] bool engine_runs() const {
    const Framework* framework = sources_.facts.catalog.find<Framework>(question_.engine);
    if (framework == nullptr) return true;
    const Catalog::StackAnswer stack =
        sources_.facts.catalog.stack(*framework, *question_.machines.front().accelerator);
    return stack.platform == nullptr || stack.support != Support::kNo;
  }

  /// What does not fit with no rate and no limits at all lacks memory.
  [[nodiscard]] PlanEntry why_none(const Error& error) const {
    ServingQuestion any = question_;
    any.rate.reset();
    any.limits = {};
    const bool fits = plan_serving(sources_.facts, any).has_value();
    const bool answered = error.kind == ErrorKind::kInfeasible;
    return reject(answered && !fits ? RejectionKind::kMemory : RejectionKind::kNever,
                  error.message);
  }

  [[nodiscard]] PlannedWork planned(const ServingOffer& offer) const {
    PlannedWork planned{.devices = static_cast<std::uint32_t>(std::lround(offer.accelerators())),
                        .step_seconds = offer.prediction.tpot.value(),
                        .how = PlannedService{.layout = offer.plan,
                                              .numbers = offer.numbers,
                                              .requests_max = offer.requests_max,
                                              .ttft = offer.prediction.ttft,
                                              .tpot = offer.prediction.tpot}};
    set_running(planned, economics_, offer.quote.load);
    return planned;
  }

  const PlanSources& sources_;
  ServingQuestion question_;
  Economics economics_;
};

/// Powers of two up to a node, and units in powers of two, of the type's largest node group.
std::vector<std::uint32_t> training_sizes(const Topology& topology, FleetTypeId type,
                                          const CountRange& range) {
  const std::uint32_t most = std::min(range.max, topology.device_count(Topology::root(), type));
  std::vector<std::uint32_t> sizes = {range.min, most};
  const auto add_powers = [&](std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t n = first; n <= last; n *= 2) {
      if (n >= range.min) sizes.push_back(static_cast<std::uint32_t>(n));
    }
  };
  for (const NodeGroup& group : topology.groups()) {
    if (group.type != type || group.devices == 0) continue;
    add_powers(1, std::min<std::uint64_t>(group.devices, most));
    add_powers(group.devices, most);
    if (group.scale_up_devices > group.devices) add_powers(group.scale_up_devices, most);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::erase_if(sizes, [&](std::uint32_t n) { return n < range.min || n > most || n == 0; });
  return sizes;
}

}  // namespace

PlanEntry plan_work(const PlanSources& sources, const Work& work, const FleetPiece& piece,
                    std::size_t best) {
  if (work.serving() != nullptr) {
    ServicePlanner planner(sources, work);
    if (auto prepared = planner.prepare(piece); !prepared) {
      return tl::unexpected(std::move(prepared.error()));
    }
    return planner.plan(best);
  }
  const Accelerator& accelerator = sources.topology.accelerator(piece.type);
  if (only_infers(sources.facts.catalog, accelerator)) {
    return reject(RejectionKind::kStack,
                  check_training_stack(sources.facts.catalog, accelerator).error().message);
  }
  TrainingPlanner planner(sources, work);
  if (Status prepared = planner.prepare(piece); !prepared) {
    return reject(RejectionKind::kNever, prepared.error().message);
  }
  return planner.plan(best);
}

std::vector<std::uint32_t> counts_for(const PlanSources& sources, const Work& work,
                                      FleetTypeId type, const CountRange& range) {
  std::vector<std::uint32_t> counts;
  if (work.serving() != nullptr) {
    const std::optional<FleetPool> pool = largest_pool(sources, type);
    if (!pool) return counts;
    const std::uint64_t most = std::min<std::uint64_t>(range.max, pool->accelerators);
    const PlanEntry entry = plan_work(sources, work, {type, most}, kSearched);
    if (!entry) return counts;
    for (const PlannedWork& planned : *entry) {
      if (planned.devices >= range.min) counts.push_back(planned.devices);
    }
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
  }
  if (only_infers(sources.facts.catalog, sources.topology.accelerator(type))) return counts;
  for (const std::uint32_t size : training_sizes(sources.topology, type, range)) {
    TrainingPlanner planner(sources, work);
    if (planner.prepare({type, size}) && !planner.find(1).best.empty()) counts.push_back(size);
  }
  return counts;
}

}  // namespace orrery
