// serving/routing/router_state.hpp - the replicas that a router chooses from: what they have to do,
// how fast they are, what their caches have, which of them fail.
//
// A gateway makes one and gives it each new table, each request that it sends (charge), each first
// byte (begin), each end (credit), and what other gateways have charged; so does the twin. Not
// thread-safe. Time is a value.
// Invariants:
//   1. The own work of a replica is that of the calls charged and not yet credited; the prompt of a
//      call counts until its answer begins.
//   2. A slot stays its replica's while it is charged, also after a table without it; then what was
//      believed of its cache is forgotten.
// Cost: O(1) a call; a table O(its replicas * slots).
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/format/field_reader.hpp"
#include "base/time.hpp"
#include "serving/routing/prefix_index.hpp"
#include "serving/routing/replica_speed.hpp"
#include "serving/routing/route_table.hpp"
#include "serving/routing/route_targets.hpp"

namespace orrery {

/// A running copy of a service: the job's attempt, which no other copy ever has.
struct ReplicaKey {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  friend auto operator<=>(const ReplicaKey&, const ReplicaKey&) = default;
};

/// How a replica is chosen among those that may be.
enum class RoutePolicy : std::uint8_t {
  kRandom,
  kRoundRobin,
  kLeastRequests,
  kLeastWait,  ///< until the last token, whatever the caches have
  kPrefix,     ///< the one that has most of the prompt in its cache
  kCost,       ///< see choose()
};

inline std::array<EnumWord<RoutePolicy>, 6> enum_words(RoutePolicy) {
  return {{{"random", RoutePolicy::kRandom},
           {"round-robin", RoutePolicy::kRoundRobin},
           {"least-requests", RoutePolicy::kLeastRequests},
           {"least-wait", RoutePolicy::kLeastWait},
           {"prefix", RoutePolicy::kPrefix},
           {"cost", RoutePolicy::kCost}}};
}

/// What a router takes the caches of replicas for.
struct RouterCaches {
  std::uint32_t block_tokens = 64;     ///< of a block of a chain
  std::uint64_t tokens = 500'000;      ///< of a replica whose table does not tell
  std::size_t blocks_max = 1'000'000;  ///< of all replicas: about 100 MB
  /// Tokens of a block of a chain of certain models, by their names.
  std::map<std::string, std::uint32_t> model_block_tokens = {};
};

struct RouterOptions {
  std::uint32_t in_flight_max = 256;  ///< of a replica that does not tell its slots
  std::size_t queue_max = 1024;       ///< requests that wait for a replica of one service
  Duration backoff_min = Duration::milliseconds(250);  ///< after the second failure in a row
  Duration backoff_max = Duration::seconds(15);
  RoutePolicy policy = RoutePolicy::kCost;
  RouterCaches caches;
  /// A request goes where its prompt is cached as long as its first token is expected within this.
  Duration sticky_wait = Duration::milliseconds(500);
  /// Where other gateways choose, too, no two of them draw alike: their seeds differ.
  std::uint64_t seed = 0;
};

/// What the calls of one gateway have left to compute at a replica.
struct ReplicaCharges {
  ReplicaKey replica;
  ReplicaWork work;
};

/// What a replica has and what is known of its speed.
struct RouterReplica {
  ReplicaKey key;
  std::string endpoint;
  std::uint32_t service = 0;  ///< position in the newest table
  std::uint32_t revision = 0;
  std::uint32_t in_flight_max = 0;
  double usd_s = 0;  ///< dollars a second; 0: unknown
  struct Part {
    ReplicaDuty duty = ReplicaDuty::kBoth;
    std::optional<RoutedTransfer> transfer;  ///< RoutedReplica::transfer
  } part;
  struct Work {
    ReplicaWork own;     ///< that this router has charged
    ReplicaWork others;  ///< that other gateways have told of
    [[nodiscard]] ReplicaWork all() const { return own + others; }
  } work;
  ReplicaSpeed speed;
  double hit_ratio = 1;  ///< tokens that its engine found in its cache, of those expected
  Instant busy_since;    ///< its last end, or the charge that ended its idleness
  struct Failing {
    std::uint32_t in_a_row = 0;
    Instant out_until;  ///< left out before this time
  } failing;
  enum class Presence : std::uint8_t { kGone, kRouted } presence = Presence::kGone;
  /// Whether its engine has told all that its cache has, or this is guessed by what was sent there.
  enum class Cache : std::uint8_t { kGuessed, kTold } cache = Cache::kGuessed;
};

/// What a request is expected to cost at a replica.
struct RouteLoad {
  RequestWork work;
  std::uint64_t cached_tokens = 0;  ///< of its prompt, beside the work
  double ttft_s = 0;                ///< predicted without what was learned; 0: not predicted
  double tpot_s = 0;
  /// Where the prompt is computed. What is learned of times to the first token is kept apart.
  enum class Prompt : std::uint8_t { kHere, kReceived } prompt = Prompt::kHere;
};

/// A request at a replica; its caller keeps it from charge() to credit().
struct RouteCharge {
  std::uint32_t slot = 0;
  RouteLoad load;
  Instant since;
  bool begun = false;           ///< its answer has; the prompt is credited
  bool behind_prompts = false;  ///< other prompts, perhaps its own beginning, were yet to compute
};

/// What a request has shown at its end. 0: it teaches nothing.
struct RouteDone {
  std::uint64_t tokens = 0;  ///< that were computed for it
  double tpot_s = 0;         ///< seconds between the tokens of its answer
};

class RouterState {
 public:
  explicit RouterState(const RouterOptions& options)
      : options_(options), index_(options.caches.blocks_max) {}

