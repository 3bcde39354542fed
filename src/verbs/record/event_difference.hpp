// verbs/record/event_difference.hpp - how two events differ, in words.
#pragma once

#include <string>

#include "control/log/journal.hpp"

namespace orrery {

/// Describes how an event that was decided differs from the one on record: by its kind
/// ("JobStarted instead of JobEnded"), or by the first field with another value and the number of
/// the others ("JobStarted: attempt is 2 instead of 1, and 3 more fields differ"). Names of fields
/// are those of event JSON (store/event_json.hpp). Precondition: their encodings differ. Cost:
/// O(fields).
[[nodiscard]] std::string event_difference(const TimedEvent& decided, const TimedEvent& recorded);

}  // namespace orrery
