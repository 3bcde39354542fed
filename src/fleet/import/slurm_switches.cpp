#include "fleet/import/slurm_switches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "fleet/import/host_list.hpp"

namespace orrery {
namespace {

constexpr std::size_t kSwitchesMax = 1u << 16;
constexpr std::size_t kChildNamesMax = 1u << 20;
constexpr std::uint32_t kNoSwitch = std::numeric_limits<std::uint32_t>::max();

struct Switch {
  std::string name;
  SourcePosition where;
  std::vector<std::uint32_t> nodes;
  std::vector<std::uint32_t> children;
  std::uint32_t parent = kNoSwitch;
};

class SwitchTree {
 public:
  SwitchTree(const SlurmNodeIndex& nodes, ImportedCluster& cluster)
      : nodes_(nodes), cluster_(cluster), leaf_of_(cluster.nodes.size(), kNoSwitch) {}

  // A switch may be named before it is described, so children are looked up once all are known.
  Status build(const SlurmSwitches& described) {
    cluster_.topology = described.kind;
    for (const SlurmSwitch& each : described.switches) {
      if (Status added = add(each); !added) return added;
    }
    for (std::uint32_t parent = 0; parent < switches_.size(); ++parent) {
      const std::optional<SlurmText>& children = described.switches[parent].children;
      if (!children) continue;
      if (Status joined = join(parent, *children); !joined) return joined;
    }
    return check_tree();
  }

  void fill_pods() {
    std::vector<ImportedPod>& pods = cluster_.pods;
    for (const Switch& above : switches_) {
      ImportedPod pod{above.name, {}};
      for (const std::uint32_t child : above.children) add_leaf(switches_[child], pod);
      if (!pod.leaves.empty()) pods.push_back(std::move(pod));
    }
    ImportedPod alone{"pod", {}};
    for (const Switch& leaf : switches_) {
      if (leaf.parent == kNoSwitch) add_leaf(leaf, alone);
    }
    if (!alone.leaves.empty()) pods.push_back(std::move(alone));
    add_unlisted();
  }

 private:
  [[nodiscard]] std::uint32_t last() const {
    return static_cast<std::uint32_t>(switches_.size()) - 1;
  }

  Status add(const SlurmSwitch& described) {
    const auto& [name, where] = described.name;
    if (switches_.size() >= kSwitchesMax) {
      return input_error(where, fmt::format("more than {} switches", kSwitchesMax));
    }
    const auto [known, fresh] =
        by_name_.emplace(name, static_cast<std::uint32_t>(switches_.size()));
    if (!fresh) {
      return input_error(where,
                         fmt::format("a second \"{}\", the first is at {}", printable(name, 60),
                                     switches_[known->second].where.text()));
    }
    switches_.push_back({name, where, {}, {}, kNoSwitch});
    return described.nodes ? attach(*described.nodes) : Status();
  }

  // Puts nodes under the last switch.
  Status attach(const SlurmText& list) {
    auto names = expand_host_list(list.text);
    if (!names) return input_error(list.where, names.error().message);
    for (const std::string& name : *names) {
      const auto found = nodes_.find(name);
      if (found == nodes_.end()) {
        return input_error(list.where,
                           fmt::format("slurm.conf has no node \"{}\"", printable(name, 60)));
      }
      if (found->second == kFutureNode) continue;
      std::uint32_t& leaf = leaf_of_[found->second];
      if (leaf != kNoSwitch) {
        return input_error(list.where, fmt::format("{} stands under \"{}\" already", name,
                                                   printable(switches_[leaf].name, 60)));
      }
      leaf = last();
      switches_.back().nodes.push_back(found->second);
    }
    return {};
  }

  Result<std::vector<std::uint32_t>> find_all(const SlurmText& list) {
    auto names = expand_host_list(list.text);
    if (!names) return input_error(list.where, names.error().message);
    child_names_ += names->size();
    if (child_names_ > kChildNamesMax) {
      return input_error(list.where, fmt::format("more than {} names of switches", kChildNamesMax));
    }
    std::vector<std::uint32_t> all;
    for (const std::string& name : *names) {
      const auto found = by_name_.find(name);
      if (found != by_name_.end()) {
        all.push_back(found->second);
        continue;
      }
      std::vector<std::string_view> known;
      known.reserve(switches_.size());
      for (const Switch& each : switches_) known.push_back(each.name);
      return input_error(list.where, fmt::format("there is no switch \"{}\"{}", printable(name, 60),
                                                 did_you_mean(name, known)));
    }
    return all;
  }

