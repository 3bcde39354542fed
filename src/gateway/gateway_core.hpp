// gateway/gateway_core.hpp - what the calls of a gateway share: services, router, client, queues.
//
// The gateway owns one; its calls borrow it. All on the loop's thread.
// Invariants:
//   1. A waiting call is in the queue of its service, once.
//   2. A call that is charged to a replica's slot credits it once (gateway/gateway_call.hpp).
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/log.hpp"
#include "base/numbers/rng.hpp"
#include "base/system/real_env.hpp"
#include "gateway/access_keys.hpp"
#include "gateway/admission/caller_accounts.hpp"
#include "gateway/admission/waiting_calls.hpp"
#include "gateway/canary/canary_stats.hpp"
#include "gateway/gateway.hpp"
#include "gateway/prompt/routed_prompt.hpp"
#include "gateway/service_stats.hpp"
#include "gateway/spans/span_exporter.hpp"
#include "http/web_client.hpp"
#include "serving/routing/route_history.hpp"
#include "serving/routing/router.hpp"

namespace orrery {

class GatewayCall;
class TierDesk;

/// How long requests of class batch wait where their service does not tell.
inline constexpr Duration kBatchWait = Duration::hours(24);

/// A service that some table has had. It stays, so that its counters do.
struct GatewayService {
  std::uint64_t id = 0;
  std::string name;
  std::string model;
  std::string tenant;
  std::optional<std::uint32_t> index;  ///< in the newest table; none: not in it
  WaitingCalls queue;
  CallerAccounts tenants;
  struct Waits {
    Duration batch = kBatchWait;  ///< of requests of class batch
    Duration wakes_in;            ///< until a replica that rests may be awake; zero: none rests
  } waits;
  ServiceStats stats;
  CanaryStats canary;
  ServiceTokens tokens;
  struct Detours {
    std::uint64_t moved = 0;           ///< moves of streams that broke off to another replica
    std::uint64_t lost = 0;            ///< such streams that ended with an error
    std::uint64_t prompts = 0;         ///< computed by another replica than the one that answered
    std::uint64_t prompts_failed = 0;  ///< there, so that the one that answered computed them
  } detours;
};

/// How long a request waits for a replica of a service that has none.
[[nodiscard]] inline Duration replica_wait(const GatewayService& service,
                                           const GatewayOptions& options) {
  return std::max(options.wait, service.waits.wakes_in);
}

class GatewayCore {
 public:
  GatewayCore(RealEnv& env, const Log& log, const GatewayOptions& options);
  GatewayCore(const GatewayCore&) = delete;
  GatewayCore& operator=(const GatewayCore&) = delete;
  ~GatewayCore();

  void set_table(RouteTable table);
  [[nodiscard]] const RouteTable& table() const { return table_; }
  [[nodiscard]] const AccessKeys& keys() const { return keys_; }
  [[nodiscard]] Instant table_time() const { return table_time_; }

  /// The service of a model that the key may call: of the key's own tenant first, then by id.
  [[nodiscard]] GatewayService* find_service(std::string_view model, const RoutedKey& key);
  [[nodiscard]] std::map<std::uint64_t, GatewayService>& services() { return services_; }

  /// Takes over a call, which remove() ends.
  void add(std::unique_ptr<GatewayCall> call);
  void remove(GatewayCall& call);
  [[nodiscard]] std::size_t calls() const { return calls_.size(); }

  /// Lets the calls that wait for a service try again, in turn, while they find a replica.
  void pump(GatewayService& service);
  /// Looks at waiting calls from time to time, until none is left.
  void watch_queues();

  [[nodiscard]] std::string make_request_id();
  /// For ids and draws of requests.
  [[nodiscard]] Rng& draws() { return parts_.draws; }
  /// Sends the spans of requests there from now on.
  void export_spans(SpanReceiver receiver);
  /// Null: spans are not exported.
  [[nodiscard]] SpanExporter* spans() const { return parts_.spans.get(); }
  [[nodiscard]] Instant now() const { return env_.env().clock.now_monotonic(); }
  [[nodiscard]] Instant now_wall() const { return env_.env().clock.now_wall(); }

  [[nodiscard]] const GatewayOptions& options() const { return options_; }
  [[nodiscard]] RouterState& router() { return router_; }
  [[nodiscard]] RouteHistory& history() { return history_; }
  [[nodiscard]] TierDesk& tiers() { return *tiers_; }
  [[nodiscard]] RealLoop& loop() { return env_.loop(); }
  [[nodiscard]] WebClient& client() { return *parts_.client; }
  [[nodiscard]] const Log& log() const { return parts_.log; }

 private:
  void forget_endpoints(const RouteTable& old);
  void check_queues();

  struct Parts {
    Log log;
    std::unique_ptr<WebClient> client;
    std::unique_ptr<SpanExporter> spans;
    Rng draws;
    TimerId timer;
    bool watching = false;
  };

  RealEnv& env_;
  GatewayOptions options_;
  Parts parts_;
  RouteTable table_;
  Instant table_time_;
  AccessKeys keys_;
  RouterState router_;
  RouteHistory history_;
  std::map<std::uint64_t, GatewayService> services_;
  std::unordered_map<std::string, std::vector<GatewayService*>> by_model_;
  std::unordered_map<const GatewayCall*, std::unique_ptr<GatewayCall>> calls_;
  std::unique_ptr<TierDesk> tiers_;
};

}  // namespace orrery
