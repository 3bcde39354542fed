// verbs/schedule/schedule_answer.hpp - the answer of the verb `schedule`: which jobs of a queue
// would start now on an idle fleet, where, and at what price.
#pragma once

#include <span>
#include <string>

#include "verbs/schedule/schedule_request.hpp"
#include "verbs/verb_answer.hpp"

namespace orrery {

/// Returns a row per job (first those that start, then those that wait, then refused ones), the
/// prices of those that start, whether deadlines and budgets can be kept, and why jobs were
/// refused.
[[nodiscard]] std::string schedule_text(const ScheduleRequest& request, const PassResult& result,
                                        std::span<const ScheduleRequest::Bound> bounds);
/// Times in seconds, prices in dollars, energy in kWh (null: the draw is not published); the
/// devices of a node as a hexadecimal mask.
[[nodiscard]] Json schedule_json(const ScheduleRequest& request, const PassResult& result,
                                 std::span<const ScheduleRequest::Bound> bounds);
/// Says why a job waits and what would start it. Precondition: the decision was carried out. Error:
/// no such job, with the nearest name.
[[nodiscard]] Result<std::string> waiting_text(const ScheduleRequest& request,
                                               const std::string& name);

/// Loads the files, decides and reports. The verdict is an error where a job can never run, or,
/// where text shall explain a job, only if there is no such job. Errors: those of
/// ScheduleRequest::load.
[[nodiscard]] Result<JudgedAnswer> schedule(const CommandOptions& options,
                                            const ScheduleOptions& asked);

}  // namespace orrery
