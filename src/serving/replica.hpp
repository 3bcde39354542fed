// serving/replica.hpp - what a replica of a service reports of itself: how far it is, where it
// answers, and what its warm-up measured.
//
// Written by the replica's program as a line of its progress stream (node/progress_stream.hpp),
// sent with the agent's reports, kept by control with the job. Plain values.
// Phases before kPulling and after kDraining are those of the replica's job: requested (queued),
// placed (starting), gone and failed (ended).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/format/field_reader.hpp"
#include "base/time.hpp"

namespace orrery {

/// The phases in their order; a replica goes on, and begins again only with another attempt.
enum class ReplicaPhase : std::uint8_t {
  kPulling,   ///< fetches its image or model
  kLoading,   ///< reads the model into memory
  kWarming,   ///< generates its first tokens
  kReady,     ///< has generated a token and takes requests
  kDraining,  ///< finishes the requests it has, and takes none
};

inline std::array<EnumWord<ReplicaPhase>, 5> enum_words(ReplicaPhase) {
  return {{{"pulling", ReplicaPhase::kPulling},
           {"loading", ReplicaPhase::kLoading},
           {"warming", ReplicaPhase::kWarming},
           {"ready", ReplicaPhase::kReady},
           {"draining", ReplicaPhase::kDraining}}};
}

inline constexpr std::size_t kReplicaPhases = 5;

/// What a replica computes of requests.
enum class ReplicaDuty : std::uint8_t {
  kBoth,     ///< prompts and answers of the same requests
  kPrefill,  ///< prompts alone, for replicas of kDecode
  kDecode,   ///< answers, and prompts of its own or of a replica of kPrefill
};

inline std::array<EnumWord<ReplicaDuty>, 3> enum_words(ReplicaDuty) {
  return {{{"both", ReplicaDuty::kBoth},
           {"prefill", ReplicaDuty::kPrefill},
           {"decode", ReplicaDuty::kDecode}}};
}

/// What the warm-up of a replica measured. Zero: not measured.
struct ReplicaPace {
  double prefill_tokens_s = 0;  ///< prompt tokens a second, computed alone
  double step_s = 0;            ///< seconds of a decode step with one request
  double step_full_s = 0;       ///< seconds of a decode step with `slots` requests

  friend bool operator==(const ReplicaPace&, const ReplicaPace&) = default;
};

template <class Visitor, SameStruct<ReplicaPace> Self>
void describe(Visitor& visitor, Self& p) {
  visitor.optional("prefill_tokens_s", p.prefill_tokens_s);
  visitor.optional("step_s", p.step_s);
  visitor.optional("step_full_s", p.step_full_s);
}

/// A later report replaces an earlier one.
struct ReplicaReport {
  ReplicaPhase phase = ReplicaPhase::kLoading;
  std::string endpoint;     ///< "HOST:PORT" of its HTTP server; empty before kReady
  std::uint64_t pid = 0;    ///< process of the replica on its node; 0: not reported
  std::uint32_t slots = 0;  ///< requests that it computes at a time; 0: not reported
  ReplicaPace pace;
  std::uint64_t kv_tokens = 0;  ///< that its cache holds; 0: not reported
  std::string kv_events;        ///< "HOST:PORT" where it tells what its cache has; empty: nowhere

  friend bool operator==(const ReplicaReport&, const ReplicaReport&) = default;
};

/// The newest report of a replica's present attempt, and when control received the first report of
/// each phase; Instant::max(): none of that phase.
struct ReplicaState {
  ReplicaReport report;
  std::array<Instant, kReplicaPhases> reached = {Instant::max(), Instant::max(), Instant::max(),
                                                 Instant::max(), Instant::max()};
};

}  // namespace orrery
