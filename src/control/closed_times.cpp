#include "control/closed_times.hpp"

#include <algorithm>
#include <utility>

namespace orrery {
namespace {

NodeDevices whole(NodeId node, const Topology& topology) {
  const std::uint32_t devices = topology.group(node).devices;
  return {node, devices >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << devices) - 1};
}

bool comes_before(const NodeDevices& at, NodeId node) { return at.node < node; }

/// Moves a node from the nodes of one key to those of another; `none` has no nodes.
template <class Key>
void move_node(std::map<Key, std::vector<NodeDevices>>& nodes, const NodeDevices& node,
               const std::pair<Key, Key>& keys, const Key& none) {
  if (const auto old = nodes.find(keys.first); old != nodes.end()) {
    std::erase(old->second, node);
    if (old->second.empty()) nodes.erase(old);
  }
  if (keys.second == none) return;
  std::vector<NodeDevices>& at = nodes[keys.second];
  at.insert(std::lower_bound(at.begin(), at.end(), node.node, comes_before), node);
}

}  // namespace

void ClosedTimes::set(std::uint32_t window, Maintenance plan, const Topology& topology) {
  if (plan.nodes.empty()) {
    windows_.erase(window);
  } else {
    windows_[window] = std::move(plan);
  }
  take_up_windows(topology);
}

void ClosedTimes::take_up_windows(const Topology& topology) {
  std::vector<Closure> list;
  for (const auto& [window, plan] : windows_) {
    Closure& closure = list.emplace_back(Closure{{}, plan.from, plan.to});
    for (const NodeId node : plan.nodes) closure.nodes.push_back(whole(node, topology));
  }
  for (const auto& [until, nodes] : taken_) {
    list.push_back({.nodes = nodes, .from = Instant(), .to = until, .returns = true});
  }
  for (const auto& [job, nodes] : bound_) {
    list.push_back({.nodes = nodes, .from = Instant::max(), .to = Instant(), .only = job});
  }
  for (Closure& closure : list_) {
    if (closure.loan) list.push_back(std::move(closure));
  }
  list_ = std::move(list);
}

void ClosedTimes::take(NodeId node, Instant before, Instant until, const Topology& topology) {
  if (before == until) return;
  move_node(taken_, whole(node, topology), {before, until}, Instant());
  take_up_windows(topology);
}

void ClosedTimes::bind(NodeId node, JobId before, JobId job, const Topology& topology) {
  if (before == job) return;
  move_node(bound_, whole(node, topology), {before, job}, JobId());
  take_up_windows(topology);
}

void ClosedTimes::lend(NodeId node, Instant before, Instant until, const Topology& topology) {
  if (before == until) return;
  const auto loan_at = [this](Instant end) {
    return std::find_if(list_.begin(), list_.end(), [end](const Closure& closure) {
      return closure.loan && closure.from >= end;
    });
  };
  if (before != Instant::max()) {
    const auto old = loan_at(before);
    std::erase_if(old->nodes, [node](const NodeDevices& at) { return at.node == node; });
    if (old->nodes.empty()) list_.erase(old);
  }
  if (until == Instant::max()) return;
  auto closure = loan_at(until);
  if (closure == list_.end() || closure->from != until) {
    closure = list_.insert(closure, Closure{{}, until, Instant::max(), true});
  }
  std::vector<NodeDevices>& nodes = closure->nodes;
  nodes.insert(std::lower_bound(nodes.begin(), nodes.end(), node, comes_before),
               whole(node, topology));
}

bool ClosedTimes::in_window(NodeId id, Instant now) const {
  return std::any_of(windows_.begin(), windows_.end(), [&](const auto& entry) {
    const Maintenance& window = entry.second;
    return window.from <= now && now < window.to &&
           std::find(window.nodes.begin(), window.nodes.end(), id) != window.nodes.end();
  });
}

}  // namespace orrery
