#include "fleet/import/slurm_cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/format/document.hpp"
#include "base/text/nearest_name.hpp"
#include "base/text/utf8.hpp"
#include "fleet/import/host_list.hpp"
#include "fleet/import/imported_types.hpp"
#include "fleet/import/slurm_conf.hpp"
#include "fleet/import/slurm_switches.hpp"
#include "fleet/import/slurm_topology_yaml.hpp"

namespace orrery {
namespace {

constexpr std::size_t kNodesMax = 1u << 20;

/// The GPUs of one node by its Gres; count 0: none; type "": not given.
struct GpuRequest {
  std::string type;
  int count = 0;
};

// Splits "gpu:a:2(S:0,1),mps:100" into "gpu:a:2(S:0,1)" and "mps:100".
std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != separator || depth > 0) continue;
    parts.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// Reads one entry of Gres: gpu[:TYPE][:no_consume][:COUNT][(S:SOCKETS)]. Other resources count 0.
Result<GpuRequest> gpus_of_entry(std::string_view entry, const SourcePosition& where) {
  const auto refuse = [&] {
    return input_error(where,
                       fmt::format("Gres \"{}\": expected gpu:TYPE:COUNT, COUNT at most 1024",
                                   printable(entry, 60)));
  };
  const std::size_t open = entry.find('(');
  if (open != entry.npos && !entry.ends_with(')')) return refuse();
  std::vector<std::string_view> parts = split(entry.substr(0, open), ':');
  if (lower_case(parts.front()) != "gpu") return GpuRequest{};
  std::erase(parts, "no_consume");
  GpuRequest gpus{"", 1};
  if (parts.size() > 1 && all_digits(parts.back())) {
    const std::string_view count = parts.back();
    const auto [end, failure] =
        std::from_chars(count.data(), count.data() + count.size(), gpus.count);
    if (failure != std::errc() || gpus.count > 1024) return refuse();
    parts.pop_back();
  }
  if (parts.size() > 2 || (parts.size() == 2 && parts.back().empty())) return refuse();
  if (parts.size() == 2) gpus.type = parts.back();
  return gpus;
}

Result<GpuRequest> gpus_of(const SlurmSetting& gres) {
  GpuRequest all;
  for (const std::string_view entry : split(gres.value, ',')) {
    Result<GpuRequest> gpus = gpus_of_entry(entry, gres.where);
    if (!gpus) return forward_error(gpus);
    if (gpus->count == 0) continue;
    if (all.count > 0 && lower_case(all.type) != lower_case(gpus->type)) {
      return input_error(gres.where,
                         fmt::format("several types of GPU on one node (\"{}\" and \"{}\"); a node "
                                     "of a fleet has accelerators of one type",
                                     printable(all.type, 60), printable(gpus->type, 60)));
    }
    all.type = gpus->type;
    all.count += gpus->count;
  }
  return all;
}

/// The types that gres.conf gives to the GPUs of nodes.
class GresTypes {
 public:
  Status read(std::span<const SlurmLine> lines) {
    std::size_t names_seen = 0;
    for (const SlurmLine& line : lines) {
      const SlurmSetting* name = line.find("name");
      const SlurmSetting* type = line.find("type");
      if (name == nullptr || lower_case(name->value) != "gpu" || type == nullptr) continue;
      const SlurmSetting* nodes = line.find("nodename");
      if (nodes == nullptr) {
        everywhere_.push_back(type->value);
        continue;
      }
      auto names = expand_host_list(nodes->value);
      if (!names) return input_error(nodes->where, names.error().message);
      names_seen += names->size();
      if (names_seen > kNamesMax) {
        return input_error(nodes->where, fmt::format("more than {} node names", kNamesMax));
      }
      for (const std::string& each : *names) of_node_[each].push_back(type->value);
    }
    return {};
  }

  /// Returns the type of a node's GPUs; "" if gres.conf does not give it.
  [[nodiscard]] Result<std::string> type_of(const std::string& node,
                                            const SlurmSetting& gres) const {
    std::vector<std::string> types = everywhere_;
    if (const auto found = of_node_.find(node); found != of_node_.end()) {
      types.insert(types.end(), found->second.begin(), found->second.end());
    }
    for (const std::string& type : types) {
      if (lower_case(type) == lower_case(types.front())) continue;
      return input_error(
          gres.where, fmt::format("gres.conf gives {} GPUs of several types (\"{}\" and \"{}\"); "
                                  "write Gres=gpu:TYPE:COUNT here",
                                  node, printable(types.front(), 60), printable(type, 60)));
    }
    return types.empty() ? std::string() : types.front();
  }

