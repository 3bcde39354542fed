#include "verbs/cluster/service_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

/// Returns "3/8", or "3" where the number of slots is not known.
std::string in_flight_text(const v1::ServiceReplica& replica) {
  if (replica.slots() == 0) return fmt::format("{}", replica.in_flight());
  return fmt::format("{}/{}", replica.in_flight(), replica.slots());
}

std::string replicas_text(const LiveText& text, const v1::ServiceView& service) {
  TextTable table({{"REPLICA", Align::kRight},
                   {"REVISION"},
                   {"ATTEMPT", Align::kRight},
                   {"STATE"},
                   {"NODE"},
                   {"ENDPOINT"},
                   {"IN FLIGHT", Align::kRight},
                   {"START", Align::kRight}});
  for (const v1::ServiceReplica& replica : service.replicas()) {
    table.add({fmt::format("{}", replica.job()), replica.revision(),
               fmt::format("{}", replica.attempt()), replica.state(), replica.node(),
               replica.endpoint(), in_flight_text(replica),
               replica.has_start_s() ? latency_text(replica.start_s()) : ""});
    table.colour(3, text.colour_code(replica.state()));
  }
  return table.text();
}

std::string rate_text(double rate) { return rate > 0 ? fmt::format("{:.4g}", rate) : ""; }

/// Returns "2.1 ms, 5.0 ms when full".
std::string predicted_step_text(const v1::ServicePrediction& predicted) {
  const std::string full = latency_text(predicted.tpot_full_s());
  return latency_text(predicted.tpot_s()) + (full.empty() ? "" : ", " + full + " when full");
}

/// Returns "p99 800 ms", or "p50 300 ms, p99 800 ms missed (1.2 s)"; "": there is no target.
std::string targets_text(const v1::ServiceView& service, std::string_view latency) {
  std::string text;
  for (const v1::ServiceTarget& each : service.targets()) {
    if (each.latency() != latency) continue;
    const bool missed = each.has_measured_s() && each.measured_s() > each.target_s();
    text += fmt::format("{}p{:.0f} {}{}", text.empty() ? "" : ", ", each.quantile() * 100,
                        latency_text(each.target_s()),
                        missed ? fmt::format(" missed ({})", latency_text(each.measured_s())) : "");
  }
  return text;
}

std::string figures_text(const v1::ServiceView& service) {
  const v1::ServicePrediction& predicted = service.predicted();
  const auto dollars = [](double usd) {
    return usd > 0 ? fmt::format("{:.3g}", usd) : std::string("no price in fleet.yaml");
  };
  TextTable table({{fmt::format("LAST {:.0f} s", service.window_s())},
                   {"P50", Align::kRight},
                   {"P99", Align::kRight},
                   {"TARGET"},
                   {"PREDICTED"}});
  table.add({"TTFT", latency_text(service.ttft_s().p50()), latency_text(service.ttft_s().p99()),
             targets_text(service, "ttft"), latency_text(predicted.ttft_s())});
  table.add({"TPOT", latency_text(service.tpot_s().p50()), latency_text(service.tpot_s().p99()),
             targets_text(service, "tpot"), predicted_step_text(predicted)});
  const std::string most = rate_text(predicted.tokens_s());
  table.add(
      {"tokens/s", rate_text(service.tokens_s()), "", "", most.empty() ? "" : most + " when full"});
  const std::string least =
      predicted.usd_per_million_tokens() > 0 ? dollars(predicted.usd_per_million_tokens()) : "";
  table.add({"$ per million tokens",
             service.has_usd_per_million_tokens() ? dollars(service.usd_per_million_tokens()) : "",
             "", "", least.empty() ? "" : least + " when full"});
  return table.text();
}

/// Returns how far the update of a service is, or why the last one did not succeed; "": neither.
std::string update_text(const v1::ServiceView& service) {
  if (!service.has_update()) {
    return service.outcome().empty()
               ? ""
               : one_line("the last update did not succeed: " + service.outcome()) + "\n";
  }
  const v1::ServiceUpdate& update = service.update();
  const std::string why = update.back().empty() ? "" : ", going back: " + update.back();
  const std::string canary = update.has_canary() ? "; " + canary_text(update.canary()) : "";
  return one_line(fmt::format("update to revision {}: {} of {} ready{}{}", update.revision(),
                              update.ready(), counted(update.replicas(), "replica"), why, canary)) +
         "\n";
}

