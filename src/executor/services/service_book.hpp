// executor/services/service_book.hpp - the services of a live cluster: the table of routes that
// its gateways route by, and what gateways and replicas have measured.
//
// Each replica of a service is a job of kind Serve (control/services/service_table.hpp). The table
// follows from control's state, the keys and the gateways that report: where tenants have limits,
// each grants its share, and several tell each other their charges. Owned by the controller, on its
// loop; soft: after a takeover gateways report again, and meanwhile route by their last table.
// Invariants:
// 1. A replica is in the table only while its job runs and the report of its present attempt says
//    ready.
// 2. Epochs grow with every change of the table, also from one controller to the next: they count
//    milliseconds of the time of day.
// Cost: making the table O(replicas that live); a report O(replicas in the state) a service.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/state/state.hpp"
#include "executor/live/control_clock.hpp"
#include "executor/services/canary_watch.hpp"
#include "executor/services/scale_watch.hpp"
#include "executor/services/service_prediction.hpp"
#include "serving/gateway_report.hpp"
#include "serving/routing/route_table.hpp"
#include "workload/service_spec.hpp"

namespace orrery {

/// One replica of a service, whatever its phase.
struct ReplicaView {
  JobId job;
  std::uint32_t attempt = 0;
  std::string revision;  ///< id of the revision that it runs
  std::string state;     ///< requested, placed, a ReplicaPhase, failed or gone
  NodeId node;           ///< where it has devices; none: nowhere
  ReplicaReport report;
  std::uint32_t in_flight = 0;     ///< requests that gateways have sent it
  std::optional<Duration> starts;  ///< from its devices to its first token
};

/// An update of a service that is under way.
struct UpdateView {
  std::string revision;        ///< id of the revision that is wanted
  std::uint32_t replicas = 0;  ///< wanted
  std::uint32_t ready = 0;     ///< of that revision
  std::string back;            ///< why the service goes back to that revision; empty: it goes on
  /// The revision is tried on a share of the requests.
  struct Canary {
    std::uint32_t stage = 0;  ///< from 0
    std::uint32_t stages = 0;
    double share = 0;            ///< of the requests, 0 to 1
    std::uint64_t requests = 0;  ///< that it has answered
    std::string waits_for;       ///< what its next stage waits for
  };
  std::optional<Canary> canary;
};

/// How the number of a service's replicas follows what clients ask for.
struct ScalingView {
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  std::uint32_t replicas = 0;          ///< wanted; 0: its last one rests
  std::string why;                     ///< there are so many; empty: nothing is known yet
  std::optional<ServiceScaling> last;  ///< order that changed the number; none: there was none
};

/// What the owner of a service wants of it.
struct ServiceAims {
  SloSpec slo;
  QualitySpec quality;                 ///< with the smaller model, where there is one
  bool small_missing = false;          ///< no service of that name runs in the tenant
  std::optional<ScalingView> scaling;  ///< none: the number of its replicas stays
};

struct ServiceSummary {
  std::uint64_t id = 0;
  std::string name;
  std::string model;
  std::string revision;              ///< id; while it is updated, of the one before
  std::optional<UpdateView> update;  ///< none is under way
  std::string outcome;               ///< why the last update did not succeed; empty: it did
  std::vector<std::string> urls;     ///< of the gateways that report
  /// Those that have not ended, and those that failed in the last day; all of a service that ended.
  std::vector<ReplicaView> replicas;
  ServiceReport measured;  ///< of all gateways together
  ServiceAims aims;
  /// Dollars of the replicas for a million tokens, prompts included, since this controller heard of
  /// the service; none: there were no tokens.
  std::optional<double> usd_per_million_tokens;
  std::optional<ServicePrediction> predicted;
};

class ServiceBook {
 public:
  /// `state` outlives the book. `peer_key` proves to a gateway that another one is of this cluster.
  ServiceBook(const State& state, ControlClock clock, std::string peer_key)
      : state_(state), clock_(clock), peer_key_(std::move(peer_key)) {}

  /// Sets the keys that may call services.
  void set_keys(std::vector<RoutedKey> keys) { keys_ = std::move(keys); }
  /// Returns the table as the state is now; its epoch is new if anything has changed.
  const RouteTable& table();
  /// Whether an event may change the table.
  [[nodiscard]] static bool concerns(const Event& event);

  /// Takes what a gateway has measured; it counts until the gateway is silent for kGatewaySilent.
  /// Errors (kInfeasible): another process of that name was heard within kSameName.
  [[nodiscard]] Status take(GatewayReport report);
  static constexpr Duration kSameName = Duration::seconds(3);
  static constexpr Duration kGatewaySilent = Duration::seconds(60);
  /// Returns the oldest epoch by which a gateway routes that was heard within `age`; none: there is
  /// no such gateway.
  [[nodiscard]] std::optional<std::uint64_t> routed_by_all(Duration age) const;

