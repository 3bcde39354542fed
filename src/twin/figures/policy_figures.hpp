// twin/figures/policy_figures.hpp - the plots of one policy of a report, and those that compare
// policies.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "report/page/html_page.hpp"
#include "report/plot/axis.hpp"
#include "twin/figures/report_data.hpp"

namespace orrery {

/// The axis of the window, and the positions of instants on it.
struct ReportClock {
  Axis axis;
  ValueRange span;
  Instant origin;

  [[nodiscard]] double at(Instant t) const { return (t - origin).count_seconds(); }
  [[nodiscard]] std::vector<double> at(std::span<const Instant> times) const;
};
[[nodiscard]] ReportClock clock_of(const ReportData& data);

/// Waits, completion times, queue and device-hours of all policies.
[[nodiscard]] std::vector<Figure> comparison_figures(const ReportData& data);

/// All figures of one policy; figures without data are left out.
[[nodiscard]] std::string policy_html(const ReportData& data, const PolicyReport& policy);

}  // namespace orrery
