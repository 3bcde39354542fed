#include "api/services/service_views.hpp"

#include <algorithm>

#include "api/services/quality_views.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

using Buckets = google::protobuf::RepeatedPtrField<v1::HistogramBucket>;

LatencyHistogram histogram(const Buckets& buckets) {
  LatencyHistogram made;
  for (const v1::HistogramBucket& each : buckets) {
    if (each.bucket() < LatencyHistogram::kBuckets) made.add(each.bucket(), each.count());
  }
  return made;
}

void add_buckets(const LatencyHistogram& from, Buckets& to) {
  std::uint32_t bucket = 0;
  for (const std::uint64_t count : from.buckets()) {
    if (count > 0) {
      v1::HistogramBucket& added = *to.Add();
      added.set_bucket(bucket);
      added.set_count(count);
    }
    ++bucket;
  }
}

ServiceCounts counts_of(const v1::ServiceCounts& counts) {
  return {.completed = counts.completed(),
          .cancelled = counts.cancelled(),
          .shed = counts.shed(),
          .failed = counts.failed(),
          .prompt_tokens = counts.prompt_tokens(),
          .output_tokens = counts.output_tokens(),
          .over_limit = counts.over_limit(),
          .timed = counts.timed(),
          .late = counts.late()};
}

void write_counts(const ServiceCounts& counts, v1::ServiceCounts& to) {
  to.set_completed(counts.completed);
  to.set_cancelled(counts.cancelled);
  to.set_shed(counts.shed);
  to.set_over_limit(counts.over_limit);
  to.set_timed(counts.timed);
  to.set_late(counts.late);
  to.set_failed(counts.failed);
  to.set_prompt_tokens(counts.prompt_tokens);
  to.set_output_tokens(counts.output_tokens);
}

using Tenants = google::protobuf::RepeatedPtrField<v1::TenantUsage>;

void write_tenants(const std::vector<CallerCounts>& from, Tenants& to) {
  for (const CallerCounts& each : from) {
    v1::TenantUsage& tenant = *to.Add();
    tenant.set_name(each.name);
    write_counts(each.counts, *tenant.mutable_counts());
  }
}

void write_quantiles(const LatencyHistogram& from, v1::Quantiles& to) {
  to.set_p50(from.quantile(0.5).count_seconds());
  to.set_p99(from.quantile(0.99).count_seconds());
}

ArmReport arm_of(const v1::ArmReport& arm) {
  return {.requests = arm.requests(),
          .failed = arm.failed(),
          .scores = arm.scores(),
          .score_sum = arm.score_sum(),
          .ttft = histogram(arm.ttft()),
          .tpot = histogram(arm.tpot())};
}

void write_arm(const ArmReport& arm, v1::ArmReport& to) {
  to.set_requests(arm.requests);
  to.set_failed(arm.failed);
  to.set_scores(arm.scores);
  to.set_score_sum(arm.score_sum);
  add_buckets(arm.ttft, *to.mutable_ttft());
  add_buckets(arm.tpot, *to.mutable_tpot());
}

void write_canary(const UpdateView::Canary& canary, v1::CanaryView& to) {
  to.set_stage(canary.stage + 1);
  to.set_stages(canary.stages);
  to.set_share(canary.share);
  to.set_requests(canary.requests);
  to.set_waits_for(canary.waits_for);
}

void write_scaling(const ScalingView& scaling, v1::ServiceScalingView& to) {
  to.set_min(scaling.min);
  to.set_max(scaling.max);
  to.set_replicas(scaling.replicas);
  to.set_why(scaling.why);
  if (!scaling.last) return;
  v1::ScaleOrderView& last = *to.mutable_last();
  last.set_at(scaling.last->at.text());
  last.set_from(scaling.last->before);
  last.set_to(scaling.last->replicas);
  last.set_why(scaling.last->why);
}

void write_replica(const ReplicaView& replica, const State& state, v1::ServiceReplica& to) {
  to.set_job(replica.job.value());
  to.set_attempt(replica.attempt);
  to.set_state(replica.state);
  to.set_revision(replica.revision);
  if (replica.node.valid()) to.set_node(state.setup().topology->node_name(replica.node));
  to.set_pid(replica.report.pid);
  to.set_endpoint(replica.report.endpoint);
  to.set_slots(replica.report.slots);
  to.set_in_flight(replica.in_flight);
  if (replica.starts) to.set_start_s(replica.starts->count_seconds());
}

void write_peers(const RoutedPeers& peers, v1::RoutedPeers& to) {
  to.set_key(peers.key);
  for (const RoutedGateway& each : peers.gateways) {
    v1::RoutedGateway& gateway = *to.add_gateways();
    gateway.set_name(each.name);
    gateway.set_address(each.address);
  }
}

ReplicaDuty duty_of(std::string_view word) {
  for (const auto& each : enum_words(ReplicaDuty())) {
    if (each.word == word) return each.value;
  }
  return ReplicaDuty::kBoth;
}

