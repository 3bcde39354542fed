#include "scheduler/place/place_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace orrery {
namespace {

std::uint16_t bit_of(TopologyLevel level) {
  return static_cast<std::uint16_t>(1u << static_cast<unsigned>(level));
}

TopologyLevel level_named(Level level) {
  switch (level) {
    case Level::kFleet:
      return TopologyLevel::kFleet;
    case Level::kSite:
      return TopologyLevel::kSite;
    case Level::kHall:
      return TopologyLevel::kHall;
    case Level::kPod:
      return TopologyLevel::kPod;
    case Level::kRack:
      return TopologyLevel::kRack;
  }
  ORRERY_ASSERT(false, "a level of the enumeration");
}

/// A place while the tree is built.
struct Run {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
  std::uint16_t levels = 0;
  DomainId domain;
  std::vector<Run> inside;

  [[nodiscard]] std::uint32_t count() const { return end - first; }
};

void add_domains(const Topology& topology, std::vector<Run>& runs) {
  for (std::uint32_t i = 0; i < topology.domains().size(); ++i) {
    const Domain& domain = topology.domains()[i];
    if (domain.nodes == 0) continue;
    const std::uint32_t first = domain.first_node.value();
    runs.push_back(
        {first, first + domain.nodes, bit_of(level_named(domain.level)), DomainId(i), {}});
  }
}

void add_scale_up_domains(const Topology& topology, std::vector<Run>& runs) {
  const std::uint32_t nodes = topology.node_count();
  for (std::uint32_t first = 0; first < nodes;) {
    std::uint32_t end = first + 1;
    const NodeId start = topology.place(NodeId(first)).scale_up_first;
    while (end < nodes && topology.place(NodeId(end)).scale_up_first == start) ++end;
    if (end - first > 1) runs.push_back({first, end, bit_of(TopologyLevel::kScaleUp), {}, {}});
    first = end;
  }
}

/// Whether a run contains only a part of a domain and also something outside it.
bool crosses_domain(const Topology& topology, const Run& run) {
  for (const std::uint32_t node : {run.first, run.end - 1}) {
    DomainId at = topology.place(NodeId(node)).rack;
    for (; at.valid(); at = topology.domain(at).parent) {
      const std::uint32_t first = topology.domain(at).first_node.value();
      const std::uint32_t end = first + topology.domain(at).nodes;
      if (first <= run.first && run.end <= end) break;
      if (first < run.first || run.end < end) return true;
    }
  }
  return false;
}

void add_network_groups(const Topology& topology, std::vector<Run>& runs) {
  for (std::uint32_t f = 0; f < topology.fabrics().size(); ++f) {
    for (const auto& [tier, level] : {std::pair{NetworkTier::kLeaf, TopologyLevel::kLeaf},
                                      std::pair{NetworkTier::kSpine, TopologyLevel::kGroup}}) {
      for (const NodeRun& group : network_groups(topology, FabricId(f), tier)) {
        if (group.count < 2) continue;
        const std::uint32_t first = group.first.value();
        const Run run{first, first + group.count, bit_of(level), {}, {}};
        if (!crosses_domain(topology, run)) runs.push_back(run);
      }
    }
  }
}

/// Merges runs that coincide; of several domains the narrowest is kept, which was numbered last.
std::vector<Run> merged(std::vector<Run> runs) {
  std::stable_sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return a.first != b.first ? a.first < b.first : a.end > b.end;
  });
  std::vector<Run> out;
  for (Run& run : runs) {
    if (!out.empty() && out.back().first == run.first && out.back().end == run.end) {
      out.back().levels |= run.levels;
      if (run.domain.valid()) out.back().domain = run.domain;
    } else {
      out.push_back(std::move(run));
    }
  }
  return out;
}

/// Puts every run under the narrowest one around it. Precondition: in the order of merged().
void nest(Run& parent, std::span<Run> runs, std::size_t& at) {
  while (at < runs.size() && runs[at].first < parent.end) {
    if (runs[at].end > parent.end) {
      ORRERY_ASSERT(!runs[at].domain.valid(), "domains nest");
      ++at;
      continue;
    }
    Run& child = runs[at++];
    nest(child, runs, at);
    parent.inside.push_back(std::move(child));
  }
}

