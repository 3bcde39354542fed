// api/access/event_filter.hpp - the events of the log as one caller may see them.
//
// Made for each watch. Shows the events of jobs that the caller sees, and those of nodes, links,
// power and passes, which hold nothing of any tenant. Parts of an event about a job that the caller
// does not see are removed. No watcher is shown the values of `environment` in a spec. On the
// controller's loop. Cost: a copy of the event; for a spec that is not that of the event before,
// parsing it; for an archived job, a read of the archive.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "api/access/spec_redaction.hpp"
#include "api/access/visibility.hpp"
#include "control/log/journal.hpp"

namespace orrery {

class EventFilter {
 public:
  /// `redaction` is shared by all watches.
  EventFilter(const Visibility& visibility, std::shared_ptr<SpecRedaction> redaction)
      : visibility_(visibility), redaction_(std::move(redaction)) {}

  /// Returns none where the caller may not see the event. Precondition: the state has applied it.
  [[nodiscard]] std::optional<TimedEvent> shown(const TimedEvent& event) const;

 private:
  Visibility visibility_;
  std::shared_ptr<SpecRedaction> redaction_;
};

}  // namespace orrery
