#include "fleet/import/slurm_topology_yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/format/field_reader.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::string_view kFlat = "flat";
constexpr std::array<std::string_view, 5> kKinds = {"block", kFlat, "ring", "torus3d", "tree"};

/// A topology of any kind; `where` is the position of its mapping.
struct SlurmTopologyEntry {
  std::string name;
  SourcePosition where;
};

template <class Visitor, SameStruct<SlurmTopologyEntry> Self>
void describe(Visitor& visitor, Self& topology) {
  visitor.required("topology", topology.name);
  visitor.elsewhere("cluster_default");
  for (const std::string_view kind : kKinds) visitor.elsewhere(kind);
}

struct SlurmTreeEntry {};

template <class Visitor, SameStruct<SlurmTreeEntry> Self>
void describe(Visitor& visitor, Self&) {
  visitor.elsewhere("switches");
}

struct SlurmSwitchEntry {
  std::string name;
  SourcePosition where;
};

template <class Visitor, SameStruct<SlurmSwitchEntry> Self>
void describe(Visitor& visitor, Self& entry) {
  visitor.required("switch", entry.name);
  visitor.elsewhere("children");
  visitor.elsewhere("nodes");
}

struct SlurmBlocksEntry {};

template <class Visitor, SameStruct<SlurmBlocksEntry> Self>
void describe(Visitor& visitor, Self&) {
  visitor.elsewhere("block_sizes");
  visitor.elsewhere("blocks");
}

struct SlurmBlockEntry {
  std::string name;
  SourcePosition where;
};

template <class Visitor, SameStruct<SlurmBlockEntry> Self>
void describe(Visitor& visitor, Self& block) {
  visitor.required("block", block.name);
  visitor.elsewhere("nodes");
}

struct SlurmFlatEntry {};

template <class Visitor, SameStruct<SlurmFlatEntry> Self>
void describe(Visitor& visitor, Self&) {
  visitor.elsewhere("alpha_step_rank");
}

/// Reads a truth by Slurm's words for it, quoted or not.
Result<bool> read_slurm_truth(const DocumentNode& node) {
  constexpr std::array<std::string_view, 5> kTrue = {"true", "t", "yes", "y", "on"};
  constexpr std::array<std::string_view, 5> kFalse = {"false", "f", "no", "n", "off"};
  const std::string word = lower_case(node.text());
  if (std::find(kTrue.begin(), kTrue.end(), word) != kTrue.end()) return true;
  if (std::find(kFalse.begin(), kFalse.end(), word) != kFalse.end()) return false;
  Status status = unexpected_node(node, "true or false");
  return forward_error(status);
}

/// Returns the text of a key with its position; none if it is absent or empty.
template <class Struct>
Result<std::optional<SlurmText>> text_of(const DocumentNode& mapping, std::string_view key) {
  const std::optional<DocumentNode> value = read_elsewhere<Struct>(mapping, key);
  if (!value || value->kind() == NodeKind::kNull) return std::nullopt;
  Result<std::string> text = read_string(*value);
  if (!text) return forward_error(text);
  if (text->empty()) return std::nullopt;
  return SlurmText{*std::move(text), value->position()};
}

/// Returns the mappings of a list, which Slurm lets a single mapping stand for; at least one.
Result<std::vector<DocumentNode>> mappings_of(const DocumentNode& node, std::string_view what) {
  if (node.kind() == NodeKind::kMapping) return std::vector<DocumentNode>{node};
  if (node.kind() == NodeKind::kSequence) {
    if (node.size() > 0) return node.items();
    return input_error(node.position(), fmt::format("the list of {} is empty", what));
  }
  Status status = unexpected_node(node, fmt::format("a list of {}", what));
  return forward_error(status);
}

/// Returns the mappings of a key that a struct must have.
template <class Struct>
Result<std::vector<DocumentNode>> mappings_in(const DocumentNode& mapping, std::string_view key) {
  const std::optional<DocumentNode> list = read_elsewhere<Struct>(mapping, key);
  if (list) return mappings_of(*list, key);
  return input_error(mapping.position(), fmt::format("the key \"{}\" is missing", key));
}

Result<SlurmSwitch> read_switch(const DocumentNode& node) {
  SlurmSwitchEntry entry;
  if (Status read = read_struct(node, entry, {}); !read) return forward_error(read);
  auto nodes = text_of<SlurmSwitchEntry>(node, "nodes");
  if (!nodes) return forward_error(nodes);
  auto children = text_of<SlurmSwitchEntry>(node, "children");
  if (!children) return forward_error(children);
  if (nodes->has_value() == children->has_value()) {
    return input_error(entry.where, fmt::format("\"{}\": expected either nodes or children",
                                                printable(entry.name, 60)));
  }
  return SlurmSwitch{{std::move(entry.name), entry.where}, *std::move(nodes), *std::move(children)};
}