/// Nodes between the children become children too.
void fill_gaps(Run& parent) {
  if (parent.inside.empty()) return;
  std::vector<Run> filled;
  std::uint32_t at = parent.first;
  for (Run& child : parent.inside) {
    if (child.first > at) filled.push_back({at, child.first, 0, {}, {}});
    at = child.end;
    filled.push_back(std::move(child));
  }
  if (at < parent.end) filled.push_back({at, parent.end, 0, {}, {}});
  parent.inside = std::move(filled);
  for (Run& child : parent.inside) fill_gaps(child);
}

/// Returns the position of a node's site among those of the fleet.
std::uint8_t site_of(const Topology& topology, NodeId node) {
  const DomainId site = topology.ancestor(topology.place(node).rack, Level::kSite);
  return static_cast<std::uint8_t>(site.value() - topology.sites().front().domain.value());
}

}  // namespace

PlaceTree::PlaceTree(const Topology& topology) : topology_(&topology) {
  std::vector<Run> runs;
  add_domains(topology, runs);
  add_scale_up_domains(topology, runs);
  add_network_groups(topology, runs);
  runs = merged(std::move(runs));
  Run root = std::move(runs.front());
  std::size_t at = 1;
  nest(root, runs, at);
  fill_gaps(root);

  around_.resize(topology.node_count());
  std::vector<Run> level;
  level.push_back(std::move(root));
  places_.push_back({});
  std::uint32_t first = 0;
  while (!level.empty()) {
    std::vector<Run> below;
    for (std::uint32_t i = 0; i < level.size(); ++i) {
      Run& run = level[i];
      const PlaceId id(first + i);
      Place place = places_[id.value()];
      place.nodes = {NodeId(run.first), run.count()};
      place.domain = run.domain;
      place.levels = run.levels;
      if (place.is(TopologyLevel::kSite)) place.site = site_of(topology, NodeId(run.first));
      levels_ |= run.levels;
      place.children = static_cast<std::uint32_t>(run.inside.size());
      if (place.children > 0) place.first_child = PlaceId::at(places_.size());
      places_[id.value()] = place;
      for (std::uint32_t n = run.first; n < run.end; ++n) around_[n] = id;
      for (Run& child : run.inside) {
        Place next;
        next.parent = id;
        next.site = place.site;
        places_.push_back(next);
        below.push_back(std::move(child));
      }
    }
    first += static_cast<std::uint32_t>(level.size());
    level = std::move(below);
  }
}

PlaceId PlaceTree::around(NodeId node) const { return around_[node.value()]; }

PlaceId PlaceTree::around(NodeId node, TopologyLevel level) const {
  PlaceId at = around(node);
  while ((*this)[at].parent.valid() && !(*this)[at].is(level)) at = (*this)[at].parent;
  return at;
}

TopologyLevel PlaceTree::level_here(TopologyLevel level) const {
  if (level == TopologyLevel::kScaleUp && !has(level)) return TopologyLevel::kNode;
  while (level != TopologyLevel::kNode && level != TopologyLevel::kFleet && !has(level)) {
    level = static_cast<TopologyLevel>(static_cast<unsigned>(level) + 1);
  }
  return level;
}

TopologyLevel PlaceTree::level_of(const Place& place) {
  if (place.levels == 0) return TopologyLevel::kNode;
  return static_cast<TopologyLevel>(std::countr_zero(place.levels));
}

std::string PlaceTree::name(PlaceId id) const {
  const Place& place = (*this)[id];
  if (place.domain.valid()) return topology_->path(place.domain);
  const std::uint32_t last = place.nodes.first.value() + place.nodes.count - 1;
  return fmt::format("{} to {}", topology_->node_name(place.nodes.first),
                     topology_->node_name(NodeId(last)));
}

}  // namespace orrery
