#include "serving/apart/apart_choice.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

/// How many times as long the other way must take.
constexpr double kSooner = 1.1;

bool keeps(double ttft_s, double tpot_s, const RouteTargets& targets) {
  return ttft_s <= targets.ttft_s && tpot_s <= targets.tpot_s;
}

/// Seconds between the tokens of those who are answered at a replica while it computes the prompt
/// of a request, too.
double tpot_beside(const RouteCandidate& candidate, const RouterReplica& replica) {
  const ReplicaWork work = replica.work.all();
  if (work.in_flight == 0) return candidate.expected.tpot_s;
  const auto outputs = static_cast<double>(work.tokens - work.prompt_tokens);
  const double each = std::max(outputs / static_cast<double>(work.in_flight), 1.0);
  return candidate.expected.tpot_s + candidate.expected.prompt_s / each;
}

ApartChoice pair_of(const RouterState& state, const RouteQuery& query,
                    const AnsweringReplicas& replicas,
                    const std::pair<std::size_t, std::size_t>& at) {
  const RouteCandidate& prompt = replicas.all[at.first];
  const RouteCandidate& answer = replicas.all[at.second];
  const RouterReplica& answering = state.replica(answer.slot);
  const RoutedTransfer& transfer = *state.replica(prompt.slot).part.transfer;
  ApartChoice made{.prompt = at.first, .answer = at.second};
  made.transfer_s = static_cast<double>(query.prompt_tokens - answer.cached_tokens) *
                    transfer.token_bytes / transfer.bytes_s;
  const RequestWork left{.prompt_tokens = 0, .output_tokens = query.output_tokens};
  // Prompts before it at the answering replica are computed meanwhile.
  const Instant arrives =
      query.now + Duration::from_seconds(prompt.expected.ttft_s + made.transfer_s);
  made.received_s =
      made.transfer_s + predict(answering.speed, answering.work.all(), left, arrives).ttft_s;
  PredictedRequest& expected = made.expected;
  expected = prompt.expected;
  expected.ttft_s += made.received_s * answering.speed.received.value();
  expected.tpot_s = answer.expected.tpot_s;
  expected.wait_s = expected.ttft_s + static_cast<double>(query.output_tokens) * expected.tpot_s;
  return made;
}

}  // namespace

std::optional<ApartChoice> choose_apart(const RouterState& state, const RouteQuery& query,
                                        const AnsweringReplicas& replicas) {
  const RouteCandidate& local = replicas.all[replicas.local];
  if (local.expected.ttft_s <= 0) return std::nullopt;
  const auto may = [&](std::size_t at, ReplicaDuty duty, CandidateVerdict verdict) {
    const RouteCandidate& each = replicas.all[at];
    return each.duty == duty && each.verdict == verdict && each.revision == local.revision &&
           each.expected.ttft_s > 0;
  };
  const RouteTargets& targets = replicas.targets;
  std::optional<ApartChoice> best;
  bool best_keeps = false;
  for (std::size_t p = 0; p < replicas.all.size(); ++p) {
    if (!may(p, ReplicaDuty::kPrefill, CandidateVerdict::kOnlyPrefill)) continue;
    if (!state.replica(replicas.all[p].slot).part.transfer) continue;
    for (std::size_t d = 0; d < replicas.all.size(); ++d) {
      if (!may(d, ReplicaDuty::kDecode, CandidateVerdict::kSlower)) continue;
      const ApartChoice made = pair_of(state, query, replicas, {p, d});
      const bool fits = keeps(made.expected.ttft_s, made.expected.tpot_s, targets);
      const bool sooner = !best || made.expected.ttft_s < best->expected.ttft_s;
      if (best && (fits == best_keeps ? !sooner : best_keeps)) continue;
      best = made;
      best_keeps = fits;
    }
  }
  if (!best) return std::nullopt;
  const bool local_keeps =
      keeps(local.expected.ttft_s, tpot_beside(local, state.replica(local.slot)), targets);
  const bool sooner = best->expected.ttft_s * kSooner <= local.expected.ttft_s;
  const bool pays = local_keeps ? best_keeps && sooner : best_keeps || sooner;
  return pays ? best : std::nullopt;
}

}  // namespace orrery
