// api/event_selection.hpp - the events that a client asked for, and their form: with names where
// the log has numbers.
//
// Made from a request on the controller's loop. `matches` reads the event alone, so any thread may
// call it; only the loop may look up the tenant of an event. Cost: that of the event's fields.
#pragma once

#include <optional>
#include <string>

#include "api/access/visibility.hpp"
#include "base/format/field_writer.hpp"
#include "executor/controller.hpp"

namespace orrery {

struct EventSelection {
  /// Events of a node since the fleet last changed: earlier ones have other ids.
  struct OfNode {
    std::string name;
    NodeId id;  ///< invalid: the fleet has it no more
    Instant since;
  };
  std::optional<JobId> job;
  std::optional<OfNode> node;
  std::optional<std::size_t> kind;  ///< index of the alternative
  std::string tenant;               ///< and those below it; empty: all
  Instant since;

  /// Whether an event matches in all but the tenant.
  [[nodiscard]] bool matches(const TimedEvent& event) const;
  /// Takes over a fleet that changed since the selection was made; on the loop.
  void follow_fleet(const Controller& controller);
};

/// The selection as text of a request. `kind` may be in any case.
struct EventSelectionText {
  std::optional<std::uint64_t> job;
  std::string node;
  std::string kind;
  std::string tenant;
  Instant since;
};
/// Errors: kInput: there is no such job, node, kind or tenant, or the caller does not see it; the
/// nearest name is in the text.
[[nodiscard]] Result<EventSelection> event_selection(const Controller& controller,
                                                     const Visibility& sees,
                                                     const EventSelectionText& text);

/// Returns the job that an event is about; none: there is none.
[[nodiscard]] std::optional<JobId> job_of_event(const Event& event);

/// Whether an event is of a job of `tenant` or below. Events without a job belong to no tenant.
[[nodiscard]] bool of_tenant(const Controller& controller, const TimedEvent& event,
                             const std::string& tenant);

/// Returns the fields of an event with names for nodes, types, tenants and power domains, dollars
/// for prices, and null for absent values.
[[nodiscard]] Json named_fields(const Controller& controller, const TimedEvent& event);

}  // namespace orrery
