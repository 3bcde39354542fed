#include "gateway/gateway_core.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/format/xxh3.hpp"
#include "gateway/gateway_call.hpp"
#include "gateway/tiers/tier_desk.hpp"
#include "kv_events/kv_event.hpp"

namespace orrery {
namespace {

/// How often waiting calls are looked at besides what wakes them.
constexpr Duration kQueueCheck = Duration::milliseconds(50);
/// Connections to a replica that are kept after a burst of requests: closing them at once would
/// have each further request of the burst pay for a new one, and the burst grow.
constexpr std::size_t kIdleConnectionsMax = 1024;

std::set<std::string_view> endpoints_of(const RouteTable& table) {
  std::set<std::string_view> endpoints;
  for (const RoutedService& service : table.services) {
    for (const RoutedReplica& replica : service.replicas) endpoints.insert(replica.endpoint);
  }
  return endpoints;
}

/// The options of the router of this gateway, whose draws are its own.
RouterOptions router_options_of(const GatewayOptions& options) {
  RouterOptions router = options.router;
  router.seed = xxh3(options.name);
  for (const auto& [model, tokenizer] : options.tokenizers) {
    router.caches.model_block_tokens.emplace(model, kChainTokens);
  }
  return router;
}

}  // namespace

GatewayCore::GatewayCore(RealEnv& env, const Log& log, const GatewayOptions& options)
    : env_(env),
      options_(options),
      parts_{log,
             WebClient::make(env.loop(), {.idle_connections_max = kIdleConnectionsMax}),
             nullptr,
             Rng(env.env().entropy.draw()),
             {}},
      router_(router_options_of(options)),
      history_(options.explained_max),
      tiers_(std::make_unique<TierDesk>(*this, parts_.draws.next_u64())) {}

GatewayCore::~GatewayCore() {
  if (parts_.watching) env_.loop().cancel(parts_.timer);
}

void GatewayCore::set_table(RouteTable table) {
  const RouteTable old = std::exchange(table_, std::move(table));
  table_time_ = now();
  keys_ = AccessKeys(table_.keys);
  router_.set_table(table_);
  by_model_.clear();
  for (auto& [id, service] : services_) service.index.reset();
  for (std::uint32_t at = 0; at < table_.services.size(); ++at) {
    const RoutedService& routed = table_.services[at];
    GatewayService& service =
        services_.try_emplace(routed.id, GatewayService{.stats = ServiceStats(now())})
            .first->second;
    service.id = routed.id;
    service.name = routed.name;
    service.model = routed.model;
    service.tenant = routed.tenant;
    service.index = at;
    const auto tokenizer = options_.tokenizers.find(routed.model);
    if (tokenizer != options_.tokenizers.end()) service.tokens.tokenizer = tokenizer->second;
    service.canary.set(routed.canary);
    service.stats.set_targets({routed.ttft_p99_s, routed.tpot_p99_s});
    service.tenants.set_terms(TenantTerms(routed.tenants, std::max(table_.gateways, 1U)), now());
    service.waits.batch =
        routed.batch_deadline_s > 0 ? Duration::from_seconds(routed.batch_deadline_s) : kBatchWait;
    service.waits.wakes_in = Duration::from_seconds(routed.wakes_in_s);
    by_model_[routed.model].push_back(&service);
  }
  tiers_->set_table(table_);
  forget_endpoints(old);
  for (auto& [id, service] : services_) pump(service);
}

void GatewayCore::forget_endpoints(const RouteTable& old) {
  const std::set<std::string_view> kept = endpoints_of(table_);
  for (const std::string_view endpoint : endpoints_of(old)) {
    if (!kept.contains(endpoint)) parts_.client->forget(endpoint);
  }
}

GatewayService* GatewayCore::find_service(std::string_view model, const RoutedKey& key) {
  const auto found = by_model_.find(std::string(model));
  if (found == by_model_.end()) return nullptr;
  GatewayService* first = nullptr;
  for (GatewayService* each : found->second) {
    if (!may_call(key, each->tenant)) continue;
    if (each->tenant == key.tenant) return each;
    if (first == nullptr) first = each;
  }
  return first;
}

void GatewayCore::add(std::unique_ptr<GatewayCall> call) {
  const GatewayCall* const key = call.get();
  calls_.emplace(key, std::move(call));
}

void GatewayCore::remove(GatewayCall& call) { calls_.erase(&call); }

void GatewayCore::pump(GatewayService& service) {
  for (GatewayCall* next = service.queue.front(); next != nullptr; next = service.queue.front()) {
    if (!next->try_again()) return;
  }
}

void GatewayCore::watch_queues() {
  if (std::exchange(parts_.watching, true)) return;
  parts_.timer = env_.loop().call_after(kQueueCheck, [this] { check_queues(); });
}

void GatewayCore::check_queues() {
  parts_.watching = false;
  const Instant at = now();
  for (auto& [id, service] : services_) {
    pump(service);
    // A call that ends here leaves the queue, and no other call ends by it.
    for (GatewayCall* call : service.queue.calls()) call->check_time(at);
    if (!service.queue.empty()) watch_queues();
  }
}

void GatewayCore::export_spans(SpanReceiver receiver) {
  const std::string endpoint = receiver.endpoint;
  parts_.spans = std::make_unique<SpanExporter>(
      env_.loop(), std::move(receiver), options_.name, [this, endpoint](const std::string& why) {
        log().warning(now_wall(), "spans are dropped", {{"receiver", endpoint}, {"why", why}});
      });
}

std::string GatewayCore::make_request_id() {
  return fmt::format("{:016x}{:016x}", parts_.draws.next_u64(), parts_.draws.next_u64());
}

}  // namespace orrery