 private:
  static constexpr std::size_t kNamesMax = 1u << 22;
  std::vector<std::string> everywhere_;
  std::unordered_map<std::string, std::vector<std::string>> of_node_;
};

/// Reads the NodeName lines of slurm.conf.
class NodeReader {
 public:
  NodeReader(const Catalog& catalog, const GresTypes& gres_types, ImportedCluster& cluster)
      : catalog_(catalog), gres_types_(gres_types), cluster_(cluster), chooser_(catalog, cluster) {}

  Status read(const SlurmLine& line) {
    const SlurmSetting& list = line.first();
    if (lower_case(list.value) == "default") {
      for (const SlurmSetting& each : line.settings) defaults_[each.key] = each;
      return {};
    }
    auto names = expand_host_list(list.value);
    if (!names) return input_error(list.where, names.error().message);
    if (index_.size() + names->size() > kNodesMax) {
      return input_error(list.where, fmt::format("more than {} nodes", kNodesMax));
    }
    GpuRequest gpus;
    if (const SlurmSetting* gres = effective(line, "gres"); gres != nullptr) {
      Result<GpuRequest> read = gpus_of(*gres);
      if (!read) return forward_error(read);
      gpus = *std::move(read);
    }
    const SlurmSetting* state = effective(line, "state");
    const bool future = state != nullptr && lower_case(state->value) == "future";
    cluster_.lines.push_back(list.where);
    for (std::string& name : *names) {
      const auto position = static_cast<std::uint32_t>(cluster_.nodes.size());
      if (Status added = index(name, future ? kFutureNode : position); !added) return added;
      if (future) continue;
      Result<const NodeType*> type = type_of(name, gpus, line);
      if (!type) return forward_error(type);
      cluster_.nodes.push_back({std::move(name), *type, last_line()});
    }
    if (future) future_nodes_ += names->size();
    if (!future && effective(line, "topology") != nullptr) placed_nodes_ += names->size();
    return {};
  }

  [[nodiscard]] SlurmNodeIndex take_index() { return std::move(index_); }

  void add_notes() {
    if (feature_nodes_ > 0) {
      cluster_.notes.push_back(
          fmt::format("Nodes whose GPU type is taken from a feature: {}.", feature_nodes_));
    }
    if (future_nodes_ > 0) {
      cluster_.notes.push_back(
          fmt::format("Nodes with State=FUTURE, left out: {}.", future_nodes_));
    }
    if (placed_nodes_ > 0) {
      cluster_.notes.push_back(
          fmt::format("Nodes whose own Topology= is ignored: {}.", placed_nodes_));
    }
  }

 private:
  [[nodiscard]] std::uint32_t last_line() const {
    return static_cast<std::uint32_t>(cluster_.lines.size()) - 1;
  }

  const SlurmSetting* effective(const SlurmLine& line, const std::string& key) const {
    if (const SlurmSetting* own = line.find(key); own != nullptr) return own;
    const auto inherited = defaults_.find(key);
    return inherited == defaults_.end() ? nullptr : &inherited->second;
  }

  Status index(const std::string& name, std::uint32_t position) {
    const SourcePosition& where = cluster_.lines.back();
    const bool plain = name.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "0123456789-_.") == name.npos;
    if (!plain) {
      return input_error(where, fmt::format("\"{}\" is not a host name", printable(name, 60)));
    }
    const auto [known, fresh] = index_.emplace(name, position);
    if (fresh) return {};
    const std::string first =
        known->second == kFutureNode
            ? "with State=FUTURE"
            : "at " + cluster_.lines[cluster_.nodes[known->second].line].text();
    return input_error(where, fmt::format("a second node {}, the first is {}", name, first));
  }

  Result<const NodeType*> type_of(const std::string& name, GpuRequest gpus, const SlurmLine& line) {
    if (gpus.count == 0) {
      return chooser_.without_accelerators(line.first().where);
    }
    const SlurmSetting& gres = *effective(line, "gres");
    if (gpus.type.empty()) {
      Result<std::string> type = gres_types_.type_of(name, gres);
      if (!type) return forward_error(type);
      gpus.type = type->empty() ? type_of_features(line) : *type;
      if (type->empty() && !gpus.type.empty()) ++feature_nodes_;
    }
    if (gpus.type.empty()) {
      return input_error(gres.where,
                         fmt::format("neither Gres, gres.conf nor Features says of what "
                                     "type the GPUs of {} are; write "
                                     "Gres=gpu:TYPE:{} here",
                                     name, gpus.count));
    }
    return chooser_.with_accelerators(gpus.type, gpus.count, gres.where);
  }

