// fleet/fleet_map_test.cpp - that nodes, types and power domains are found again by their names.
#include "fleet/fleet_map.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/format/field_writer.hpp"
#include "base/numbers/rng.hpp"
#include "fleet/fleet_test.hpp"

namespace orrery {
namespace {

FleetMap mapped(const Topology& from, const Topology& to) {
  Result<FleetMap> map = fleet_map(from, to);
  EXPECT_TRUE(map) << (map ? "" : map.error().text());
  return map ? *std::move(map) : FleetMap();
}

std::string refused(const Topology& from, const Topology& to) {
  const Result<FleetMap> map = fleet_map(from, to);
  EXPECT_FALSE(map) << "the change was accepted";
  if (map) return "";
  EXPECT_EQ(map.error().kind, ErrorKind::kInput);
  EXPECT_EQ(map.error().where, SourcePosition());
  return map.error().message;
}

std::vector<std::string> names_of(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::string> names;
  names.reserve(nodes.size());
  for (const NodeId node : nodes) names.push_back(topology.node_name(node));
  return names;
}

/// Returns a line of a spec for a group of racks with one group of nodes.
std::string racks(const std::string& name, int count, const std::string& nodes) {
  return fmt::format(
      "      - {{name: {}, count: {}, cooling: in-row-or-dense-air, nodes: [{{{}}}]}}\n", name,
      count, nodes);
}

std::string pod(const std::string& name, const std::string& racks, int count = 1) {
  return fmt::format("    - name: {}\n      count: {}\n      racks:\n{}", name, count, racks);
}

std::string site(const std::string& name, const std::string& pods) {
  return "- name: " + name + "\n  halls:\n  - name: hall\n    pods:\n" + pods;
}

std::string fleet(const std::string& sites) {
  return "apiVersion: orrery/v1\nkind: Fleet\nname: test\nsites:\n" + sites;
}

template <class IdOf>
void expect_identity(const std::vector<IdOf>& ids, std::size_t size) {
  ASSERT_EQ(ids.size(), size);
  for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(ids[i], IdOf::at(i));
}

void expect_maps_to_itself(const Topology& topology) {
  const FleetMap map = mapped(topology, topology);
  expect_identity(map.nodes, topology.node_count());
  expect_identity(map.nodes_before, topology.node_count());
  expect_identity(map.types, topology.type_count());
  expect_identity(map.types_before, topology.type_count());
  expect_identity(map.power_before, topology.power_domains().size());
  EXPECT_TRUE(map.retired().empty());
  EXPECT_TRUE(map.added().empty());
}

TEST(FleetMap, AFleetMapsToItself) {
  expect_maps_to_itself(built(small_h100()));
  const std::string named = racks("r", 2, "type: dgx-h100, count: 2, names: 'h[1-4]'");
  const std::string mixed = racks("r", 1, "type: dgx-b200") + racks("s", 2, "type: dgx-a100-80g");
  expect_maps_to_itself(
      built(fleet(site("east", pod("a", named)) + site("west", pod("a", mixed)))));
}

TEST(FleetMap, AFleetWithEqualNamesMapsToItself) {
  const Topology twice =
      built(fleet(site("east", pod("su", racks("r", 1, "type: dgx-h100, count: 2"), 2) +
                                   pod("su-1", racks("r", 1, "type: dgx-h100, count: 3")))));
  ASSERT_EQ(twice.node_name(NodeId(0)), twice.node_name(NodeId(4)));
  ASSERT_EQ(twice.power_name(PowerDomainId(0)), twice.power_name(PowerDomainId(2)));
  expect_maps_to_itself(twice);
}

TEST(FleetMap, ANodeAddedToTheFirstRackShiftsAllLaterIds) {
  const auto with = [](int first) {
    return built(fleet(site(
        "east", pod("su", racks("r", 1, fmt::format("type: dgx-h100, count: {}", first)) +
                              racks("s", 2, "type: dgx-h100, count: 2") +
                              racks("named", 1, "type: dgx-h100, count: 2, names: 'h[1-2]'")))));
  };
  const Topology from = with(2);
  const Topology to = with(3);
  const FleetMap map = mapped(from, to);
  EXPECT_TRUE(map.retired().empty());
  EXPECT_EQ(names_of(to, map.added()), std::vector<std::string>{"east/hall/su/r/n3"});
  EXPECT_EQ(map.nodes_before[2], NodeId());
  EXPECT_EQ(map.nodes[2], NodeId(3));
  EXPECT_EQ(map.nodes.back(), NodeId(8));
  EXPECT_EQ(names_of(to, map.nodes), names_of(from, mapped(from, from).nodes));
}

TEST(FleetMap, ARetiredRackTakesItsNodesAndItsPowerDomainAlone) {
  const std::string first = racks("r", 1, "type: dgx-h100, count: 2");
  const std::string middle = racks("s", 1, "type: dgx-h100, count: 2");
  const std::string last = racks("t", 1, "type: dgx-h100, count: 2");
  const Topology from = built(fleet(site("east", pod("su", first + middle + last))));
  const Topology to = built(fleet(site("east", pod("su", first + last))));
  const FleetMap map = mapped(from, to);
  EXPECT_EQ(map.retired(), (std::vector<NodeId>{NodeId(2), NodeId(3)}));
  EXPECT_TRUE(map.added().empty());
  EXPECT_EQ(map.nodes_before, (std::vector<NodeId>{NodeId(0), NodeId(1), NodeId(4), NodeId(5)}));
  EXPECT_EQ(map.power_before, (std::vector<PowerDomainId>{PowerDomainId(0), PowerDomainId(2)}));
  const FleetMap back = mapped(to, from);
  EXPECT_EQ(back.added(), map.retired());
  EXPECT_EQ(back.nodes, map.nodes_before);
  EXPECT_EQ(back.power_before[1], PowerDomainId());
}

TEST(FleetMap, ANamedNodeMayMoveToAnotherRack) {
  const auto with = [](const std::string& first, const std::string& second) {
    return built(fleet(
        site("east", pod("su", racks("r", 1, "type: dgx-h100, count: 2, names: '" + first + "'") +
                                   racks("s", 1, "type: dgx-h100, names: '" + second + "'")))));
  };
  const FleetMap map = mapped(with("a,b", "c"), with("c,b", "a"));
  EXPECT_EQ(map.nodes, (std::vector<NodeId>{NodeId(2), NodeId(1), NodeId(0)}));
}

TEST(FleetMap, ATypeAddedBeforeAnotherShiftsItsId) {
  const std::string h100 = racks("r", 1, "type: dgx-h100");
  const Topology from = built(fleet(site("east", pod("su", h100))));
  const Topology to =
      built(fleet(site("east", pod("su", racks("new", 1, "type: dgx-b200") + h100))));
  const FleetMap map = mapped(from, to);
  EXPECT_EQ(map.types, std::vector<FleetTypeId>{FleetTypeId(1)});
  EXPECT_EQ(map.types_before, (std::vector<FleetTypeId>{FleetTypeId(), FleetTypeId(0)}));
  EXPECT_EQ(map.nodes, std::vector<NodeId>{NodeId(1)});
}

TEST(FleetMap, ATypeThatVanishesIsRefused) {
  const std::string h100 = racks("r", 1, "type: dgx-h100");
  const Topology from =
      built(fleet(site("east", pod("su", h100 + racks("s", 1, "type: dgx-b200")))));
  const Topology to = built(fleet(site("east", pod("su", h100))));
  EXPECT_EQ(refused(from, to), "the fleet had accelerators of type \"" +
                                   from.accelerator(FleetTypeId(1)).id +
                                   "\" and does not name them now; expected a group of such nodes, "
                                   "with count: 0 where the last ones retire");
}

TEST(FleetMap, SitesKeepTheirOrderAndNewOnesFollow) {
  const std::string pods = pod("su", racks("r", 1, "type: dgx-h100"));
  const Topology both = built(fleet(site("east", pods) + site("west", pods)));
  EXPECT_EQ(refused(both, built(fleet(site("west", pods) + site("east", pods)))),
            "site \"east\" was number 1 of the fleet's sites and is number 2 now; expected the "
            "sites of before in their order, new ones after them");
  EXPECT_EQ(refused(both, built(fleet(site("east", pods)))),
            "site \"west\" was number 2 of the fleet's sites and is missing now (its groups "
            "stay with count: 0); expected the sites of before in their order, new ones after "
            "them");
  const FleetMap more =
      mapped(both, built(fleet(site("east", pods) + site("west", pods) + site("north", pods))));
  EXPECT_EQ(more.added(), std::vector<NodeId>{NodeId(2)});
}

TEST(FleetMap, ANodeWhoseTypeChangesRetiresAndIsAdded) {
  const auto with = [](const std::string& type) {
    return built(fleet(
        site("east", pod("su", racks("r", 1, "type: dgx-h100") + racks("s", 1, "type: " + type) +
                                   racks("t", 1, "type: dgx-b200")))));
  };
  const Topology from = with("dgx-h100");
  const std::vector<NodeId> changed = {NodeId(1)};
  for (const char* type : {"dgx-b200", "dgx-h200", "grand-teton-h100"}) {
    const FleetMap map = mapped(from, with(type));
    EXPECT_EQ(map.retired(), changed) << type;
    EXPECT_EQ(map.added(), changed) << type;
    EXPECT_EQ(map.power_before[1], PowerDomainId(1)) << "its rack's power domain stays";
  }
}

/// Returns the built-in catalog with further node types.
Catalog catalog_with(const std::string& nodes) {
  const std::string text = "apiVersion: orrery/v1\nkind: Catalog\nname: more\nnodes:\n" + nodes;
  std::vector<EmbeddedFile> files(builtin_catalog().begin(), builtin_catalog().end());
  files.push_back({"more.yaml", text});
  Result<Catalog> loaded = Catalog::load(files, {});
  EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().text());
  return loaded ? *std::move(loaded) : Catalog();
}

TEST(FleetMap, TypesOfTwoCatalogsAreComparedByTheirIds) {
  const auto host = [](int devices) {
    return fmt::format(
        "- {{id: host, like: dgx-h100, accelerators_per_node: {0}, "
        "scaleup_domain_accelerators: {0}}}\n",
        devices);
  };
  const Result<FleetSpec> spec = spec_of(fleet(
      site("east", pod("su", racks("r", 1, "type: host") + racks("s", 1, "type: dgx-h100")))));
  ASSERT_TRUE(spec) << spec.error().text();
  const Catalog old_catalog = catalog_with(host(8));
  const Catalog moved = catalog_with("- {id: other, like: dgx-b200}\n" + host(8));
  const Catalog halved = catalog_with(host(4));
  const Result<Topology> from = build_topology(*spec, old_catalog);
  const Result<Topology> same = build_topology(*spec, moved);
  const Result<Topology> changed = build_topology(*spec, halved);
  ASSERT_TRUE(from && same && changed);
  ASSERT_NE(from->group(NodeId(0)).node_type, same->group(NodeId(0)).node_type);
  expect_identity(mapped(*from, *same).nodes, 2);
  EXPECT_EQ(mapped(*from, *changed).nodes, (std::vector<NodeId>{NodeId(), NodeId(1)}));
}

TEST(FleetMap, APowerDomainIsFoundByItsKindAndName) {
  const auto with = [](const std::string& hall_keys, int racks_each) {
    return built(fleet("- name: east\n  power_cap: 1 MW\n  halls:\n  - name: hall\n" + hall_keys +
                       "    rows: {racks: 1, capacity: 100 kW}\n    pods:\n" +
                       pod("su", racks("r", racks_each, "type: dgx-h100"))));
  };
  const std::string ups = "    ups: {name: u, capacity: 500 kW}\n";
  const std::string loop = "    cooling_loops: [{name: ups, capacity: 500 kW}]\n";
  const Topology from = with(loop, 2);
  const Topology to = with(ups + loop, 3);
  const FleetMap map = mapped(from, to);
  std::vector<std::string> added;
  for (std::uint32_t i = 0; i < map.power_before.size(); ++i) {
    const PowerDomain& is = to.power(PowerDomainId(i));
    const std::string name = to.power_name(PowerDomainId(i));
    if (!map.power_before[i].valid()) {
      added.push_back(fmt::format("{} {}", word_of(is.kind), name));
      continue;
    }
    EXPECT_EQ(from.power(map.power_before[i]).kind, is.kind);
    EXPECT_EQ(from.power_name(map.power_before[i]), name);
  }
  EXPECT_EQ(added, (std::vector<std::string>{"ups east/hall/ups", "row east/hall/row-3",
                                             "rack east/hall/su/r-3"}));
}

/// A group of racks of a generated fleet.
struct Racks {
  std::string name;
  int count = 1;
  std::string type;
  int nodes = 1;  ///< of each rack
  bool named = false;
};

struct Site {
  std::vector<Racks> racks;
  int in_row = 1;
};

/// Draws fleets and changes to them. The names of groups are never used twice.
class RandomFleets {
 public:
  explicit RandomFleets(std::uint64_t seed) : rng_(seed) {}

