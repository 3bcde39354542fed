#include "verbs/local/local_fleet.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "base/format/document.hpp"
#include "base/format/yaml_writer.hpp"
#include "executor/managers/manager_spec.hpp"
#include "fleet/rack_cooling.hpp"
#include "fleet/spec/accelerator_fleet.hpp"
#include "fleet/spec/builder.hpp"
#include "fleet/topology.hpp"
#include "hardware/builtin_catalog.hpp"
#include "perf/facts.hpp"

namespace orrery {
namespace {

constexpr int kNodes = 4;
constexpr int kNodesMax = 1'000;
constexpr int kAccelerators = 2;

struct NodeTypesFile {
  std::string api_version = "orrery/v1";
  std::string kind = "Catalog";
  std::string name = "local-nodes";
  std::vector<NodeType> nodes;
};

template <class Visitor, SameStruct<NodeTypesFile> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("apiVersion", f.api_version);
  visitor.required("kind", f.kind);
  visitor.required("name", f.name);
  visitor.required("nodes", f.nodes);
}

/// node-0 and so on, through the groups of the spec in their order.
void name_nodes(FleetSpec& spec) {
  int next = 0;
  for (PodSpec& pod : spec.sites.front().halls.front().pods) {
    for (RackSpec& rack : pod.racks) {
      for (NodeGroupSpec& group : rack.nodes) {
        const int last = next + group.count * rack.count * pod.count - 1;
        group.names =
            last == next ? fmt::format("node-{}", next) : fmt::format("node-[{}-{}]", next, last);
        next = last + 1;
      }
    }
  }
}

/// Gives each rack the most room, so that nodes can be added to it.
void leave_room(const Catalog& catalog, AcceleratorFleet& fleet) {
  for (PodSpec& pod : fleet.spec.sites.front().halls.front().pods) {
    for (RackSpec& rack : pod.racks) {
      const std::string& id = rack.nodes.front().type;
      const auto made = std::ranges::find(fleet.nodes, id, &NodeType::id);
      const NodeType* type =
          made == fleet.nodes.end() ? catalog.find<NodeType>(id) : std::to_address(made);
      if (const CoolingClass* densest = densest_cooling(catalog, *type); densest != nullptr) {
        rack.cooling = densest->id;
      }
    }
  }
}

Result<int> count_option(std::string_view option, int count, int most) {
  if (count >= 1 && count <= most) return count;
  return input_error({}, fmt::format("--{} {}: expected 1 to {}", option, count, most));
}

Status put(Storage& storage, const std::string& path, const std::string& text) {
  StorageStatus done = storage.write_file(path, text);
  if (!done) return forward_error(done);
  return {};
}

/// Checks that the existing fleet is the requested one.
Status check_same_fleet(const std::string& directory, const LocalFleetOptions& options) {
  const Result<std::vector<LocalNode>> there = read_local_fleet(directory);
  if (!there) return tl::unexpected(there.error());
  const Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return tl::unexpected(catalog.error());
  const Accelerator* type =
      options.type.empty() ? nullptr : catalog->find<Accelerator>(options.type);
  const auto fits = [&](const LocalNode& node) {
    return (options.type.empty() || (type != nullptr && type->id == node.type)) &&
           (!options.accelerators || *options.accelerators == static_cast<int>(node.accelerators));
  };
  const bool same = (!options.nodes || *options.nodes == static_cast<int>(there->size())) &&
                    std::all_of(there->begin(), there->end(), fits);
  if (same) return {};
  return input_error(
      {}, fmt::format("the cluster in {} has {} nodes, the first with {} x {}: a different cluster "
                      "needs a different --dir",
                      directory, there->size(), there->front().accelerators, there->front().type));
}

}  // namespace

Status write_local_fleet(Storage& storage, const std::string& directory,
                         const LocalFleetOptions& options) {
  const std::string path = directory + "/fleet.yaml";
  std::error_code failed;
  if (std::filesystem::exists(path, failed)) {
    return options.any() ? check_same_fleet(directory, options) : Status();
  }
  const Result<int> nodes = count_option("nodes", options.nodes.value_or(kNodes), kNodesMax);
  if (!nodes) return tl::unexpected(nodes.error());
  const Result<int> each =
      count_option("accelerators", options.accelerators.value_or(kAccelerators), 64);
  if (!each) return tl::unexpected(each.error());
  Result<Catalog> catalog = Catalog::load(builtin_catalog(), {});
  if (!catalog) return forward_error(catalog);
  const std::string type = options.type.empty() ? "h100" : options.type;
  Result<AcceleratorFleet> fleet = fleet_of_accelerators(
      *catalog, {.accelerators = {{type, *nodes * *each}}, .node_accelerators = *each});
  if (!fleet) return forward_error(fleet);
  fleet->spec.name = "local";
  fleet->spec.description = fmt::format("{} emulated nodes of {} x {}", *nodes, *each, type);
  name_nodes(fleet->spec);
  leave_room(*catalog, *fleet);
  StorageStatus ready = storage.make_directories(directory);
  if (!ready) return forward_error(ready);
  if (!fleet->nodes.empty()) {
    StorageStatus made = storage.make_directories(directory + "/catalog");
    if (!made) return forward_error(made);
    NodeTypesFile types;
    types.nodes = fleet->nodes;
    Status written = put(storage, directory + "/catalog/nodes.yaml", write_yaml(types));
    if (!written) return written;
  }
  return put(storage, path, write_fleet_spec(fleet->spec));
}

void remove_unused_fleet(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  for (const char* begun : {"store", "cluster.key"}) {
    if (fs::exists(directory + "/" + begun, failed)) return;
  }
  for (const char* made : {"fleet.yaml", "catalog/nodes.yaml", "catalog", "local.json"}) {
    fs::remove(directory + "/" + made, failed);
  }
}

Result<std::set<std::string>> read_lent_nodes(const std::string& directory) {
  const std::string path = directory + "/managers.yaml";
  std::set<std::string> lent;
  if (!std::filesystem::exists(path)) return lent;
  const Result<Document> document = Document::load(path);
  if (!document) return tl::unexpected(document.error());
  const Result<ManagersSpec> spec = read_managers(*document);
  if (!spec) return tl::unexpected(spec.error());
  for (const ManagerSpec& manager : spec->managers) {
    if (manager.use != PoolUse::kLent) continue;  // own agents run there
    const std::vector<std::string> names = nodes_of(manager);
    lent.insert(names.begin(), names.end());
  }
  return lent;
}

Result<std::vector<LocalNode>> read_local_fleet(const std::string& directory) {
  const std::string overlay = directory + "/catalog";
  std::error_code failed;
  const bool overlaid = std::filesystem::is_directory(overlay, failed);
  Result<std::vector<FactOverlay>> overlays = read_fact_overlays(overlaid ? overlay : "");
  if (!overlays) return forward_error(overlays);
  Result<FleetFile> file = load_fleet_file(directory + "/fleet.yaml");
  if (!file) return forward_error(file);
  overlays->push_back(std::move(file->facts));
  const Result<Facts> facts = Facts::load(*std::move(overlays));
  if (!facts) return tl::unexpected(facts.error());
  Result<Topology> topology = build_topology(file->spec, facts->catalog());
  if (!topology) return forward_error(topology);
  std::vector<LocalNode> nodes;
  nodes.reserve(topology->node_count());
  for (std::uint32_t i = 0; i < topology->node_count(); ++i) {
    const NodeGroup& group = topology->group(NodeId(i));
    nodes.push_back(
        {topology->node_name(NodeId(i)), topology->accelerator(group.type).id, group.devices});
  }
  return nodes;
}

}  // namespace orrery