  // Returns the only feature that names a GPU of the catalog; "" if none or several do.
  std::string type_of_features(const SlurmLine& line) const {
    const SlurmSetting* features = effective(line, "features");
    if (features == nullptr) features = effective(line, "feature");
    if (features == nullptr) return {};
    const Accelerator* found = nullptr;
    for (const std::string_view feature : split(features->value, ',')) {
      const Accelerator* named = find_imported_accelerator(catalog_, std::string(feature));
      if (named == nullptr || named->kind == AcceleratorKind::kCpu || named == found) continue;
      if (found != nullptr) return {};
      found = named;
    }
    return found == nullptr ? std::string() : found->id;
  }

  const Catalog& catalog_;
  const GresTypes& gres_types_;
  ImportedCluster& cluster_;
  ImportedTypes chooser_;
  std::unordered_map<std::string, SlurmSetting> defaults_;  ///< from the NodeName=DEFAULT lines
  SlurmNodeIndex index_;
  std::size_t feature_nodes_ = 0;  ///< the type of their GPUs is known only from a feature
  std::size_t future_nodes_ = 0;
  std::size_t placed_nodes_ = 0;  ///< have a Topology= of their own
};

// Returns no lines if the file is missing.
Result<std::vector<SlurmLine>> read_optional(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::vector<SlurmLine>();
  return read_slurm_conf(path.string());
}

void note_ignored(const std::filesystem::path& root, std::span<const SlurmLine> lines,
                  ImportedCluster& cluster) {
  std::vector<std::string_view> ignored;
  std::error_code error;
  if (std::filesystem::exists(root / "topology.conf", error)) ignored.push_back("topology.conf");
  const bool plugin = std::any_of(lines.begin(), lines.end(), [](const SlurmLine& line) {
    return line.find("topologyplugin") != nullptr;
  });
  if (plugin) ignored.push_back("TopologyPlugin");
  if (ignored.empty()) return;
  cluster.notes.push_back(
      fmt::format("Ignored because topology.yaml exists: {}.", fmt::join(ignored, ", ")));
}

// Like Slurm, reads topology.yaml if it exists and topology.conf otherwise. `lines` are those of
// slurm.conf.
Result<SlurmSwitches> read_topology(const std::filesystem::path& root,
                                    std::span<const SlurmLine> lines, ImportedCluster& cluster) {
  const std::filesystem::path yaml = root / "topology.yaml";
  std::error_code error;
  if (!std::filesystem::exists(yaml, error)) {
    Result<std::vector<SlurmLine>> conf = read_optional(root / "topology.conf");
    if (!conf) return forward_error(conf);
    Result<SlurmSwitches> switches = read_topology_conf(*conf);
    if (switches && switches->switches.empty()) {
      cluster.notes.emplace_back("Without topology.conf all nodes are in one pod.");
    }
    return switches;
  }
  if (!std::filesystem::is_regular_file(yaml, error)) {
    return input_error({yaml.string(), 0, 0}, "not a regular file");
  }
  Result<Document> document = Document::load(yaml.string());
  if (!document) return forward_error(document);
  Result<SlurmTopology> topology = read_topology_yaml(*document);
  if (!topology) return forward_error(topology);
  cluster.notes.insert(cluster.notes.end(), topology->notes.begin(), topology->notes.end());
  note_ignored(root, lines, cluster);
  return std::move(topology->switches);
}

}  // namespace

Result<ImportedCluster> read_slurm_cluster(const Catalog& catalog, const std::string& directory) {
  const std::filesystem::path root(directory);
  ImportedCluster cluster;
  cluster.source = "Slurm";
  cluster.file = (root / "slurm.conf").string();
  Result<std::vector<SlurmLine>> lines = read_slurm_conf(cluster.file);
  if (!lines) return forward_error(lines);
  Result<std::vector<SlurmLine>> gres = read_optional(root / "gres.conf");
  if (!gres) return forward_error(gres);

  GresTypes gres_types;
  if (Status read = gres_types.read(*gres); !read) return forward_error(read);
  NodeReader reader(catalog, gres_types, cluster);
  for (const SlurmLine& line : *lines) {
    if (line.first().key == "clustername") cluster.name = line.first().value;
    if (line.first().key != "nodename") continue;
    if (Status read = reader.read(line); !read) return forward_error(read);
  }
  if (cluster.nodes.empty()) {
    return input_error({cluster.file, 0, 0}, "no node to import; expected NodeName lines");
  }
  reader.add_notes();
  Result<SlurmSwitches> switches = read_topology(root, *lines, cluster);
  if (!switches) return forward_error(switches);
  Status placed = place_under_switches(*switches, reader.take_index(), cluster);
  if (!placed) return forward_error(placed);
  return cluster;
}

}  // namespace orrery
