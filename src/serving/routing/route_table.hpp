// serving/routing/route_table.hpp - what a gateway must know to route: the services, their replicas
// that take requests, and the keys that may call them.
//
// Made by the controller from its state (or read from a file), sent whole at each change, kept by a
// gateway as its last table, so that it serves on while no controller answers. Plain values.
// Invariant: epochs only grow; a replica is named by its job and attempt, so that an endpoint that
// an earlier attempt had is another replica. Read and written as JSON or YAML by describe().
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/format/document.hpp"
#include "base/format/field_reader.hpp"
#include "serving/replica.hpp"

namespace orrery {

/// How the cache of a prompt gets from the replica that computed it to the one that answers.
struct RoutedTransfer {
  double token_bytes = 0;  ///< of each token
  double bytes_s = 0;      ///< a second

  friend bool operator==(const RoutedTransfer&, const RoutedTransfer&) = default;
};

template <class Visitor, SameStruct<RoutedTransfer> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("token_bytes", t.token_bytes);
  visitor.required("bytes_s", t.bytes_s);
}

/// One running copy of a service's model.
struct RoutedReplica {
  std::uint64_t job = 0;        ///< number of the replica's job
  std::uint32_t attempt = 0;    ///< attempt of that job: its generation
  std::string endpoint;         ///< "HOST:PORT" of its HTTP server, without TLS
  std::uint32_t slots = 0;      ///< requests that it computes at a time; 0: unknown
  std::uint32_t revision = 0;   ///< what it runs: a number within the service
  ReplicaPace pace;             ///< as its warm-up measured it
  double usd_s = 0;             ///< dollars a second; 0: unknown
  std::uint64_t kv_tokens = 0;  ///< that its cache holds; 0: unknown
  std::string kv_events;        ///< "HOST:PORT" where it tells what its cache has; empty: nowhere
  ReplicaDuty duty = ReplicaDuty::kBoth;
  /// How caches of prompts leave a replica of duty prefill; none: they do not.
  std::optional<RoutedTransfer> transfer = {};

  friend bool operator==(const RoutedReplica&, const RoutedReplica&) = default;
};

template <class Visitor, SameStruct<RoutedReplica> Self>
void describe(Visitor& visitor, Self& r) {
  visitor.required("job", r.job);
  visitor.required("attempt", r.attempt);
  visitor.required("endpoint", r.endpoint);
  visitor.optional("slots", r.slots);
  visitor.optional("revision", r.revision);
  visitor.optional("pace", r.pace);
  visitor.optional("usd_s", r.usd_s);
  visitor.optional("kv_tokens", r.kv_tokens);
  visitor.optional("kv_events", r.kv_events);
  visitor.optional("duty", r.duty);
  visitor.optional("transfer", r.transfer);
}

/// A revision that gets a share of a service's requests of its own.
struct RoutedCanary {
  std::uint32_t revision = 0;
  double share = 0;  ///< of the requests, 0 to 1; 0: it was given up

  friend bool operator==(const RoutedCanary&, const RoutedCanary&) = default;
};

template <class Visitor, SameStruct<RoutedCanary> Self>
void describe(Visitor& visitor, Self& c) {
  visitor.required("revision", c.revision);
  visitor.required("share", c.share);
}

/// What a tenant gets of a service when its replicas are full.
struct RoutedTenant {
  std::string name;  ///< holder of a key, or path of a tenant, which stands for those below too
  double weight = 1;
  std::int32_t priority = 0;
  double tokens_per_s = 0;  ///< of all gateways together; 0: no limit

  friend bool operator==(const RoutedTenant&, const RoutedTenant&) = default;
};

template <class Visitor, SameStruct<RoutedTenant> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("name", t.name);
  visitor.optional("weight", t.weight);
  visitor.optional("priority", t.priority);
  visitor.optional("tokens_per_s", t.tokens_per_s);
}

/// How an answer of a small model is compared with the large model's.
enum class TierMeasure : std::uint8_t {
  kExact,  ///< they are the same text
  kJudge,  ///< the large model says whether it is as good
};

inline std::array<EnumWord<TierMeasure>, 2> enum_words(TierMeasure) {
  return {{{"exact", TierMeasure::kExact}, {"judge", TierMeasure::kJudge}}};
}

/// The promise on quality of a service whose requests a smaller model answers where it can.
struct RoutedTiers {
  std::uint64_t small = 0;  ///< RoutedService::id of the small model's service
  double loss_max = 0.05;   ///< share of the answers that may be worse than the service's own
  double confidence = 0.95;
  double audit_rate = 0.05;  ///< share of the requests that both models answer
  TierMeasure measure = TierMeasure::kExact;

  friend bool operator==(const RoutedTiers&, const RoutedTiers&) = default;
};

