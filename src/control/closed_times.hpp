// control/closed_times.hpp - when nodes are closed to jobs: maintenance windows, nodes that others
// use, and nodes whose resource manager lends them for a time only.
//
// Owned by State; changed by events. One thread. Cost of lend(): O(loans with another end + nodes
// of that end).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fleet/topology.hpp"
#include "scheduler/situation.hpp"

namespace orrery {

struct Maintenance {
  std::vector<NodeId> nodes;
  Instant from;
  Instant to;
  std::string why;
};

class ClosedTimes {
 public:
  using Windows = std::map<std::uint32_t, Maintenance>;

  /// Sets a maintenance window; one without nodes is forgotten.
  void set(std::uint32_t window, Maintenance plan, const Topology& topology);
  /// Makes the list of the windows, which a snapshot has set; the others are to be added.
  void take_up_windows(const Topology& topology);
  /// Others keep jobs off the node until `until`, and did so until `before`; Instant(): not at all.
  /// O(nodes that others have).
  void take(NodeId node, Instant before, Instant until, const Topology& topology);
  /// A ready node that was for the job `before` alone is for `job` alone; invalid: for any job, or
  /// not ready. O(nodes that are for one job alone).
  void bind(NodeId node, JobId before, JobId job, const Topology& topology);
  /// A node whose loan ended at `before` is lent until `until`; Instant::max(): without end, or not
  /// at all.
  void lend(NodeId node, Instant before, Instant until, const Topology& topology);

  [[nodiscard]] const Windows& windows() const { return windows_; }
  /// Whether a node is in a maintenance window that has begun and is not over. O(nodes of windows).
  [[nodiscard]] bool in_window(NodeId id, Instant now) const;
  /// The form that passes use: windows in order of their numbers, then nodes that others have, in
  /// order of the ends, then nodes for one job, by job, then loans in order of their ends.
  [[nodiscard]] std::span<const Closure> list() const { return list_; }

 private:
  friend class StateCodec;

  Windows windows_;
  std::map<Instant, std::vector<NodeDevices>> taken_;  ///< by end
  std::map<JobId, std::vector<NodeDevices>> bound_;    ///< for one job alone
  std::vector<Closure> list_;
};

}  // namespace orrery
