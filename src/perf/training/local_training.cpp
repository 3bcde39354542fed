#include "perf/training/local_training.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/assert.hpp"
#include "base/numbers/math.hpp"
#include "perf/training/training_step.hpp"

namespace orrery {
namespace {

/// Stack whose constants price a step here; each of them is replaced.
constexpr TrainingStack kSlot = TrainingStack::kMegatron;
/// Bytes a weight that the cost model has an optimizer step move.
constexpr double kOptimizerBytes = 30;
/// Bytes a weight for each shard: set to 0, and added to another shard's.
constexpr double kShardBytes = 4 + 12;
/// A row of scores is computed to the end of its block.
constexpr double kAttentionBlock = 64;
/// Width of the cost model's tiles of a head.
constexpr double kHeadTile = 128;

/// y = at_zero + slope x, by least squares.
struct Line {
  double at_zero = 0;
  double slope = 0;
  double mean = 0;  ///< mean of all y
};

struct Point {
  double x = 0;
  double y = 0;
};

Line line_through(const std::vector<Point>& points) {
  const auto count = static_cast<double>(points.size());
  Point mean;
  for (const Point& each : points) mean = {mean.x + each.x / count, mean.y + each.y / count};
  double covariance = 0;
  double variance = 0;
  for (const Point& each : points) {
    covariance += (each.x - mean.x) * (each.y - mean.y);
    variance += (each.x - mean.x) * (each.x - mean.x);
  }
  const double slope = variance > 0 ? covariance / variance : 0;
  return {mean.y - slope * mean.x, slope, mean.y};
}

/// Sets the constant that a reader of `ids`, the most special first, would find.
void set(Calibration& constants, std::initializer_list<std::string_view> ids, double value) {
  for (const std::string_view id : ids) {
    if (const auto at = constants.position(id)) return constants.set_value(*at, value);
  }
  ORRERY_ASSERT(false, "the built-in calibration has each constant");
}

double real(std::int64_t count) { return static_cast<double>(count); }

/// The rate of products and the inner length at which half of it is reached. Seconds an operation
/// are 1 / rate x (1 + half / inner), and the three products of a layer have its three sizes as
/// inner lengths.
void set_products(const BusyRanks& busy, Machine& machine, Calibration& constants) {
  std::vector<Point> points;
  points.reserve(busy.products.size());
  for (const MeasuredProduct& each : busy.products) {
    const double inverse = 1 / real(each.inner) + 1 / real(each.columns) + 1 / real(each.rows);
    points.push_back({inverse / 3, 1 / each.rate.value()});
  }
  // Where short inner lengths are no slower, nor is it known how fast endless ones would be: flat.
  Line line = line_through(points);
  if (line.slope <= 0) line = {line.mean, 0, line.mean};
  // Noise may bend a steep line below 0.
  const double fastest = std::ranges::min_element(points, {}, &Point::y)->y;
  const double at_zero = std::max(line.at_zero, fastest / 2);
  machine.peak.fill(1 / at_zero);
  set(constants, {"matmul.16bit"}, 1);
  set(constants, {"matmul.fp32"}, 1);
  set(constants, {"matmul.depth_half"}, line.slope / at_zero);
}

/// Seconds an operation fall with the width of a head, by a power of it.
void set_attention(const BusyRanks& busy, const Machine& machine, Calibration& constants) {
  std::vector<Point> points;
  points.reserve(busy.attention.size());
  double slower = 0;
  for (const MeasuredAttention& each : busy.attention) {
    const double sequence = real(each.sequence);
    const double operations = 2 * real(each.heads * each.head_width) * sequence * sequence;
    const double block = sequence / (sequence + kAttentionBlock);
    points.push_back({math::log(real(each.head_width) / kHeadTile),
                      math::log(operations / each.forward.value() / block)});
    slower += each.backward.value() / (2.5 * each.forward.value());
  }
  const Line line = line_through(points);
  const double rate = math::exp(line.at_zero);
  set(constants, {"attention.flash"}, rate / machine.peak_of(NumberFormat::kBf16));
  set(constants, {"attention.flash_misfit"}, line.slope);
  set(constants, {"attention.half.megatron", "attention.half"}, kAttentionBlock);
  set(constants, {"attention.backward"}, static_cast<double>(busy.attention.size()) / slower);
}

/// What a CPU's rank does not do.
void clear(Calibration& constants) {
  for (const std::string_view id :
       {"matmul.wave", "cast.fp32", "launch.step", "link.launch", "jitter", "optimizer.passes"}) {
    set(constants, {id}, 0);
  }
  set(constants, {"launch.layer.megatron", "launch.layer"}, 0);
  set(constants, {"overlap.data.megatron", "overlap.data"}, 0);
  set(constants, {"passes.megatron", "passes"}, 0);
  set(constants, {"loss.bytes.megatron", "loss.bytes"}, 0);
  set(constants, {"accumulate.bytes.megatron", "accumulate.bytes"}, 0);
  set(constants, {"gradient.bytes.megatron", "gradient.bytes"}, 4);
  set(constants, {"memory.fraction"}, 1);
  set(constants, {"release.unknown"}, 1);
  set(constants, {"link.switched"}, 1);
}

struct StepQuestion {
  const Model* model = nullptr;
  double sequence = 0;
  double batch = 0;  ///< sequences
  ParallelPlan plan;
};

Result<Breakdown> step_terms(const StepQuestion& of, Machine machine,
                             const Calibration& constants) {
  const Accelerator cpu{.id = "cpu", .kind = AcceleratorKind::kCpu};
  machine.accelerator = &cpu;
  machine.ranks = of.plan.ranks();
  for (Tier& tier : machine.tiers) tier.size = std::max<std::uint64_t>(2, machine.ranks);
  const TrainingJob job{.model = of.model,
                        .sequence = Tokens(of.sequence),
                        .global_batch = of.batch,
                        .precision = {.format = NumberFormat::kFp32},
                        .stack = kSlot};
  const auto model = TrainingModel::make(job, machine, constants);
  if (!model) return tl::unexpected(model.error());
  return model->step_terms(of.plan, model->block_costs(of.plan));
}

/// Seconds of one layer, and of the embedding and the head.
struct Parts {
  double layer = 0;
  double ends = 0;
};

Parts parts_of(const Point& few, const Point& more) {
  const double layer = (more.y - few.y) / (more.x - few.x);
  return {layer, few.y - few.x * layer};
}

class PassFit {
 public:
  PassFit(const MeasuredModel& few, const MeasuredModel& more, const Machine& machine)
      : few_(few), more_(more), machine_(machine) {}

