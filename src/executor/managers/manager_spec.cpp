#include "executor/managers/manager_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/utf8.hpp"
#include "executor/slurm/pilot_options.hpp"
#include "executor/slurm/slurm_names.hpp"
#include "fleet/import/host_list.hpp"

namespace orrery {
namespace {

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

/// Returns the value at a path of keys, such as "pilots.time"; as far as it is written.
DocumentNode value_at(DocumentNode node, std::string_view path) {
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    const std::vector<DocumentNode::Entry> entries = node.entries();
    const auto found =
        std::find_if(entries.begin(), entries.end(),
                     [&](const DocumentNode::Entry& each) { return each.key.text() == key; });
    if (found == entries.end()) break;
    node = found->value;
  }
  return node;
}

/// A manager, and where it is written.
struct WrittenManager {
  ManagerSpec& spec;
  DocumentNode node;

  [[nodiscard]] Status refuse(std::string_view path, const std::string& why) const {
    return input_error(value_at(node, path).position(), fmt::format("{}: {}", path, why));
  }
};

/// The keys of a block that says how nodes are held.
struct HeldKeys {
  std::string_view block;
  std::optional<std::uint32_t> most;
  Seconds time;
};

Status check_held(const WrittenManager& manager, const HeldKeys& keys, std::size_t nodes) {
  constexpr Seconds kTimeMin{120};
  constexpr Seconds kTimeMax{366 * 86'400.0};
  const auto refuse = [&](std::string_view key, const std::string& why) {
    return manager.refuse(fmt::format("{}.{}", keys.block, key), why);
  };
  if (keys.time < kTimeMin || keys.time > kTimeMax) {
    return refuse("time", fmt::format("expected a time of 2 minutes to 366 days, found {}",
                                      Duration::from_seconds(keys.time.value()).text()));
  }
  if (keys.most.value_or(0) <= nodes) return {};
  return refuse("most", fmt::format("expected at most the {} nodes of the manager, found {}", nodes,
                                    *keys.most));
}

Status check_pilots(const WrittenManager& manager, std::size_t nodes) {
  const PilotSpec& pilots = *manager.spec.pilots;
  if (Status held = check_held(manager, {"pilots", pilots.most, pilots.time}, nodes); !held) {
    return held;
  }
  if (pilots.nodes == 0) return manager.refuse("pilots.nodes", "expected at least 1, found 0");
  const std::size_t most = pilots.most.value_or(nodes);
  if (pilots.keep > most) {
    return manager.refuse("pilots.keep",
                          fmt::format("expected at most {}, found {}", most, pilots.keep));
  }
  const SlurmSpec& slurm = manager.spec.slurm;
  for (const bool account : {true, false}) {
    if ((account ? slurm.account : slurm.qos).find(kTenantMark) == std::string::npos) continue;
    return manager.refuse(account ? "slurm.account" : "slurm.qos",
                          fmt::format("{} stands for the tenant of a job, and a pilot has none; "
                                      "expected jobs instead of pilots",
                                      kTenantMark));
  }
  return {};
}

/// Returns a key that is of use only where nodes are lent; empty: there is none.
std::string_view key_of_loans(const ManagerSpec& spec) {
  const SlurmSpec& slurm = spec.slurm;
  if (spec.pilots) return "pilots";
  if (spec.jobs) return "jobs";
  if (spec.agent) return "agent";
  if (!slurm.partition.empty()) return "slurm.partition";
  if (!slurm.account.empty()) return "slurm.account";
  if (!slurm.qos.empty()) return "slurm.qos";
  if (!slurm.reservation.empty()) return "slurm.reservation";
  if (!slurm.options.empty()) return "slurm.options";
  return slurm.output.empty() ? "" : "slurm.output";
}

/// Completes a manager of nodes that are lent, and refuses what is of no use for other nodes.
Status complete(const WrittenManager& manager) {
  ManagerSpec& spec = manager.spec;
  if (spec.use != PoolUse::kLent) {
    const std::string_view key = key_of_loans(spec);
    if (key.empty()) return {};
    return manager.refuse(key, fmt::format("nodes that are {} are not asked for; expected no such "
                                           "key",
                                           word_of(spec.use)));
  }
  if (spec.pilots && spec.jobs) {
    return manager.refuse("jobs", "expected either pilots or jobs, found both");
  }
  if (!spec.pilots && !spec.jobs) spec.pilots.emplace();
  if (!spec.agent) spec.agent.emplace();
  return {};
}

Status check_options(const WrittenManager& manager) {
  const std::optional<RefusedOption> refused = refused_option(manager.spec.slurm.options);
  if (!refused) return {};
  return input_error(value_at(manager.node, "slurm.options").items()[refused->at].position(),
                     "slurm.options: " + refused->why);
}

/// `taken`: the managers of nodes that were named before.
Status check_manager(const WrittenManager& manager, std::map<std::string, std::string>& taken) {
  const ManagerSpec& spec = manager.spec;
  if (!is_name(spec.name)) {
    return manager.refuse("name",
                          fmt::format("expected up to 32 small letters, digits and \"-\", found {}",
                                      printable(spec.name, 60)));
  }
  if (Status fits = complete(manager); !fits) return fits;
  if (spec.agent && !spec.agent->directory.starts_with('/')) {
    return manager.refuse("agent.directory", fmt::format("expected an absolute path, found {}",
                                                         printable(spec.agent->directory, 60)));
  }
  const Result<std::vector<std::string>> names = expand_host_list(spec.nodes);
  if (!names) return manager.refuse("nodes", names.error().message);
  for (const std::string& name : *names) {
    const auto [at, added] = taken.emplace(name, spec.name);
    if (added) continue;
    return manager.refuse("nodes", at->second == spec.name
                                       ? fmt::format("\"{}\" is named twice", name)
                                       : fmt::format("\"{}\" is one of {}, too", name, at->second));
  }
  if (Status fit = check_options(manager); !fit) return fit;
  if (spec.pilots) return check_pilots(manager, names->size());
  if (!spec.jobs) return {};
  return check_held(manager, {"jobs", spec.jobs->most, spec.jobs->time}, names->size());
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
  const std::vector<DocumentNode> nodes = value_at(root, "managers").items();
  for (std::size_t at = 0; at < spec.managers.size(); ++at) {
    const WrittenManager manager{spec.managers[at], nodes[at]};
    const std::string& name = manager.spec.name;
    if (!names.insert(name).second) {
      Status taken_name =
          manager.refuse("name", fmt::format("there is another manager \"{}\"", name));
      return forward_error(taken_name);
    }
    if (Status fits = check_manager(manager, taken); !fits) return forward_error(fits);
  }
  return spec;
}

std::vector<std::string> nodes_of(const ManagerSpec& spec) {
  Result<std::vector<std::string>> names = expand_host_list(spec.nodes);
  ORRERY_ASSERT(names, "the host list was checked when it was read");
  return *std::move(names);
}

HoldPool pool_of(const ManagerSpec& spec, const Topology& topology) {
  std::map<std::string, NodeId> known;
  for (std::uint32_t n = 0; n < topology.node_count(); ++n) {
    known.emplace(topology.node_name(NodeId(n)), NodeId(n));
  }
  HoldPool pool{.manager = spec.name, .use = spec.use};
  for (std::string& name : nodes_of(spec)) {
    const auto node = known.find(name);
    if (node == known.end()) {
      pool.unknown.push_back(std::move(name));
    } else {
      pool.nodes.push_back(node->second);
    }
  }
  std::sort(pool.nodes.begin(), pool.nodes.end());
  if (spec.use != PoolUse::kLent) return pool;
  const auto all = static_cast<std::uint32_t>(pool.nodes.size());
  const auto lend = [&](std::optional<std::uint32_t> most, Seconds time) {
    pool.lent = {.nodes = pool.nodes,
                 .most = std::min(all, most.value_or(all)),
                 .time = Duration::from_seconds(time.value())};
  };
  if (spec.jobs) {
    lend(spec.jobs->most, spec.jobs->time);
    pool.holds_for = HoldsFor::kOneJob;
    return pool;
  }
  const PilotSpec pilots = spec.pilots.value_or(PilotSpec());
  lend(pilots.most, pilots.time);
  pool.pilot_nodes = pilots.nodes;
  pool.keep = std::min(pool.lent.most, pilots.keep);
  pool.idle = Duration::from_seconds(pilots.idle.value());
  return pool;
}

}  // namespace orrery