template <class Visitor, SameStruct<RoutedTiers> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("small", t.small);
  visitor.optional("loss_max", t.loss_max);
  visitor.optional("confidence", t.confidence);
  visitor.optional("audit_rate", t.audit_rate);
  visitor.optional("measure", t.measure);
}

struct RoutedService {
  std::uint64_t id = 0;  ///< number of its first replica's job
  std::string name;
  std::string model;                    ///< the name that clients ask for
  std::string tenant;                   ///< path of its tenant
  std::vector<RoutedReplica> replicas;  ///< those that take requests, by job
  std::vector<RoutedTenant> tenants;    ///< others have weight 1, priority 0 and no limit
  double batch_deadline_s = 0;          ///< wait of requests of class batch; 0: a day
  std::optional<RoutedCanary> canary;
  std::optional<RoutedTiers> tiers;
  double ttft_p99_s = 0;  ///< time to the first token that is to be kept; 0: none
  double tpot_p99_s = 0;  ///< time between tokens, the same
  /// Its replicas may rest: for how long a request may have to wait until one is awake. 0: they do
  /// not rest.
  double wakes_in_s = 0;

  friend bool operator==(const RoutedService&, const RoutedService&) = default;
};

template <class Visitor, SameStruct<RoutedService> Self>
void describe(Visitor& visitor, Self& s) {
  visitor.required("id", s.id);
  visitor.required("name", s.name);
  visitor.required("model", s.model);
  visitor.optional("tenant", s.tenant);
  visitor.optional("replicas", s.replicas);
  visitor.optional("tenants", s.tenants);
  visitor.optional("batch_deadline_s", s.batch_deadline_s);
  visitor.optional("canary", s.canary);
  visitor.optional("tiers", s.tiers);
  visitor.optional("ttft_p99_s", s.ttft_p99_s);
  visitor.optional("tpot_p99_s", s.tpot_p99_s);
  visitor.optional("wakes_in_s", s.wakes_in_s);
}

/// A key that clients show as "Authorization: Bearer KEY".
struct RoutedKey {
  std::string sha256;  ///< of the key, in lower-case hexadecimal
  std::string name;    ///< of the user or program that holds it
  std::string tenant;  ///< may call services of this tenant and those below; empty: every service

  friend bool operator==(const RoutedKey&, const RoutedKey&) = default;
};

template <class Visitor, SameStruct<RoutedKey> Self>
void describe(Visitor& visitor, Self& k) {
  visitor.required("sha256", k.sha256);
  visitor.required("name", k.name);
  visitor.optional("tenant", k.tenant);
}

/// A gateway that tells others what it has charged.
struct RoutedGateway {
  std::string name;
  std::string address;  ///< "HOST:PORT" for its datagrams, the address in numbers

  friend bool operator==(const RoutedGateway&, const RoutedGateway&) = default;
};

template <class Visitor, SameStruct<RoutedGateway> Self>
void describe(Visitor& visitor, Self& g) {
  visitor.required("name", g.name);
  visitor.required("address", g.address);
}

/// The gateways that tell each other their charges, and what proves that they are these.
struct RoutedPeers {
  std::string key;  ///< of 32 bytes or more, which they alone know
  std::vector<RoutedGateway> gateways;

  friend bool operator==(const RoutedPeers&, const RoutedPeers&) = default;
};

template <class Visitor, SameStruct<RoutedPeers> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.required("key", p.key);
  visitor.required("gateways", p.gateways);
}

struct RouteTable {
  std::uint64_t epoch = 0;
  std::vector<RoutedService> services;  ///< by id
  std::vector<RoutedKey> keys;          ///< by sha256
  std::uint32_t gateways = 1;           ///< that route by the table and share the limits
  std::optional<RoutedPeers> peers;     ///< none: each gateway knows its own charges alone

  friend bool operator==(const RouteTable&, const RouteTable&) = default;
};

template <class Visitor, SameStruct<RouteTable> Self>
void describe(Visitor& visitor, Self& t) {
  visitor.required("epoch", t.epoch);
  visitor.optional("services", t.services);
  visitor.optional("keys", t.keys);
  visitor.optional("gateways", t.gateways);
  visitor.optional("peers", t.peers);
}

/// Whether a text is "HOST:PORT", the port from 1 to 65535.
[[nodiscard]] bool has_port(std::string_view endpoint);

/// Reads a table. Errors with file:line:column: what does not fit, two services with one model in
/// one tenant, an endpoint without a port, a weight that is not above zero, a negative limit, a
/// short key.
[[nodiscard]] Result<RouteTable> read_route_table(const Document& document);
/// Returns JSON that read_route_table() reads back to the same table.
[[nodiscard]] std::string write_route_table(const RouteTable& table);

}  // namespace orrery