/// Returns what a smaller model answers and what is known of its answers; "": there is none.
std::string quality_text(const v1::ServiceView& service) {
  if (!service.has_quality()) return "";
  const v1::QualityView& quality = service.quality();
  const v1::QualityReport& report = quality.report();
  const std::string promise = fmt::format("promised {:.3g} %, {:.3g} % sure",
                                          quality.max_loss() * 100, quality.confidence() * 100);
  if (quality.missing()) {
    return one_line(fmt::format("smaller model: no service {} runs in this tenant ({})",
                                quality.small(), promise)) +
           "\n";
  }
  if (report.requests() == 0) {
    return one_line(fmt::format("smaller model: {} has answered nothing yet ({})", quality.small(),
                                promise)) +
           "\n";
  }
  const double worst = report.bound() * 100 / static_cast<double>(report.requests());
  std::string text = fmt::format(
      "smaller model: {} answered {} of {}; at most {:.2g} % of all answers are worse ({}; {} "
      "compared, {} worse or still open)",
      quality.small(), report.small(), counted(report.requests(), "request"), worst, promise,
      report.compared(), report.worse());
  if (report.learning() > 0) text += "; what it can answer is being learnt";
  if (report.retreats() > 0) {
    text += fmt::format("; {} as it became worse", counted(report.retreats(), "retreat"));
  }
  return one_line(text) + "\n";
}

/// Returns how many replicas are wanted and why, and the last order; "": their number stays.
std::string scaling_text(const v1::ServiceView& service) {
  if (!service.has_scaling()) return "";
  const v1::ServiceScalingView& scaling = service.scaling();
  const std::string why =
      scaling.why().empty() ? "no gateway has reported its requests yet" : scaling.why();
  std::string text = one_line(fmt::format("SCALING  {} of {}..{} replicas: {}", scaling.replicas(),
                                          scaling.min(), scaling.max(), why)) +
                     "\n";
  if (!scaling.has_last()) return text;
  const v1::ScaleOrderView& last = scaling.last();
  return text +
         one_line(fmt::format("  last order {}: {} to {}: {}", last.at(), last.from(), last.to(),
                              last.why())) +
         "\n";
}

std::string counts_text(const v1::ServiceCounts& counts) {
  return fmt::format("requests: {} completed, {} cancelled, {} shed, {} failed; {} in, {} out\n",
                     counts.completed(), counts.cancelled(), counts.shed(), counts.failed(),
                     counted(counts.prompt_tokens(), "token"),
                     counted(counts.output_tokens(), "token"));
}

/// Returns what each tenant has used; "": none has used anything.
std::string tenants_text(const v1::ServiceView& service) {
  if (service.tenants().empty()) return "";
  TextTable table({{"TENANT"},
                   {"REQUESTS", Align::kRight},
                   {"SHED", Align::kRight},
                   {"TOKENS IN", Align::kRight},
                   {"TOKENS OUT", Align::kRight}});
  for (const v1::TenantUsage& tenant : service.tenants()) {
    const v1::ServiceCounts& counts = tenant.counts();
    const std::uint64_t requests =
        counts.completed() + counts.cancelled() + counts.shed() + counts.failed();
    table.add({one_line(tenant.name()), fmt::format("{}", requests),
               fmt::format("{}", counts.shed()), fmt::format("{}", counts.prompt_tokens()),
               fmt::format("{}", counts.output_tokens())});
  }
  return "\n" + table.text();
}

}  // namespace

std::string latency_text(double seconds) {
  if (!(seconds > 0)) return "";
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string canary_text(const v1::CanaryView& canary) {
  std::string text =
      fmt::format("canary, stage {} of {}: {:g} % of the requests, {} answered", canary.stage(),
                  canary.stages(), 100 * canary.share(), canary.requests());
  if (!canary.waits_for().empty()) text += "; it waits for " + canary.waits_for();
  return text;
}

std::string service_text(const LiveText& text, const v1::ServiceView& service) {
  const std::string where = service.endpoints().empty()
                                ? ", no gateway is connected"
                                : fmt::format(" at {}", fmt::join(service.endpoints(), ", "));
  return one_line(fmt::format("service {}: model {}{}", service.name(), service.model(), where)) +
         "\n" + update_text(service) + scaling_text(service) + replicas_text(text, service) + "\n" +
         figures_text(service) + counts_text(service.counts()) + quality_text(service) +
         tenants_text(service);
}

}  // namespace orrery
