// twin/figures/html_report.hpp - the report of simulations as one page that needs no other file.
//
// Pure: values in, text out, equal input gives equal bytes. Cost: O(samples + bytes written).
#pragma once

#include <string>

#include "twin/figures/report_data.hpp"

namespace orrery {

/// The page shows what was run, the policies compared, and a tab of plots for each policy. The best
/// of a column is marked, and where an oracle is best, also the best of those that do not know the
/// future.
[[nodiscard]] std::string html_report(const ReportData& data);

}  // namespace orrery
