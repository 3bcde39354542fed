#include "planner/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "perf/training/pipeline.hpp"

namespace orrery {
namespace {

/// A bound is lowered by this much, so that rounding never prunes an equal plan.
constexpr double kSlack = 1 - 1e-9;

auto fields(const ParallelPlan& p) {
  return std::tie(p.tp, p.pp, p.vpp, p.dp, p.cp, p.ep, p.zero, p.micro_batch, p.shard,
                  p.recompute_layers, p.recompute_kept, p.sequence_parallel, p.recompute, p.offload,
                  p.context_exchange);
}

bool before(const RankedPlan& a, const RankedPlan& b) {
  if (a.score != b.score) return a.score < b.score;
  return compare_plans(a.plan, b.plan) < 0;
}

/// Plans that share the cost of a layer: one split, one way to recompute and exchange, with or
/// without pipeline stages and sharded gradients (which may run on another software stack).
struct Block {
  enum class Pipeline { kNone, kStages };
  enum class Sharding { kOptimizer, kGradients };

  const Split* split = nullptr;
  ParallelPlan plan;  ///< its dimensions, and the least of the others
  Pipeline pipeline = Pipeline::kNone;
  Sharding sharding = Sharding::kOptimizer;
  BlockCosts costs;
  double floor = 0;  ///< lower bound on the score of its plans

  [[nodiscard]] bool holds(const StageSplit& stages) const {
    return (stages.pp > 1) == (pipeline == Pipeline::kStages);
  }
  [[nodiscard]] bool holds(std::uint32_t zero) const {
    return (zero >= 2) == (sharding == Sharding::kGradients);
  }
};

class Searcher {
 public:
  Searcher(const TrainingModel& model, const PlanSpace& space, const SearchOptions& options)
      : model_(model), space_(space), options_(options) {}

  SearchResult run() {
    const Splits splits = splits_of(model_, space_);
    result_.counters.invalid = splits.refused;
    for (const Split& split : splits.splits) add_blocks(split);
    // The position breaks ties, so the order is the same everywhere.
    std::stable_sort(blocks_.begin(), blocks_.end(),
                     [](const Block& a, const Block& b) { return a.floor < b.floor; });
    for (const Block& block : blocks_) {
      visit(block);
      if (options_.progress) options_.progress(result_.counters);
    }
    if (result_.counters.enumerated == 0) result_.first_refusal = splits.first_refusal;
    if (!result_.best.empty()) result_.nearest.reset();
    return std::move(result_);
  }

 private:
  void add_blocks(const Split& split) {
    const BlockChoices choices = block_choices(model_, space_, split);
    ParallelPlan plan{.tp = split.tp,
                      .cp = split.cp,
                      .ep = split.ep,
                      .micro_batch = split.micro_batch,
                      .recompute_kept = space_.recompute_kept};
    for (const SequenceParallel sequence_parallel : choices.sequence_parallel) {
      plan.sequence_parallel = sequence_parallel;
      for (const ContextExchange exchange : choices.context_exchange) {
        plan.context_exchange = exchange;
        for (const Recompute recompute : choices.recompute) {
          plan.recompute = recompute;
          for (const std::uint32_t layers : choices.recompute_layers) {
            const bool whole = layers == kFewestLayers && recompute != Recompute::kFull;
            plan.recompute_layers = whole ? 0 : layers;
            add_variants(split, plan);
            if (recompute != Recompute::kFull) break;  // the number changes nothing
          }
        }
      }
    }
  }

  void add_variants(const Split& split, const ParallelPlan& plan) {
    for (const auto pipeline : {Block::Pipeline::kNone, Block::Pipeline::kStages}) {
      for (const auto sharding : {Block::Sharding::kOptimizer, Block::Sharding::kGradients}) {
        Block block{.split = &split, .plan = plan, .pipeline = pipeline, .sharding = sharding};
        if (price(block)) blocks_.push_back(block);
      }
    }
  }

  /// False when the block holds no plan.
  bool price(Block& block) const {
    block.floor = std::numeric_limits<double>::infinity();
    bool priced = false;
    for (const StageSplit& stages : block.split->stages) {
      if (!block.holds(stages)) continue;
      const StateChoices states = state_choices(space_, *block.split, stages);
      const auto zero = std::find_if(states.zero.begin(), states.zero.end(),
                                     [&](std::uint32_t each) { return block.holds(each); });
      if (zero == states.zero.end()) continue;
      set_stages(block.plan, stages);
      block.plan.zero = *zero;
      if (!priced) block.costs = model_.block_costs(block.plan);
      priced = true;
      block.floor = std::min(block.floor, floor_of(block, block.plan));
    }
    return priced;
  }

  static void set_stages(ParallelPlan& plan, const StageSplit& stages) {
    plan.pp = stages.pp;
    plan.vpp = stages.vpp;
    plan.dp = stages.dp;
  }

  [[nodiscard]] double floor_of(const Block& block, const ParallelPlan& plan) const {
    if (options_.score && !options_.floor) return -std::numeric_limits<double>::infinity();
    const double seconds = step_floor(model_, plan, block.costs) * kSlack;
    return options_.floor ? options_.floor(seconds) : seconds;
  }

  [[nodiscard]] bool hopeless(double floor) const {
    return options_.effort == Effort::kPruned && result_.best.size() >= options_.best &&
           !result_.best.empty() && floor > result_.best.back().score;
  }

  void visit(const Block& block) {
    ParallelPlan plan = block.plan;
    for (const StageSplit& stages : block.split->stages) {
      if (!block.holds(stages)) continue;
      set_stages(plan, stages);
      const StateChoices states = state_choices(space_, *block.split, stages);
      if (hopeless(block.floor) || hopeless(floor_of(block, plan))) {
        skip(block, states);
      } else {
        visit_states(block, states, plan);
      }
    }
  }

