// serving/router.hpp - which replica of a service computes a request, and why.
//
// choose() is a pure function of a RouterState and a query; the gateway and the twin apply what it
// decides by charge() and credit(). A gateway makes one state and gives it each new table. Not
// thread-safe. Time is a value.
// Invariants:
//   1. choose() returns a replica of the newest table that is not excluded, not full and not left
//      out after failures.
//   2. The charges of a replica are those of the calls charged and not yet credited.
//   3. A slot stays its replica's while it is charged, also after a table without it.
//   4. The replicas of a canary get their share of the requests, drawn request by request. Where
//      they cannot take one at once, the others do; where no other replica may be tried, they do.
// Cost: O(replicas of the service) a choice.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "serving/route_table.hpp"

namespace orrery {

/// A running copy of a service: the job's attempt, which no other copy ever has.
struct ReplicaKey {
  std::uint64_t job = 0;
  std::uint32_t attempt = 0;
  friend auto operator<=>(const ReplicaKey&, const ReplicaKey&) = default;
};

struct RouterOptions {
  std::uint32_t in_flight_max = 256;  ///< of a replica that does not tell its slots
  std::size_t queue_max = 1024;       ///< requests that wait for a replica of one service
  Duration backoff_min = Duration::milliseconds(250);  ///< after the second failure in a row
  Duration backoff_max = Duration::seconds(15);
};

/// What a replica has and what is known of its speed.
struct RouterReplica {
  ReplicaKey key;
  std::string endpoint;
  std::uint32_t service = 0;  ///< position in the newest table
  std::uint32_t revision = 0;
  std::uint32_t in_flight_max = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t tokens = 0;    ///< charged: prompts and expected outputs
  double busy_s = 0;           ///< weighted seconds in which it computed ..
  double tokens_done = 0;      ///< .. these tokens; 0: nothing learned yet
  Instant busy_since;          ///< its last end, or the charge that ended its idleness
  std::uint32_t failures = 0;  ///< in a row
  Instant out_until;           ///< left out before this time
  enum class Presence : std::uint8_t { kGone, kRouted } presence = Presence::kGone;
};

class RouterState {
 public:
  explicit RouterState(const RouterOptions& options) : options_(options) {}

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
  [[nodiscard]] const RouterReplica& replica(std::uint32_t slot) const { return replicas_[slot]; }
  /// All slots; those without a replica have presence kGone and nothing in flight.
  [[nodiscard]] std::span<const RouterReplica> replicas() const { return replicas_; }

  void charge(std::uint32_t slot, std::uint64_t tokens, Instant now);
  /// Ends a charge. `done`: tokens that the replica has computed for it; 0 teaches nothing.
  struct Credit {
    std::uint64_t tokens = 0;  ///< as charged
    std::uint64_t done = 0;
  };
  void credit(std::uint32_t slot, const Credit& credit, Instant now);
  /// A call failed before anything of its answer came. The second in a row leaves the replica out
  /// for backoff_min, each further one for twice as long, to backoff_max.
  void note_failure(std::uint32_t slot, Instant now);
  void note_success(std::uint32_t slot) { replicas_[slot].failures = 0; }

 private:
  std::uint32_t slot_of(const ReplicaKey& key);
  void release(std::uint32_t slot);

  struct ServiceSlots {
    std::vector<std::uint32_t> slots;
    std::optional<RoutedCanary> canary;
  };

  RouterOptions options_;
  std::vector<ServiceSlots> services_;
  std::vector<RouterReplica> replicas_;
  std::vector<std::uint32_t> free_slots_;
};

struct RouteQuery {
  std::uint32_t service = 0;  ///< position in the table
  std::uint64_t tokens = 0;   ///< of the prompt and, as far as known, the output
  std::span<const ReplicaKey> excluded;
  std::size_t waiting = 0;  ///< requests that wait for this service already
  double draw = 0;  ///< of this request, 0 to 1, even: below the share of a canary, it is tried
  Instant now;
};

enum class RouteOutcome : std::uint8_t {
  kReplica,
  kWait,  ///< all are full, or calls wait already
  kShed,  ///< the same, and the queue is full as well
  kNone,  ///< the service has no replica that may be tried now
};

enum class CandidateVerdict : std::uint8_t {
  kChosen,
  kSlower,
  kFull,
  kExcluded,
  kFailing,
  kOtherRevision,  ///< the request is one of those for the canary, or is none of them
};

/// "chosen", "slower", "full", "excluded", "failing", "other revision".
[[nodiscard]] std::string_view name_of(CandidateVerdict verdict);
/// "replica", "wait", "shed", "none".
[[nodiscard]] std::string_view name_of(RouteOutcome outcome);

struct RouteCandidate {
  ReplicaKey replica;
  CandidateVerdict verdict = CandidateVerdict::kSlower;
  std::uint32_t revision = 0;
  std::uint32_t in_flight = 0;
  std::uint64_t tokens = 0;      ///< charged before
  double seconds_per_token = 0;  ///< 0: nothing learned of the service
  double wait_s = 0;             ///< expected until its own tokens are computed
};

struct RouteDecision {
  RouteOutcome outcome = RouteOutcome::kNone;
  std::uint32_t slot = 0;                  ///< of the replica, where one is chosen
  std::vector<RouteCandidate> candidates;  ///< the reasons: every replica of the service, by job
};

/// Chooses the replica with the least expected wait: the tokens charged to it and the request's
/// own, times its learned seconds per token (before it has ended a request: the mean of the
/// service's others). Ties break by ascending job.
[[nodiscard]] RouteDecision choose(const RouterState& state, const RouteQuery& query);

}  // namespace orrery
