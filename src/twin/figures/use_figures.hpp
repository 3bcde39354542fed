// twin/figures/use_figures.hpp - where the device-hours of a simulation went: losses, causes of
// idle devices, use by tenant.
#pragma once

#include <string>
#include <vector>

#include "report/page/html_page.hpp"
#include "twin/figures/report_data.hpp"

namespace orrery {

/// A bar for each policy, divided by device use.
[[nodiscard]] Figure use_by_policy(const ReportData& data);

/// From all device-hours down to the useful ones, and the idle causes of each type.
void add_use(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy);

/// The use of each tenant against its guarantee.
void add_tenants(std::vector<Figure>& figures, const PolicyReport& policy);

/// Tables of how tenants and kinds of jobs were served.
[[nodiscard]] std::string groups_html(const PolicyReport& policy);

/// Device-hours by cause and type, as a table.
[[nodiscard]] std::string use_table(const ReportData& data, const PolicyReport& policy);

}  // namespace orrery
