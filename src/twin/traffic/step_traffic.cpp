#include "twin/traffic/step_traffic.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"
#include "perf/training/training_step.hpp"

namespace orrery {
namespace {

constexpr double kWideBytes = 2;      ///< of a weight or an activation
constexpr double kGradientBytes = 4;  ///< of a gradient on the wire, Megatron's default

/// The network side of one plan; the symbols are those of docs/model/README.md.
class TrafficCounter {
 public:
  TrafficCounter(const TrainingModel& model, const ParallelPlan& plan, const Breakdown& terms,
                 const GangSplit& layout)
      : job_(model.job()),
        work_(model.work()),
        plan_(plan),
        terms_(terms),
        layout_(layout),
        replicas_(double{1} * plan.dp * plan.cp),
        micro_batches_(job_.global_batch / (double{1} * plan.dp * plan.micro_batch)),
        tokens_(plan.micro_batch * job_.sequence.value() / plan.cp),
        compute_(terms[Term::kMatmul] + terms[Term::kAttention] + terms[Term::kElementwise] +
                 terms[Term::kRecompute]) {}

  StepTraffic count() {
    for (const LayerWork& kind : work_.kinds) {
      dense_ += kind.layers / plan_.pp * (kind.parameters - kind.routed_parameters) / plan_.tp;
      routed_ += kind.layers / plan_.pp * kind.routed_parameters / expert_ranks();
    }
    add_parameters();
    add_stages();
    add_context();
    add_experts();
    set_window();
    return traffic_;
  }

 private:
  /// Ranks of a collective: `size` of them, `stride` apart.
  struct Group {
    double size = 1;
    double stride = 1;
  };

  [[nodiscard]] bool trained() const { return job_.task != TrainingTask::kLora; }
  [[nodiscard]] double expert_ranks() const { return plan_.ep > 1 ? plan_.ep : plan_.tp; }
  [[nodiscard]] double passes_again() const { return plan_.recompute == Recompute::kFull ? 1 : 0; }

  void add(const Exchange& exchange, Term exposed) {
    if (exchange.node_bytes.value() <= 0) return;
    traffic_.add(exchange);
    double& counted = exposed_[exposed];
    counted = terms_[exposed];
  }

  /// Adds all-gathers of `bytes` in total: with u members of a group in each domain, a rank sends
  /// (1 - u/n) / u of it to the next domain's.
  void add_ring(double bytes, const Group& group, double hideable, Term exposed) {
    const double here =
        std::clamp(std::floor(layout_.domain_ranks / group.stride), 1.0, group.size);
    const double rank_bytes = bytes * (1 - here / group.size) / here;
    add({.pattern = ExchangePattern::kShift,
         .reach = std::max(group.stride, layout_.domain_ranks) / layout_.node_ranks,
         .node_bytes = Bytes(rank_bytes * layout_.node_ranks),
         .hideable = Seconds(hideable)},
        exposed);
  }

  /// Adds gradients and weights of the ranks that hold the same part of the model.
  void add_parameters() {
    const double ends = std::max(work_.embedding, work_.head) / plan_.tp;
    const Group same{replicas_, static_cast<double>(plan_.tp)};
    const Group same_experts{std::max(1.0, replicas_ * plan_.tp / expert_ranks()), expert_ranks()};
    if (plan_.zero >= 3) {
      add_sharded(ends);
      // Weights are gathered for both passes, gradients scattered.
      const double times = (trained() ? 3 : 2) * micro_batches_ * kWideBytes;
      add_ring(times * routed_, same_experts, compute_, Term::kShard);
    } else if (trained()) {
      const double reduced = plan_.zero == 0 ? 2 * kGradientBytes : kGradientBytes + kWideBytes;
      const double times = reduced * (plan_.zero == 2 ? micro_batches_ : 1);
      add_ring(times * (dense_ + ends), same, beside_gradients(), Term::kDataParallel);
      add_ring(times * routed_, same_experts, beside_gradients(), Term::kDataParallel);
    }
  }

  void add_sharded(double ends) {
    const double shard = plan_.shard > 0 ? std::min<double>(plan_.shard, replicas_) : replicas_;
    const double weights = kWideBytes * (dense_ + ends);
    const double times = (trained() ? 3 : 2) * micro_batches_;
    const double stride = plan_.tp;
    add_ring(times * weights, {shard, stride}, compute_, Term::kShard);
    if (!trained()) return;
    const Group copies{replicas_ / shard, stride * shard};
    add_ring(2 * weights / shard, copies, compute_, Term::kShard);
  }

  /// One micro-batch's computation; with virtual stages that of more (docs/model/schedule.md);
  /// reduced after every micro-batch, all.
  [[nodiscard]] double beside_gradients() const {
    if (plan_.zero == 2) return compute_;
    const double of = plan_.vpp > 1 ? std::min<double>(plan_.pp, micro_batches_) : 1;
    return compute_ * of / micro_batches_;
  }

