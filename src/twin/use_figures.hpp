// twin/use_figures.hpp - where the device-hours of a simulation went: what was lost, why devices
// stood idle, who had them.
#pragma once

#include <string>
#include <vector>

#include "twin/html_page.hpp"
#include "twin/report_data.hpp"

namespace orrery {

/// A bar a policy, parted by what the devices did.
[[nodiscard]] Figure use_by_policy(const ReportData& data);

/// From all device-hours down to the useful ones, and the idle causes of each type.
void add_use(std::vector<Figure>& figures, const ReportData& data, const PolicyReport& policy);

/// The use of each tenant against its guarantee.
void add_tenants(std::vector<Figure>& figures, const PolicyReport& policy);

/// Tenants and kinds of jobs: how they fared, as tables.
[[nodiscard]] std::string groups_html(const PolicyReport& policy);

/// Device-hours by cause and type, as a table.
[[nodiscard]] std::string use_table(const ReportData& data, const PolicyReport& policy);

}  // namespace orrery
