#include "planner/plan_space.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/format/field_writer.hpp"
#include "perf/training/pipeline.hpp"

namespace orrery {
namespace {

std::vector<std::uint32_t> divisors(std::uint64_t whole, std::uint64_t limit) {
  std::vector<std::uint32_t> found;
  for (std::uint64_t d = 1; d * d <= whole; ++d) {
    if (whole % d != 0) continue;
    if (d <= limit) found.push_back(static_cast<std::uint32_t>(d));
    if (d != whole / d && whole / d <= limit) {
      found.push_back(static_cast<std::uint32_t>(whole / d));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::uint64_t limit_of(std::optional<std::uint32_t> declared) {
  return declared.value_or(std::numeric_limits<std::uint32_t>::max());
}

/// The stated values, else the divisors of `whole` up to `limit`.
std::vector<std::uint32_t> values(const Choice<std::uint32_t>& choice, std::uint64_t whole,
                                  std::uint64_t limit) {
  return choice.open() ? divisors(whole, limit) : choice.values();
}

template <class T>
std::vector<T> values(const Choice<T>& choice, const std::vector<T>& declared) {
  return choice.open() ? declared : choice.values();
}

/// Ranks left when `part` of them are one unit of a split; 0: not a whole number.
std::uint64_t rest(std::uint64_t ranks, std::uint64_t part) {
  return part > 0 && ranks % part == 0 ? ranks / part : 0;
}

Status within(const Choice<std::uint32_t>& choice, std::optional<std::uint32_t> limit,
              std::string_view what) {
  for (const std::uint32_t value : choice.values()) {
    if (value == 0 || value > limit_of(limit)) {
      return input_error({}, fmt::format("{} {} is not in 1 to {}", what, value, limit_of(limit)));
    }
  }
  return {};
}

std::string word(std::uint32_t value) { return std::to_string(value); }
template <WordedEnum T>
std::string word(T value) {
  return std::string(word_of(value));
}

template <class T>
Status among(const Choice<T>& choice, const std::vector<T>& declared, std::string_view what) {
  for (const T value : choice.values()) {
    if (std::find(declared.begin(), declared.end(), value) == declared.end()) {
      return input_error({}, fmt::format("{} {} is not declared", what, word(value)));
    }
  }
  return {};
}

/// If both are stated, one pair of them has to be declared.
Status check_zero_with_tensor(const PlanSpace& space) {
  if (!space.abilities.zero_with_tensor || space.tp.open() || space.zero.open()) return {};
  const std::vector<std::uint32_t>& able = *space.abilities.zero_with_tensor;
  const auto& tensor = space.tp.values();
  if (std::find(tensor.begin(), tensor.end(), 1u) != tensor.end()) return {};
  for (const std::uint32_t zero : space.zero.values()) {
    if (std::find(able.begin(), able.end(), zero) != able.end()) return {};
  }
  return input_error({},
                     fmt::format("{}: zero {} beside tp {} is not declared", space.abilities.name,
                                 space.zero.values().front(), tensor.front()));
}

bool divides_heads(const TrainingModel& model, double ranks) {
  for (const LayerWork& kind : model.work().kinds) {
    if (kind.heads > 0 && std::fmod(kind.heads, ranks) != 0) return false;
  }
  return true;
}

class SplitFinder {
 public:
  SplitFinder(const TrainingModel& model, const PlanSpace& space) : model_(model), space_(space) {}

  Splits find() {
    if (Status declared = check_declared(space_); !declared) {
      refuse({}, declared.error().message);
      return std::move(found_);
    }
    const std::uint64_t ranks = model_.ranks();
    if (Status divides = check_stated(); !divides) {
      refuse({}, divides.error().message);
      return std::move(found_);
    }
    const RuntimeAbilities& able = space_.abilities;
    const std::uint64_t tp_max = std::min<std::uint64_t>(space_.tp_max, limit_of(able.tensor_max));
    for (const std::uint32_t tp : values(space_.tp, ranks, tp_max)) {
      for (const std::uint32_t cp : context_sizes(rest(ranks, tp))) {
        const std::uint64_t left = rest(ranks, std::uint64_t{tp} * cp);
        if (left == 0) {
          refuse({.tp = tp, .cp = cp}, "");
          continue;
        }
        add_experts(tp, cp, left);
      }
    }
    return std::move(found_);
  }

 private:
  /// Stated sizes of which no product is the number of ranks.
  [[nodiscard]] Status check_stated() const {
    const std::array<std::pair<std::string_view, const Choice<std::uint32_t>*>, 4> sizes = {
        {{"tp", &space_.tp}, {"pp", &space_.pp}, {"cp", &space_.cp}, {"dp", &space_.dp}}};
    std::uint64_t product = 1;
    std::string text;
    for (const auto& [name, choice] : sizes) {
      if (choice->values().size() != 1) continue;
      product *= choice->values().front();
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, choice->values().front());
    }
    if (rest(model_.ranks(), product) > 0) return {};
    return input_error({}, fmt::format("{} does not divide {} ranks", text, model_.ranks()));
  }

  void refuse(const ParallelPlan& plan, const std::string& rule) {
    ++found_.refused;
    if (found_.first_refusal) return;
    if (!rule.empty()) {
      found_.first_refusal = Error{.kind = ErrorKind::kInput, .message = rule};
    } else {
      found_.first_refusal = Error{.kind = ErrorKind::kInput,
                                   .message = fmt::format("tp {} x cp {} does not divide {} ranks",
                                                          plan.tp, plan.cp, model_.ranks())};
    }
  }

  [[nodiscard]] std::vector<std::uint32_t> context_sizes(std::uint64_t ranks) const {
    const double tokens = model_.job().sequence.value();
    const auto limit = std::min<std::uint64_t>(
        limit_of(space_.abilities.context_max),
        std::max<std::uint64_t>(1, static_cast<std::uint64_t>(tokens / kContextTokensMin)));
    return values(space_.cp, std::max<std::uint64_t>(1, ranks), limit);
  }

  void add_experts(std::uint32_t tp, std::uint32_t cp, std::uint64_t left) {
    double experts = 0;
    for (const LayerWork& kind : model_.work().kinds) experts = std::max(experts, kind.experts);
    const auto whole = static_cast<std::uint64_t>(std::max(1.0, experts));
    for (const std::uint32_t ep : values(space_.ep, whole, limit_of(space_.abilities.expert_max))) {
      add_micro_batches({.tp = tp, .cp = cp, .ep = ep}, left);
    }
  }

  /// Micro-batches that divide the batch of the least data-parallel replica there may be.
  void add_micro_batches(const Split& base, std::uint64_t left) {
    const double batch = model_.job().global_batch;
    const bool whole = batch >= 1 && std::floor(batch) == batch;
    const auto sequences = whole ? static_cast<std::uint64_t>(batch) : 1;
    for (const std::uint32_t micro : values(space_.micro_batch, sequences, kMicroBatchMax)) {
      Split split = base;
      split.micro_batch = micro;
      add_stages(split, left);
      if (!split.stages.empty()) found_.splits.push_back(std::move(split));
    }
  }

  void add_stages(Split& split, std::uint64_t left) {
    const auto layers = static_cast<std::uint64_t>(model_.work().layers);
    const std::uint64_t limit = std::min(layers, limit_of(space_.abilities.pipeline_max));
    for (const std::uint32_t pp : values(space_.pp, left, limit)) {
      const std::uint64_t dp = rest(left, pp);
      if (dp == 0 || dp > std::numeric_limits<std::uint32_t>::max()) {
        refuse({}, fmt::format("tp {} x cp {} x pp {} does not divide {} ranks", split.tp, split.cp,
                               pp, model_.ranks()));
        continue;
      }
      if (!space_.dp.allows(static_cast<std::uint32_t>(dp))) {
        refuse({}, fmt::format("tp {} x cp {} x pp {} leaves dp {} of {} ranks, not {}", split.tp,
                               split.cp, pp, dp, model_.ranks(), space_.dp.values().front()));
        continue;
      }
      add_chunks(split, pp, static_cast<std::uint32_t>(dp));
    }
  }

  void add_chunks(Split& split, std::uint32_t pp, std::uint32_t dp) {
    const StageLayers stages = deal_layers(model_.work().layers, pp);
    const bool even = stages.first == stages.most && stages.last == stages.most;
    if (!even &&
        (space_.abilities.stages == Stages::kEven || stages.first < 1 || stages.last < 1)) {
      refuse({}, fmt::format("{} layers are no multiple of pp {}", model_.work().layers, pp));
      return;
    }
    const auto held = static_cast<std::uint64_t>(stages.most);
    const std::uint64_t limit = pp > 1 ? limit_of(space_.abilities.chunks_max) : 1;
    for (const std::uint32_t vpp : values(space_.vpp, held, limit)) {
      if (vpp == 0 || held % vpp != 0) {
        refuse({}, fmt::format("{} layers of a stage are no multiple of vpp {}", held, vpp));
        continue;
      }
      add_checked(split, {.pp = pp, .vpp = vpp, .dp = dp});
    }
  }

  void add_checked(Split& split, const StageSplit& stages) {
    ParallelPlan plan{.tp = split.tp,
                      .pp = stages.pp,
                      .vpp = stages.vpp,
                      .dp = stages.dp,
                      .cp = split.cp,
                      .ep = split.ep,
                      .micro_batch = split.micro_batch};
    if (plan.ep > 1 && (std::uint64_t{plan.dp} * plan.cp * plan.tp) % plan.ep != 0) {
      refuse(plan, fmt::format("dp {} x cp {} x tp {} ranks are no multiple of ep {}", plan.dp,
                               plan.cp, plan.tp, plan.ep));
      return;
    }
    if (plan.vpp > 1 && !interleaves(plan)) return;
    if (Status fits = model_.check(plan); !fits) {
      refuse(plan, fits.error().message);
      return;
    }
    split.stages.push_back(stages);
  }

  /// Interleaved schedules pass micro-batches on in groups of pp.
  bool interleaves(const ParallelPlan& plan) {
    const double micro_batches =
        model_.job().global_batch / (double{1} * plan.dp * plan.micro_batch);
    if (!space_.vpp.open() || std::fmod(micro_batches, plan.pp) == 0) return true;
    refuse(plan, fmt::format("{} micro-batches are no multiple of pp {}, which vpp {} needs",
                             micro_batches, plan.pp, plan.vpp));
    return false;
  }

  static constexpr std::uint64_t kMicroBatchMax = 4096;

  const TrainingModel& model_;
  const PlanSpace& space_;
  Splits found_;
};

}  // namespace

Status check_abilities(const RuntimeAbilities& able) {
  const std::array<std::pair<std::string_view, std::optional<std::uint32_t>>, 5> limits = {
      {{"tensor_max", able.tensor_max},
       {"pipeline_max", able.pipeline_max},
       {"chunks_max", able.chunks_max},
       {"context_max", able.context_max},
       {"expert_max", able.expert_max}}};
  for (const auto& [key, limit] : limits) {
    if (limit == 0u) return input_error({}, fmt::format("{}: expected 1 or more", key));
  }
  const std::array<std::pair<std::string_view, std::size_t>, 6> lists = {
      {{"zero", able.zero.size()},
       {"zero_with_tensor", able.zero_with_tensor ? able.zero_with_tensor->size() : 1},
       {"sequence_parallel", able.sequence_parallel.size()},
       {"recompute", able.recompute.size()},
       {"offload", able.offload ? able.offload->size() : 1},
       {"context_exchange", able.context_exchange.size()}}};
  for (const auto& [key, size] : lists) {
    if (size == 0) return input_error({}, fmt::format("{}: expected at least one value", key));
  }
  for (const std::uint32_t stage : able.zero) {
    if (stage > 3) return input_error({}, fmt::format("zero: {}: expected 0 to 3", stage));
  }
  for (const std::uint32_t stage : able.zero_with_tensor.value_or(able.zero)) {
    if (std::find(able.zero.begin(), able.zero.end(), stage) == able.zero.end()) {
      return input_error({}, fmt::format("zero_with_tensor: {}: expected one of zero", stage));
    }
  }
  return {};
}

Status check_declared(const PlanSpace& space) {
  const RuntimeAbilities& able = space.abilities;
  const std::array<Status, 10> checks = {
      within(space.tp, able.tensor_max, "tp"),
      within(space.pp, able.pipeline_max, "pp"),
      within(space.vpp, able.chunks_max, "vpp"),
      within(space.cp, able.context_max, "cp"),
      within(space.ep, able.expert_max, "ep"),
      among(space.zero, able.zero, "zero"),
      among(space.sequence_parallel, able.sequence_parallel, "sequence_parallel"),
      among(space.recompute, able.recompute, "recompute"),
      among(space.offload, able.offload.value_or(space.offload.values()), "offload"),
      among(space.context_exchange, able.context_exchange, "context_exchange")};
  for (const Status& check : checks) {
    if (!check) return input_error({}, able.name + ": " + check.error().message);
  }
  return check_zero_with_tensor(space);
}

PlanSpace space_of(const Machine& machine) {
  PlanSpace space;
  space.tp_max = 1;
  if (!machine.tiers.empty()) {
    const std::uint64_t domain = std::min(machine.tiers.front().size, machine.ranks);
    space.tp_max = static_cast<std::uint32_t>(std::min<std::uint64_t>(domain, 1u << 20));
  }
  return space;
}

Splits splits_of(const TrainingModel& model, const PlanSpace& space) {
  return SplitFinder(model, space).find();
}

BlockChoices block_choices(const TrainingModel& model, const PlanSpace& space, const Split& split) {
  BlockChoices choices;
  choices.sequence_parallel = values(space.sequence_parallel, space.abilities.sequence_parallel);
  if (space.sequence_parallel.open()) {
    // Megatron Core's advice: with tensor parallelism always, where the runtime can.
    const auto& able = space.abilities.sequence_parallel;
    const bool on = split.tp > 1 && std::count(able.begin(), able.end(), SequenceParallel::kOn) > 0;
    choices.sequence_parallel = {on ? SequenceParallel::kOn : SequenceParallel::kOff};
  }
  choices.recompute = values(space.recompute, space.abilities.recompute);
  // Flash attention keeps no scores, so there is nothing for selective recomputation to drop.
  const bool flash = model.job().attention == AttentionKernel::kFlash;
  if (space.recompute.open() && flash && choices.recompute.size() > 1) {
    std::erase(choices.recompute, Recompute::kSelective);
  }
  choices.recompute_layers = space.recompute_layers.values();
  if (space.recompute_layers.open()) {
    // A stated "full" means all layers.
    const bool part =
        space.recompute.open() && space.abilities.recompute_extent == RecomputeExtent::kPart;
    choices.recompute_layers = {part ? kFewestLayers : 0};
  }
  choices.context_exchange = values(space.context_exchange, space.abilities.context_exchange);
  if (split.cp == 1) {
    choices.context_exchange = {ContextExchange::kRing};
  } else if (!divides_heads(model, split.tp * split.cp)) {
    std::erase(choices.context_exchange, ContextExchange::kAllToAll);
  }
  return choices;
}

StateChoices state_choices(const PlanSpace& space, const Split& split, const StageSplit& stages) {
  StateChoices choices;
  const std::uint64_t replicas = std::uint64_t{stages.dp} * split.cp;
  choices.zero = values(space.zero, space.abilities.zero);
  if (split.tp > 1 && space.abilities.zero_with_tensor) {
    const std::vector<std::uint32_t>& able = *space.abilities.zero_with_tensor;
    std::erase_if(choices.zero, [&](std::uint32_t zero) {
      return std::find(able.begin(), able.end(), zero) == able.end();
    });
  }
  if (space.zero.open()) {
    if (stages.pp > 1) std::erase_if(choices.zero, [](std::uint32_t zero) { return zero >= 2; });
    // A single replica shards nothing: all stages are the same plan.
    if (replicas == 1 && choices.zero.size() > 1) choices.zero.resize(1);
  }
  choices.shard = space.shard.values();
  if (space.shard.open()) {
    choices.shard = {0};
    const std::uint64_t domain = space.tp_max / std::max(1u, split.tp);
    if (domain > 1 && replicas > domain && replicas % domain == 0) {
      choices.shard.push_back(static_cast<std::uint32_t>(domain));
    }
  }
  choices.offload =
      values(space.offload, space.abilities.offload.value_or(std::vector<Offload>{Offload::kNone}));
  return choices;
}

}  // namespace orrery