  /// What a layer takes beyond its products and attention is passes over memory; what the ends take
  /// beyond the head's products is the loss.
  [[nodiscard]] Status fit(Calibration& constants) const {
    const Parts measured = parts_of({real(few_.shape.layers), few_.gradient.value()},
                                    {real(more_.shape.layers), more_.gradient.value()});
    const Result<Parts> bare = predicted(constants);
    if (!bare) return tl::unexpected(bare.error());
    Calibration one = constants;
    set(one, {"passes.megatron", "passes"}, 1);
    set(one, {"loss.bytes.megatron", "loss.bytes"}, 1);
    const Result<Parts> with = predicted(one);
    if (!with) return tl::unexpected(with.error());
    set(constants, {"passes.megatron", "passes"},
        std::max(0.0, (measured.layer - bare->layer) / (with->layer - bare->layer)));
    set(constants, {"loss.bytes.megatron", "loss.bytes"},
        std::max(0.0, (measured.ends - bare->ends) / (with->ends - bare->ends)));
    return {};
  }

 private:
  [[nodiscard]] Result<Parts> predicted(const Calibration& constants) const {
    const Result<double> few = gradient(few_, constants);
    if (!few) return tl::unexpected(few.error());
    const Result<double> more = gradient(more_, constants);
    if (!more) return tl::unexpected(more.error());
    return parts_of({real(few_.shape.layers), *few}, {real(more_.shape.layers), *more});
  }

  [[nodiscard]] Result<double> gradient(const MeasuredModel& of,
                                        const Calibration& constants) const {
    const Model model = model_of(of.shape);
    const auto terms =
        step_terms({.model = &model,
                    .sequence = real(of.shape.sequence),
                    .batch = real(of.sequences),
                    .plan = {.micro_batch = static_cast<std::uint32_t>(of.sequences)}},
                   machine_, constants);
    if (!terms) return tl::unexpected(terms.error());
    return terms->total();
  }

