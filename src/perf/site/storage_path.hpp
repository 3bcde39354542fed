// perf/site/storage_path.hpp - how fast the nodes of one job read from and write to a storage
// system.
//
// A shared system gives its units' bandwidth, at most what the storage NICs of the job's nodes
// take; drives and memory in the nodes scale with the nodes; a peer's memory is reached over the
// compute NICs. Values, pure.
#pragma once

#include <optional>

#include "base/error.hpp"
#include "base/quantity.hpp"
#include "hardware/catalog.hpp"
#include "perf/calibration.hpp"

namespace orrery {

/// Where the bytes rest, by the `kind` of the catalog's row.
enum class StoragePlace {
  kShared,  ///< behind the storage network
  kLocal,   ///< drives of the node itself ("nvme", "nvme-local")
  kPeer,    ///< memory of another node of the job ("memory")
};

[[nodiscard]] StoragePlace place_of(const StorageSystem& system);

struct StoragePath {
  const StorageSystem* system = nullptr;  ///< must outlive the path
  double units = 1;  ///< of the system: in all when it is shared, else in each node
  double nodes = 1;  ///< of the job
  std::optional<BytesPerSecond> node_limit;  ///< the operator's, each way; none: from the node type
};

enum class Transfer { kRead, kWrite };

/// Bandwidth of the whole job. A node without a known storage NIC shares its compute NICs.
/// Errors: no such rate in the catalog (naming the system), a count below 1, a node without NICs.
[[nodiscard]] Result<BytesPerSecond> storage_rate(const StoragePath& path, const NodeType& node,
                                                  const Calibration& calibration,
                                                  Transfer transfer);

}  // namespace orrery