  static std::uint64_t shards_of(const StateChoices& states, std::uint32_t zero) {
    return zero >= 3 ? states.shard.size() : 1;
  }

  void skip(const Block& block, const StateChoices& states) {
    std::uint64_t plans = 0;
    for (const std::uint32_t zero : states.zero) {
      if (block.holds(zero)) plans += shards_of(states, zero) * states.offload.size();
    }
    result_.counters.enumerated += plans;
    result_.counters.pruned += plans;
  }

  void visit_states(const Block& block, const StateChoices& states, ParallelPlan plan) {
    for (const std::uint32_t zero : states.zero) {
      if (!block.holds(zero)) continue;
      plan.zero = zero;
      for (std::uint64_t i = 0; i < shards_of(states, zero); ++i) {
        plan.shard = zero >= 3 ? states.shard[i] : 0;
        for (const Offload offload : states.offload) {
          plan.offload = offload;
          consider(block, plan);
        }
      }
    }
  }

  /// Returns the plan with the least number of recomputed layers that fits; all layers if none
  /// does.
  [[nodiscard]] ParallelPlan least_recomputed(ParallelPlan plan) const {
    auto most = static_cast<std::uint32_t>(std::ceil(model_.work().layers / plan.pp));
    std::uint32_t least = 1;
    while (least < most) {
      plan.recompute_layers = least + (most - least) / 2;
      if (model_.fits(model_.memory(plan))) {
        most = plan.recompute_layers;
      } else {
        least = plan.recompute_layers + 1;
      }
    }
    const bool all = least >= std::ceil(model_.work().layers / plan.pp);
    plan.recompute_layers = all ? 0 : least;
    return plan;
  }

  /// Plans that fit on the devices and only lack room in the hosts go before those that fit on
  /// neither.
  [[nodiscard]] bool nearer(const TrainingMemory& a, const TrainingMemory& b) const {
    const bool a_fits = a.total() <= model_.memory_limit();
    const bool b_fits = b.total() <= model_.memory_limit();
    return a_fits != b_fits ? a_fits : model_.fullness(a) < model_.fullness(b);
  }

  void consider(const Block& block, const ParallelPlan& stated) {
    ++result_.counters.enumerated;
    const bool open = stated.recompute_layers == kFewestLayers;
    const ParallelPlan plan = open ? least_recomputed(stated) : stated;
    RankedPlan candidate{.plan = plan, .cost = {.memory = model_.memory(plan)}};
    if (!model_.fits(candidate.cost.memory)) {
      ++result_.counters.out_of_memory;
      if (!result_.nearest || nearer(candidate.cost.memory, result_.nearest->memory)) {
        result_.nearest = NearestFit{.plan = plan, .memory = candidate.cost.memory};
      }
      return;
    }
    ++result_.counters.evaluated;
    candidate.cost.terms = model_.step_terms(plan, block.costs);
    candidate.cost.seconds = candidate.cost.terms.total();
    candidate.score =
        options_.score ? options_.score(plan, candidate.cost) : candidate.cost.seconds;
    if (!std::isfinite(candidate.score)) return;
    rank(candidate);
    extend_frontier(candidate);
  }

  void rank(const RankedPlan& candidate) {
    std::vector<RankedPlan>& best = result_.best;
    if (best.size() >= options_.best && (best.empty() || !before(candidate, best.back()))) return;
    best.insert(std::upper_bound(best.begin(), best.end(), candidate, before), candidate);
    if (best.size() > options_.best) best.pop_back();
  }

  /// The frontier ascends in seconds and descends in memory.
  void extend_frontier(const RankedPlan& candidate) {
    std::vector<RankedPlan>& frontier = result_.frontier;
    const double seconds = candidate.cost.seconds;
    const double memory = candidate.cost.memory.total();
    const auto at = std::lower_bound(
        frontier.begin(), frontier.end(), seconds,
        [](const RankedPlan& each, double value) { return each.cost.seconds < value; });
    if (at != frontier.begin() && std::prev(at)->cost.memory.total() <= memory) return;
    if (at != frontier.end() && at->cost.seconds == seconds && at->cost.memory.total() <= memory) {
      return;
    }
    auto last = at;
    while (last != frontier.end() && last->cost.memory.total() >= memory) ++last;
    frontier.insert(frontier.erase(at, last), candidate);
  }

  const TrainingModel& model_;
  const PlanSpace& space_;
  const SearchOptions& options_;
  std::vector<Block> blocks_;
  SearchResult result_;
};

}  // namespace

std::strong_ordering compare_plans(const ParallelPlan& a, const ParallelPlan& b) {
  if (fields(a) == fields(b)) return std::strong_ordering::equal;
  return fields(a) < fields(b) ? std::strong_ordering::less : std::strong_ordering::greater;
}

double step_floor(const TrainingModel& model, const ParallelPlan& plan, const BlockCosts& block) {
  const double micro_batches = model.job().global_batch / (double{1} * plan.dp * plan.micro_batch);
  const double layers = std::ceil(model.work().layers / plan.pp);
  double layer = block.layer.forward.total() + block.layer.backward.total();
  const bool open = plan.recompute_layers == kFewestLayers;
  const double counted = open ? 1 : plan.recompute_layers;
  const double recomputed = counted > 0 ? std::min(1.0, counted / layers) : 1;
  layer += recomputed * block.layer.recomputed;
  const double ends = plan.pp == 1 ? block.ends.embedding + block.ends.head : 0;
  return micro_batches * (layers * layer + ends);
}

SearchResult search(const TrainingModel& model, const PlanSpace& space,
                    const SearchOptions& options) {
  return Searcher(model, space, options).run();
}

}  // namespace orrery
