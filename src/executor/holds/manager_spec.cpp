#include "executor/holds/manager_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text/utf8.hpp"
#include "fleet/import/host_list.hpp"

namespace orrery {
namespace {

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Status check_manager(const ManagerSpec& spec) {
  const auto refuse = [&](std::string why) -> Status { return input_error(spec.where, why); };
  if (!is_name(spec.name)) {
    return refuse(fmt::format("name: expected up to 32 small letters, digits and \"-\", found {}",
                              printable(spec.name, 60)));
  }
  constexpr Seconds kTimeMin{120};
  constexpr Seconds kTimeMax{366 * 86'400.0};
  const PilotSpec& pilots = spec.pilots;
  if (pilots.time < kTimeMin || pilots.time > kTimeMax) {
    return refuse("pilots.time: expected a time of 2 minutes to 366 days");
  }
  if (pilots.nodes == 0) return refuse("pilots.nodes: expected at least 1");
  if (!spec.agent.directory.starts_with('/')) {
    return refuse(fmt::format("agent.directory: expected an absolute path, found {}",
                              printable(spec.agent.directory, 60)));
  }
  return {};
}

}  // namespace

Result<ManagersSpec> read_managers(const Document& document) {
  ManagersSpec spec;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, spec, {}); !read) return forward_error(read);
  if (spec.api_version != "orrery/v1" || spec.kind != "Managers") {
    return input_error(
        root.position(),
        fmt::format("expected apiVersion orrery/v1 and kind Managers, found {} and {}",
                    printable(spec.api_version, 60), printable(spec.kind, 60)));
  }
  std::set<std::string> names;
  for (const ManagerSpec& manager : spec.managers) {
    if (Status fits = check_manager(manager); !fits) return forward_error(fits);
    if (names.insert(manager.name).second) continue;
    return input_error(manager.where,
                       fmt::format("name: there is another manager \"{}\"", manager.name));
  }
  return spec;
}

Result<HoldPool> pool_of(const ManagerSpec& spec, const Topology& topology) {
  Result<std::vector<std::string>> names = expand_host_list(spec.nodes);
  if (!names) return input_error(spec.where, "nodes: " + names.error().message);
  std::map<std::string, NodeId> known;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    known.emplace(topology.node_name(NodeId(n)), NodeId(n));
  }
  HoldPool pool{.manager = spec.name,
                .pilot_nodes = spec.pilots.nodes,
                .keep = spec.pilots.keep,
                .idle = Duration::from_seconds(spec.pilots.idle.value())};
  pool.lent.time = Duration::from_seconds(spec.pilots.time.value());
  pool.lent.nodes.reserve(names->size());
  for (const std::string& name : *names) {
    const auto node = known.find(name);
    if (node == known.end()) {
      return input_error(spec.where,
                         fmt::format("nodes: the fleet has no node \"{}\"; `orrery fleet apply` "
                                     "adds it",
                                     printable(name, 60)));
    }
    pool.lent.nodes.push_back(node->second);
  }
  std::sort(pool.lent.nodes.begin(), pool.lent.nodes.end());
  const auto repeated = std::adjacent_find(pool.lent.nodes.begin(), pool.lent.nodes.end());
  if (repeated != pool.lent.nodes.end()) {
    return input_error(spec.where,
                       fmt::format("nodes: \"{}\" is named twice", topology.node_name(*repeated)));
  }
  const auto all = static_cast<std::uint32_t>(pool.lent.nodes.size());
  pool.lent.most = spec.pilots.most.value_or(all);
  if (pool.lent.most > all) {
    return input_error(spec.where, fmt::format("pilots.most: expected at most the {} nodes of the "
                                               "manager, found {}",
                                               all, pool.lent.most));
  }
  if (pool.keep > pool.lent.most) {
    return input_error(spec.where, fmt::format("pilots.keep: expected at most {}, found {}",
                                               pool.lent.most, pool.keep));
  }
  return pool;
}

Status check_pools(const std::vector<HoldPool>& pools, const Topology& topology) {
  std::map<NodeId, std::string> of;
  for (const HoldPool& pool : pools) {
    for (const NodeId node : pool.lent.nodes) {
      const auto [at, added] = of.emplace(node, pool.manager);
      if (added) continue;
      return input_error({}, fmt::format("managers.yaml: node \"{}\" is of {} and of {}",
                                         topology.node_name(node), at->second, pool.manager));
    }
  }
  return {};
}

}  // namespace orrery
