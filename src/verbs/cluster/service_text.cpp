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
                   {"ATTEMPT", Align::kRight},
                   {"STATE"},
                   {"NODE"},
                   {"ENDPOINT"},
                   {"IN FLIGHT", Align::kRight},
                   {"START", Align::kRight}});
  for (const v1::ServiceReplica& replica : service.replicas()) {
    table.add({fmt::format("{}", replica.job()), fmt::format("{}", replica.attempt()),
               replica.state(), replica.node(), replica.endpoint(), in_flight_text(replica),
               replica.has_start_s() ? latency_text(replica.start_s()) : ""});
    table.colour(2, text.colour_code(replica.state()));
  }
  return table.text();
}

std::string rate_text(double rate) { return rate > 0 ? fmt::format("{:.4g}", rate) : ""; }

/// Returns "2.1 ms, 5.0 ms when full".
std::string predicted_step_text(const v1::ServicePrediction& predicted) {
  const std::string full = latency_text(predicted.tpot_full_s());
  return latency_text(predicted.tpot_s()) + (full.empty() ? "" : ", " + full + " when full");
}

std::string figures_text(const v1::ServiceView& service) {
  const v1::ServicePrediction& predicted = service.predicted();
  const auto dollars = [](double usd) {
    return usd > 0 ? fmt::format("{:.3g}", usd) : std::string("no price in fleet.yaml");
  };
  TextTable table({{fmt::format("LAST {:.0f} s", service.window_s())},
                   {"P50", Align::kRight},
                   {"P99", Align::kRight},
                   {"PREDICTED"}});
  table.add({"TTFT", latency_text(service.ttft_s().p50()), latency_text(service.ttft_s().p99()),
             latency_text(predicted.ttft_s())});
  table.add({"TPOT", latency_text(service.tpot_s().p50()), latency_text(service.tpot_s().p99()),
             predicted_step_text(predicted)});
  const std::string most = rate_text(predicted.tokens_s());
  table.add(
      {"tokens/s", rate_text(service.tokens_s()), "", most.empty() ? "" : most + " when full"});
  const std::string least =
      predicted.usd_per_million_tokens() > 0 ? dollars(predicted.usd_per_million_tokens()) : "";
  table.add({"$ per million tokens",
             service.has_usd_per_million_tokens() ? dollars(service.usd_per_million_tokens()) : "",
             "", least.empty() ? "" : least + " when full"});
  return table.text();
}

std::string counts_text(const v1::ServiceCounts& counts) {
  return fmt::format("requests: {} completed, {} cancelled, {} shed, {} failed; {} in, {} out\n",
                     counts.completed(), counts.cancelled(), counts.shed(), counts.failed(),
                     counted(counts.prompt_tokens(), "token"),
                     counted(counts.output_tokens(), "token"));
}

}  // namespace

std::string latency_text(double seconds) {
  if (!(seconds > 0)) return "";
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string service_text(const LiveText& text, const v1::ServiceView& service) {
  const std::string where = service.endpoints().empty()
                                ? ", no gateway is connected"
                                : fmt::format(" at {}", fmt::join(service.endpoints(), ", "));
  return one_line(fmt::format("service {}: model {}{}", service.name(), service.model(), where)) +
         "\n" + replicas_text(text, service) + "\n" + figures_text(service) +
         counts_text(service.counts());
}

}  // namespace orrery
