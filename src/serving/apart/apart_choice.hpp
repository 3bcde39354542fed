// serving/apart/apart_choice.hpp - whether a request's prompt is computed at one replica and its
// answer at another, or both where the answer is.
//
// Pure. choose() asks once it has found the best replica that would compute both. The way over two
// replicas takes as long as the prompts before it and its own at the first, the transfer of what
// the second has not in its cache, and a step of the second; what requests have shown of the last
// two corrects them. It pays
//   1. where the first token comes sooner by a tenth, and no target is missed that is kept else, or
//   2. where the best single replica would miss a target of the service, and the two keep all. A
//      prompt delays those who are answered beside it: it counts as the time that it adds between
//      their tokens.
// Invariants: without a replica of duty prefill, or without a transfer in the table, it never pays;
// both replicas are of the revision of the best single one.
// Cost: O(replicas of duty prefill * replicas of duty decode).
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "serving/routing/router.hpp"

namespace orrery {

/// The replicas of a service, and the best that would compute prompt and answer.
struct AnsweringReplicas {
  std::span<const RouteCandidate> all;
  std::size_t local = 0;  ///< position of the best
  RouteTargets targets;   ///< with their margin; infinite: none
};

struct ApartChoice {
  std::size_t prompt = 0;  ///< position of the replica that computes it
  std::size_t answer = 0;
  double transfer_s = 0;
  double received_s = 0;  ///< from the first replica's end to the first token, without corrections
  PredictedRequest expected;
};

/// Nothing: it does not pay. Candidates that may be taken have the verdicts kSlower and, of duty
/// prefill, kOnlyPrefill.
[[nodiscard]] std::optional<ApartChoice> choose_apart(const RouterState& state,
                                                      const RouteQuery& query,
                                                      const AnsweringReplicas& replicas);

}  // namespace orrery
