#include "fleet/import/kubernetes_import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/format/document.hpp"
#include "base/format/gzip.hpp"
#include "base/text/utf8.hpp"
#include "fleet/import/imported_spec.hpp"
#include "fleet/import/imported_types.hpp"
#include "workload/kubernetes_list.hpp"
#include "workload/kubernetes_pod.hpp"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kNodesMax = 1u << 20;
constexpr double kAcceleratorsMax = 1024;
constexpr std::string_view kLeafLabel = "network.topology.nvidia.com/leaf";
constexpr std::string_view kSpineLabel = "network.topology.nvidia.com/spine";
constexpr std::string_view kInstanceLabel = "node.kubernetes.io/instance-type";
constexpr std::string_view kCountLabel = "nvidia.com/gpu.count";

// If GPUs are shared or partitioned, the product has a suffix and the capacity counts parts.
std::string type_of(const Json* labels) {
  for (const std::string_view label : kAcceleratorTypeLabels) {
    std::string type(json_text(labels, label));
    if (type.ends_with("-SHARED")) type.resize(type.size() - std::string_view("-SHARED").size());
    type.resize(std::min(type.find("-MIG-"), type.size()));
    if (!type.empty()) return type;
  }
  return "";
}

class NodeListReader {
 public:
  NodeListReader(const Catalog& catalog, std::string_view text, const std::string& file)
      : catalog_(catalog), list_(text, file), types_(catalog, cluster_) {
    cluster_.source = "Kubernetes";
    cluster_.file = file;
  }

  Result<FleetSpec> read() {
    while (true) {
      Result<std::optional<Json>> item = list_.next();
      if (!item) return forward_error(item);
      if (!*item) break;
      if (json_text(&**item, "kind") != "Node") continue;
      if (Status taken = take(**item); !taken) return forward_error(taken);
    }
    if (cluster_.nodes.empty()) {
      return input_error({cluster_.file, 0, 0},
                         "no node to import; expected what \"kubectl get nodes -o json\" prints");
    }
    make_tree();
    if (control_plane_ > 0) {
      cluster_.notes.push_back(
          fmt::format("Nodes of the control plane, left out: {}.", control_plane_));
    }
    return spec_of_import(catalog_, cluster_);
  }

 private:
  /// A node's place; empty: its labels do not give it.
  struct Place {
    std::string spine;
    std::string leaf;
  };

  Status take(const Json& node) {
    const Json* metadata = json_member(&node, "metadata");
    const Json* labels = json_member(metadata, "labels");
    const SourcePosition where = list_.where();
    const std::string name(json_text(metadata, "name"));
    if (Status fine = check_name(name, where); !fine) return fine;
    if (json_member(labels, "node-role.kubernetes.io/control-plane") != nullptr) {
      ++control_plane_;
      return {};
    }
    Result<const NodeType*> type = node_type(node, labels, where);
    if (!type) {
      return input_error(where, fmt::format("node {}: {}", name, type.error().message));
    }
    cluster_.lines.push_back(where);
    cluster_.nodes.push_back({name, *type, static_cast<std::uint32_t>(cluster_.lines.size() - 1)});
    places_.push_back(
        {std::string(json_text(labels, kSpineLabel)), std::string(json_text(labels, kLeafLabel))});
    return {};
  }

  Status check_name(const std::string& name, const SourcePosition& where) {
    const bool plain = !name.empty() && name.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyz0123456789-.") == name.npos;
    if (!plain) {
      return input_error(where, fmt::format("metadata.name is \"{}\", expected the name of a node",
                                            printable(name, 60)));
    }
    if (!names_.insert(name).second) {
      return input_error(where, fmt::format("a second node {}, expected one", name));
    }
    if (names_.size() > kNodesMax) {
      return input_error(where, fmt::format("more than {} nodes", kNodesMax));
    }
    return {};
  }

