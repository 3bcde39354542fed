// executor/holds/hold_demand.hpp - how many nodes of a resource manager the waiting jobs need.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/core/core.hpp"

namespace orrery {

/// The nodes that a manager may lend.
struct HoldNodes {
  std::vector<NodeId> nodes;  ///< ascending
  std::uint32_t most = 0;     ///< nodes that it lends at once
  Duration time;              ///< for which it lends a node
};

/// What a job that waits needs of a manager's nodes.
struct JobNeeds {
  JobId job;
  std::uint32_t nodes = 0;    ///< whole nodes
  std::uint32_t devices = 0;  ///< of gangs that leave devices of their nodes to others
  Duration longest;           ///< of its gangs whose length is known
  /// The types of the manager's nodes that one of its gangs can use, ascending.
  std::vector<FleetTypeId> types;
};

/// The nodes that a manager lends, and for how long a job may run there.
struct HoldOffer {
  const HoldNodes& lent;
  Duration usable;
};

/// Returns what a job needs; none: it cannot run there, or not to its end. O(options).
[[nodiscard]] std::optional<JobNeeds> needs_of(const State& state, JobId job,
                                               const HoldOffer& offer);

/// Returns what the waiting jobs need that could start on such nodes if they were lent: those that
/// the last pass found no devices for, in the order in which they wait, until they need `most`
/// nodes. A job that needs more than `most` nodes, or would not be done within `usable` as far as
/// its length is known, is left out. O(waiting jobs x options).
[[nodiscard]] std::vector<JobNeeds> job_needs(const Core& core, const HoldNodes& lent,
                                              Duration usable);

struct NodesNeeded {
  std::uint32_t nodes = 0;
  Duration longest;  ///< of the jobs among them whose length is known
};

/// Returns how many whole nodes the jobs need together, if those that leave devices to others share
/// nodes.
[[nodiscard]] NodesNeeded nodes_needed(std::span<const JobNeeds> needs, const HoldNodes& lent,
                                       const Topology& topology);

struct NodesLacking {
  std::uint32_t nodes = 0;         ///< whole ones, for one job; 0: any number is useful
  std::vector<FleetTypeId> types;  ///< of useful nodes; empty: all
};

/// Returns what the first of the jobs lacks that does not fit on `nodes` nodes beside the jobs
/// before it. If all jobs fit that need whole nodes: what the other jobs could use.
[[nodiscard]] NodesLacking nodes_lacking(std::span<const JobNeeds> needs, std::uint32_t nodes);

/// Returns the types that one of the jobs can use, ascending.
[[nodiscard]] std::vector<FleetTypeId> types_needed(std::span<const JobNeeds> needs);

/// Returns how many whole nodes one job needs.
[[nodiscard]] std::uint32_t nodes_needed(const JobNeeds& needs, const HoldNodes& lent,
                                         const Topology& topology);

}  // namespace orrery
