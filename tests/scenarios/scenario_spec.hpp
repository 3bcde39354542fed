// scenarios/scenario_spec.hpp - a scenario as its author writes it: a fleet, a policy, jobs, and
// events with their times.
//
// Read from YAML by load_scenario; fleet, tenants and jobs are the files of users, as text inside
// it. Values. Times of day are "09:30", "09:30:15" or, of a later day, "2d 09:30".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/format/field_reader.hpp"
#include "base/quantity.hpp"
#include "base/time.hpp"
#include "hardware/reliability.hpp"

namespace orrery {

/// One or more like jobs, submitted at once.
struct ScenarioJob {
  std::string at;               ///< empty: as the scenario begins
  std::uint32_t count = 1;      ///< more than one are named NAME-1, NAME-2, ...
  std::optional<Seconds> runs;  ///< run time on the requested devices; none: its estimate
  std::string job;              ///< a JobSpec without its apiVersion
  SourcePosition where;
};

template <class Visitor, SameStruct<ScenarioJob> Self>
void describe(Visitor& visitor, Self& j) {
  visitor.optional("at", j.at);
  visitor.optional("count", j.count);
  visitor.optional("runs", j.runs);
  visitor.required("job", j.job);
}

/// An external event; each stated member happens. Nodes are named by their own name, or all of a
/// domain by its path.
struct ScenarioEvent {
  std::string at;
  std::optional<std::string> fault;   ///< nodes that break
  FaultKind kind = FaultKind::kHost;  ///< kind of the fault
  Seconds detection{0};               ///< until it is detected
  std::optional<Seconds>
      repair;               ///< from then on; none: there are no parts, or it passes by itself
  std::uint32_t times = 1;  ///< that it happens, a minute apart
  std::optional<std::string> drain;       ///< nodes to take no more work
  std::optional<std::string> evacuate;    ///< nodes to be empty at once
  std::optional<std::string> resume;      ///< nodes that take work again
  std::optional<std::string> spare;       ///< nodes kept back to replace lost ones
  std::optional<std::string> uplinks_of;  ///< a node: the links above its leaf switches
  double bandwidth = 1;                   ///< share of their bandwidth that is left
  double load = 0;                        ///< load that other traffic puts on them
  std::optional<std::string> power;       ///< a power domain
  std::optional<Watts> cap;               ///< the operator's cap; none: removed
  std::optional<Watts> supply;            ///< capacity of its remaining units; none: full capacity
  std::optional<std::string> tenants;     ///< the same tenants with other figures
  std::optional<std::string> cancel;      ///< a job
  SourcePosition where;
};

template <class Visitor, SameStruct<ScenarioEvent> Self>
void describe(Visitor& visitor, Self& e) {
  visitor.required("at", e.at);
  visitor.optional("fault", e.fault);
  visitor.optional("kind", e.kind);
  visitor.optional("detection", e.detection);
  visitor.optional("repair", e.repair);
  visitor.optional("times", e.times);
  visitor.optional("drain", e.drain);
  visitor.optional("evacuate", e.evacuate);
  visitor.optional("resume", e.resume);
  visitor.optional("spare", e.spare);
  visitor.optional("uplinks_of", e.uplinks_of);
  visitor.optional("bandwidth", e.bandwidth);
  visitor.optional("load", e.load);
  visitor.optional("power", e.power);
  visitor.optional("cap", e.cap);
  visitor.optional("supply", e.supply);
  visitor.optional("tenants", e.tenants);
  visitor.optional("cancel", e.cancel);
}

/// A step of a series.
template <class Q>
struct ScenarioStep {
  std::string from;
  Q is;
};

template <class Visitor, class Q, SameStruct<ScenarioStep<Q>> Self>
void describe_step(Visitor& visitor, Self& s) {
  visitor.required("from", s.from);
  visitor.required("is", s.is);
}
template <class Visitor, SameStruct<ScenarioStep<DollarsPerJoule>> Self>
void describe(Visitor& visitor, Self& s) {
  describe_step<Visitor, DollarsPerJoule>(visitor, s);
}
template <class Visitor, SameStruct<ScenarioStep<GramsCo2PerJoule>> Self>
void describe(Visitor& visitor, Self& s) {
  describe_step<Visitor, GramsCo2PerJoule>(visitor, s);
}

/// What the log shows beside decisions: the terms of prices, or at the end the use of device time.
enum class Shown : std::uint8_t { kDecisions, kPrices, kLedger };

inline std::array<EnumWord<Shown>, 3> enum_words(Shown) {
  return {
      {{"decisions", Shown::kDecisions}, {"prices", Shown::kPrices}, {"ledger", Shown::kLedger}}};
}

/// Whether limits of power hold.
enum class PowerRule : std::uint8_t { kIgnored, kHeld };

inline std::array<EnumWord<PowerRule>, 2> enum_words(PowerRule) {
  return {{{"ignored", PowerRule::kIgnored}, {"held", PowerRule::kHeld}}};
}

struct ScenarioSpec {
  std::string api_version = "orrery/v1";
  std::string kind = "Scenario";
  Instant start;
  std::string policy;
  std::string fleet;    ///< a file below the repository's root
  std::string tenants;  ///< the list of a Tenants file; empty: the default one
  Seconds half_life{7 * 86400.0};
  PowerRule power = PowerRule::kIgnored;
  Shown show = Shown::kDecisions;
  Seconds full_every{300};  ///< between full passes
  Seconds plan_time{0};     ///< from the request of a plan to the plan
  std::vector<ScenarioJob> jobs;
  std::vector<ScenarioEvent> events;
  std::vector<ScenarioStep<DollarsPerJoule>> electricity;
  std::vector<ScenarioStep<GramsCo2PerJoule>> carbon;
  double failures_per_node_year = 0;
  std::optional<std::string> quiet_from;  ///< no job is stopped, moved or resized after it
  std::optional<std::string> until;
  SourcePosition where;
};

template <class Visitor, SameStruct<ScenarioSpec> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("apiVersion", s.api_version);
  visitor.required("kind", s.kind);
  visitor.required("start", s.start);
  visitor.required("policy", s.policy);
  visitor.required("fleet", s.fleet);
  visitor.optional("tenants", s.tenants);
  visitor.optional("half_life", s.half_life);
  visitor.optional("power", s.power);
  visitor.optional("show", s.show);
  visitor.optional("full_every", s.full_every);
  visitor.optional("plan_time", s.plan_time);
  visitor.required("jobs", s.jobs);
  visitor.optional("events", s.events);
  visitor.optional("electricity", s.electricity);
  visitor.optional("carbon", s.carbon);
  visitor.optional("failures_per_node_year", s.failures_per_node_year);
  visitor.optional("quiet_from", s.quiet_from);
  visitor.optional("until", s.until);
}

/// Errors with file:line:column.
[[nodiscard]] Result<ScenarioSpec> load_scenario(const std::string& path);

/// The instant of a time of day of the scenario; "": its start.
[[nodiscard]] Result<Instant> time_of(const ScenarioSpec& spec, const std::string& text);

/// "09:30:15" of the first day, "2d 09:30:15" of the second.
[[nodiscard]] std::string clock_text(const ScenarioSpec& spec, Instant time);

}  // namespace orrery
