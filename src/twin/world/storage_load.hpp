// twin/world/storage_load.hpp - transfers of checkpoints and data through the limits of storage
// systems and the links between sites.
//
// One per world; the topology and the SharedLinks must outlive it. Every shared system of a site
// (hardware/facility.hpp) is a resource for reading and one for writing, of its units' bandwidth;
// every WAN link one for each direction. A transfer is a flow over those it passes, at most what
// perf/site/storage_path.hpp grants its nodes, with their number as its weight: a full system
// divides itself evenly among nodes.
//
// The simulator's loop: start or cancel; SharedLinks::update; rates_changed with what that reports;
// advance at the next completion.
//
// Invariant: a transfer's bytes go down at the rate its flow had at each moment. Cost: O(log
// transfers) a transfer whose rate changed.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "twin/traffic/max_min.hpp"

namespace orrery {

class Calibration;
class Topology;
struct NodeType;
struct StorageSpec;
struct StorageSystem;

/// Position among the storage systems of a fleet: by site, then in the order of the spec.
using StorageId = Id<struct StorageTag>;
/// Position among the transfers under way; reused afterwards.
using TransferId = Id<struct TransferTag>;

/// Bytes from a system to nodes (loading), from nodes to a system (a checkpoint), from system to
/// system (staging), or from memory to memory of the nodes, over their NICs. Systems inside nodes
/// are reached by these nodes alone.
struct TransferRequest {
  Bytes bytes;                                   ///< at least 0
  std::optional<StorageId> from = std::nullopt;  ///< none: the nodes
  std::optional<StorageId> to = std::nullopt;    ///< none: the nodes
  double nodes = 1;        ///< nodes that take part, or data movers of a staging; at least 1
  std::uint32_t site = 0;  ///< of the nodes, position in Topology::sites
  const NodeType* node = nullptr;  ///< of the nodes; unused when staging
};

class StorageLoad {
 public:
  /// The calibration must outlive it. O(storage systems + WAN links).
  StorageLoad(SharedLinks& links, const Topology& topology, const Calibration& calibration);

  /// The system of a site by its name in the spec.
  [[nodiscard]] std::optional<StorageId> find(std::uint32_t site, std::string_view name) const;

  /// Begins to move bytes; none move before the next update. Precondition: nodes have a type.
  /// Errors: no write rate published (naming the system), a system inside nodes reached from
  /// elsewhere, no WAN link between the sites, no memory in the catalog; those of storage_rate.
  [[nodiscard]] Result<TransferId> start(const TransferRequest& request, Instant now);

  /// The rate of the transfer without any other. Errors: those of start.
  [[nodiscard]] Result<BytesPerSecond> rate_alone(const TransferRequest& request) const;

  /// Ends a transfer early. Returns the bytes that had not arrived.
  Bytes cancel(TransferId id, Instant now);

  /// Must be called with the flows whose rates have changed; flows that are not transfers are
  /// skipped.
  void rates_changed(std::span<const FlowId> flows, Instant now);

  /// When the first transfer completes at the present rates; Instant::max(): none moves.
  [[nodiscard]] Instant next_completion() const;

  /// Returns the transfers that complete at `to`, ascending; their flows and ids are gone.
  /// Precondition: not past next_completion().
  [[nodiscard]] std::vector<TransferId> advance(Instant to);

  [[nodiscard]] Bytes left(TransferId id, Instant now) const;
  [[nodiscard]] FlowId flow(TransferId id) const { return transfers_[id.value()].flow; }

  /// Sets the share of its built bandwidth that a system has (units down, a rebuild), in [0, 1].
  void set_health(StorageId id, double share);

 private:
  struct System {
    const StorageSpec* spec = nullptr;
    const StorageSystem* type = nullptr;
    std::uint32_t site = 0;
    ResourceId read;   ///< none: inside nodes
    ResourceId write;  ///< none: inside nodes, or the rate is not published
  };
  struct Wan {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    ResourceId resource;
  };
  struct Moving {
    FlowId flow;  ///< none: free
    Bytes left;   ///< at `settled`
    Instant settled;
    BytesPerSecond rate;  ///< rate since `settled`
    Instant finish = Instant::max();
  };

  void add_wan(const Topology& topology);
  /// What the nodes can move at most.
  [[nodiscard]] Result<BytesPerSecond> node_limit(const TransferRequest& request) const;
  [[nodiscard]] Result<std::vector<ResourceUse>> path(const TransferRequest& request) const;
  [[nodiscard]] Status add_system(StorageId id, ResourceId resource,
                                  std::vector<ResourceUse>& uses) const;
  [[nodiscard]] Result<ResourceId> wan(std::uint32_t from, std::uint32_t to) const;
  void settle(Moving& transfer, Instant now);
  void plan_finish(TransferId id, Instant finish);
  void end(TransferId id);

  SharedLinks* links_;
  const Topology* topology_;
  const Calibration* calibration_;
  const StorageSystem* memory_ = nullptr;  ///< memory of nodes, for their peers
  std::vector<System> systems_;
  std::vector<Wan> wan_;
  std::vector<Moving> transfers_;
  std::vector<TransferId> free_;
  std::vector<TransferId> by_flow_;  ///< none: the flow is not a transfer
  std::set<std::pair<Instant, TransferId>> finishes_;
};

}  // namespace orrery