  std::vector<Site> draw() {
    std::vector<Site> sites(1 + rng_.below(2));
    for (Site& site : sites) fill(site);
    return sites;
  }

  void change(std::vector<Site>& sites) {
    Site& site = sites[rng_.below(sites.size())];
    Racks& racks = site.racks[rng_.below(site.racks.size())];
    switch (rng_.below(7)) {
      case 0:
        fill(sites.emplace_back());
        return;
      case 1:
        if (site.racks.size() > 1) site.racks.erase(site.racks.begin());
        return;
      case 2:
        racks.type = type();
        return;
      case 3:
        racks.count = 1 + static_cast<int>(rng_.below(3));
        return;
      case 4:
        racks.nodes = 1 + static_cast<int>(rng_.below(3));
        return;
      case 5:
        std::swap(racks, site.racks.front());
        return;
      default:
        site.racks.insert(site.racks.begin(), group());
    }
  }

  std::uint64_t below(std::uint64_t n) { return rng_.below(n); }

 private:
  void fill(Site& site) {
    const std::uint64_t groups = 1 + rng_.below(4);
    for (std::uint64_t i = 0; i < groups; ++i) site.racks.push_back(group());
    site.in_row = 1 + static_cast<int>(rng_.below(3));
  }

  std::string type() {
    constexpr std::array<const char*, 4> kTypes = {"dgx-h100", "grand-teton-h100", "dgx-h200",
                                                   "dgx-b200"};
    return kTypes[rng_.below(kTypes.size())];
  }

