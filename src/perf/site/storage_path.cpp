#include "perf/site/storage_path.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "perf/range_check.hpp"

namespace orrery {
namespace {

/// What one node can move to or from a place outside itself.
BytesPerSecond node_rate(const StoragePath& path, const NodeType& node,
                         const Calibration& calibration) {
  if (path.node_limit) return *path.node_limit;
  if (place_of(*path.system) == StoragePlace::kPeer) return node.compute_bandwidth;
  const BytesPerSecond line =
      node.storage_nic_rate ? BytesPerSecond(*node.storage_nic_rate) : node.compute_bandwidth;
  return line * calibration.first_of({"storage.nic.payload_fraction"});
}

}  // namespace

StoragePlace place_of(const StorageSystem& system) {
  if (system.kind == "memory") return StoragePlace::kPeer;
  if (system.kind == "nvme" || system.kind == "nvme-local") return StoragePlace::kLocal;
  return StoragePlace::kShared;
}

Result<BytesPerSecond> storage_rate(const StoragePath& path, const NodeType& node,
                                    const Calibration& calibration, Transfer transfer) {
  ORRERY_ASSERT(path.system != nullptr, "a path leads to a system");
  const StorageSystem& system = *path.system;
  const std::optional<BytesPerSecond> unit =
      transfer == Transfer::kRead ? std::optional(system.read) : system.write;
  if (!unit) {
    return input_error(system.where, fmt::format("the write rate of {} is not published; give "
                                                 "write_bytes_per_s of one {}",
                                                 system.id, system.unit));
  }
  Status checked = check_range("units of storage", path.units, {1, kFigureMax});
  if (checked) checked = check_range("nodes", path.nodes, {1, kFigureMax});
  if (checked) checked = check_range("rate of a unit of storage", unit->value(), kPositive);
  if (!checked) return forward_error(checked);
  const BytesPerSecond units = *unit * path.units;
  const StoragePlace place = place_of(system);
  if (place == StoragePlace::kLocal) return units * path.nodes;
  const BytesPerSecond each = node_rate(path, node, calibration);
  checked =
      check_range(fmt::format("bandwidth of {} to storage", node.id), each.value(), kPositive);
  if (!checked) return forward_error(checked);
  if (place == StoragePlace::kPeer) return std::min(units, each) * path.nodes;
  return std::min(units, each * path.nodes);
}

}  // namespace orrery