  /// Adds activations forward and their gradients back over every border of chunks.
  void add_stages() {
    if (plan_.pp <= 1) return;
    const double stride = static_cast<double>(plan_.ranks()) / plan_.pp;
    const double borders = (double{1} * plan_.pp * plan_.vpp - 1) / plan_.pp;
    const double one = kWideBytes * tokens_ * work_.hidden / plan_.tp;
    const double leaving = std::min(1.0, stride / layout_.domain_ranks);
    add({.pattern = ExchangePattern::kShift,
         .reach = std::max(stride, layout_.domain_ranks) / layout_.node_ranks,
         .node_bytes = Bytes(2 * borders * micro_batches_ * one * leaving * layout_.node_ranks),
         .hideable = Seconds(compute_)},
        Term::kPipelineSend);
  }

  void add_context() {
    if (plan_.cp <= 1 || double{1} * plan_.cp * plan_.tp <= layout_.domain_ranks) return;
    double ring = 0;
    double spread = 0;
    for (const LayerWork& kind : work_.kinds) {
      if (kind.attended_width <= 0) continue;
      const double layers = kind.layers / plan_.pp;
      ring += layers * kind.key_value_width * plan_.cp;
      spread += layers * (2 * kind.query_width + kind.key_value_width);
    }
    // Forward once, backward twice.
    const double times = (3 + passes_again()) * micro_batches_ * tokens_ / plan_.tp * kWideBytes;
    if (plan_.context_exchange == ContextExchange::kRing) {
      const Group group{static_cast<double>(plan_.cp), static_cast<double>(plan_.tp)};
      add_ring(times * ring, group, terms_[Term::kAttention], Term::kContextParallel);
      return;
    }
    add({.pattern = ExchangePattern::kSpread,
         .reach = double{1} * plan_.cp * plan_.tp / layout_.node_ranks,
         .node_bytes = Bytes(times * spread * layout_.node_ranks)},
        Term::kContextParallel);
  }

  /// Adds dispatch and combine in both passes, a copy for each expert.
  void add_experts() {
    if (plan_.ep <= layout_.domain_ranks) return;
    double visits = 0;
    for (const LayerWork& kind : work_.kinds) {
      if (kind.experts > 0) visits += kind.layers / plan_.pp * kind.experts_active;
    }
    const double copies = (4 + 2 * passes_again()) * micro_batches_ * visits * tokens_ / plan_.tp;
    add({.pattern = ExchangePattern::kSpread,
         .reach = plan_.ep / layout_.node_ranks,
         .node_bytes = Bytes(copies * work_.hidden * kWideBytes * layout_.node_ranks)},
        Term::kExpertParallel);
  }

  void set_window() {
    traffic_.seconds = Seconds(terms_.total());
    if (traffic_.count == 0) return;
    const Bytes sent = traffic_.node_bytes();
    Seconds beside;
    for (const Exchange& exchange : traffic_.sent()) {
      beside += exchange.hideable * (exchange.node_bytes / sent);
    }
    const Seconds at_line_rate(sent / layout_.node_bandwidth);
    const Seconds window = std::max(Seconds(exposed_.total()) + beside, at_line_rate);
    traffic_.window = std::min(window, traffic_.seconds);
  }

  const TrainingJob& job_;
  const ModelWork& work_;
  const ParallelPlan& plan_;
  const Breakdown& terms_;
  const GangSplit& layout_;
  double replicas_;
  double micro_batches_;
  double tokens_;      ///< of a micro-batch on a rank
  double compute_;     ///< seconds of the step
  double dense_ = 0;   ///< parameters on a rank, without routed experts
  double routed_ = 0;  ///< in routed experts
  Breakdown exposed_;  ///< seconds of the terms that cross the network
  StepTraffic traffic_;
};

}  // namespace

double crossing_nodes(const Exchange& exchange, double inside, double all) {
  if (exchange.pattern == ExchangePattern::kShift) {
    return std::max(0.0, std::min({inside, exchange.reach, all - inside}));
  }
  const double group = std::min(exchange.reach, all);
  return inside < group ? inside * (group - inside) / group : 0;
}

void StepTraffic::add(const Exchange& exchange) {
  ORRERY_ASSERT(count < kExchangesMax, "a plan has no more kinds of exchanges");
  exchanges[count++] = exchange;
}

Bytes StepTraffic::node_bytes() const {
  Bytes sum;
  for (const Exchange& exchange : sent()) sum += exchange.node_bytes;
  return sum;
}

BytesPerSecond StepTraffic::demand() const {
  const Bytes bytes = node_bytes();
  if (bytes.value() <= 0) return {};
  ORRERY_ASSERT(window.value() > 0 && window <= seconds, "what is sent is sent in the step");
  return bytes / window;
}

Seconds stretched_step(const StepTraffic& traffic, BytesPerSecond share) {
  const BytesPerSecond demand = traffic.demand();
  if (share >= demand) return traffic.seconds;
  if (share.value() <= 0) return Seconds(std::numeric_limits<double>::infinity());
  return traffic.seconds - traffic.window + traffic.window * (demand / share);
}

StepTraffic training_traffic(const TrainingModel& model, const ParallelPlan& plan,
                             const Breakdown& terms, const GangSplit& layout) {
  ORRERY_ASSERT(layout.node_bandwidth.value() > 0, "nodes that exchange have NICs");
  ORRERY_ASSERT(layout.domain_ranks >= layout.node_ranks && layout.node_ranks >= 1,
                "a scale-up domain holds the node's ranks");
  return TrafficCounter(model, plan, terms, layout).count();
}

}  // namespace orrery
