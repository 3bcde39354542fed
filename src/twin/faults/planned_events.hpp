// twin/faults/planned_events.hpp - events of a simulated fleet at stated times, from a file (`kind:
// Events`): drains, power caps, faults, lost links, other quotas.
//
// Pure. Cost: O(bytes + events x nodes).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/format/document.hpp"
#include "control/input.hpp"
#include "twin/faults/fault.hpp"

namespace orrery {

/// One event; exactly one of the optional names is stated. Nodes are named by their own name, or
/// all of a domain (rack, pod, hall, site) by its path.
struct PlannedEvent {
  Seconds at{0};                          ///< after the begin of the simulation
  std::optional<std::string> drain;       ///< nodes that take no more work
  bool now = false;                       ///< with `drain`: what runs there is stopped
  std::optional<std::string> resume;      ///< nodes that take work again
  std::optional<std::string> power;       ///< a power domain, whose cap is set or taken back
  std::optional<Watts> cap;               ///< with `power`; none: taken back
  std::optional<std::string> fault;       ///< nodes that break
  FaultKind kind = FaultKind::kHost;      ///< with `fault`
  std::optional<Seconds> lasts;           ///< with `fault` and `uplinks_of`; none: to the end
  std::optional<std::string> uplinks_of;  ///< nodes: the links above their leaf switches
  double bandwidth = 0;                   ///< with `uplinks_of`: part that is left of them, below 1
  std::optional<std::string> tenants;     ///< a file of the same tenants with other figures
  SourcePosition where;
};

template <class Visitor, SameStruct<PlannedEvent> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.required("at", e.at);
  visitor.optional("drain", e.drain);
  visitor.optional("now", e.now);
  visitor.optional("resume", e.resume);
  visitor.optional("power", e.power);
  visitor.optional("cap", e.cap);
  visitor.optional("fault", e.fault);
  visitor.optional("kind", e.kind);
  visitor.optional("lasts", e.lasts);
  visitor.optional("uplinks_of", e.uplinks_of);
  visitor.optional("bandwidth", e.bandwidth);
  visitor.optional("tenants", e.tenants);
}

struct PlannedEventsFile {
  std::string api_version;
  std::string kind;
  std::string name;
  std::vector<PlannedEvent> events;
  SourcePosition where;
};

template <class Visitor, SameStruct<PlannedEventsFile> Self>
void describe(Visitor& visitor, Self& f) {
  visitor.required("apiVersion", f.api_version);
  visitor.required("kind", f.kind);
  visitor.optional("name", f.name);
  visitor.required("events", f.events);
}

/// Operator commands and faults, each by time.
struct PlannedEvents {
  std::string name;
  std::vector<Input> commands;
  std::vector<Fault> faults;
};

/// What the names of an events file are looked up in.
struct PlannedEventsContext {
  const Topology& topology;
  Instant begin;
  /// Reads the text of a tenants file; its errors are passed on.
  std::function<Result<std::string>(const std::string& name)> tenants;
};

/// Errors, with their position: what is wrong in the file, an unknown node, domain or power domain,
/// an event with no name or more than one, keys that do not belong together.
[[nodiscard]] Result<PlannedEvents> read_planned_events(const Document& document,
                                                        const PlannedEventsContext& context);

}  // namespace orrery
