// hardware/reliability.hpp - how often parts fail and how long it takes to notice and restart.
//
// Rows of catalog/reliability.yaml; the studies they rest on are its `evidence`.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "hardware/provenance.hpp"

namespace orrery {

/// Failures of a whole node, all causes that stop a job.
struct FailureProfile {
  std::string id;
  std::string name;
  double failures_per_1000_node_days = 0;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<FailureProfile> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("id", p.id);
  visitor.required("name", p.name);
  visitor.required("failures_per_1000_node_days", p.failures_per_1000_node_days);
  describe_inline(visitor, p.provenance);
}

/// Components that exist in large numbers and fail independently.
enum class FailureScope { kAccelerator, kNode, kLink, kSwitch, kRack, kPower, kCooling };

inline std::array<EnumWord<FailureScope>, 7> enum_words(FailureScope) {
  return {{{"accelerator", FailureScope::kAccelerator},
           {"node", FailureScope::kNode},
           {"link", FailureScope::kLink},
           {"switch", FailureScope::kSwitch},
           {"rack", FailureScope::kRack},
           {"power", FailureScope::kPower},
           {"cooling", FailureScope::kCooling}}};
}

/// The component or function that fails.
enum class FaultKind : std::uint8_t {
  kAccelerator,
  kHbm,  ///< memory of an accelerator
  kSram,
  kSdc,  ///< silent data corruption
  kHost,
  kNic,
  kLinkDown,
  kLinkFlap,
  kSwitchDown,
  kPdu,  ///< the power of a rack
  kUps,
  kCoolingUnit,
  kSoftware,
  kMaintenance,
  kFailSlow,  ///< keeps working, but slowly
  kNetwork,   ///< seen by a node, its cause unknown
  kOptics,
};

inline std::array<EnumWord<FaultKind>, 17> enum_words(FaultKind) {
  return {{{"accelerator", FaultKind::kAccelerator},
           {"hbm", FaultKind::kHbm},
           {"sram", FaultKind::kSram},
           {"sdc", FaultKind::kSdc},
           {"host", FaultKind::kHost},
           {"nic", FaultKind::kNic},
           {"link-down", FaultKind::kLinkDown},
           {"link-flap", FaultKind::kLinkFlap},
           {"switch-down", FaultKind::kSwitchDown},
           {"pdu", FaultKind::kPdu},
           {"ups", FaultKind::kUps},
           {"cooling-unit", FaultKind::kCoolingUnit},
           {"software", FaultKind::kSoftware},
           {"maintenance", FaultKind::kMaintenance},
           {"fail-slow", FaultKind::kFailSlow},
           {"network", FaultKind::kNetwork},
           {"optics", FaultKind::kOptics}}};
}

inline constexpr std::size_t kFaultKinds = 17;

/// "hbm", "link-down", ...
[[nodiscard]] inline std::string_view word_of_fault(FaultKind kind) {
  return enum_words(FaultKind{})[static_cast<std::size_t>(kind)].word;
}

/// Independent exponential failures of one component.
struct ComponentFailureRate {
  std::string component;
  FaultKind fault = FaultKind::kHost;  ///< what its failure is
  FailureScope per = FailureScope::kNode;
  double per_million_hours = 0;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ComponentFailureRate> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("component", r.component);
  visitor.required("fault", r.fault);
  visitor.required("per", r.per);
  visitor.required("per_1e6_hours", r.per_million_hours);
  describe_inline(visitor, r.provenance);
}

struct DetectionTime {
  std::string path;
  Seconds time;
  std::vector<FaultKind> faults;  ///< faults detected this way
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<DetectionTime> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("path", d.path);
  visitor.required("seconds", d.time);
  visitor.optional("faults", d.faults);
  describe_inline(visitor, d.provenance);
}

struct RestartTime {
  int accelerators = 0;
  Seconds time;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<RestartTime> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("accelerators", r.accelerators);
  visitor.required("seconds", r.time);
  describe_inline(visitor, r.provenance);
}

/// How long a fault lasts once it is known: some pass on their own or with a restart, the rest need
/// technicians and parts.
struct RepairModel {
  double transient_share = 0;  ///< of the faults, in [0, 1]
  Seconds transient;           ///< mean of those, exponential
  Seconds median;              ///< of the others, lognormal
  Seconds mean;                ///< of the others; not below the median
  SourcePosition where;
};

template <class Visitor, SameStruct<RepairModel> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("transient_share", r.transient_share);
  visitor.required("transient", r.transient);
  visitor.required("median", r.median);
  visitor.required("mean", r.mean);
}

/// How long faults of one kind last.
struct RepairTime {
  FaultKind fault = FaultKind::kHost;
  RepairModel repair;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<RepairTime> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("fault", r.fault);
  visitor.required("repair", r.repair);
  describe_inline(visitor, r.provenance);
}

}  // namespace orrery
