// control/closed_times.hpp - when nodes are closed to jobs: maintenance windows, and nodes
// whose resource manager lends them for a time only.
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
  /// Makes the list of the windows, which a snapshot has set; loans are to be added.
  void take_up_windows(const Topology& topology);
  /// A node whose loan ended at `before` is lent until `until`; Instant::max(): without end, or not
  /// at all.
  void lend(NodeId node, Instant before, Instant until, const Topology& topology);

  [[nodiscard]] const Windows& windows() const { return windows_; }
  /// Whether a node is in a maintenance window that has begun and is not over. O(nodes of windows).
  [[nodiscard]] bool in_window(NodeId id, Instant now) const;
  /// The form that passes use: windows in order of their numbers, then loans in order of their
  /// ends.
  [[nodiscard]] std::span<const Closure> list() const { return list_; }

 private:
  friend class StateCodec;

  Windows windows_;
  std::vector<Closure> list_;
};

}  // namespace orrery