RoutedPeers peers_of(const v1::RoutedPeers& peers) {
  RoutedPeers made{.key = peers.key(), .gateways = {}};
  for (const v1::RoutedGateway& each : peers.gateways()) {
    made.gateways.push_back({each.name(), each.address()});
  }
  return made;
}

}  // namespace

GatewayReport gateway_report(const v1::SyncGatewayRequest& request) {
  GatewayReport report;
  report.gateway = request.gateway();
  report.url = request.url();
  report.epoch = request.epoch();
  report.process = request.process();
  report.peer_address = request.peer_address();
  for (const v1::ServiceReport& each : request.services()) {
    ServiceReport& service = report.services.emplace_back();
    service.service = each.service();
    service.counts = counts_of(each.counts());
    service.window = Duration::from_seconds(each.window_s());
    service.window_prompt_tokens = each.window_prompt_tokens();
    service.window_output_tokens = each.window_output_tokens();
    service.window_requests = each.window_requests();
    service.waiting = each.waiting();
    service.ttft = histogram(each.ttft());
    service.tpot = histogram(each.tpot());
    for (const v1::TenantUsage& tenant : each.tenants()) {
      service.tenants.push_back({tenant.name(), counts_of(tenant.counts())});
    }
    if (each.has_quality()) service.quality = quality_report_of(each.quality());
    if (!each.has_canary()) continue;
    service.canary = CanaryReport{.revision = each.canary().revision(),
                                  .canary = arm_of(each.canary().canary()),
                                  .others = arm_of(each.canary().others())};
  }
  for (const v1::ReplicaLoad& each : request.replicas()) {
    report.replicas.push_back({each.job(), each.attempt(), each.in_flight()});
  }
  return report;
}

v1::SyncGatewayRequest sync_request(const GatewayReport& report) {
  v1::SyncGatewayRequest request;
  request.set_gateway(report.gateway);
  request.set_url(report.url);
  request.set_epoch(report.epoch);
  request.set_process(report.process);
  request.set_peer_address(report.peer_address);
  for (const ServiceReport& each : report.services) {
    v1::ServiceReport& service = *request.add_services();
    service.set_service(each.service);
    write_counts(each.counts, *service.mutable_counts());
    service.set_window_s(each.window.count_seconds());
    service.set_window_prompt_tokens(each.window_prompt_tokens);
    service.set_window_output_tokens(each.window_output_tokens);
    service.set_window_requests(each.window_requests);
    service.set_waiting(each.waiting);
    add_buckets(each.ttft, *service.mutable_ttft());
    add_buckets(each.tpot, *service.mutable_tpot());
    write_tenants(each.tenants, *service.mutable_tenants());
    if (each.quality) write_quality_report(*each.quality, *service.mutable_quality());
    if (!each.canary) continue;
    v1::CanaryReport& canary = *service.mutable_canary();
    canary.set_revision(each.canary->revision);
    write_arm(each.canary->canary, *canary.mutable_canary());
    write_arm(each.canary->others, *canary.mutable_others());
  }
  for (const ReplicaLoad& each : report.replicas) {
    v1::ReplicaLoad& load = *request.add_replicas();
    load.set_job(each.job);
    load.set_attempt(each.attempt);
    load.set_in_flight(each.in_flight);
  }
  return request;
}

void add_routes(const RouteTable& table, v1::SyncGatewayResponse& response) {
  response.set_gateways(table.gateways);
  if (table.peers) write_peers(*table.peers, *response.mutable_peers());
  for (const RoutedService& each : table.services) {
    v1::RoutedService& service = *response.add_services();
    service.set_id(each.id);
    service.set_name(each.name);
    service.set_model(each.model);
    service.set_tenant(each.tenant);
    for (const RoutedReplica& one : each.replicas) {
      v1::RoutedReplica& replica = *service.add_replicas();
      replica.set_job(one.job);
      replica.set_attempt(one.attempt);
      replica.set_endpoint(one.endpoint);
      replica.set_slots(one.slots);
      replica.set_revision(one.revision);
      replica.set_prefill_tokens_s(one.pace.prefill_tokens_s);
      replica.set_step_s(one.pace.step_s);
      replica.set_step_full_s(one.pace.step_full_s);
      replica.set_usd_s(one.usd_s);
      replica.set_kv_tokens(one.kv_tokens);
      replica.set_kv_events(one.kv_events);
      replica.set_duty(std::string(word_of(one.duty)));
      if (!one.transfer) continue;
      replica.mutable_transfer()->set_token_bytes(one.transfer->token_bytes);
      replica.mutable_transfer()->set_bytes_s(one.transfer->bytes_s);
    }
    for (const RoutedTenant& one : each.tenants) {
      v1::RoutedTenant& tenant = *service.add_tenants();
      tenant.set_name(one.name);
      tenant.set_weight(one.weight);
      tenant.set_priority(one.priority);
      tenant.set_tokens_per_s(one.tokens_per_s);
    }
    service.set_batch_deadline_s(each.batch_deadline_s);
    if (each.tiers) write_tiers(*each.tiers, *service.mutable_tiers());
    service.set_ttft_p99_s(each.ttft_p99_s);
    service.set_tpot_p99_s(each.tpot_p99_s);
    service.set_wakes_in_s(each.wakes_in_s);
    if (!each.canary) continue;
    service.mutable_canary()->set_revision(each.canary->revision);
    service.mutable_canary()->set_share(each.canary->share);
  }
  for (const RoutedKey& each : table.keys) {
    v1::RoutedKey& key = *response.add_keys();
    key.set_sha256(each.sha256);
    key.set_name(each.name);
    key.set_tenant(each.tenant);
  }
}

