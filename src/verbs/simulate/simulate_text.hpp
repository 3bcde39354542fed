// verbs/simulate/simulate_text.hpp - results of `simulate` as a table, JSON, CSV and what the HTML
// report shows.
#pragma once

#include <span>
#include <string>

#include "base/format/field_writer.hpp"
#include "verbs/simulate/simulate_request.hpp"

namespace orrery {

[[nodiscard]] Json simulate_json(const SimulateRequest& request, std::span<const PolicyRun> runs);
[[nodiscard]] std::string simulate_text(const SimulateRequest& request,
                                        const SimulateOptions& asked,
                                        std::span<const PolicyRun> runs);
/// Returns one row per job, in the order of submission.
[[nodiscard]] std::string jobs_csv(const SimulateRequest& request, const PolicyRun& run);
[[nodiscard]] ReportData report_data(const SimulateRequest& request, const SimulateOptions& asked,
                                     std::span<const PolicyRun> runs);
/// Returns a command line for the same run: every option in the table of SimulateOptions that
/// differs from its default.
[[nodiscard]] std::string command_text(const CommandOptions& options, const SimulateOptions& asked);

}  // namespace orrery
