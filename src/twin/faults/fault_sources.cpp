#include "twin/faults/fault_sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/numbers/math.hpp"

namespace orrery {
namespace {

constexpr double kSecondsOf1000Days = 1000 * 86400.0;
constexpr double kSecondsOfMillionHours = 3.6e9;

Level level_of(BurstScope scope) {
  switch (scope) {
    case BurstScope::kRack:
      return Level::kRack;
    case BurstScope::kPod:
      return Level::kPod;
    case BurstScope::kHall:
      return Level::kHall;
    case BurstScope::kSite:
      return Level::kSite;
    case BurstScope::kFleet:
      return Level::kFleet;
  }
  return Level::kFleet;
}

// E[min(K, n)] of a geometric K = 1, 2, ... with mean m: the sum of P(K >= k) = (1 - 1/m)^(k-1).
double mean_size(double mean, std::uint32_t nodes) {
  return mean * (1 - math::pow(1 - 1 / mean, static_cast<double>(nodes)));
}

class SourceBuilder {
 public:
  SourceBuilder(const Topology& topology, const FailureSpec& spec, std::uint64_t seed)
      : topology_(topology), spec_(spec), seed_(seed) {}

  void add_nodes(const FaultLaw& law) {
    sources_.reserve(topology_.node_count());
    rates_before_.reserve(topology_.node_count() + 1);
    rates_before_.push_back(0);
    double burst_share = 0;
    for (const BurstModel& burst : spec_.bursts) burst_share += burst.share;
    const LemonModel& lemons = spec_.lemons;
    const double usual = 1 / (1 - lemons.share + lemons.share * lemons.factor);
    for (std::uint32_t i = 0; i < topology_.node_count(); ++i) {
      // Relapses follow other faults: each fault is followed by one with probability p.
      const double first =
          law.node_rate(topology_.group(NodeId(i)).devices) * (1 - spec_.relapse.probability);
      rates_before_.push_back(rates_before_.back() + first);
      FaultSource source = named(fmt::format("node/{}", topology_.node_name(NodeId(i))));
      source.index = i;
      const bool lemon = source.rng.uniform() < lemons.share;
      source.rate = first * std::max(0.0, 1 - burst_share) * usual * (lemon ? lemons.factor : 1);
      add(source);
    }
  }

  void add_bursts() {
    for (std::size_t b = 0; b < spec_.bursts.size(); ++b) {
      const BurstModel& burst = spec_.bursts[b];
      for (std::size_t d = 0; d < topology_.domains().size(); ++d) {
        const Domain& domain = topology_.domains()[d];
        if (domain.level != level_of(burst.scope) || domain.nodes == 0) continue;
        const std::uint32_t first = domain.first_node.value();
        const double faults = rates_before_[first + domain.nodes] - rates_before_[first];
        FaultSource source = named(fmt::format("burst/{}/{}", b, topology_.path(DomainId::at(d))));
        source.kind = FaultSource::Kind::kBurst;
        source.burst = static_cast<std::uint16_t>(b);
        source.index = static_cast<std::uint32_t>(d);
        source.rate = burst.share * faults / mean_size(burst.size, domain.nodes);
        add(source);
      }
    }
  }

  void add_slow_nodes() {
    FaultSource source = named("slow");
    source.kind = FaultSource::Kind::kSlowNodes;
    source.fault = FaultKind::kFailSlow;
    source.rate = spec_.fail_slow.per_1000_node_days / kSecondsOf1000Days *
                  static_cast<double>(topology_.node_count());
    add(source);
  }

  void add_component(const ComponentFailureRate& row) {
    const double each = row.per_million_hours / kSecondsOfMillionHours;
    switch (row.per) {
      case FailureScope::kAccelerator:
      case FailureScope::kNode:
        return;  // in the law of nodes
      case FailureScope::kLink:
        return add_links(row);
      case FailureScope::kSwitch:
        return add_switches(row);
      case FailureScope::kRack:
        return add_racks(row, each * spec_.facility);
      case FailureScope::kPower:
        return add_power(row, {PowerKind::kUps, each * spec_.facility});
      case FailureScope::kCooling:
        return add_power(row, {PowerKind::kCoolingLoop, each * spec_.facility});
    }
  }

  std::vector<FaultSource> take() { return std::move(sources_); }

 private:
  struct PowerRate {
    PowerKind kind;
    double each;
  };

