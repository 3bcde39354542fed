// hardware/reliability.hpp - how often parts fail and how long it takes to notice and restart.
//
// Rows of catalog/reliability.yaml; the studies they rest on are its `evidence`.
#pragma once

#include <string>

#include "base/field_reader.hpp"
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

enum class FailureScope { kAccelerator, kNode, kLink, kSwitch };

inline std::array<EnumWord<FailureScope>, 4> enum_words(FailureScope) {
  return {{{"accelerator", FailureScope::kAccelerator},
           {"node", FailureScope::kNode},
           {"link", FailureScope::kLink},
           {"switch", FailureScope::kSwitch}}};
}

/// Independent exponential failures of one component.
struct ComponentFailureRate {
  std::string component;
  FailureScope per = FailureScope::kNode;
  double per_million_hours = 0;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<ComponentFailureRate> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("component", r.component);
  visitor.required("per", r.per);
  visitor.required("per_1e6_hours", r.per_million_hours);
  describe_inline(visitor, r.provenance);
}

struct DetectionTime {
  std::string path;
  Seconds time;
  Provenance provenance;
  SourcePosition where;
};

template <class Visitor, SameStruct<DetectionTime> Self>
void describe(Visitor& visitor, Self& d) {
  visitor.required("path", d.path);
  visitor.required("seconds", d.time);
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

}  // namespace orrery