  Status join(std::uint32_t parent, const SlurmText& list) {
    Result<std::vector<std::uint32_t>> children = find_all(list);
    if (!children) return forward_error(children);
    const std::uint32_t other = switches_[children->front()].parent;
    // Spines with the same leaves below them are one for placement.
    if (other != kNoSwitch && switches_[other].children == *children) return {};
    for (const std::uint32_t child : *children) {
      std::uint32_t& above = switches_[child].parent;
      if (above != kNoSwitch) {
        return input_error(list.where,
                           fmt::format("\"{}\" is below \"{}\" already; expected a tree, or spines "
                                       "with the same leaves",
                                       printable(switches_[child].name, 60),
                                       printable(switches_[above].name, 60)));
      }
      above = parent;
    }
    switches_[parent].children = *std::move(children);
    return {};
  }

  // Walks up from every switch; a switch met again on the same walk is in a cycle.
  [[nodiscard]] Status check_tree() const {
    std::vector<std::uint32_t> walk_of(switches_.size(), kNoSwitch);
    for (std::uint32_t start = 0; start < switches_.size(); ++start) {
      std::uint32_t at = start;
      for (; at != kNoSwitch && walk_of[at] == kNoSwitch; at = switches_[at].parent) {
        walk_of[at] = start;
      }
      if (at == kNoSwitch || walk_of[at] != start) continue;
      return input_error(switches_[at].where, fmt::format("\"{}\" is below itself; expected a tree",
                                                          printable(switches_[at].name, 60)));
    }
    return {};
  }

  static void add_leaf(const Switch& leaf, ImportedPod& pod) {
    if (!leaf.nodes.empty()) pod.leaves.push_back({leaf.name, leaf.nodes});
  }

  void add_unlisted() {
    const bool tree = cluster_.topology != ImportedTopology::kNone;
    ImportedLeaf leaf{tree ? "no-switch" : "rack", {}};
    for (std::uint32_t i = 0; i < leaf_of_.size(); ++i) {
      if (leaf_of_[i] == kNoSwitch) leaf.nodes.push_back(i);
    }
    if (leaf.nodes.empty()) return;
    if (tree) cluster_.unlisted_nodes = static_cast<std::uint32_t>(leaf.nodes.size());
    cluster_.pods.push_back({tree ? "no-switch" : "pod", {std::move(leaf)}});
  }

  const SlurmNodeIndex& nodes_;
  ImportedCluster& cluster_;
  std::vector<std::uint32_t> leaf_of_;  ///< by node
  std::vector<Switch> switches_;
  std::unordered_map<std::string, std::uint32_t> by_name_;
  std::size_t child_names_ = 0;
};

std::optional<SlurmText> text_of(const SlurmSetting* setting) {
  if (setting == nullptr) return std::nullopt;
  return SlurmText{setting->value, setting->where};
}

}  // namespace

Result<SlurmSwitches> read_topology_conf(std::span<const SlurmLine> lines) {
  SlurmSwitches all;
  all.switches.reserve(lines.size());
  for (const SlurmLine& line : lines) {
    const SlurmSetting& name = line.first();
    const bool block = name.key == "blockname";
    if (!block && name.key != "switchname") continue;
    const ImportedTopology kind = block ? ImportedTopology::kBlocks : ImportedTopology::kSwitches;
    if (!all.switches.empty() && all.kind != kind) {
      return input_error(name.where, "SwitchName and BlockName lines in one file");
    }
    all.kind = kind;
    const SlurmSetting* nodes = line.find("nodes");
    const SlurmSetting* children = block ? nullptr : line.find("switches");
    if ((nodes == nullptr) == (children == nullptr)) {
      return input_error(name.where, fmt::format("\"{}\": expected {}", printable(name.value, 60),
                                                 block ? "Nodes=" : "either Nodes= or Switches="));
    }
    all.switches.push_back({{name.value, name.where}, text_of(nodes), text_of(children)});
  }
  return all;
}

Status place_under_switches(const SlurmSwitches& switches, const SlurmNodeIndex& nodes,
                            ImportedCluster& cluster) {
  SwitchTree tree(nodes, cluster);
  if (Status built = tree.build(switches); !built) return built;
  tree.fill_pods();
  return {};
}

}  // namespace orrery