  const MeasuredModel& few_;
  const MeasuredModel& more_;
  const Machine& machine_;
};

Status set_passes(const BusyRanks& busy, const TrainedShape& shape, const Machine& machine,
                  Calibration& constants) {
  const MeasuredModel* few = nullptr;
  const MeasuredModel* more = nullptr;
  for (const MeasuredModel& each : busy.models) {
    if (each.shape.gated != shape.gated) continue;
    if (few == nullptr || each.shape.layers < few->shape.layers) few = &each;
    if (more == nullptr || each.shape.layers > more->shape.layers) more = &each;
  }
  if (few == nullptr || few->shape.layers == more->shape.layers) {
    return infeasible(
        fmt::format("the calibration with {} ranks has no two {} models of unlike depth",
                    busy.ranks, shape.gated ? "llama" : "gpt"));
  }
  return PassFit(*few, *more, machine).fit(constants);
}

void set_exchange(const MeasuredExchange& exchange, std::uint32_t ranks, Machine& machine,
                  Calibration& constants) {
  // As the cost model counts an all-reduce: twice what a rank lacks, and two latencies.
  const double share = 2 * (1 - 1.0 / ranks);
  machine.tiers = {{.link = LinkClass::kSwitched, .bandwidth = share * exchange.bandwidth.value()}};
  set(constants, {"link.launch"}, exchange.latency.value() / 2);
}

}  // namespace

Result<LocalStepModel> LocalStepModel::make(const NodeCalibration& node, const Calibration& general,
                                            const LocalTraining& training) {
  LocalStepModel model;
  model.training_ = training;
  model.model_ = model_of(training.shape);
  model.cores_ = std::max(1U, node.machine.cores);
  model.entries_.reserve(node.busy.size());
  for (const BusyRanks& busy : node.busy) {
    Entry& entry = model.entries_.emplace_back(Entry{.ranks = busy.ranks, .constants = general});
    Machine& machine = entry.machine;
    machine.generation = "cpu";
    machine.compute_units = 1;
    machine.memory_bandwidth = 2 * busy.copy.value();
    machine.tiers = {{.bandwidth = machine.memory_bandwidth}};
    clear(entry.constants);
    set_products(busy, machine, entry.constants);
    set_attention(busy, machine, entry.constants);
    if (Status fitted = set_passes(busy, training.shape, machine, entry.constants); !fitted) {
      return forward_error(fitted);
    }
    set(entry.constants, {"optimizer.passes"},
        busy.optimizer.value() * 1e-6 * machine.memory_bandwidth / kOptimizerBytes);
    const auto& exchange =
        training.exchange == LocalExchange::kSharedMemory ? busy.shared_memory : busy.sockets;
    if (exchange) set_exchange(*exchange, busy.ranks, machine, entry.constants);
  }
  return model;
}

Result<Breakdown> LocalStepModel::terms(const Entry& entry, const Share& share) const {
  const LocalLayout& layout = share.layout;
  Calibration constants = entry.constants;
  set(constants, {"accumulate.bytes.megatron", "accumulate.bytes"},
      kShardBytes * layout.micro / training_.per_shard());
  ParallelPlan plan{
      .tp = layout.tp,
      .pp = layout.pp,
      .vpp = layout.vpp,
      .dp = share.replicas,
      .zero = share.replicas > 1 ? layout.zero : 0,
      .micro_batch = layout.micro,
      .sequence_parallel = layout.tp > 1 ? SequenceParallel::kOn : SequenceParallel::kOff};
  // What goes back first is still there, unless other micro-batches came between.
  const auto again = static_cast<std::uint32_t>(training_.shape.layers - 1);
  if (layout.recompute == Recompute::kFull && (layout.pp > 1 || again > 0)) {
    plan.recompute = Recompute::kFull;
    plan.recompute_layers = layout.pp > 1 ? 0 : again;
  }
  auto found = step_terms({.model = &model_,
                           .sequence = real(training_.shape.sequence),
                           .batch = share.sequences,
                           .plan = plan},
                          entry.machine, constants);
  if (found) (*found)[Term::kPipelineBubble] *= layout.most_shards;
  return found;
}

Result<Breakdown> LocalStepModel::terms(std::uint32_t busy, const Share& share) const {
  const auto above = std::ranges::lower_bound(entries_, busy, {}, &Entry::ranks);
  if (above == entries_.end()) return terms(entries_.back(), share);
  const auto below = above->ranks == busy || above == entries_.begin() ? above : above - 1;
  Result<Breakdown> many = terms(*above, share);
  if (!many || below == above) return many;
  Result<Breakdown> few = terms(*below, share);
  if (!few) return few;
  const double part =
      static_cast<double>(busy - below->ranks) / static_cast<double>(above->ranks - below->ranks);
  Breakdown between;
  between.add(*few, 1 - part);
  between.add(*many, part);
  return between;
}

Result<LocalStep> LocalStepModel::predict(const LocalLayout& layout) const {
  if (layout.ranks == 0 || layout.ranks > ranks_max()) {
    return infeasible(
        fmt::format("{} ranks: the calibration covers 1 to {} busy ranks; measure with "
                    "`orrery calibrate-node --ranks {}`",
                    layout.ranks, ranks_max(), std::max(1U, layout.ranks)));
  }
  const std::uint32_t replicas = layout.replicas();
  ORRERY_ASSERT(replicas > 0 && replicas * layout.tp * layout.pp == layout.ranks,
                "ranks are whole replicas");
  const Share share{layout, replicas, static_cast<double>(training_.sequences)};
  Result<Breakdown> all = terms(layout.ranks, share);
  if (!all) return tl::unexpected(all.error());
  if (layout.pp > 1 && layout.ranks > cores_) {
    const Result<Breakdown> unhindered = terms(cores_, share);
    if (!unhindered) return tl::unexpected(unhindered.error());
    (*all)[Term::kPipelineBubble] = 0;
    if (unhindered->total() > all->total()) all = unhindered;
  }
  LocalStep step{.layout = layout, .seconds = all->total(), .terms = *all};
  if (layout.most_shards * replicas <= training_.shards) return step;
  const double fullest = static_cast<double>(training_.per_shard()) * layout.most_shards;
  const Result<Breakdown> alone = terms(layout.tp * layout.pp, {layout, 1, fullest});
  if (!alone) return tl::unexpected(alone.error());
  step.seconds = std::max(step.seconds, alone->total() + step.terms[Term::kDataParallel]);
  return step;
}

}  // namespace orrery
