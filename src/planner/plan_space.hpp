// planner/plan_space.hpp - which parallel plans a search may consider.
//
// A value: for every dimension of ParallelPlan the allowed values, or none stated, which leaves the
// choice to the planner; and the abilities of the program that will run the plan. splits_of() turns
// it into the splits of one job on one machine that break no rule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "perf/training/training_step.hpp"
#include "workload/parallel_plan.hpp"

namespace orrery {

/// Whether stages of a pipeline may hold different numbers of layers.
enum class Stages { kEven, kUneven };

inline std::array<EnumWord<Stages>, 2> enum_words(Stages) {
  return {{{"even", Stages::kEven}, {"uneven", Stages::kUneven}}};
}

/// Whether full recomputation may stop after some of a rank's layers.
enum class RecomputeExtent { kAll, kPart };

inline std::array<EnumWord<RecomputeExtent>, 2> enum_words(RecomputeExtent) {
  return {{{"all", RecomputeExtent::kAll}, {"part", RecomputeExtent::kPart}}};
}

/// What a training program declares it can do. By default it can do everything, but the planner
/// offloads only if that is declared or requested.
struct RuntimeAbilities {
  std::string name = "any runtime";
  std::optional<std::uint32_t> tensor_max;
  std::optional<std::uint32_t> pipeline_max;
  std::optional<std::uint32_t> chunks_max;  ///< virtual stages a rank
  std::optional<std::uint32_t> context_max;
  std::optional<std::uint32_t> expert_max;
  Stages stages = Stages::kUneven;
  std::vector<std::uint32_t> zero = {0, 1, 2, 3};
  /// Those of `zero` that may be combined with tp above 1; none stated: all.
  std::optional<std::vector<std::uint32_t>> zero_with_tensor;
  std::vector<SequenceParallel> sequence_parallel = {SequenceParallel::kOff, SequenceParallel::kOn};
  std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  RecomputeExtent recompute_extent = RecomputeExtent::kPart;
  std::optional<std::vector<Offload>> offload;
  std::vector<ContextExchange> context_exchange = {ContextExchange::kRing,
                                                   ContextExchange::kAllToAll};
};

template <class Visitor, SameStruct<RuntimeAbilities> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("name", r.name);
  visitor.optional("tensor_max", r.tensor_max);
  visitor.optional("pipeline_max", r.pipeline_max);
  visitor.optional("chunks_max", r.chunks_max);
  visitor.optional("context_max", r.context_max);
  visitor.optional("expert_max", r.expert_max);
  visitor.optional("stages", r.stages);
  visitor.optional("zero", r.zero);
  visitor.optional("zero_with_tensor", r.zero_with_tensor);
  visitor.optional("sequence_parallel", r.sequence_parallel);
  visitor.optional("recompute", r.recompute);
  visitor.optional("recompute_extent", r.recompute_extent);
  visitor.optional("offload", r.offload);
  visitor.optional("context_exchange", r.context_exchange);
}

/// Errors (ErrorKind::kInput): an empty list, a limit of 0, a ZeRO stage that does not exist.
[[nodiscard]] Status check_abilities(const RuntimeAbilities& abilities);

/// Values one dimension may take. None stated: the planner's choice.
template <class T>
class Choice {
 public:
  Choice() = default;
  Choice(T fixed) : allowed_{fixed} {}  // NOLINT: a fixed value is a choice
  Choice(std::optional<T> fixed) {      // NOLINT: a missing one is the planner's
    if (fixed) allowed_.push_back(*fixed);
  }
  Choice(std::vector<T> allowed) : allowed_(std::move(allowed)) {}  // NOLINT

  [[nodiscard]] bool open() const { return allowed_.empty(); }
  [[nodiscard]] const std::vector<T>& values() const { return allowed_; }
  [[nodiscard]] bool allows(T value) const {
    return open() || std::find(allowed_.begin(), allowed_.end(), value) != allowed_.end();
  }

 private:
  std::vector<T> allowed_;
};

/// Where the planner chooses, it stays within `abilities` and:
///   tp         divisors of the ranks up to tp_max (a scale-up domain)
///   cp         divisors that leave a rank kContextTokensMin tokens of a sequence
///   pp         divisors up to the number of layers, all stages but the first and last equal
///   vpp        divisors of a stage's layers
///   ep         divisors of the experts and of the tp x cp x dp ranks
///   micro_batch divisors of a replica's batch
///   zero       2 and 3 only without pipeline stages (DeepSpeed and FSDP refuse them together)
///   shard      all replicas; with zero 3 also one scale-up domain
///   sequence_parallel on exactly with tp; recompute: selective only where it differs from none
///   recompute_layers  as few of a rank's layers as fit the memory; all where recompute is stated
struct PlanSpace {
  Choice<std::uint32_t> tp;
  Choice<std::uint32_t> pp;
  Choice<std::uint32_t> vpp;
  Choice<std::uint32_t> dp;
  Choice<std::uint32_t> cp;
  Choice<std::uint32_t> ep;
  Choice<std::uint32_t> zero;
  Choice<std::uint32_t> micro_batch;
  Choice<std::uint32_t> shard;
  Choice<std::uint32_t> recompute_layers;
  Choice<SequenceParallel> sequence_parallel;
  Choice<Recompute> recompute;
  Choice<Offload> offload;
  Choice<ContextExchange> context_exchange;
  double recompute_kept = 0;  ///< never the planner's choice
  RuntimeAbilities abilities;
  std::uint32_t tp_max = 8;
};

inline constexpr double kContextTokensMin = 4096;

/// The space with every choice open and tp up to the machine's scale-up domain.
[[nodiscard]] PlanSpace space_of(const Machine& machine);

/// Pipeline and data-parallel sizes that are compatible with one (tp, cp, ep, micro-batch).
struct StageSplit {
  std::uint32_t pp = 1;
  std::uint32_t vpp = 1;
  std::uint32_t dp = 1;
};

struct Split {
  std::uint32_t tp = 1;
  std::uint32_t cp = 1;
  std::uint32_t ep = 1;
  std::uint32_t micro_batch = 1;
  std::vector<StageSplit> stages;
};

/// Splits in ascending order of (tp, cp, ep, micro-batch), stages of (pp, vpp); refusals are
/// counted, and the first one is kept to explain why no split is left.
struct Splits {
  std::vector<Split> splits;
  std::uint64_t refused = 0;
  std::optional<Error> first_refusal;
};
/// Whether every stated value is one that the runtime declares. Errors: ErrorKind::kInput.
[[nodiscard]] Status check_declared(const PlanSpace& space);

[[nodiscard]] Splits splits_of(const TrainingModel& model, const PlanSpace& space);

/// Marks "as few layers as fit" in a block's plan, which is known only for a whole plan.
inline constexpr std::uint32_t kFewestLayers = 0xffffffff;

/// What the planner chooses for a block of a split, and for the plans of one block.
struct BlockChoices {
  std::vector<SequenceParallel> sequence_parallel;
  std::vector<Recompute> recompute;
  std::vector<std::uint32_t> recompute_layers;  ///< or kFewestLayers
  std::vector<ContextExchange> context_exchange;
};
[[nodiscard]] BlockChoices block_choices(const TrainingModel& model, const PlanSpace& space,
                                         const Split& split);

struct StateChoices {
  std::vector<std::uint32_t> zero;
  std::vector<std::uint32_t> shard;  ///< of zero 3
  std::vector<Offload> offload;
};
[[nodiscard]] StateChoices state_choices(const PlanSpace& space, const Split& split,
                                         const StageSplit& stages);

}  // namespace orrery
