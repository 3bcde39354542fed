#include "api/services/quality_views.hpp"

namespace orrery {

void write_targets(const ServiceSummary& summary, v1::ServiceView& view) {
  if (summary.aims.slo.ttft.p99) view.set_ttft_p99_target_s(summary.aims.slo.ttft.p99->value());
  if (summary.aims.slo.tpot.p99) view.set_tpot_p99_target_s(summary.aims.slo.tpot.p99->value());
  const auto add = [&view](const char* latency, const LatencySpec& spec,
                           const LatencyHistogram& measured) {
    for (const LatencyTarget& each : targets_of(spec)) {
      v1::ServiceTarget& target = *view.add_targets();
      target.set_latency(latency);
      target.set_quantile(each.quantile);
      target.set_target_s(each.time.value());
      if (measured.count() == 0) continue;
      target.set_measured_s(measured.quantile(each.quantile).count_seconds());
    }
  };
  add("ttft", summary.aims.slo.ttft, summary.measured.ttft);
  add("tpot", summary.aims.slo.tpot, summary.measured.tpot);
}

void write_quality(const ServiceSummary& summary, v1::ServiceView& view) {
  if (summary.aims.quality.small.empty()) return;
  v1::QualityView& quality = *view.mutable_quality();
  quality.set_small(summary.aims.quality.small);
  quality.set_max_loss(summary.aims.quality.max_loss);
  quality.set_confidence(summary.aims.quality.confidence);
  quality.set_missing(summary.aims.small_missing);
  if (summary.measured.quality) {
    write_quality_report(*summary.measured.quality, *quality.mutable_report());
  }
}

void write_quality_report(const QualityReport& report, v1::QualityReport& to) {
  to.set_requests(report.requests);
  to.set_small(report.small);
  to.set_compared(report.compared);
  to.set_worse(report.worse);
  to.set_bound(report.bound);
  to.set_learning(report.learning);
  to.set_retreats(report.retreats);
}

QualityReport quality_report_of(const v1::QualityReport& report) {
  return {.requests = report.requests(),
          .small = report.small(),
          .compared = report.compared(),
          .worse = report.worse(),
          .bound = report.bound(),
          .learning = report.learning(),
          .retreats = report.retreats()};
}

void write_tiers(const RoutedTiers& tiers, v1::RoutedTiers& to) {
  to.set_small(tiers.small);
  to.set_loss_max(tiers.loss_max);
  to.set_confidence(tiers.confidence);
  to.set_audit_rate(tiers.audit_rate);
  to.set_measure(tiers.measure == TierMeasure::kJudge ? "judge" : "exact");
}

RoutedTiers tiers_of(const v1::RoutedTiers& tiers) {
  return {.small = tiers.small(),
          .loss_max = tiers.loss_max(),
          .confidence = tiers.confidence(),
          .audit_rate = tiers.audit_rate(),
          .measure = tiers.measure() == "judge" ? TierMeasure::kJudge : TierMeasure::kExact};
}

}  // namespace orrery
