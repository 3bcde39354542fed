#include "gateway/gateway_pages.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "base/format/field_writer.hpp"
#include "gateway/tiers/tier_desk.hpp"

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
    fmt::format_to(std::back_inserter(text_), "orrery_gateway_{}{{{}}} {}\n", name_, labels, value);
  }
  /// A family of one sample, which has no labels.
  template <class Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    family(name, "gauge", help);
    fmt::format_to(std::back_inserter(text_), "orrery_gateway_{} {}\n", name, value);
  }
  template <class Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    family(name, "counter", help);
    fmt::format_to(std::back_inserter(text_), "orrery_gateway_{} {}\n", name, value);
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

std::string replica_label(const GatewayService& service, const RouterReplica& replica) {
  return fmt::format("{},job=\"{}\",attempt=\"{}\"", service_label(service), replica.key.job,
                     replica.key.attempt);
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

void add_detours(MetricsText& text, GatewayCore& core) {
  text.family("streams_moved_total", "counter",
              "Moves of streams that broke off to a replica that went on with them.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.detours.moved);
  }
  text.family("streams_lost_total", "counter", "Streams that broke off and ended with an error.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.detours.lost);
  }
  text.family("remote_prompts_total", "counter",
              "Prompts computed by another replica than the one that answered.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.detours.prompts);
  }
  text.family("remote_prompts_failed_total", "counter",
              "Prompts that another replica failed to compute; the one that answered did.");
  for (const GatewayService& service : routed(core)) {
    text.sample(service_label(service), service.detours.prompts_failed);
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
      text.sample(replica_label(service, replica), replica.work.own.in_flight);
    }
  }
  text.family("peer_requests_in_flight", "gauge",
              "Requests of other gateways at a replica, as these tell.");
  for (const GatewayService& service : routed(core)) {
    for (const std::uint32_t slot : core.router().slots_of(*service.index)) {
      const RouterReplica& replica = core.router().replica(slot);
      text.sample(replica_label(service, replica), replica.work.others.in_flight);
    }
  }
}

Json candidate_json(const RouteCandidate& candidate) {
  return {{"job", candidate.replica.job},
          {"attempt", candidate.replica.attempt},
          {"revision", candidate.revision},
          {"verdict", word_of(candidate.verdict)},
          {"in_flight", candidate.in_flight},
          {"others_in_flight", candidate.others_in_flight},
          {"tokens", candidate.tokens},
          {"cached_tokens", candidate.cached_tokens},
          {"seconds_per_token", candidate.seconds_per_token},
          {"expected_ttft_s", candidate.expected.ttft_s},
          {"expected_tpot_s", candidate.expected.tpot_s},
          {"expected_wait_s", candidate.expected.wait_s},
          {"usd", candidate.usd},
          {"duty", word_of(candidate.duty)}};
}

Json record_json(const RouteRecord& record, const GatewayService& service) {
  Json candidates = Json::array();
  for (const RouteCandidate& each : record.decision.candidates) {
    candidates.push_back(candidate_json(each));
  }
  Json json = {{"time", record.time.text()},
               {"service", service.name},
               {"epoch", record.epoch},
               {"tokens", record.tokens},
               {"prompt_tokens", record.prompt_tokens},
               {"continues", record.continues},
               {"outcome", word_of(record.decision.outcome)},
               {"candidates", std::move(candidates)}};
  if (!record.tier.empty()) json["smaller_model"] = record.tier;
  if (const auto& remote = record.decision.remote) {
    json["remote_prompt"] = {{"transfer_s", remote->transfer_s},
                             {"local_job", remote->local_replica.job},
                             {"local_ttft_s", remote->local.ttft_s}};
  }
  return json;
}

void add_tiers(MetricsText& text, GatewayCore& core) {
  text.family("tier_requests_total", "counter",
              "Requests to services with a smaller model, by why it answered or did not.");
  for (const GatewayService& service : routed(core)) {
    const auto tiers = core.tiers().all().find(service.id);
    if (tiers == core.tiers().all().end()) continue;
    for (std::size_t i = 0; i < tiers->second.counts.by_reason.size(); ++i) {
      text.sample(service_label(service) + ",reason=" + label(name_of(static_cast<TierReason>(i))),
                  tiers->second.counts.by_reason[i]);
    }
  }
  text.family("tier_worse_bound", "gauge",
              "Share of the answers that are worse than the larger model's, at most.");
  for (const GatewayService& service : routed(core)) {
    const auto report = core.tiers().report(service.id);
    if (!report || report->requests == 0) continue;
    text.sample(service_label(service), report->bound / static_cast<double>(report->requests));
  }
}

void add_caches(MetricsText& text, const CacheFigures& caches) {
  text.gauge("cache_engines", "Replicas that tell what their KV caches have.", caches.engines);
  text.counter("cache_messages_total", "Messages of theirs that were read.", caches.messages);
  text.counter("cache_gaps_total", "Times that what was known of a cache was forgotten.",
               caches.gaps);
}

void add_peers(MetricsText& text, const PeerFigures& peers) {
  text.gauge("peers", "Other gateways whose charges are known.", peers.gateways);
  text.counter("peer_messages_sent_total", "Messages with charges to other gateways.", peers.sent);
  text.counter("peer_messages_taken_total", "Messages with charges of other gateways.",
               peers.taken);
  text.family("peer_messages_refused_total", "counter", "Messages that were not taken, by why.");
  for (std::size_t i = 0; i < peers.refused.size(); ++i) {
    text.sample("reason=" + label(name_of(static_cast<PeerRefusal>(i))), peers.refused[i]);
  }
}

Json model_object(std::string_view model, std::string_view tenant) {
  return {{"id", model},
          {"object", "model"},
          {"created", 0},
          {"owned_by", tenant.empty() ? "orrery" : tenant}};
}

}  // namespace

std::string model_json(const GatewayService& service) {
  return shown(model_object(service.model, service.tenant));
}

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
    data.push_back(model_object(model, tenant));
  }
  return shown({{"object", "list"}, {"data", std::move(data)}});
}

std::string metrics_text(GatewayCore& core, const PeerFigures& peers, const CacheFigures& caches) {
  MetricsText text;
  add_counts(text, core);
  add_detours(text, core);
  add_tenants(text, core);
  add_latencies(text, core);
  add_load(text, core);
  add_tiers(text, core);
  add_peers(text, peers);
  add_caches(text, caches);
  if (const SpanExporter* spans = core.spans()) {
    text.counter("spans_sent_total", "Spans that the receiver has taken.", spans->sent());
    text.counter("spans_dropped_total", "Spans that were dropped.", spans->dropped());
  }
  text.gauge("table_epoch", "Epoch of the route table.", core.table().epoch);
  text.gauge("table_age_seconds", "Time since the route table was taken.",
             (core.now() - core.table_time()).count_seconds());
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
    report.services.back().quality = core.tiers().report(id);
    report.services.back().waiting = service.queue.size() + service.queue.picks();
  }
  for (const RouterReplica& replica : core.router().replicas()) {
    const bool used =
        replica.presence == RouterReplica::Presence::kRouted || replica.work.own.in_flight > 0;
    if (!used) continue;
    report.replicas.push_back({replica.key.job, replica.key.attempt, replica.work.own.in_flight});
  }
  return report;
}

}  // namespace orrery
