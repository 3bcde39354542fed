#include "twin/faults/planned_events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/format/field_reader.hpp"
#include "base/text/utf8.hpp"
#include "fleet/spec/named_places.hpp"

namespace orrery {
namespace {

Status check(const PlannedEvent& event) {
  const int said = int{event.drain.has_value()} + int{event.resume.has_value()} +
                   int{event.power.has_value()} + int{event.fault.has_value()} +
                   int{event.uplinks_of.has_value()} + int{event.tenants.has_value()};
  const auto wrong = [&](std::string text) { return input_error(event.where, std::move(text)); };
  if (said != 1) {
    return wrong("an event states one of drain, resume, power, fault, uplinks_of and tenants");
  }
  if (event.at < Seconds(0)) return wrong("at: expected a time since the start, 0 s or more");
  if (event.now && !event.drain) return wrong("now: expected only with drain");
  if (event.cap && !event.power) return wrong("cap: expected only with power, the domain to cap");
  if (event.cap && *event.cap <= Watts()) return wrong("cap: expected more than 0 W");
  if (event.kind != FaultKind::kHost && !event.fault)
    return wrong("kind: expected only with fault");
  if (event.kind == FaultKind::kFailSlow) {
    return wrong(
        "kind: fail-slow needs a slowdown, which only a failure profile states (fail_slow)");
  }
  if (event.lasts && !event.fault && !event.uplinks_of) {
    return wrong("lasts: expected only with fault or uplinks_of");
  }
  if (event.lasts && *event.lasts <= Seconds(0)) return wrong("lasts: expected more than 0 s");
  if (event.bandwidth != 0 && !event.uplinks_of)
    return wrong("bandwidth: expected only with uplinks_of");
  if (event.bandwidth < 0 || event.bandwidth >= 1) {
    return wrong("bandwidth: expected the remaining fraction, from 0 to below 1");
  }
  return {};
}

class Planner {
 public:
  Planner(const PlannedEventsContext& context, PlannedEvents& planned)
      : context_(context), planned_(planned) {}

  Status add(const PlannedEvent& event) {
    if (Status checked = check(event); !checked) return checked;
    const Instant at = context_.begin + Duration::from_seconds(event.at.value());
    if (event.power) return add_cap(event, at);
    if (event.tenants) return add_tenants(event, at);
    const std::optional<std::string>& name = event.drain    ? event.drain
                                             : event.resume ? event.resume
                                             : event.fault  ? event.fault
                                                            : event.uplinks_of;
    auto nodes = nodes_named(context_.topology, *name, event.where);
    if (!nodes) return forward_error(nodes);
    if (event.uplinks_of) {
      const std::vector<LinkId> links = uplinks_of(context_.topology, *nodes);
      if (links.empty()) {
        return input_error(
            event.where,
            fmt::format("uplinks_of: no links lead up from the leaf switches of {}", *name));
      }
      for (const LinkId link : links) add_fault(event, at, link);
      return {};
    }
    for (const NodeId node : *nodes) {
      if (event.drain) planned_.commands.push_back({at, DrainNode{node, event.now, "planned"}, {}});
      if (event.resume) planned_.commands.push_back({at, ResumeNode{node}, {}});
      if (event.fault) add_fault(event, at, node);
    }
    return {};
  }

 private:
  Status add_cap(const PlannedEvent& event, Instant at) {
    auto domain = power_domain_named(context_.topology, *event.power, event.where);
    if (!domain) return forward_error(domain);
    planned_.commands.push_back({at, SetPowerCap{*domain, event.cap}, {}});
    return {};
  }

  Status add_tenants(const PlannedEvent& event, Instant at) {
    Result<std::string> text = context_.tenants(*event.tenants);
    if (!text) return forward_error(text);
    planned_.commands.push_back({at, SetTenants{*std::move(text)}, {}});
    return {};
  }

  void add_fault(const PlannedEvent& event, Instant at, FaultScope scope) {
    Fault fault;
    fault.at = at;
    fault.scope = scope;
    fault.kind = event.uplinks_of ? FaultKind::kLinkDown : event.kind;
    const bool passes = event.kind == FaultKind::kSoftware || event.kind == FaultKind::kNetwork;
    fault.remedy = passes ? Remedy::kTransient : Remedy::kRepair;
    fault.repair = event.lasts ? Duration::from_seconds(event.lasts->value()) : Duration::max();
    if (event.bandwidth > 0) fault.slowdown = 1 / event.bandwidth;
    fault.evidence = "planned";
    planned_.faults.push_back(fault);
  }

  const PlannedEventsContext& context_;
  PlannedEvents& planned_;
};

}  // namespace

Result<PlannedEvents> read_planned_events(const Document& document,
                                          const PlannedEventsContext& context) {
  PlannedEventsFile file;
  const DocumentNode root = document.root();
  if (Status read = read_struct(root, file, {}); !read) return forward_error(read);
  if (file.api_version != "orrery/v1" || file.kind != "Events") {
    return input_error(root.position(),
                       fmt::format("expected apiVersion orrery/v1 and kind Events, found {} and {}",
                                   printable(file.api_version, 60), printable(file.kind, 60)));
  }
  PlannedEvents planned{.name = file.name};
  Planner planner(context, planned);
  for (const PlannedEvent& event : file.events) {
    if (Status added = planner.add(event); !added) return forward_error(added);
  }
  const auto by_time = [](const auto& a, const auto& b) { return a.at < b.at; };
  std::stable_sort(planned.commands.begin(), planned.commands.end(), by_time);
  std::stable_sort(planned.faults.begin(), planned.faults.end(), by_time);
  return planned;
}

}  // namespace orrery
