#include "node/machine/host_topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <system_error>
#include <type_traits>

namespace orrery {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, DestroyTopology>;

std::uint32_t count_of(const HwlocTopology& topology, hwloc_obj_type_t type) {
  return static_cast<std::uint32_t>(std::max(::hwloc_get_nbobjs_by_type(topology.get(), type), 0));
}

tl::unexpected<Error> unreadable() {
  return environment_error(
      fmt::format("hwloc cannot read the machine: {}", std::generic_category().message(errno)));
}

}  // namespace

Result<HostTopology> host_topology() {
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) return unreadable();
  const HwlocTopology topology(raw);
  if (::hwloc_topology_load(raw) != 0) return unreadable();
  HostTopology found;
  found.packages = count_of(topology, HWLOC_OBJ_PACKAGE);
  found.cores = count_of(topology, HWLOC_OBJ_CORE);
  found.threads = count_of(topology, HWLOC_OBJ_PU);
  found.memory_bytes = ::hwloc_get_root_obj(raw)->total_memory;
  const hwloc_obj* package = ::hwloc_get_obj_by_type(raw, HWLOC_OBJ_PACKAGE, 0);
  if (package == nullptr) package = ::hwloc_get_root_obj(raw);
  for (unsigned at = 0; at < package->infos_count; ++at) {
    const hwloc_info_s& info = package->infos[at];
    if (std::string_view(info.name) == "CPUModel") found.processor = info.value;
  }
  found.numa.reserve(count_of(topology, HWLOC_OBJ_NUMANODE));
  hwloc_obj* node = nullptr;
  while ((node = ::hwloc_get_next_obj_by_type(raw, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    const int threads = ::hwloc_bitmap_weight(node->cpuset);
    found.numa.push_back({node->os_index, static_cast<std::uint32_t>(std::max(threads, 0)),
                          node->attr->numanode.local_memory});
  }
  std::sort(found.numa.begin(), found.numa.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; });
  return found;
}

}  // namespace orrery
