// serving/routing/router.hpp - which replica of a service computes a request, and why.
//
// choose() is a pure function of a RouterState and a query; the gateway and the twin apply what it
// decides by RouterState::charge(), begin() and credit(). Time is a value, and so is the draw of
// those decisions that are random.
// Invariants:
//   1. choose() returns a replica of the newest table that is not excluded, not full and not left
//      out after failures.
//   2. The replicas of a canary get their share of the requests, drawn request by request. Where
//      they cannot take one at once, the others do; where no other replica may be tried, they do.
// Cost: O(replicas of the service + blocks of the prompt that one of them has).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "serving/routing/router_state.hpp"

namespace orrery {

/// Where the prompt of a request may be computed.
enum class PromptPlaces : std::uint8_t {
  kAnswering,  ///< at the replica that answers
  kAny,        ///< the same, or at one of duty prefill
};

struct RouteQuery {
  std::uint32_t service = 0;  ///< position in the table
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;        ///< as far as known
  std::span<const std::uint64_t> blocks;  ///< the prompt as a chain (prefix_index.hpp); empty: none
  double block_tokens = 0;                ///< of each of these; 0: as the options say
  std::span<const ReplicaKey> excluded;
  std::size_t waiting = 0;  ///< requests that wait for this service already
  double draw = 0;  ///< of this request, 0 to 1, even: below the share of a canary, it is tried
  Instant now;
  PromptPlaces prompt_places = PromptPlaces::kAnswering;
};

enum class RouteOutcome : std::uint8_t {
  kReplica,
  kWait,  ///< all are full, or calls wait already
  kShed,  ///< the same, and the queue is full as well
  kNone,  ///< the service has no replica that may be tried now
};

inline std::array<EnumWord<RouteOutcome>, 4> enum_words(RouteOutcome) {
  return {{{"replica", RouteOutcome::kReplica},
           {"wait", RouteOutcome::kWait},
           {"shed", RouteOutcome::kShed},
           {"none", RouteOutcome::kNone}}};
}

enum class CandidateVerdict : std::uint8_t {
  kChosen,
  kSlower,
  kLate,         ///< beyond what the service is held to, or further beyond
  kDearer,       ///< costs more
  kFewerBlocks,  ///< has less of the prompt in its cache
  kBusier,       ///< has more requests
  kOtherTurn,    ///< another one was drawn, or its turn
  kFull,
  kExcluded,
  kFailing,
  kOtherRevision,  ///< the request is one of those for the canary, or is none of them
  kPrefill,        ///< computes its prompt
  kOnlyPrefill,    ///< would compute its prompt, which does not pay
};

inline std::array<EnumWord<CandidateVerdict>, 13> enum_words(CandidateVerdict) {
  return {{{"chosen", CandidateVerdict::kChosen},
           {"slower", CandidateVerdict::kSlower},
           {"late", CandidateVerdict::kLate},
           {"dearer", CandidateVerdict::kDearer},
           {"less cached", CandidateVerdict::kFewerBlocks},
           {"busier", CandidateVerdict::kBusier},
           {"other turn", CandidateVerdict::kOtherTurn},
           {"full", CandidateVerdict::kFull},
           {"excluded", CandidateVerdict::kExcluded},
           {"failing", CandidateVerdict::kFailing},
           {"other revision", CandidateVerdict::kOtherRevision},
           {"prefill", CandidateVerdict::kPrefill},
           {"only prefill", CandidateVerdict::kOnlyPrefill}}};
}

/// Whether a replica with this verdict might have taken the request, too.
[[nodiscard]] constexpr bool could_take(CandidateVerdict verdict) {
  return verdict <= CandidateVerdict::kOtherTurn;
}

struct RouteCandidate {
  ReplicaKey replica;
  std::uint32_t slot = 0;
  CandidateVerdict verdict = CandidateVerdict::kSlower;
  std::uint32_t revision = 0;
  std::uint32_t in_flight = 0;         ///< of all gateways
  std::uint32_t others_in_flight = 0;  ///< of these, of other gateways
  std::uint64_t tokens = 0;            ///< left to compute before
  std::uint64_t cached_tokens = 0;     ///< of the prompt, expected in its cache
  double seconds_per_token = 0;        ///< 0: nothing learned of the service
  PredictedRequest expected;
  double usd = 0;  ///< dollars of the replica's time that the request takes; 0: unknown
  ReplicaDuty duty = ReplicaDuty::kBoth;
};

/// The replica that computes a prompt which another one answers.
struct RemotePrompt {
  std::uint32_t slot = 0;
  RouteLoad load;          ///< to be charged to it
  RouteLoad otherwise;     ///< of the answering replica, should it compute the prompt after all
  double transfer_s = 0;   ///< between both, expected
  PredictedRequest local;  ///< what was expected without it, and of which replica
  ReplicaKey local_replica;
};

struct RouteDecision {
  RouteOutcome outcome = RouteOutcome::kNone;
  std::uint32_t slot = 0;                  ///< of the replica, where one is chosen
  RouteLoad load;                          ///< to be charged to it
  std::optional<RemotePrompt> remote;      ///< none: it computes the prompt, too
  std::vector<RouteCandidate> candidates;  ///< the reasons: every replica of the service, by job
};

/// Chooses by the policy of the options. That of the cost: where a replica has four fifths of the
/// prompt in its cache, and the first token comes within sticky_wait and the time that the service
/// is held to, it. Else, of those replicas that keep what the service is held to, the one whose
/// time costs least; where prices are alike or unknown, the one that is done soonest, where the
/// first token and the tokens that are not cached count more. Where none keeps it, the one that
/// misses it least. A replica without a pace counts as one that keeps it, and as done when the
/// tokens left to it and the request's own are computed, at its learned seconds per token (before
/// it has ended a request: the mean of the service's others). Ties break by ascending job; while
/// other gateways choose, too, the better of two drawn among those nearly as good is taken.
/// Where the query lets it, the prompt is computed elsewhere if that pays (apart_choice.hpp).
[[nodiscard]] RouteDecision choose(const RouterState& state, const RouteQuery& query);

}  // namespace orrery