Result<SlurmSwitch> read_block(const DocumentNode& node) {
  SlurmBlockEntry entry;
  if (Status read = read_struct(node, entry, {}); !read) return forward_error(read);
  auto nodes = text_of<SlurmBlockEntry>(node, "nodes");
  if (!nodes) return forward_error(nodes);
  if (!nodes->has_value()) {
    return input_error(entry.where,
                       fmt::format("\"{}\": expected nodes", printable(entry.name, 60)));
  }
  return SlurmSwitch{{std::move(entry.name), entry.where}, *std::move(nodes), std::nullopt};
}

/// Reads the list of switches or blocks that a topology has under the key. `one` reads an item.
template <class Struct>
Result<std::vector<SlurmSwitch>> read_list(const DocumentNode& node, std::string_view key,
                                           Result<SlurmSwitch> (*one)(const DocumentNode&)) {
  auto items = mappings_in<Struct>(node, key);
  if (!items) return forward_error(items);
  std::vector<SlurmSwitch> list;
  list.reserve(items->size());
  for (const DocumentNode& item : *items) {
    Result<SlurmSwitch> read = one(item);
    if (!read) return forward_error(read);
    list.push_back(*std::move(read));
  }
  return list;
}

Result<SlurmSwitches> read_tree(const DocumentNode& node) {
  SlurmTreeEntry entry;
  if (Status read = read_struct(node, entry, {}); !read) return forward_error(read);
  auto switches = read_list<SlurmTreeEntry>(node, "switches", read_switch);
  if (!switches) return forward_error(switches);
  return SlurmSwitches{ImportedTopology::kSwitches, *std::move(switches)};
}

// Each size must be the first one times a power of two, of at most 2^15. A single size may stand
// for the list.
Status check_block_sizes(const DocumentNode& node) {
  constexpr std::uint64_t kTimesMax = 1u << 15;
  std::int64_t first = 0;
  const bool single = node.kind() == NodeKind::kScalar;
  for (const DocumentNode& item : single ? std::vector<DocumentNode>{node} : node.items()) {
    Result<std::int64_t> size = read_integer(item, 1, std::numeric_limits<std::int32_t>::max());
    if (!size) return forward_error(size);
    if (first == 0) first = *size;
    const auto times = static_cast<std::uint64_t>(*size / first);
    if (*size % first == 0 && std::has_single_bit(times) && times <= kTimesMax) continue;
    return input_error(item.position(),
                       fmt::format("block size {}: expected {} times a power of two up to {}",
                                   *size, first, kTimesMax));
  }
  const bool list = single || node.kind() == NodeKind::kSequence || node.kind() == NodeKind::kNull;
  return list ? Status() : unexpected_node(node, "a list of sizes");
}

Result<SlurmSwitches> read_blocks(const DocumentNode& node) {
  SlurmBlocksEntry entry;
  if (Status read = read_struct(node, entry, {}); !read) return forward_error(read);
  if (const auto sizes = read_elsewhere<SlurmBlocksEntry>(node, "block_sizes"); sizes) {
    if (Status checked = check_block_sizes(*sizes); !checked) return forward_error(checked);
  }
  auto blocks = read_list<SlurmBlocksEntry>(node, "blocks", read_block);
  if (!blocks) return forward_error(blocks);
  return SlurmSwitches{ImportedTopology::kBlocks, *std::move(blocks)};
}

Status read_flat(const DocumentNode& node) {
  if (node.kind() != NodeKind::kMapping) return {};
  SlurmFlatEntry entry;
  if (Status read = read_struct(node, entry, {}); !read) return read;
  const auto by_name = read_elsewhere<SlurmFlatEntry>(node, "alpha_step_rank");
  if (!by_name) return {};
  Result<bool> read = read_slurm_truth(*by_name);
  return read ? Status() : forward_error(read);
}

/// One of kKinds as a topology describes it.
struct KindOfTopology {
  std::string_view kind;
  SourcePosition where;  ///< position of its key
  DocumentNode body;
};

std::optional<KindOfTopology> find_kind(const DocumentNode& topology, std::string_view kind) {
  const auto body = read_elsewhere<SlurmTopologyEntry>(topology, kind);
  if (!body) return std::nullopt;
  for (const DocumentNode::Entry& entry : topology.entries()) {
    if (entry.key.text() == kind) return KindOfTopology{kind, entry.key.position(), *body};
  }
  return std::nullopt;
}

