#include "twin/world/arrivals.hpp"

#include <algorithm>

namespace orrery {

std::vector<Instant> arrivals_of(const Topology& topology, std::span<const Delivery> deliveries,
                                 Instant begin) {
  std::vector<Instant> arrivals(topology.node_count(), begin);
  for (const Delivery& delivery : deliveries) {
    std::vector<std::uint32_t> nodes;
    nodes.reserve(topology.node_count());
    for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
      if (topology.group(NodeId(n)).type == delivery.type) nodes.push_back(n);
    }
    const auto gaps = static_cast<std::int64_t>(std::max<std::size_t>(nodes.size(), 2) - 1);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Instant& at = arrivals[nodes[i]];
      at = Instant::max();
      if (delivery.after == Duration::max()) continue;
      const std::int64_t each = delivery.over.count_ns() / gaps;
      at = begin + delivery.after + Duration::nanoseconds(each) * static_cast<std::int64_t>(i);
    }
  }
  return arrivals;
}

std::vector<Input> arrival_commands(std::span<const Instant> arrivals, Instant begin) {
  std::vector<Input> commands;
  commands.reserve(2 * arrivals.size());
  for (std::size_t n = 0; n < arrivals.size(); ++n) {
    if (arrivals[n] <= begin) continue;
    commands.push_back({begin, DrainNode{NodeId::at(n), true, "not delivered yet"}, {}});
  }
  const std::size_t drained = commands.size();
  for (std::size_t n = 0; n < arrivals.size(); ++n) {
    if (arrivals[n] <= begin || arrivals[n] == Instant::max()) continue;
    commands.push_back({arrivals[n], ResumeNode{NodeId::at(n)}, {}});
  }
  std::stable_sort(commands.begin() + static_cast<std::ptrdiff_t>(drained), commands.end(),
                   [](const Input& a, const Input& b) { return a.at < b.at; });
  return commands;
}

}  // namespace orrery