  /// Returns the accelerators in the capacity of a node, without slices; none: an amount is not a
  /// valid quantity.
  static std::optional<double> count_in(const Json* capacity) {
    if (capacity == nullptr || !capacity->is_object()) return 0;
    ResourceAccelerators count;
    for (const auto& [resource, amount] : capacity->items()) {
      if (accelerator_thousandths(resource) != kWholeAccelerator) continue;
      const std::optional<double> value = kubernetes_quantity(json_text(capacity, resource));
      if (!value) return std::nullopt;
      count.add(resource, *value);
    }
    return count.thousandths() / kWholeAccelerator;
  }

  /// Returns the number of whole accelerators of the node.
  static Result<int> count_of(const Json& node, const Json* labels, const SourcePosition& where) {
    std::optional<double> count = count_in(json_member(json_member(&node, "status"), "capacity"));
    const std::string_view physical = json_text(labels, kCountLabel);
    if (!physical.empty()) count = kubernetes_quantity(physical);
    if (count && *count <= kAcceleratorsMax && *count == std::floor(*count)) {
      return static_cast<int>(*count);
    }
    return input_error(where, fmt::format("its accelerators are no whole number from 0 to {}, "
                                          "expected one",
                                          kAcceleratorsMax));
  }

  Result<const NodeType*> node_type(const Json& node, const Json* labels,
                                    const SourcePosition& where) {
    const Result<int> count = count_of(node, labels, where);
    if (!count) return tl::unexpected<Error>(count.error());
    if (*count == 0) return types_.without_accelerators(where);
    const std::string_view instance = json_text(labels, kInstanceLabel);
    const NodeType* known = instance.empty() ? nullptr : catalog_.find<NodeType>(instance);
    if (known != nullptr && known->accelerators_per_node == *count) return known;
    const std::string type = type_of(labels);
    if (type.empty()) {
      return input_error(where, fmt::format("it has {} accelerators and no label with their type, "
                                            "expected one of {}",
                                            *count, fmt::join(kAcceleratorTypeLabels, ", ")));
    }
    return types_.with_accelerators(type, *count, where);
  }

  void make_tree() {
    const bool told = std::any_of(places_.begin(), places_.end(),
                                  [](const Place& place) { return !place.leaf.empty(); });
    if (told) cluster_.topology = ImportedTopology::kSwitches;
    if (!told) cluster_.notes.emplace_back("No label tells of switches: all nodes are in one pod.");
    std::map<std::string, std::map<std::string, std::vector<std::uint32_t>>> tree;
    for (std::uint32_t i = 0; i < places_.size(); ++i) {
      const bool listed = !places_[i].leaf.empty();
      const Place none{told ? "no-switch" : "pod", told ? "no-switch" : "rack"};
      if (told && !listed) ++cluster_.unlisted_nodes;
      const Place& place = listed ? places_[i] : none;
      tree[place.spine.empty() ? "pod" : place.spine][place.leaf].push_back(i);
    }
    for (auto& [spine, leaves] : tree) {
      ImportedPod pod{spine, {}};
      for (auto& [leaf, nodes] : leaves) pod.leaves.push_back({leaf, std::move(nodes)});
      cluster_.pods.push_back(std::move(pod));
    }
  }

  const Catalog& catalog_;
  KubernetesList list_;
  ImportedCluster cluster_;
  ImportedTypes types_;
  std::vector<Place> places_;  ///< by node
  std::unordered_set<std::string> names_;
  std::size_t control_plane_ = 0;
};

}  // namespace

Result<FleetSpec> read_kubernetes_fleet(const Catalog& catalog, std::string_view text,
                                        const std::string& file) {
  return NodeListReader(catalog, text, file).read();
}

Result<FleetSpec> import_kubernetes(const Catalog& catalog, const std::string& path) {
  const Result<std::string> bytes = read_file(path, kKubernetesBytesMax);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  const std::string file = path == "-" ? "<stdin>" : path;
  if (!is_gzip(*bytes)) return read_kubernetes_fleet(catalog, *bytes, file);
  const Result<std::string> text = gunzip(*bytes, kKubernetesBytesMax);
  if (!text) return input_error({file, 0, 0}, text.error().message);
  return read_kubernetes_fleet(catalog, *text, file);
}

}  // namespace orrery
