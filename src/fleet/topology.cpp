#include "fleet/topology.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {

DomainId Topology::ancestor(DomainId id, Level level) const {
  ORRERY_ASSERT(domain(id).level >= level, "an ancestor is not below");
  while (domain(id).level > level) id = domain(id).parent;
  return id;
}

std::string Topology::short_name(DomainId id) const {
  const Domain& d = domain(id);
  return d.ordinal == 0 ? names_[d.name] : fmt::format("{}-{}", names_[d.name], d.ordinal);
}

std::string Topology::path(DomainId id) const {
  if (id == root()) return name_;
  std::string path = short_name(id);
  for (DomainId at = domain(id).parent; at != root(); at = domain(at).parent) {
    path.insert(0, short_name(at) + "/");
  }
  return path;
}

std::string Topology::node_name(NodeId id) const {
  const NodePlace& at = place(id);
  const NodeGroup& of = groups_[at.group];
  if (!of.names.empty()) return of.names[at.occurrence];
  return fmt::format("{}/n{}", path(at.rack), id.value() - domain(at.rack).first_node.value() + 1);
}

NodeId Topology::node_of(DeviceId id) const {
  const auto after = std::upper_bound(
      places_.begin(), places_.end(), id,
      [](DeviceId device, const NodePlace& at) { return device < at.first_device; });
  return NodeId::at(static_cast<std::size_t>(after - places_.begin()) - 1);
}

std::optional<FleetTypeId> Topology::find_type(std::string_view name) const {
  const Accelerator* wanted = catalog_->find<Accelerator>(name);
  if (wanted == nullptr) return std::nullopt;
  for (std::uint32_t i = 0; i < type_count(); ++i) {
    if (&accelerator(FleetTypeId(i)) == wanted) return FleetTypeId(i);
  }
  return std::nullopt;
}

std::span<const FleetTypeId> Topology::types_of(DomainId id) const {
  const Domain& d = domain(id);
  return std::span(domain_types_).subspan(d.first_type, d.types);
}

std::uint32_t Topology::device_count(DomainId id, FleetTypeId type) const {
  const auto types = types_of(id);
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] == type) return domain_devices_[domain(id).first_type + i];
  }
  return 0;
}

PowerDomainId Topology::power_of(DomainId rack) const {
  return rack_power_[rack.value() - first_rack_.value()];
}

std::string Topology::power_name(PowerDomainId id) const {
  const PowerDomain& domain = power(id);
  return domain.kind == PowerKind::kRack ? path(domain.domain) : domain.name;
}

Result<PowerDomainId> Topology::power_named(std::string_view name) const {
  std::vector<std::string> names;
  names.reserve(power_domains().size());
  for (std::uint32_t at = 0; at < power_domains().size(); ++at) {
    names.push_back(power_name(PowerDomainId(at)));
    if (names.back() == name) return PowerDomainId(at);
  }
  if (names.empty()) return input_error({}, "the fleet has no power limits");
  const std::vector<std::string_view> known(names.begin(), names.end());
  return input_error({}, fmt::format("no site cap, feed, UPS, row, rack or cooling loop \"{}\"{}",
                                     printable(name, 100), did_you_mean(name, known)));
}

std::span<const NodeRun> network_groups(const Topology& topology, FabricId fabric,
                                        NetworkTier tier) {
  ORRERY_ASSERT(tier == NetworkTier::kLeaf || tier == NetworkTier::kSpine,
                "nodes are grouped by leaf unit or by pod");
  const FabricInstance& instance = topology.fabrics()[fabric.value()];
  return tier == NetworkTier::kLeaf ? instance.leaf_units : instance.pods;
}

Watts shared_power(const Topology& topology, const SiteFacts& site) {
  Watts sum;
  for (const FabricInstance& fabric : topology.fabrics()) {
    if (fabric.site != site.domain || !fabric.type->switch_power) continue;
    sum += *fabric.type->switch_power * static_cast<double>(fabric.graph.switches().size());
  }
  for (const StorageSpec& spec : site.spec.storage) {
    const StorageSystem& system = *topology.catalog().find<StorageSystem>(spec.system);
    if (system.power) sum += *system.power * spec.units;
  }
  return sum;
}

}  // namespace orrery
