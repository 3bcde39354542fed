// store/event_json.hpp - an event of a log as a JSON object, for other programs.
//
// Ids are the numbers of the log (null: none), times of day are texts, durations are in seconds,
// enumerators are words where they have some, other quantities in their base unit. Pure.
#pragma once

#include "base/format/field_writer.hpp"
#include "control/log/journal.hpp"

namespace orrery {

/// Returns {"at": .., "event": "JobStarted", and the fields under their names}.
[[nodiscard]] Json event_json(const TimedEvent& event);

}  // namespace orrery