  /// Replicas of both tables keep their charges and what is learned. O(table).
  void set_table(const RouteTable& table);

  [[nodiscard]] const RouterOptions& options() const { return options_; }
  [[nodiscard]] std::size_t services() const { return services_.size(); }
  /// Slots of the replicas of a service, by job. Precondition: service < services().
  [[nodiscard]] std::span<const std::uint32_t> slots_of(std::uint32_t service) const {
    return services_[service].slots;
  }
  /// The canary of a service; none: it has none. Precondition: service < services().
  [[nodiscard]] const std::optional<RoutedCanary>& canary_of(std::uint32_t service) const {
    return services_[service].canary;
  }
  [[nodiscard]] const RouteTargets& targets_of(std::uint32_t service) const {
    return services_[service].targets;
  }
  /// Requests of a service that have been charged, for policies that take turns.
  [[nodiscard]] std::uint64_t turns_of(std::uint32_t service) const {
    return services_[service].turns;
  }
  [[nodiscard]] const RouterReplica& replica(std::uint32_t slot) const { return replicas_[slot]; }
  /// All slots; those without a replica have presence kGone and nothing in flight.
  [[nodiscard]] std::span<const RouterReplica> replicas() const { return replicas_; }
  [[nodiscard]] const PrefixIndex& index() const { return index_; }
  /// Engines that tell what their caches have correct what is believed.
  [[nodiscard]] PrefixIndex& index() { return index_; }
  void set_cache(std::uint32_t slot, RouterReplica::Cache cache) { replicas_[slot].cache = cache; }

  /// Takes the place of what was known of the charges of `gateways` other gateways, by replica;
  /// each replica has one. Replicas that no table has named are passed over. O(replicas *
  /// log(sums)).
  void set_others(std::span<const ReplicaCharges> sums, std::uint32_t gateways);
  /// Other gateways that choose among the same replicas.
  [[nodiscard]] std::uint32_t other_gateways() const { return other_gateways_; }
  /// The own charges of every replica that has some, by slot.
  [[nodiscard]] std::vector<ReplicaCharges> own_charges() const;
  /// Counts the changes of own charges.
  [[nodiscard]] std::uint64_t changes() const { return changes_; }
  /// Whether a replica takes no further request. Where the others' charges fill it, each gateway
  /// may still use its even part, so that none waits for ever.
  [[nodiscard]] bool is_full(const RouterReplica& replica) const;

  /// A request goes to a replica, whose cache will have these blocks.
  RouteCharge charge(std::uint32_t slot, const RouteLoad& load,
                     std::span<const std::uint64_t> blocks, Instant now);
  /// The first byte of a streamed answer: its prompt is computed.
  void begin(RouteCharge& charge, Instant now);
  void credit(const RouteCharge& charge, const RouteDone& done, Instant now);
  /// The engine has told how many tokens of the prompt it found in its cache. Where far fewer than
  /// expected were there, what the replica used longest ago is not believed any more, unless its
  /// engine has told that it is there.
  void note_cached(const RouteCharge& charge, std::uint64_t tokens);
  /// A call failed before anything of its answer came. The second in a row leaves the replica out
  /// for backoff_min, each further one for twice as long, to backoff_max.
  void note_failure(std::uint32_t slot, Instant now);
  void note_success(std::uint32_t slot) { replicas_[slot].failing.in_a_row = 0; }

 private:
  void take(std::uint32_t slot, const RoutedReplica& routed, std::uint32_t block_tokens);
  std::uint32_t slot_of(const ReplicaKey& key);
  void release(std::uint32_t slot);

  struct ServiceSlots {
    std::vector<std::uint32_t> slots;
    std::optional<RoutedCanary> canary;
    RouteTargets targets;
    std::uint64_t turns = 0;
  };

  RouterOptions options_;
  std::vector<ServiceSlots> services_;
  std::vector<RouterReplica> replicas_;
  std::vector<std::uint32_t> free_slots_;
  PrefixIndex index_;
  std::uint32_t other_gateways_ = 0;
  std::uint64_t changes_ = 0;
};

}  // namespace orrery
