// twin/outages/shared_outages.hpp - faults of what nodes share: links, switches and power supplies.
//
// Owned by the World. A switch fails with its links, and several faults may affect one link or
// supply: it is whole when the last is over. A job that spans a node whose ports are all dead
// stands still; it ends when that is known, and the node takes no work until one of its links is
// back. One thread. Cost: O(links struck) a fault.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "control/input.hpp"
#include "control/state/state.hpp"
#include "twin/outages/active_faults.hpp"
#include "twin/outages/silent_nodes.hpp"
#include "twin/runs/job_runs.hpp"
#include "twin/world/agenda.hpp"
#include "twin/world/world_facts.hpp"

namespace orrery {

class SharedOutages {
 public:
  struct Parts {
    const Topology& topology;
    const WorldFacts& facts;
    Agenda& agenda;
    ActiveFaults& faults;
    JobRuns& runs;
    SilentNodes& silent;
  };
  /// The parts must outlive it.
  explicit SharedOutages(const Parts& parts) : parts_(parts) {}

  void strike_links(std::span<const LinkId> links, std::uint32_t index, const State& state);
  void strike_supply(PowerDomainId domain, std::uint32_t index);
  /// Whether an event of a fault is one of a link or supply.
  [[nodiscard]] bool concerns(const WorldEvent& event) const;
  /// A fault is detected.
  [[nodiscard]] std::optional<InputKind> detect(const WorldEvent& event, Instant now);
  /// A fault is over.
  [[nodiscard]] InputKind end(const WorldEvent& event, Instant now);
  /// Lets the links that have changed at this instant take effect.
  void apply_links(const State& state, Instant now);
  /// A node is found to reach no other node.
  [[nodiscard]] std::optional<InputKind> cut(const WorldEvent& event, Instant now);
  /// Ends, one at a time, the jobs that need the network of such a node.
  [[nodiscard]] std::optional<InputKind> part_jobs(const WorldEvent& event, const State& state,
                                                   Instant now);

 private:
  /// Reports the known remaining capacity of a link.
  [[nodiscard]] InputKind link_observed(LinkId link, Instant now);
  [[nodiscard]] SupplyObserved supply_observed(PowerDomainId domain, Instant now) const;
  /// Plans the detection and the end of a fault.
  void plan(const WorldEvent& event);

  Parts parts_;
  std::vector<LinkId> links_reported_;  ///< changed links whose effect on jobs is not applied yet
};

}  // namespace orrery