  Racks group() {
    return {.name = fmt::format("g{}", ++names_),
            .count = 1 + static_cast<int>(rng_.below(3)),
            .type = type(),
            .nodes = 1 + static_cast<int>(rng_.below(3)),
            .named = rng_.below(3) == 0};
  }

  Rng rng_;
  int names_ = 0;
};

Topology built_of(const std::vector<Site>& sites) {
  std::string text;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    text += fmt::format(
        "- name: site-{}\n  halls:\n  - name: hall\n    rows: {{racks: {}, capacity: 1 MW}}\n"
        "    pods:\n    - name: su\n      racks:\n",
        i, sites[i].in_row);
    for (const Racks& of : sites[i].racks) {
      std::string nodes = fmt::format("type: {}, count: {}", of.type, of.nodes);
      if (of.named) nodes += fmt::format(", names: '{}-[1-{}]'", of.name, of.count * of.nodes);
      text += racks(of.name, of.count, nodes);
    }
  }
  return built(fleet(text));
}

std::string hardware(const Topology& topology, NodeId node) {
  const NodeGroup& group = topology.group(node);
  return fmt::format("{} with {} of {}", topology.node_type(group).id, group.devices,
                     topology.accelerator(group.type).id);
}

/// Returns the hardware of each node by its name.
std::map<std::string, std::string> hardware_by_name(const Topology& topology) {
  std::map<std::string, std::string> by_name;
  for (std::uint32_t i = 0; i < topology.node_count(); ++i) {
    by_name[topology.node_name(NodeId(i))] = hardware(topology, NodeId(i));
  }
  return by_name;
}

