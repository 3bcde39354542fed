#include "fleet/fleet_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

// Returns for each name of `now` the id of the same name of `before`; the k-th of several equal
// names belongs to the k-th.
template <class IdOf>
std::vector<IdOf> counterparts(const std::vector<std::string>& before,
                               const std::vector<std::string>& now) {
  std::unordered_map<std::string_view, IdOf> first;  // the first of a name that is not taken yet
  first.reserve(before.size());
  std::vector<IdOf> next(before.size());  // the next one of the same name
  for (std::size_t i = before.size(); i-- > 0;) {
    next[i] = std::exchange(first[before[i]], IdOf::at(i));
  }
  std::vector<IdOf> found(now.size());
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto entry = first.find(now[i]);
    if (entry == first.end() || !entry->second.valid()) continue;
    found[i] = entry->second;
    entry->second = next[found[i].value()];
  }
  return found;
}

template <class IdOf>
std::vector<IdOf> inverse(const std::vector<IdOf>& ids, std::size_t size) {
  std::vector<IdOf> back(size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (ids[i].valid()) back[ids[i].value()] = IdOf::at(i);
  }
  return back;
}

std::vector<NodeId> positions_without(const std::vector<NodeId>& ids) {
  std::vector<NodeId> without;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!ids[i].valid()) without.push_back(NodeId::at(i));
  }
  return without;
}

template <class NameOf>
std::vector<std::string> names(std::size_t count, NameOf&& name_of) {
  std::vector<std::string> all;
  all.reserve(count);
  for (std::uint32_t i = 0; i < count; ++i) all.push_back(name_of(i));
  return all;
}

std::vector<std::string> type_names(const Topology& topology) {
  return names(topology.type_count(),
               [&](std::uint32_t i) { return topology.accelerator(FleetTypeId(i)).id; });
}

std::vector<std::string> node_names(const Topology& topology) {
  return names(topology.node_count(),
               [&](std::uint32_t i) { return topology.node_name(NodeId(i)); });
}

// A cooling loop may have the name of a row or of the UPS, so the kind is a part of each name.
std::vector<std::string> power_names(const Topology& topology) {
  return names(topology.power_domains().size(), [&](std::uint32_t i) {
    const PowerDomainId id(i);
    return fmt::format("{} {}", word_of(topology.power(id).kind), topology.power_name(id));
  });
}

Status check_sites(const Topology& from, const Topology& to) {
  const auto now = to.sites();
  for (std::size_t i = 0; i < from.sites().size(); ++i) {
    const std::string& name = from.sites()[i].spec.name;
    if (i < now.size() && now[i].spec.name == name) continue;
    const auto found = std::find_if(now.begin(), now.end(),
                                    [&](const SiteFacts& site) { return site.spec.name == name; });
    const std::string is = found == now.end()
                               ? "is missing now (its groups stay with count: 0)"
                               : fmt::format("is number {} now", found - now.begin() + 1);
    return input_error({}, fmt::format("site \"{}\" was number {} of the fleet's sites and {}; "
                                       "expected the sites of before in their order, new ones "
                                       "after them",
                                       name, i + 1, is));
  }
  return {};
}

Status check_types(const Topology& from, const std::vector<FleetTypeId>& types) {
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i].valid()) continue;
    return input_error({}, fmt::format("the fleet had accelerators of type \"{}\" and does not "
                                       "name them now; expected a group of such nodes, with "
                                       "count: 0 where the last ones retire",
                                       from.accelerator(FleetTypeId::at(i)).id));
  }
  return {};
}

}  // namespace

std::vector<NodeId> FleetMap::retired() const { return positions_without(nodes); }

std::vector<NodeId> FleetMap::added() const { return positions_without(nodes_before); }

bool FleetMap::same_ids() const {
  const auto same = [](const auto& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (!ids[i].valid() || ids[i].value() != i) return false;
    }
    return true;
  };
  return same(nodes) && same(nodes_before) && same(types) && same(types_before) &&
         same(power_before);
}

Result<FleetMap> fleet_map(const Topology& from, const Topology& to) {
  if (Status kept = check_sites(from, to); !kept) return forward_error(kept);
  FleetMap map;
  map.types_before = counterparts<FleetTypeId>(type_names(from), type_names(to));
  map.types = inverse(map.types_before, from.type_count());
  if (Status kept = check_types(from, map.types); !kept) return forward_error(kept);
  map.nodes_before = counterparts<NodeId>(node_names(from), node_names(to));
  for (std::size_t i = 0; i < map.nodes_before.size(); ++i) {
    NodeId& before = map.nodes_before[i];
    if (!before.valid()) continue;
    const NodeGroup& was = from.group(before);
    const NodeGroup& is = to.group(NodeId::at(i));
    const bool same = map.types[was.type.value()] == is.type && was.devices == is.devices &&
                      from.node_type(was).id == to.node_type(is).id;
    if (!same) before = NodeId();
  }
  map.nodes = inverse(map.nodes_before, from.node_count());
  map.power_before = counterparts<PowerDomainId>(power_names(from), power_names(to));
  return map;
}

}  // namespace orrery
