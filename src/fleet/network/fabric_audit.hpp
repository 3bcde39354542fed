// fleet/network/fabric_audit.hpp - for tests: checks a built network against first principles.
//
// Recounts everything from single links and searches the graph, so it shares no shortcut with
// Fabric. Cost: O(ports + links), and O(ports per node squared) for each pair of nodes compared.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "fleet/network/fabric.hpp"

namespace orrery {

class FabricAudit {
 public:
  FabricAudit(const Fabric& fabric, int radix)
      : fabric_(fabric), radix_(static_cast<std::uint32_t>(radix)) {}

  /// Returns "" or the first problem.
  [[nodiscard]] std::string run() {
    for (std::string problem : {check_ports(), check_links(), check_radix(), check_planes(),
                                check_joined(), check_distances()}) {
      if (!problem.empty()) return problem;
    }
    return "";
  }

 private:
  std::string check_ports() {
    ports_used_.assign(fabric_.switches().size(), 0);
    for (std::uint32_t node = 0; node < fabric_.node_count(); ++node) {
      for (std::uint32_t port = 0; port < fabric_.ports_per_node(); ++port) {
        const SwitchIndex leaf = fabric_.leaf_of({node, port});
        if (leaf.value() >= fabric_.switches().size()) return "a port without a switch";
        if (fabric_.switches()[leaf.value()].tier != 0) return "a port on no leaf";
        ++ports_used_[leaf.value()];
        const FabricLinkId link = fabric_.link_of_port({node, port});
        if (!fabric_.is_port_link(link)) return "a port link that is none";
        if (fabric_.port_of(link) != FabricPort{node, port}) return "a port link of another port";
      }
    }
    return "";
  }

  std::string check_links() {
    std::uint64_t cables = 0;
    std::uint32_t next = fabric_.node_count() * fabric_.ports_per_node();
    for (std::uint32_t i = 0; i < fabric_.switches().size(); ++i) {
      const Fabric::Uplinks up = fabric_.uplinks(SwitchIndex(i));
      if (up.first.value() != next) return "link numbers with a gap";
      for (std::size_t k = 0; k < up.uppers.size(); ++k, ++next) {
        const SwitchLink expected{SwitchIndex(i), up.uppers[k], up.cables[k]};
        if (fabric_.switch_link(FabricLinkId(next)) != expected) return "a link of other switches";
        links_.push_back(expected);
        cables += up.cables[k];
        ports_used_[i] += up.cables[k];
        ports_used_[up.uppers[k].value()] += up.cables[k];
      }
    }
    if (next != fabric_.link_count()) return "links that no switch has";
    if (cables != fabric_.cables(0) + fabric_.cables(1)) return "cables that do not add up";
    return "";
  }

  [[nodiscard]] std::string check_radix() const {
    for (std::size_t i = 0; i < ports_used_.size(); ++i) {
      if (ports_used_[i] > radix_) {
        return fmt::format("switch {} uses {} ports of {}", i, ports_used_[i], radix_);
      }
    }
    return "";
  }

  /// Checks that every node has a port in every plane, and no link leaves its plane.
  [[nodiscard]] std::string check_planes() const {
    const auto plane = [this](SwitchIndex at) { return fabric_.switches()[at.value()].plane; };
    std::set<int> planes;
    for (const Switch& item : fabric_.switches()) planes.insert(item.plane);
    for (const SwitchLink& link : links_) {
      if (plane(link.lower) != plane(link.upper)) return "a link between planes";
    }
    for (std::uint32_t node = 0; node < fabric_.node_count(); ++node) {
      std::set<int> reached;
      for (std::uint32_t port = 0; port < fabric_.ports_per_node(); ++port) {
        reached.insert(plane(fabric_.leaf_of({node, port})));
      }
      if (reached != planes) return fmt::format("node {} misses a plane", node);
    }
    return "";
  }

  /// Checks that the switches of a plane are connected; with check_planes, any two nodes then reach
  /// each other in it.
  [[nodiscard]] std::string check_joined() const {
    std::vector<std::size_t> parent(fabric_.switches().size());
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto root = [&parent](std::size_t i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (const SwitchLink& link : links_)
      parent[root(link.lower.value())] = root(link.upper.value());
    std::set<std::size_t> roots;
    std::set<int> planes;
    for (std::size_t i = 0; i < parent.size(); ++i) {
      roots.insert(root(i));
      planes.insert(fabric_.switches()[i].plane);
    }
    return roots.size() == planes.size() ? "" : "a plane in pieces";
  }

  [[nodiscard]] bool is_dragonfly() const {
    return fabric_.kind() == NetworkKind::kDragonfly ||
           fabric_.kind() == NetworkKind::kDragonflyPlus;
  }

  [[nodiscard]] NetworkTier leaf_distance(SwitchIndex a, SwitchIndex b) const {
    if (a == b) return NetworkTier::kLeaf;
    const Switch& left = fabric_.switches()[a.value()];
    const Switch& right = fabric_.switches()[b.value()];
    if (left.plane != right.plane) return NetworkTier::kNone;
    if (is_dragonfly()) {
      return left.group == right.group ? NetworkTier::kSpine : NetworkTier::kCore;
    }
    for (const SwitchIndex spine : fabric_.uplinks(a).uppers) {
      const auto others = fabric_.uplinks(b).uppers;
      if (std::ranges::count(others, spine) > 0) return NetworkTier::kSpine;
    }
    return NetworkTier::kCore;
  }

  /// Compares tier_between with the nearest of all pairs of ports, for some pairs of nodes.
  [[nodiscard]] std::string check_distances() const {
    constexpr int kPairs = 12;
    Rng rng(fabric_.node_count());
    for (int i = 0; i < kPairs && fabric_.node_count() > 1; ++i) {
      const auto a = static_cast<std::uint32_t>(rng.below(fabric_.node_count()));
      const auto b = static_cast<std::uint32_t>(rng.below(fabric_.node_count()));
      NetworkTier nearest = a == b ? NetworkTier::kNode : NetworkTier::kNone;
      for (std::uint32_t p = 0; p < fabric_.ports_per_node(); ++p) {
        for (std::uint32_t q = 0; q < fabric_.ports_per_node(); ++q) {
          const NetworkTier tier = leaf_distance(fabric_.leaf_of({a, p}), fabric_.leaf_of({b, q}));
          nearest = std::min(nearest, tier);
        }
      }
      if (fabric_.tier_between(a, b) != nearest) {
        return fmt::format("nodes {} and {} are not as far apart as their ports", a, b);
      }
    }
    return "";
  }

  const Fabric& fabric_;
  std::uint32_t radix_;
  std::vector<std::uint32_t> ports_used_;
  std::vector<SwitchLink> links_;
};

}  // namespace orrery
