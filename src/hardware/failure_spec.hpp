// hardware/failure_spec.hpp - the faults of a fleet: how many, of what kinds, alone or together,
// and how long they last.
//
// Rows of the catalog's `fault_models`, and the keys of a user's file of kind Failures
// (twin/faults/failure_file.hpp), which changes one of those rows. A plain value.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"
#include "hardware/reliability.hpp"

namespace orrery {

/// A kind's part of a node's faults; parts need not sum to 1.
struct FaultPart {
  FaultKind fault = FaultKind::kHost;
  double share = 0;
};

template <class Visitor, SameStruct<FaultPart> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("fault", p.fault);
  visitor.required("share", p.share);
}

/// A repaired node fails again with this probability, in addition to its usual failures, after a
/// time that is Weibull-distributed from the end of the repair.
struct RelapseModel {
  double probability = 0;  ///< in [0, 1)
  double shape = 1;
  Seconds scale{86400};
  SourcePosition where;
};

template <class Visitor, SameStruct<RelapseModel> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("probability", r.probability);
  visitor.required("shape", r.shape);
  visitor.required("scale", r.scale);
}

/// The domain in which the nodes of one burst are.
enum class BurstScope { kRack, kPod, kHall, kSite, kFleet };

inline std::array<EnumWord<BurstScope>, 5> enum_words(BurstScope) {
  return {{{"rack", BurstScope::kRack},
           {"pod", BurstScope::kPod},
           {"hall", BurstScope::kHall},
           {"site", BurstScope::kSite},
           {"fleet", BurstScope::kFleet}}};
}

/// Faults that occur together: a Neyman-Scott cluster process. Bursts begin as a Poisson process in
/// every domain of the scope; each hits a geometric number of its nodes, each after an exponential
/// delay.
struct BurstModel {
  BurstScope scope = BurstScope::kRack;
  double share = 0;  ///< of a node's faults that are no relapses, in [0, 1]; all bursts together
  double size = 1;   ///< mean number of nodes, at least 1; limited to those of the domain
  Seconds spread;    ///< mean delay
  std::optional<FaultKind> fault;  ///< absent: each node's own mix
  SourcePosition where;
};

template <class Visitor, SameStruct<BurstModel> Self>
void describe(Visitor& visitor, Self& b) {
  visitor.required("scope", b.scope);
  visitor.required("share", b.share);
  visitor.required("size", b.size);
  visitor.required("spread", b.spread);
  visitor.optional("fault", b.fault);
}

/// Nodes that fail more often than the others; the rate of the fleet stays the same.
struct LemonModel {
  double share = 0;   ///< of the nodes, in [0, 1]
  double factor = 1;  ///< their rate over that of the others
  SourcePosition where;
};

template <class Visitor, SameStruct<LemonModel> Self>
void describe(Visitor& visitor, Self& l) {
  visitor.required("share", l.share);
  visitor.required("factor", l.factor);
}

/// Nodes that keep working, but slowly.
struct FailSlowModel {
  double per_1000_node_days = 0;
  double slowdown = 1;  ///< time of the same work over the usual time, at least 1
  SourcePosition where;
};

template <class Visitor, SameStruct<FailSlowModel> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("per_1000_node_days", f.per_1000_node_days);
  visitor.required("slowdown", f.slowdown);
}

struct DetectionOverride {
  std::string path;  ///< of the catalog's detection_times
  Seconds time;
  SourcePosition where;
};

template <class Visitor, SameStruct<DetectionOverride> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("path", d.path);
  visitor.required("time", d.time);
}

struct RepairOverride {
  FaultKind fault = FaultKind::kHost;
  RepairModel repair;
};

template <class Visitor, SameStruct<RepairOverride> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("fault", r.fault);
  visitor.required("repair", r.repair);
}

struct FailureSpec {
  std::string id;
  std::string name;
  std::vector<std::string> aliases;
  /// Failures of a node of 8 accelerators: all kinds that stop its jobs, relapses and bursts
  /// included.
  double failures_per_1000_node_days = 0;
  std::vector<FaultPart> mix;  ///< empty: as component_failure_rates split a node's faults
  double network = 1;          ///< factor on the catalog's rates of links, optics and switches
  double facility = 1;         ///< factor on those of racks, power and cooling
  RelapseModel relapse;
  std::vector<BurstModel> bursts;
  LemonModel lemons;
  FailSlowModel fail_slow;
  std::optional<double> link_flaps_per_million_hours;  ///< of a link; absent: the catalog's
  std::optional<double>
      silent_corruptions_per_million_hours;  ///< of an accelerator; absent: as mix
  std::optional<RepairModel> repair;         ///< of all faults of nodes; absent: by kind
  std::vector<RepairOverride> repairs;       ///< of these kinds; overrides everything else
  std::vector<DetectionOverride> detections;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<FailureSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("id", s.id);
  visitor.required("name", s.name);
  visitor.optional("aliases", s.aliases);
  visitor.required("failures_per_1000_node_days", s.failures_per_1000_node_days);
  visitor.optional("mix", s.mix);
  visitor.optional("network", s.network);
  visitor.optional("facility", s.facility);
  visitor.optional("relapse", s.relapse);
  visitor.optional("bursts", s.bursts);
  visitor.optional("lemons", s.lemons);
  visitor.optional("fail_slow", s.fail_slow);
  visitor.optional("link_flaps_per_1e6_hours", s.link_flaps_per_million_hours);
  visitor.optional("silent_corruptions_per_1e6_hours", s.silent_corruptions_per_million_hours);
  visitor.optional("repair", s.repair);
  visitor.optional("repairs", s.repairs);
  visitor.optional("detections", s.detections);
  describe_inline(visitor, s.provenance);
}

}  // namespace orrery
