#include "executor/live/config_drift.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

namespace orrery {
namespace {

std::set<std::string> node_names(const Topology& topology) {
  std::set<std::string> names;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    names.insert(topology.node_name(NodeId(n)));
  }
  return names;
}

/// Returns the names of nodes that are not among `known`, by ascending id.
std::vector<std::string> others(const Topology& topology, const std::set<std::string>& known) {
  std::vector<std::string> names;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    std::string name = topology.node_name(NodeId(n));
    if (!known.contains(name)) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

void ConfigDrift::compare(const Topology& file, const Topology& in_use) {
  nodes_ = {others(file, node_names(in_use)), others(in_use, node_names(file))};
  const auto& [unknown, missing] = nodes_;
  if (unknown.empty() && missing.empty()) return;
  log_.warning(env_.clock.now_wall(), "fleet.yaml names other nodes than the cluster has",
               {{"not_in_the_cluster", fmt::format("{}", fmt::join(unknown, ","))},
                {"not_in_the_file", fmt::format("{}", fmt::join(missing, ","))}});
}

void ConfigDrift::note_line(std::string line) {
  const bool known = std::ranges::find(lines_, line) != lines_.end();
  if (!known && lines_.size() < kLinesMax) lines_.push_back(std::move(line));
}

}  // namespace orrery