/// Expects that the nodes of `one` without a node in `other` are those that `other` lacks, and that
/// the rest have a node of the same name and hardware there that leads back.
void expect_nodes(const Topology& one, const Topology& other, const std::vector<NodeId>& there,
                  const std::vector<NodeId>& back) {
  ASSERT_EQ(there.size(), one.node_count());
  const std::map<std::string, std::string> known = hardware_by_name(other);
  for (std::uint32_t i = 0; i < one.node_count(); ++i) {
    const std::string name = one.node_name(NodeId(i));
    const auto found = known.find(name);
    const bool same = found != known.end() && found->second == hardware(one, NodeId(i));
    ASSERT_EQ(there[i].valid(), same) << name;
    if (!same) continue;
    EXPECT_EQ(back.at(there[i].value()), NodeId(i)) << name;
    EXPECT_EQ(other.node_name(there[i]), name);
  }
}

void expect_types(const Topology& from, const Topology& to, const FleetMap& map) {
  ASSERT_EQ(map.types.size(), from.type_count());
  ASSERT_EQ(map.types_before.size(), to.type_count());
  for (std::uint32_t i = 0; i < to.type_count(); ++i) {
    const std::string& id = to.accelerator(FleetTypeId(i)).id;
    EXPECT_EQ(map.types_before[i], from.find_type(id).value_or(FleetTypeId())) << id;
  }
  for (std::uint32_t i = 0; i < from.type_count(); ++i) {
    EXPECT_EQ(map.types_before.at(map.types[i].value()), FleetTypeId(i));
  }
}

