#include "executor/managers/manager_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/assert.hpp"
#include "base/text/utf8.hpp"
#include "fleet/import/host_list.hpp"

namespace orrery {
namespace {

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

Status check_pilots(const ManagerSpec& spec, std::size_t nodes) {
  constexpr Seconds kTimeMin{120};
  constexpr Seconds kTimeMax{366 * 86'400.0};
  const PilotSpec& pilots = spec.pilots;
  if (pilots.time < kTimeMin || pilots.time > kTimeMax) {
    return input_error(spec.where, "pilots.time: expected a time of 2 minutes to 366 days");
  }
  if (pilots.nodes == 0) return input_error(spec.where, "pilots.nodes: expected at least 1");
  const std::size_t most = pilots.most.value_or(nodes);
  if (most > nodes) {
    return input_error(spec.where, fmt::format("pilots.most: expected at most the {} nodes of the "
                                               "manager, found {}",
                                               nodes, most));
  }
  if (pilots.keep <= most) return {};
  return input_error(spec.where,
                     fmt::format("pilots.keep: expected at most {}, found {}", most, pilots.keep));
}

/// `taken`: the managers of nodes that were named before.
Status check_manager(const ManagerSpec& spec, std::map<std::string, std::string>& taken) {
  const auto refuse = [&](const std::string& why) -> Status {
    return input_error(spec.where, why);
  };
  if (!is_name(spec.name)) {
    return refuse(fmt::format("name: expected up to 32 small letters, digits and \"-\", found {}",
                              printable(spec.name, 60)));
  }
  if (!spec.agent.directory.starts_with('/')) {
    return refuse(fmt::format("agent.directory: expected an absolute path, found {}",
                              printable(spec.agent.directory, 60)));
  }
  const Result<std::vector<std::string>> names = expand_host_list(spec.nodes);
  if (!names) return refuse("nodes: " + names.error().message);
  for (const std::string& name : *names) {
    const auto [at, added] = taken.emplace(name, spec.name);
    if (added) continue;
    return refuse(at->second == spec.name
                      ? fmt::format("nodes: \"{}\" is named twice", name)
                      : fmt::format("nodes: \"{}\" is one of {}, too", name, at->second));
  }
  for (const std::string& option : spec.slurm.options) {
    if (option != "--exclude" && !option.starts_with("-x")) continue;
    return refuse(fmt::format("slurm.options: expected \"--exclude=NODES\", found \"{}\"",
                              printable(option, 60)));
  }
  return check_pilots(spec, names->size());
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
  std::map<std::string, std::string> taken;
  for (const ManagerSpec& manager : spec.managers) {
    if (!names.insert(manager.name).second) {
      return input_error(manager.where,
                         fmt::format("name: there is another manager \"{}\"", manager.name));
    }
    if (Status fits = check_manager(manager, taken); !fits) return forward_error(fits);
  }
  return spec;
}

std::vector<std::string> lent_names(const ManagerSpec& spec) {
  Result<std::vector<std::string>> names = expand_host_list(spec.nodes);
  ORRERY_ASSERT(names, "the host list was checked when it was read");
  return *std::move(names);
}

HoldPool pool_of(const ManagerSpec& spec, const Topology& topology) {
  std::map<std::string, NodeId> known;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    known.emplace(topology.node_name(NodeId(n)), NodeId(n));
  }
  HoldPool pool{.manager = spec.name,
                .pilot_nodes = spec.pilots.nodes,
                .idle = Duration::from_seconds(spec.pilots.idle.value())};
  pool.lent.time = Duration::from_seconds(spec.pilots.time.value());
  for (std::string& name : lent_names(spec)) {
    const auto node = known.find(name);
    if (node == known.end()) {
      pool.unknown.push_back(std::move(name));
    } else {
      pool.lent.nodes.push_back(node->second);
    }
  }
  std::sort(pool.lent.nodes.begin(), pool.lent.nodes.end());
  const auto all = static_cast<std::uint32_t>(pool.lent.nodes.size());
  pool.lent.most = std::min(all, spec.pilots.most.value_or(all));
  pool.keep = std::min(pool.lent.most, spec.pilots.keep);
  return pool;
}

}  // namespace orrery