  /// Judges the canaries by what gateways have reported; returns the verdicts that control is to
  /// get. A verdict is repeated until the state has it. O(updated services * gateways).
  [[nodiscard]] std::vector<CanaryVerdict> judge_canaries();

  /// Looks at the services that are scaled; returns the orders that control is to get. O(services *
  /// (gateways + replicas in the state)).
  [[nodiscard]] std::vector<ScaleOrder> scale_orders();

  /// Returns the service that a job is a replica of. Precondition: the job is of kind Serve.
  [[nodiscard]] ServiceSummary summary(JobId job);

 private:
  struct Gateway {
    GatewayReport report;
    Instant heard;
  };
  /// What the text of a revision says.
  struct KnownRevision {
    std::string spec;  ///< the text
    std::string id;
    SloSpec slo;
    std::vector<ServiceTenantSpec> tenants;
    QualitySpec quality;
    std::optional<ScalingSpec> scaling;
    std::optional<TransferSpec> transfer;
  };
  /// What is known of a service since this controller heard of it.
  struct Account {
    std::string model;
    std::optional<double> dollars;  ///< of its replicas when the first report came
    std::uint64_t tokens = 0;       ///< since then
    ServiceFlow flow;
    std::map<JobId, double> spent;  ///< by replica, when last asked for
    double archived = 0;            ///< dollars of replicas that are no longer in the state
    std::map<std::uint32_t, KnownRevision> revisions;  ///< by number
  };

  [[nodiscard]] std::uint64_t service_of(const Job& job) const;
  /// Returns the name that clients ask a service for: that of the revision in `spec`, else `name`.
  [[nodiscard]] const std::string& model_of(std::uint64_t service, const std::string& name,
                                            const std::string& spec);
  /// Returns what the text of a revision, `spec`, says.
  [[nodiscard]] const KnownRevision& revision(std::uint64_t service, std::uint32_t number,
                                              const std::string& spec);
  /// Returns the id of the revision of a replica, whose text may be older than its revision's.
  [[nodiscard]] const std::string& revision_id(const Job& replica, const ReplicaMembership& member);
  [[nodiscard]] ReplicaView replica_view(const Job& job);
  void add_update(ServiceSummary& summary);
  [[nodiscard]] RoutedService routed_service(const Service& known);
  /// Adds the small models of services whose spec names one that runs.
  void add_tiers(std::map<std::uint64_t, RoutedService>& services);
  [[nodiscard]] CanaryReport canary_counts(const Service& service) const;
  void add_tokens(const GatewayReport& before, const GatewayReport& now);
  void add_flow(const GatewayReport& before, const GatewayReport& now);
  /// Returns how many requests of a service a gateway has sent to replicas that have not ended.
  [[nodiscard]] std::uint32_t running(const GatewayReport& report, std::uint64_t service) const;
  [[nodiscard]] SeenScaling seen_scaling(const Service& service, const KnownRevision& known);
  /// Returns the time from devices to the first token that nine of ten replicas stay below.
  [[nodiscard]] Duration cold_start(std::uint64_t service) const;
  [[nodiscard]] std::vector<JobId> replicas_of(std::uint64_t service) const;
  /// Returns the dollars of a service's replicas, also of those that were archived meanwhile.
  [[nodiscard]] double dollars_of(std::uint64_t service);
  /// Returns the dollars a second of a replica, the mean since its first start.
  [[nodiscard]] double mean_dollars_s(const Job& replica) const;
  /// Returns what the table tells of them: another figure only where it is a tenth higher or lower,
  /// as each change of the table goes to every gateway.
  [[nodiscard]] double known_dollars_s(const Job& replica);
  /// Whether a replica is shown while its service runs.
  [[nodiscard]] bool is_shown(const Job& replica) const;
  void forget_silent();
  /// Returns the gateways that can tell each other their charges, where there are several.
  [[nodiscard]] std::optional<RoutedPeers> peers() const;

  const State& state_;
  ControlClock clock_;
  std::string peer_key_;
  std::vector<RoutedKey> keys_;
  RouteTable table_;
  std::map<std::string, Gateway> gateways_;
  std::map<std::uint64_t, Account> accounts_;  ///< by RoutedService::id
  std::map<JobId, double> dollars_s_;          ///< as the table tells them
  CanaryWatch canaries_;
  ScaleWatch scales_;
};

/// Whether a job is a replica of a service.
[[nodiscard]] bool is_replica(const Job& job);
/// Returns the name of the service that a job of that name is a replica of: "chat" of "chat[3]".
[[nodiscard]] std::string service_name(std::string_view job_name);

}  // namespace orrery