/// Whether a topology is said to be of this kind. An empty mapping says nothing.
Result<bool> describes(const KindOfTopology& named) {
  const DocumentNode& body = named.body;
  if (body.kind() == NodeKind::kNull) return false;
  if (body.kind() == NodeKind::kMapping) return body.size() > 0;
  if (named.kind == kFlat) return read_slurm_truth(body);
  Status status = unexpected_node(body, "a mapping");
  return forward_error(status);
}

/// Returns the kind of a topology, which is flat if that is an empty mapping and no other is given.
Result<KindOfTopology> kind_of(const DocumentNode& node, const SlurmTopologyEntry& entry) {
  std::optional<KindOfTopology> found;
  std::optional<KindOfTopology> empty_flat;
  for (const std::string_view kind : kKinds) {
    std::optional<KindOfTopology> named = find_kind(node, kind);
    if (!named) continue;
    Result<bool> described = describes(*named);
    if (!described) return forward_error(described);
    if (kind == kFlat && named->body.kind() == NodeKind::kMapping) empty_flat = named;
    if (!*described) continue;
    if (found) {
      return input_error(
          named->where, fmt::format("topology \"{}\" has both \"{}\" and \"{}\"; expected one kind",
                                    printable(entry.name, 60), found->kind, kind));
    }
    found = std::move(named);
  }
  if (!found) found = std::move(empty_flat);
  if (found) return *std::move(found);
  return input_error(entry.where, fmt::format("topology \"{}\": expected one of: {}",
                                              printable(entry.name, 60), fmt::join(kKinds, ", ")));
}

class TopologiesReader {
 public:
  Status read(const DocumentNode& root) {
    auto items = mappings_of(root, "topologies");
    if (!items) return forward_error(items);
    names_.reserve(items->size());
    for (const DocumentNode& item : *items) {
      if (Status taken = take(item); !taken) return taken;
    }
    return {};
  }

  SlurmTopology take_default() {
    if (names_.size() > 1) {
      const std::string taken = names_[chosen_];
      names_.erase(names_.begin() + static_cast<std::ptrdiff_t>(chosen_));
      topology_.notes.push_back(fmt::format("Topology {} of topology.yaml is read, left out: {}.",
                                            taken, fmt::join(names_, ", ")));
    }
    return std::move(topology_);
  }

 private:
  Status take(const DocumentNode& node) {
    SlurmTopologyEntry entry;
    if (Status read = read_struct(node, entry, {}); !read) return read;
    const auto [known, fresh] = positions_.emplace(entry.name, entry.where);
    if (!fresh) {
      return input_error(entry.where, fmt::format("a second topology \"{}\", the first is at {}",
                                                  printable(entry.name, 60), known->second.text()));
    }
    bool is_default = false;
    if (const auto value = read_elsewhere<SlurmTopologyEntry>(node, "cluster_default"); value) {
      Result<bool> truth = read_slurm_truth(*value);
      if (!truth) return forward_error(truth);
      is_default = *truth;
    }
    Result<SlurmTopology> read = read_kind(node, entry);
    if (!read) return forward_error(read);
    names_.push_back(printable(entry.name, 60));
    if (names_.size() > 1 && (default_found_ || !is_default)) return {};
    chosen_ = names_.size() - 1;
    default_found_ = is_default;
    topology_ = *std::move(read);
    return {};
  }

  static Result<SlurmTopology> read_kind(const DocumentNode& node,
                                         const SlurmTopologyEntry& entry) {
    Result<KindOfTopology> named = kind_of(node, entry);
    if (!named) return forward_error(named);
    SlurmTopology topology;
    Result<SlurmSwitches> switches;
    if (named->kind == "tree") {
      switches = read_tree(named->body);
    } else if (named->kind == "block") {
      switches = read_blocks(named->body);
    } else if (named->kind == kFlat) {
      if (Status read = read_flat(named->body); !read) return forward_error(read);
      topology.notes.emplace_back("The topology is flat: all nodes are in one pod.");
    } else {
      topology.notes.push_back(
          fmt::format("topology.yaml:{}:{}: \"{}\" is not understood: all nodes are in one pod.",
                      named->where.line, named->where.column, named->kind));
    }
    if (!switches) return forward_error(switches);
    topology.switches = *std::move(switches);
    return topology;
  }

  std::vector<std::string> names_;  ///< in the order of the file
  std::unordered_map<std::string, SourcePosition> positions_;
  std::size_t chosen_ = 0;
  bool default_found_ = false;
  SlurmTopology topology_;
};

}  // namespace

Result<SlurmTopology> read_topology_yaml(const Document& document) {
  TopologiesReader reader;
  if (Status read = reader.read(document.root()); !read) return forward_error(read);
  return reader.take_default();
}

}  // namespace orrery
