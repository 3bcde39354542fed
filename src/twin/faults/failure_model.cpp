#include "twin/faults/failure_model.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "base/numbers/distribution.hpp"
#include "base/numbers/math.hpp"
#include "twin/faults/failure_file.hpp"

namespace orrery {
namespace {

using Kind = FaultSource::Kind;

Duration draw_duration(double mean_seconds, Rng& rng) {
  return Duration::from_seconds(mean_seconds * Exponential{.rate = 1}.sample(rng));
}

// Draws 1, 2, ... with the mean m: the number of trials up to the first success of probability 1/m,
// by inversion.
std::uint32_t draw_size(double mean, std::uint32_t nodes, Rng& rng) {
  const double u = 1 - rng.uniform();
  if (mean <= 1) return 1;
  const double size = 1 + std::floor(math::log(u) / math::log1p(-1 / mean));
  return static_cast<std::uint32_t>(std::min(size, static_cast<double>(nodes)));
}

// Draws `size` different numbers below `count` (R. W. Floyd, "Programming pearls: a sample of
// brilliance", CACM 30(9), 1987).
std::set<std::uint32_t> draw_different(std::uint32_t size, std::uint32_t count, Rng& rng) {
  std::set<std::uint32_t> drawn;
  for (std::uint32_t last = count - size; last < count; ++last) {
    const auto candidate = static_cast<std::uint32_t>(rng.below(std::uint64_t{last} + 1));
    if (!drawn.insert(candidate).second) drawn.insert(last);
  }
  return drawn;
}

}  // namespace

Result<FailureModel> FailureModel::make(const Topology& topology, const FailureSpec& spec,
                                        const Options& options) {
  if (Status checked = check_failure_spec(spec, topology.catalog()); !checked) {
    return forward_error(checked);
  }
  Result<FaultLaw> law = FaultLaw::make(spec, topology.catalog());
  if (!law) return forward_error(law);
  FailureModel model(topology, spec, *law);
  model.sources_ = fault_sources_of(topology, spec, *law, options.seed);
  model.queue_.reserve(model.sources_.size());
  for (std::uint32_t i = 0; i < model.sources_.size(); ++i) model.arrive_after(options.start, i);
  return model;
}

std::optional<Fault> FailureModel::next(Instant until) {
  while (!queue_.empty() && queue_.front().at < until) {
    if (std::optional<Fault> fault = occur(pop())) return fault;
  }
  return std::nullopt;
}

void FailureModel::push(const Pending& pending) {
  if (pending.at == Instant::max()) return;  // never
  queue_.push_back(pending);
  std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
}

FailureModel::Pending FailureModel::pop() {
  std::pop_heap(queue_.begin(), queue_.end(), std::greater<>());
  const Pending earliest = queue_.back();
  queue_.pop_back();
  return earliest;
}

void FailureModel::arrive_after(Instant from, std::uint32_t source) {
  const Duration gap = draw_duration(1 / sources_[source].rate, sources_[source].rng);
  push({.at = from + gap, .source = source});
}

std::optional<Fault> FailureModel::occur(const Pending& pending) {
  if (pending.struck.valid()) return strike_node(pending, pending.struck);
  return own_event(pending);
}

std::optional<Fault> FailureModel::own_event(const Pending& pending) {
  FaultSource& source = sources_[pending.source];
  if (source.kind == Kind::kBurst) {
    burst(pending);
    arrive_after(pending.at, pending.source);
    return std::nullopt;
  }
  if (source.kind == Kind::kNode) {
    // A node that is out cannot fail; the exponential has no memory, so it may start anew.
    const bool out = pending.at < source.busy_until;
    std::optional<Fault> fault;
    if (!out) fault = strike_node(pending, NodeId(source.index));
    arrive_after(source.busy_until, pending.source);
    return fault;
  }
  arrive_after(pending.at, pending.source);
  return strike_part(pending);
}

Fault FailureModel::strike_node(const Pending& pending, NodeId node) {
  FaultSource& source = sources_[pending.source];
  const std::uint32_t devices = topology_->group(node).devices;
  Fault fault{.at = pending.at, .scope = node};
  fault.kind = law_.draw_kind(devices, source.rng);
  if (source.kind == Kind::kBurst) {
    fault.kind = spec_.bursts[source.burst].fault.value_or(fault.kind);
  }
  if (strikes_accelerator(fault.kind) && devices > 0) {
    const auto at = static_cast<std::uint32_t>(source.rng.below(devices));
    fault.scope = DeviceId(topology_->place(node).first_device.value() + at);
  }
  law_.draw_times(FaultLaw::Where::kNode, fault, source.rng);
  source.busy_until = std::max(source.busy_until, fault.over_at());
  const RelapseModel& relapse = spec_.relapse;
  if (relapse.probability > 0 && source.rng.uniform() < relapse.probability) {
    const Weibull delay{.shape = relapse.shape, .scale = relapse.scale.value()};
    push({.at = fault.over_at() + Duration::from_seconds(delay.sample(source.rng)),
          .source = pending.source,
          .struck = node});
  }
  return fault;
}

Fault FailureModel::strike_part(const Pending& pending) {
  FaultSource& source = sources_[pending.source];
  Fault fault{.at = pending.at, .kind = source.fault, .scope = draw_scope(source)};
  if (source.kind == Kind::kSlowNodes) fault.slowdown = spec_.fail_slow.slowdown;
  law_.draw_times(FaultLaw::Where::kElsewhere, fault, source.rng);
  return fault;
}

FaultScope FailureModel::draw_scope(FaultSource& source) const {
  switch (source.kind) {
    case Kind::kSwitches: {
      const std::size_t switches = topology_->fabrics()[source.index].graph.switches().size();
      return SwitchPlace{FabricId(source.index), SwitchIndex::at(source.rng.below(switches))};
    }
    case Kind::kRack:
      return DomainId(source.index);
    case Kind::kPower:
      return PowerDomainId(source.index);
    case Kind::kPortLinks:
    case Kind::kSwitchLinks:
    case Kind::kLinks:
      return draw_link(source);
    case Kind::kNode:
    case Kind::kBurst:
    case Kind::kSlowNodes:
      break;
  }
  return NodeId::at(source.rng.below(topology_->node_count()));
}

LinkId FailureModel::draw_link(FaultSource& source) const {
  const FabricInstance& instance = topology_->fabrics()[source.index];
  const std::uint32_t ports = instance.graph.node_count() * instance.graph.ports_per_node();
  const std::uint32_t links = instance.graph.link_count();
  if (source.kind == Kind::kPortLinks) {
    return LinkId(instance.first_link + static_cast<std::uint32_t>(source.rng.below(ports)));
  }
  if (source.kind == Kind::kLinks) {
    return LinkId(instance.first_link + static_cast<std::uint32_t>(source.rng.below(links)));
  }
  // Drawn by rejection, so that a link of two cables is drawn twice as often as a link of one.
  for (;;) {
    const auto at = ports + static_cast<std::uint32_t>(source.rng.below(links - ports));
    const std::uint16_t cables = instance.graph.switch_link(FabricLinkId(at)).cables;
    if (source.rng.below(source.cables_max) < cables) return LinkId(instance.first_link + at);
  }
}

void FailureModel::burst(const Pending& pending) {
  FaultSource& source = sources_[pending.source];
  const BurstModel& model = spec_.bursts[source.burst];
  const Domain& domain = topology_->domain(DomainId(source.index));
  const std::uint32_t size = draw_size(model.size, domain.nodes, source.rng);
  for (const std::uint32_t node : draw_different(size, domain.nodes, source.rng)) {
    push({.at = pending.at + draw_duration(model.spread.value(), source.rng),
          .source = pending.source,
          .struck = NodeId(domain.first_node.value() + node)});
  }
}

}  // namespace orrery
