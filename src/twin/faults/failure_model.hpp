// twin/faults/failure_model.hpp - the faults of a fleet in the order of time, drawn on demand.
//
// A value made by FailureModel::make; a copy continues independently with the same faults. The
// topology and its catalog must outlive it. The same seed, spec and fleet give the same faults; a
// node's own faults depend on the node alone. Ties break by source: nodes, bursts, slow nodes,
// components. Cost: O(log sources) a fault, 112 bytes a source (a node is one).
//
// A thing may fail again before it works again (its rack loses power while it is out): the user of
// the model takes the later end.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "base/time.hpp"
#include "fleet/topology.hpp"
#include "twin/faults/fault.hpp"
#include "twin/faults/fault_law.hpp"
#include "twin/faults/fault_sources.hpp"

namespace orrery {

class FailureModel {
 public:
  struct Options {
    std::uint64_t seed = 0;
    Instant start;  ///< everything works then
  };

  /// Errors: what check_failure_spec refuses; a catalog without times for a kind of fault.
  /// O(nodes + links).
  [[nodiscard]] static Result<FailureModel> make(const Topology& topology, const FailureSpec& spec,
                                                 const Options& options);

  /// The next fault before `until`, or none; a later call with a later time continues.
  [[nodiscard]] std::optional<Fault> next(Instant until);

 private:
  /// What happens next: a source's own event, or a fault it has scheduled for a node.
  struct Pending {
    Instant at;
    std::uint32_t source = 0;
    NodeId struck;  ///< none: the source's own event

    friend auto operator<=>(const Pending&, const Pending&) = default;
  };

  FailureModel(const Topology& topology, const FailureSpec& spec, const FaultLaw& law)
      : topology_(&topology), spec_(spec), law_(law) {}

  void push(const Pending& pending);
  Pending pop();
  /// The source's next own event, from `from` on.
  void arrive_after(Instant from, std::uint32_t source);
  [[nodiscard]] std::optional<Fault> occur(const Pending& pending);
  [[nodiscard]] std::optional<Fault> own_event(const Pending& pending);
  [[nodiscard]] Fault strike_node(const Pending& pending, NodeId node);
  [[nodiscard]] Fault strike_part(const Pending& pending);
  [[nodiscard]] FaultScope draw_scope(FaultSource& source) const;
  [[nodiscard]] LinkId draw_link(FaultSource& source) const;
  void burst(const Pending& pending);

  const Topology* topology_;
  FailureSpec spec_;
  FaultLaw law_;
  std::vector<FaultSource> sources_;
  std::vector<Pending> queue_;  ///< a heap, the earliest first
};

}  // namespace orrery
