// api/services/quality_views.hpp - targets, tiers and promises of services as messages of the API,
// and back.
#pragma once

#include "executor/services/service_book.hpp"
#include "orrery/v1/orrery.pb.h"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"

namespace orrery {

/// Adds the latencies that a service is to keep, beside those measured.
void write_targets(const ServiceSummary& summary, v1::ServiceView& view);
/// Adds what a smaller model answers; nothing where there is none.
void write_quality(const ServiceSummary& summary, v1::ServiceView& view);

void write_quality_report(const QualityReport& report, v1::QualityReport& to);
[[nodiscard]] QualityReport quality_report_of(const v1::QualityReport& report);

void write_tiers(const RoutedTiers& tiers, v1::RoutedTiers& to);
/// An unknown measure counts as exact.
[[nodiscard]] RoutedTiers tiers_of(const v1::RoutedTiers& tiers);

}  // namespace orrery