RouteTable routes_of(const v1::SyncGatewayResponse& response) {
  RouteTable table{.epoch = response.epoch(),
                   .services = {},
                   .keys = {},
                   .gateways = std::max(response.gateways(), 1U),
                   .peers = {}};
  if (response.has_peers()) table.peers = peers_of(response.peers());
  for (const v1::RoutedService& each : response.services()) {
    RoutedService& service = table.services.emplace_back();
    service.id = each.id();
    service.name = each.name();
    service.model = each.model();
    service.tenant = each.tenant();
    for (const v1::RoutedReplica& one : each.replicas()) {
      service.replicas.push_back({.job = one.job(),
                                  .attempt = one.attempt(),
                                  .endpoint = one.endpoint(),
                                  .slots = one.slots(),
                                  .revision = one.revision(),
                                  .pace = {one.prefill_tokens_s(), one.step_s(), one.step_full_s()},
                                  .usd_s = one.usd_s(),
                                  .kv_tokens = one.kv_tokens(),
                                  .kv_events = one.kv_events(),
                                  .duty = duty_of(one.duty())});
      if (!one.has_transfer()) continue;
      service.replicas.back().transfer = {one.transfer().token_bytes(), one.transfer().bytes_s()};
    }
    for (const v1::RoutedTenant& one : each.tenants()) {
      service.tenants.push_back({one.name(), one.weight(), one.priority(), one.tokens_per_s()});
    }
    service.batch_deadline_s = each.batch_deadline_s();
    if (each.has_tiers()) service.tiers = tiers_of(each.tiers());
    service.ttft_p99_s = each.ttft_p99_s();
    service.tpot_p99_s = each.tpot_p99_s();
    service.wakes_in_s = each.wakes_in_s();
    if (!each.has_canary()) continue;
    service.canary = RoutedCanary{each.canary().revision(), each.canary().share()};
  }
  for (const v1::RoutedKey& each : response.keys()) {
    table.keys.push_back({each.sha256(), each.name(), each.tenant()});
  }
  return table;
}

v1::ServiceView service_view(const ServiceSummary& summary, const State& state) {
  v1::ServiceView view;
  view.set_id(summary.id);
  view.set_name(summary.name);
  view.set_model(summary.model);
  view.set_revision(summary.revision);
  view.set_outcome(summary.outcome);
  write_targets(summary, view);
  write_quality(summary, view);
  if (summary.update) {
    v1::ServiceUpdate& update = *view.mutable_update();
    update.set_revision(summary.update->revision);
    update.set_replicas(summary.update->replicas);
    update.set_ready(summary.update->ready);
    update.set_back(summary.update->back);
    if (summary.update->canary) write_canary(*summary.update->canary, *update.mutable_canary());
  }
  if (summary.aims.scaling) write_scaling(*summary.aims.scaling, *view.mutable_scaling());
  for (const std::string& url : summary.urls) view.add_endpoints(url);
  for (const ReplicaView& replica : summary.replicas) {
    write_replica(replica, state, *view.add_replicas());
  }
  const ServiceReport& measured = summary.measured;
  write_counts(measured.counts, *view.mutable_counts());
  write_tenants(measured.tenants, *view.mutable_tenants());
  view.set_window_s(measured.window.count_seconds());
  view.set_window_requests(measured.window_requests);
  if (measured.ttft.count() > 0) write_quantiles(measured.ttft, *view.mutable_ttft_s());
  if (measured.tpot.count() > 0) write_quantiles(measured.tpot, *view.mutable_tpot_s());
  if (measured.window > Duration()) {
    view.set_tokens_s(static_cast<double>(measured.window_output_tokens) /
                      measured.window.count_seconds());
  }
  if (summary.usd_per_million_tokens) {
    view.set_usd_per_million_tokens(*summary.usd_per_million_tokens);
  }
  if (summary.predicted) {
    const ServicePrediction& predicted = *summary.predicted;
    v1::ServicePrediction& to = *view.mutable_predicted();
    to.set_ttft_s(predicted.ttft_s);
    to.set_tpot_s(predicted.tpot_s);
    to.set_tpot_full_s(predicted.tpot_full_s);
    to.set_tokens_s(predicted.tokens_s);
    to.set_usd_per_million_tokens(predicted.usd_per_million_tokens);
  }
  return view;
}

}  // namespace orrery
