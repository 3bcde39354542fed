#include "gateway/gateway_pages.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// A label's value in Prometheus' text format, with its quotes.
std::string label(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '\\' || c == '"') quoted.push_back('\\');
    if (c == '\n') {
      quoted.append("\\n");
    } else {
      quoted.push_back(c);
    }
  }
  return quoted + '"';
}

class MetricsText {
 public:
  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    fmt::format_to(std::back_inserter(text_),
                   "# HELP orrery_gateway_{0} {2}\n"
                   "# TYPE orrery_gateway_{0} {1}\n",
                   name, type, help);
  }
  template <class Number>
  void sample(const std::string& labels, Number value) {
    fmt::format_to(std::back_inserter(text_), "orrery_gateway_{}{} {}\n", name_,
                   labels.empty() ? "" : "{" + labels + "}", value);
  }
  /// Every eighth bound of the histogram is one of the metric: they double.
  void histogram(const std::string& labels, const LatencyHistogram& histogram, Duration sum) {
    std::uint64_t below = 0;
    const auto buckets = histogram.buckets();
    for (std::size_t i = 0; i < LatencyHistogram::kBuckets - 1; ++i) {
      if (i < buckets.size()) below += buckets[i];
      if (i % 8 != 0) continue;
      const double bound = LatencyHistogram::upper_bound(i).count_seconds();
      fmt::format_to(std::back_inserter(text_), "orrery_gateway_{}_bucket{{{},le=\"{:.4g}\"}} {}\n",
                     name_, labels, bound, below);
    }
    fmt::format_to(std::back_inserter(text_),
                   "orrery_gateway_{0}_bucket{{{1},le=\"+Inf\"}} {2}\n"
                   "orrery_gateway_{0}_sum{{{1}}} {3}\norrery_gateway_{0}_count{{{1}}} {2}\n",
                   name_, labels, histogram.count(), sum.count_seconds());
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string_view name_;
  std::string text_;
};

std::string service_label(const GatewayService& service) {
  return "service=" + label(service.name) + ",tenant=" + label(service.tenant);
}

/// Returns the services of the newest table: one that has ended leaves its name to the next.
std::vector<std::reference_wrapper<const GatewayService>> routed(GatewayCore& core) {
  std::vector<std::reference_wrapper<const GatewayService>> services;
  for (const auto& [id, service] : core.services()) {
    if (service.index) services.emplace_back(service);
  }
  return services;
}

void add_counts(MetricsText& text, GatewayCore& core) {
  text.family("requests_total", "counter", "Requests that have ended, by outcome.");
  for (const GatewayService& service : routed(core)) {
    const ServiceCounts& counts = service.stats.counts();
    const std::array<std::pair<RequestEnd, std::uint64_t>, 4> ends = {
        {{RequestEnd::kCompleted, counts.completed},
         {RequestEnd::kCancelled, counts.cancelled},
         {RequestEnd::kShed, counts.shed},
         {RequestEnd::kFailed, counts.failed}}};
    for (const auto& [end, count] : ends) {
      text.sample(service_label(service) + ",outcome=" + label(name_of(end)), count);
    }
  }
  text.family("prompt_tokens_total", "counter", "Tokens of the prompts.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.stats.counts().prompt_tokens);
  }
  text.family("output_tokens_total", "counter", "Tokens of the answers.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.stats.counts().output_tokens);
  }
}

void add_broken_streams(MetricsText& text, GatewayCore& core) {
  text.family("streams_moved_total", "counter",
              "Moves of streams that broke off to a replica that went on with them.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.broken_streams.moved);
  }
  text.family("streams_lost_total", "counter", "Streams that broke off and ended with an error.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.broken_streams.lost);
  }
}

/// Adds a counter of each service and of each tenant that has asked it for something.
void add_tenant_counter(MetricsText& text, GatewayCore& core,
                        std::uint64_t (*value)(const ServiceCounts& used)) {
  for (const GatewayService& service : routed(core)) {
    for (const auto& [name, account] : service.tenants.all()) {
      text.sample(service_label(service) + ",caller=" + label(name), value(account.used));
    }
  }
}

void add_tenants(MetricsText& text, GatewayCore& core) {
  text.family("tenant_requests_total", "counter", "Requests that have ended, by who asked.");
  add_tenant_counter(text, core, [](const ServiceCounts& used) {
    return used.completed + used.cancelled + used.shed + used.failed;
  });
  text.family("tenant_shed_total", "counter", "Requests refused with 429, by who asked.");
  add_tenant_counter(text, core, [](const ServiceCounts& used) { return used.shed; });
  text.family("tenant_prompt_tokens_total", "counter", "Tokens of the prompts, by who asked.");
  add_tenant_counter(text, core, [](const ServiceCounts& used) { return used.prompt_tokens; });
  text.family("tenant_output_tokens_total", "counter", "Tokens of the answers, by who asked.");
  add_tenant_counter(text, core, [](const ServiceCounts& used) { return used.output_tokens; });
}

