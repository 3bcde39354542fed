// twin/outages/active_faults.hpp - the faults that have happened in a world, and what each part of
// the fleet suffers from now.
//
// Owned by the World. A fault has an index for good; several faults may affect one part, which is
// whole when the last is lifted. It knows no jobs but those asked about, and plans no events. One
// thread. Cost: O(log parts + faults of the part) a question about a part; of a placement, times
// its nodes, and O(1) while nothing is broken.
// Invariant: a part without faults has no entry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "fleet/topology.hpp"
#include "scheduler/situation.hpp"
#include "twin/faults/fault.hpp"

namespace orrery {

/// A fault, and what it did to jobs.
struct FeltFault {
  Fault fault;
  std::uint32_t jobs = 0;  ///< jobs that it stopped or slowed
};

/// Returns what a fault shows: its word and its evidence.
[[nodiscard]] std::string evidence_of(const Fault& fault);
/// Whether the fault halts what runs there at once.
[[nodiscard]] bool halts_jobs(const Fault& fault);
/// Whether the ranks of a job need a network to work together.
[[nodiscard]] bool spans_nodes(const RunningJob& placed);

class ActiveFaults {
 public:
  /// What a fault affects while it lasts.
  using Part = std::variant<NodeId, LinkId, PowerDomainId>;

  /// The topology must outlive it.
  explicit ActiveFaults(const Topology& topology) : topology_(&topology) {}

  /// Adds a fault that affects no part yet, and returns its index.
  [[nodiscard]] std::uint32_t add(const Fault& fault);
  [[nodiscard]] const Fault& operator[](std::uint32_t index) const { return felt_[index].fault; }
  /// Lets the fault be detected no sooner than after `least`.
  void delay_detection(std::uint32_t index, Duration least);
  void count_job(std::uint32_t index) { ++felt_[index].jobs; }
  /// All faults so far, by index.
  [[nodiscard]] std::span<const FeltFault> felt() const { return felt_; }

  void affect(const Part& part, std::uint32_t index) { faults_on_[part].push_back(index); }
  /// Ends the effect of the fault on the part. Returns whether there was one.
  bool lift(const Part& part, std::uint32_t index);
  /// Ends the effects on the node of faults that were detected by `now`.
  void lift_known(NodeId node, Instant now) { lift_past(node, &Fault::known_at, now); }
  /// Ends the effects on the node of faults that are over by `now`.
  void lift_over(NodeId node, Instant now) { lift_past(node, &Fault::over_at, now); }

  // --- Nodes and placements

  /// Whether the node needs a repair that is known to be necessary.
  [[nodiscard]] bool awaits_repair(NodeId node, Instant now) const;
  /// When the first port of a node whose ports are all dead works again. None: a port works, or the
  /// node has none.
  [[nodiscard]] std::optional<Instant> cut_off_until(NodeId node) const;
  /// Time of the job's work over the usual time, by the slowest of its nodes.
  [[nodiscard]] double slowness(const RunningJob& placed) const;
  /// When the wrong results of one of the job's nodes are detected; none: all compute correctly.
  [[nodiscard]] std::optional<Instant> corrupt_until(const RunningJob& placed) const;
  /// Until when a dead or cut-off node keeps the job's ranks from working together; `now`: none
  /// does.
  [[nodiscard]] Instant stands_until(const RunningJob& placed, Instant now) const;

  // --- Links and supplies

  /// The capacity of a link that is known to be left, as a fraction.
  [[nodiscard]] float known_health(LinkId link, Instant now) const;
  /// Whether a unit of the supply is known to be out.
  [[nodiscard]] bool known_out(PowerDomainId domain, Instant now) const;

 private:
  /// Faults that affect a part, as indexes.
  [[nodiscard]] std::span<const std::uint32_t> faults_on(const Part& part) const;
  void lift_past(NodeId node, Instant (Fault::*time)() const, Instant now);
  /// Calls visit(fault) for each fault of each node of the job.
  template <class Visit>
  void for_each_fault(const RunningJob& placed, Visit&& visit) const;

  const Topology* topology_;
  std::vector<FeltFault> felt_;
  std::map<Part, std::vector<std::uint32_t>> faults_on_;
};

}  // namespace orrery