  [[nodiscard]] FaultSource named(const std::string& name) const {
    return {.rng = Rng::stream(seed_, "failures/" + name)};
  }

  void add(const FaultSource& source) {
    if (source.rate > 0) sources_.push_back(source);
  }

  [[nodiscard]] FaultSource of_fabric(const ComponentFailureRate& row, std::size_t fabric) const {
    const FabricInstance& instance = topology_.fabrics()[fabric];
    FaultSource source =
        named(fmt::format("{}/{}/{}", row.component, topology_.path(instance.site), instance.name));
    source.fault = row.fault;
    source.index = static_cast<std::uint32_t>(fabric);
    return source;
  }

  void add_links(const ComponentFailureRate& row) {
    double rate = row.per_million_hours;
    if (row.fault == FaultKind::kLinkFlap) rate = spec_.link_flaps_per_million_hours.value_or(rate);
    const double each = rate / kSecondsOfMillionHours * spec_.network;
    for (std::size_t i = 0; i < topology_.fabrics().size(); ++i) {
      const Fabric& graph = topology_.fabrics()[i].graph;
      FaultSource source = of_fabric(row, i);
      double links = static_cast<double>(graph.node_count()) * graph.ports_per_node();
      if (row.fault == FaultKind::kLinkDown) {
        source.kind = FaultSource::Kind::kPortLinks;
      } else if (row.fault == FaultKind::kOptics) {
        source.kind = FaultSource::Kind::kSwitchLinks;
        links = count_cables(graph, source);
      } else {
        source.kind = FaultSource::Kind::kLinks;
        links = static_cast<double>(graph.link_count());
      }
      source.rate = each * links;
      add(source);
    }
  }

  static double count_cables(const Fabric& graph, FaultSource& source) {
    double cables = 0;
    for (std::size_t s = 0; s < graph.switches().size(); ++s) {
      for (const std::uint16_t each : graph.uplinks(SwitchIndex::at(s)).cables) {
        cables += each;
        source.cables_max = std::max(source.cables_max, each);
      }
    }
    return cables;
  }

  void add_switches(const ComponentFailureRate& row) {
    for (std::size_t i = 0; i < topology_.fabrics().size(); ++i) {
      FaultSource source = of_fabric(row, i);
      source.kind = FaultSource::Kind::kSwitches;
      source.rate = row.per_million_hours / kSecondsOfMillionHours * spec_.network *
                    static_cast<double>(topology_.fabrics()[i].graph.switches().size());
      add(source);
    }
  }

  void add_racks(const ComponentFailureRate& row, double each) {
    for (std::size_t d = 0; d < topology_.domains().size(); ++d) {
      if (topology_.domains()[d].level != Level::kRack) continue;
      FaultSource source =
          named(fmt::format("{}/{}", row.component, topology_.path(DomainId::at(d))));
      source.kind = FaultSource::Kind::kRack;
      source.fault = row.fault;
      source.index = static_cast<std::uint32_t>(d);
      source.rate = each;
      add(source);
    }
  }

  void add_power(const ComponentFailureRate& row, const PowerRate& rate) {
    for (std::size_t p = 0; p < topology_.power_domains().size(); ++p) {
      if (topology_.power_domains()[p].kind != rate.kind) continue;
      FaultSource source =
          named(fmt::format("{}/{}", row.component, topology_.power_name(PowerDomainId::at(p))));
      source.kind = FaultSource::Kind::kPower;
      source.fault = row.fault;
      source.index = static_cast<std::uint32_t>(p);
      source.rate = rate.each;
      add(source);
    }
  }

  const Topology& topology_;
  const FailureSpec& spec_;
  std::uint64_t seed_;
  std::vector<FaultSource> sources_;
  std::vector<double> rates_before_;  ///< of first faults, summed over the nodes before
};

}  // namespace

std::vector<FaultSource> fault_sources_of(const Topology& topology, const FailureSpec& spec,
                                          const FaultLaw& law, std::uint64_t seed) {
  SourceBuilder builder(topology, spec, seed);
  builder.add_nodes(law);
  builder.add_bursts();
  builder.add_slow_nodes();
  for (const ComponentFailureRate& row : topology.catalog().all<ComponentFailureRate>()) {
    builder.add_component(row);
  }
  return builder.take();
}

}  // namespace orrery