void add_latencies(MetricsText& text, GatewayCore& core) {
  text.family("time_to_first_token_seconds", "histogram",
              "From a request's last byte to the first byte of its stream.");
  for (const GatewayService& service : routed(core)) {
    text.histogram(service_label(service), service.stats.ttft(), service.stats.ttft_sum());
  }
  text.family("time_per_output_token_seconds", "histogram",
              "Mean time between the output tokens of a stream.");
  for (const GatewayService& service : routed(core)) {
    text.histogram(service_label(service), service.stats.tpot(), service.stats.tpot_sum());
  }
}

void add_load(MetricsText& text, GatewayCore& core) {
  text.family("requests_waiting", "gauge", "Requests that wait for a replica.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.queue.size() + service.queue.picks());
  }
  text.family("requests_in_flight", "gauge", "Requests at a replica.");
  for (const GatewayService& service : routed(core)) {
    for (const std::uint32_t slot : core.router().slots_of(*service.index)) {
      const RouterReplica& replica = core.router().replica(slot);
      text.sample(fmt::format("{},job=\"{}\",attempt=\"{}\"", service_label(service),
                              replica.key.job, replica.key.attempt),
                  replica.in_flight);
    }
  }
}

Json candidate_json(const RouteCandidate& candidate) {
  return {{"job", candidate.replica.job},
          {"attempt", candidate.replica.attempt},
          {"revision", candidate.revision},
          {"verdict", name_of(candidate.verdict)},
          {"in_flight", candidate.in_flight},
          {"tokens", candidate.tokens},
          {"seconds_per_token", candidate.seconds_per_token},
          {"expected_wait_s", candidate.wait_s}};
}

Json record_json(const RouteRecord& record, const GatewayService& service) {
  Json candidates = Json::array();
  for (const RouteCandidate& each : record.decision.candidates) {
    candidates.push_back(candidate_json(each));
  }
  return {{"time", record.time.text()},
          {"service", service.name},
          {"epoch", record.epoch},
          {"tokens", record.tokens},
          {"continues", record.continues},
          {"outcome", name_of(record.decision.outcome)},
          {"candidates", std::move(candidates)}};
}

}  // namespace

std::string models_json(GatewayCore& core, const RoutedKey& key) {
  std::set<std::pair<std::string_view, std::string_view>> models;
  for (const RoutedService& service : core.table().services) {
    if (may_call(key, service.tenant)) models.emplace(service.model, service.tenant);
  }
  Json data = Json::array();
  std::string_view last;
  for (const auto& [model, tenant] : models) {
    if (!data.empty() && model == last) continue;
    last = model;
    data.push_back({{"id", model},
                    {"object", "model"},
                    {"created", 0},
                    {"owned_by", tenant.empty() ? "orrery" : tenant}});
  }
  return shown({{"object", "list"}, {"data", std::move(data)}});
}

std::string metrics_text(GatewayCore& core) {
  MetricsText text;
  add_counts(text, core);
  add_broken_streams(text, core);
  add_tenants(text, core);
  add_latencies(text, core);
  add_load(text, core);
  if (const SpanExporter* spans = core.spans()) {
    text.family("spans_sent_total", "counter", "Spans that the receiver has taken.");
    text.sample("", spans->sent());
    text.family("spans_dropped_total", "counter", "Spans that were dropped.");
    text.sample("", spans->dropped());
  }
  text.family("table_epoch", "gauge", "Epoch of the route table.");
  text.sample("", core.table().epoch);
  text.family("table_age_seconds", "gauge", "Time since the route table was taken.");
  text.sample("", (core.now() - core.table_time()).count_seconds());
  return text.take();
}

std::string explain_json(GatewayCore& core, const RoutedKey& key, std::string_view request) {
  Json decisions = Json::array();
  for (const RouteRecord* record : core.history().find(request)) {
    const GatewayService& service = core.services().at(record->service);
    if (may_call(key, service.tenant)) decisions.push_back(record_json(*record, service));
  }
  if (decisions.empty()) return {};
  return shown({{"request", request}, {"decisions", std::move(decisions)}});
}

GatewayReport report_of(GatewayCore& core) {
  GatewayReport report{
      .gateway = core.options().name, .url = core.options().url, .epoch = core.table().epoch};
  const Instant now = core.now();
  for (const auto& [id, service] : core.services()) {
    report.services.push_back(service.stats.report(now));
    report.services.back().service = id;
    report.services.back().canary = service.canary.report();
    report.services.back().tenants = service.tenants.usage();
  }
  for (const RouterReplica& replica : core.router().replicas()) {
    const bool used = replica.presence == RouterReplica::Presence::kRouted || replica.in_flight > 0;
    if (!used) continue;
    report.replicas.push_back({replica.key.job, replica.key.attempt, replica.in_flight});
  }
  return report;
}

}  // namespace orrery