void expect_power(const Topology& from, const Topology& to, const FleetMap& map) {
  ASSERT_EQ(map.power_before.size(), to.power_domains().size());
  for (std::uint32_t i = 0; i < to.power_domains().size(); ++i) {
    const std::string name = to.power_name(PowerDomainId(i));
    EXPECT_EQ(map.power_before[i], from.power_named(name).value_or(PowerDomainId())) << name;
  }
}

/// Whether each accelerator type of one fleet is in the other.
bool keeps_types(const Topology& from, const Topology& to) {
  for (std::uint32_t i = 0; i < from.type_count(); ++i) {
    if (!to.find_type(from.accelerator(FleetTypeId(i)).id)) return false;
  }
  return true;
}

TEST(FleetMapProperty, EachNodeLeadsToTheOneOfItsNameAndBack) {
  std::size_t refused = 0;
  std::size_t retired = 0;
  std::size_t added = 0;
  std::size_t shifted = 0;
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomFleets fleets(seed);
    std::vector<Site> sites = fleets.draw();
    const Topology from = built_of(sites);
    for (std::uint64_t changes = 1 + fleets.below(4); changes > 0; --changes) fleets.change(sites);
    const Topology to = built_of(sites);
    const Result<FleetMap> map = fleet_map(from, to);
    ASSERT_EQ(map.has_value(), keeps_types(from, to));
    if (!map) {
      ++refused;
      continue;
    }
    expect_nodes(from, to, map->nodes, map->nodes_before);
    expect_nodes(to, from, map->nodes_before, map->nodes);
    expect_types(from, to, *map);
    expect_power(from, to, *map);
    for (const NodeId node : map->retired()) EXPECT_FALSE(map->nodes.at(node.value()).valid());
    EXPECT_EQ(from.node_count() - map->retired().size(), to.node_count() - map->added().size());
    retired += map->retired().size();
    added += map->added().size();
    for (std::size_t i = 0; i < map->nodes.size(); ++i) {
      if (map->nodes[i].valid() && map->nodes[i] != NodeId::at(i)) ++shifted;
    }
  }
  // The changes are of all kinds, so that the test is not empty.
  EXPECT_GT(refused, 5u);
  EXPECT_GT(retired, 100u);
  EXPECT_GT(added, 100u);
  EXPECT_GT(shifted, 100u);
}

}  // namespace
}  // namespace orrery
