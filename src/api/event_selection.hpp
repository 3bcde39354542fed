// api/event_selection.hpp - which events a client asked for, and how they are shown: with names
// where the log has numbers.
//
// Made of a request on the controller's loop. `matches` looks at the event alone, so any thread may
// ask it; the tenant of an event is for the loop to look up. Cost: that of the event's fields.
#pragma once

#include <optional>
#include <string>

#include "api/visibility.hpp"
#include "base/field_writer.hpp"
#include "executor/controller.hpp"

namespace orrery {

struct EventSelection {
  std::optional<JobId> job;
  std::optional<NodeId> node;
  std::optional<std::size_t> kind;  ///< index of the alternative
  std::string tenant;               ///< and those below it; empty: all
  Instant since;

  /// All but the tenant.
  [[nodiscard]] bool matches(const TimedEvent& event) const;
};

/// What a request names. `kind` may be in any case.
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

/// The job that an event is about; none: it is about none.
[[nodiscard]] std::optional<JobId> job_of_event(const Event& event);

/// Whether an event is of a job of `tenant` or below. Events of no job are nobody's.
[[nodiscard]] bool of_tenant(const Controller& controller, const TimedEvent& event,
                             const std::string& tenant);

/// The fields of an event with names for nodes, types, tenants and power domains, dollars for
/// prices, and null where there is nothing.
[[nodiscard]] Json named_fields(const Controller& controller, const TimedEvent& event);

}  // namespace orrery
