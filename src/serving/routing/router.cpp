#include "serving/routing/router.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/numbers/rng.hpp"
#include "serving/apart/apart_choice.hpp"

namespace orrery {
namespace {

/// The part of what a service is held to that is planned with; the rest is for what is not
/// foreseen.
constexpr double kMargin = 0.8;
/// The part of a prompt in a cache from which on the request goes there.
constexpr double kStickyShare = 0.8;
/// What the time to the first token and the request's own prompt count beside the time to the last
/// token: fitted to the first half of a trace of conversations (docs/design/015-routing.md).
constexpr double kFirstToken = 1;
constexpr double kOwnPrompt = 4;
/// Prices that differ by less are alike.
constexpr double kPriceStep = 1.05;
/// Where other gateways choose, too, times that differ by less are alike.
constexpr double kNearTime = 1.25;

using Candidates = std::span<const RouteCandidate>;

/// What the choice among the replicas of a service needs beside them.
struct ChoiceTerms {
  RoutePolicy policy = RoutePolicy::kCost;
  RouteTargets targets;  ///< with their margin; infinite: none
  double sticky_wait_s = 0;
  double prompt_tokens = 0;
  std::uint64_t turn = 0;  ///< counts for those that take turns, drawn for the others
  /// Seed of the draws among replicas that are nearly alike; none: no other gateway chooses.
  std::optional<std::uint64_t> spread = {};
};

/// The mean seconds per token of the replicas of a service that have ended requests.
double mean_pace(const RouterState& state, std::uint32_t service) {
  double busy_s = 0;
  double tokens = 0;
  for (const std::uint32_t slot : state.slots_of(service)) {
    busy_s += state.replica(slot).speed.busy_s;
    tokens += state.replica(slot).speed.tokens_done;
  }
  return tokens > 0 ? busy_s / tokens : 0;
}

bool is_excluded(const RouterReplica& replica, const RouteQuery& query) {
  return std::ranges::find(query.excluded, replica.key) != query.excluded.end();
}

/// The tokens of a prompt that a replica's leading blocks hold; its last token is always computed.
std::uint64_t tokens_in(std::uint32_t blocks, const RouterState& state, const RouteQuery& query) {
  if (query.prompt_tokens == 0) return 0;
  const double each = query.block_tokens > 0
                          ? query.block_tokens
                          : static_cast<double>(state.options().caches.block_tokens);
  return static_cast<std::uint64_t>(
      std::min(each * blocks, static_cast<double>(query.prompt_tokens - 1)));
}

/// One replica as the request finds it.
struct SeenReplica {
  const RouterReplica& replica;
  std::uint32_t slot = 0;
  std::uint64_t believed = 0;  ///< tokens of the prompt that its cache should have
  double mean_pace = 0;
};

RequestWork work_at(const SeenReplica& seen, const RouteQuery& query) {
  const auto cached =
      static_cast<std::uint64_t>(static_cast<double>(seen.believed) * seen.replica.hit_ratio);
  const bool prompt_alone = seen.replica.part.duty == ReplicaDuty::kPrefill;
  return {query.prompt_tokens - cached, prompt_alone ? 1 : query.output_tokens};
}

RouteCandidate rate(const RouterState& state, const SeenReplica& seen, const RouteQuery& query) {
  const RouterReplica& replica = seen.replica;
  const ReplicaWork work = replica.work.all();
  const RequestWork own = work_at(seen, query);
  RouteCandidate candidate{.replica = replica.key,
                           .slot = seen.slot,
                           .revision = replica.revision,
                           .in_flight = work.in_flight,
                           .others_in_flight = replica.work.others.in_flight,
                           .tokens = work.tokens,
                           .cached_tokens = query.prompt_tokens - own.prompt_tokens,
                           .duty = replica.part.duty};
  const ReplicaSpeed& speed = replica.speed;
  candidate.seconds_per_token =
      speed.tokens_done > 0 ? speed.busy_s / speed.tokens_done : seen.mean_pace;
  if (is_paced(speed)) {
    candidate.expected = corrected(speed, predict(speed, work, own, query.now), own);
    candidate.usd = replica.usd_s * marginal_seconds(speed, own);
  } else {
    const std::uint64_t tokens = work.tokens + own.prompt_tokens + own.output_tokens;
    candidate.expected.wait_s = static_cast<double>(tokens) * candidate.seconds_per_token;
  }
  if (is_excluded(replica, query)) {
    candidate.verdict = CandidateVerdict::kExcluded;
  } else if (query.now < replica.failing.out_until) {
    candidate.verdict = CandidateVerdict::kFailing;
  } else if (state.is_full(replica)) {
    candidate.verdict = CandidateVerdict::kFull;
  } else if (replica.part.duty == ReplicaDuty::kPrefill) {
    candidate.verdict = CandidateVerdict::kOnlyPrefill;
  }
  return candidate;
}

/// Which replicas of a service may answer a request.
struct Allowed {
  std::optional<RoutedCanary> canary;
  bool of_canary = false;

  [[nodiscard]] bool operator()(const RouteCandidate& candidate) const {
    if (candidate.duty == ReplicaDuty::kPrefill) return false;
    return !canary || (candidate.revision == canary->revision) == of_canary;
  }
};

/// Whether `a` is expected to be done before `b`. Where nothing is learned, fewer tokens count.
bool is_sooner(const RouteCandidate& a, const RouteCandidate& b) {
  if (a.expected.wait_s != b.expected.wait_s) return a.expected.wait_s < b.expected.wait_s;
  if (a.tokens != b.tokens) return a.tokens < b.tokens;
  return a.in_flight < b.in_flight;
}

/// Seconds that the request takes, weighted: the first token is waited for, and its own prompt
/// delays the other requests of the replica and evicts what they have cached.
double weight_of(const RouteCandidate& candidate) {
  const PredictedRequest& expected = candidate.expected;
  if (expected.ttft_s <= 0) return expected.wait_s;
  return expected.wait_s + kFirstToken * expected.ttft_s + kOwnPrompt * expected.prompt_s;
}

bool is_lighter(const RouteCandidate& a, const RouteCandidate& b) {
  const double of_a = weight_of(a);
  const double of_b = weight_of(b);
  return of_a != of_b ? of_a < of_b : is_sooner(a, b);
}

bool is_idler(const RouteCandidate& a, const RouteCandidate& b) {
  if (a.in_flight != b.in_flight) return a.in_flight < b.in_flight;
  return a.tokens < b.tokens;
}

bool has_more(const RouteCandidate& a, const RouteCandidate& b) {
  if (a.cached_tokens != b.cached_tokens) return a.cached_tokens > b.cached_tokens;
  return is_idler(a, b);
}

bool is_nearly_as_soon(const RouteCandidate& a, const RouteCandidate& best) {
  return a.expected.wait_s <= best.expected.wait_s * kNearTime;
}

bool is_nearly_as_light(const RouteCandidate& a, const RouteCandidate& best) {
  return weight_of(a) <= weight_of(best) * kNearTime;
}

bool is_as_idle(const RouteCandidate& a, const RouteCandidate& best) {
  return a.in_flight == best.in_flight;
}

bool has_as_much(const RouteCandidate& a, const RouteCandidate& best) {
  return a.cached_tokens == best.cached_tokens && is_as_idle(a, best);
}

/// How far a request at a replica is from what its service is held to: above 1, beyond it.
double miss_of(const RouteCandidate& candidate, const RouteTargets& targets) {
  return std::max(candidate.expected.ttft_s / targets.ttft_s,
                  candidate.expected.tpot_s / targets.tpot_s);
}

/// A replica that was chosen by its position, and what keeps the others from it.
struct Pick {
  std::size_t at = 0;
  CandidateVerdict others = CandidateVerdict::kSlower;
};

/// The first of the positions whose candidate comes before all others.
template <class Before>
std::size_t first_of(Candidates all, std::span<const std::size_t> positions, Before&& before) {
  std::size_t best = positions.front();
  for (const std::size_t at : positions.subspan(1)) {
    if (before(all[at], all[best])) best = at;
  }
  return best;
}

/// How replicas are compared, and which are nearly as good as the best.
struct CandidateOrder {
  bool (*before)(const RouteCandidate& a, const RouteCandidate& b);
  bool (*near)(const RouteCandidate& a, const RouteCandidate& best);
};

/// The first of the positions; where other gateways choose from the same loads at the same time,
/// the better of two that are drawn from those near to it, so that not all choose the same.
std::size_t first_near(Candidates all, std::span<const std::size_t> positions,
                       const ChoiceTerms& terms, const CandidateOrder& order) {
  const std::size_t best = first_of(all, positions, order.before);
  if (!terms.spread) return best;
  std::vector<std::size_t> near;
  for (const std::size_t at : positions) {
    if (at == best || order.near(all[at], all[best])) near.push_back(at);
  }
  Rng draws(*terms.spread);
  const std::size_t one = near[draws.below(near.size())];
  const std::size_t other = near[draws.below(near.size())];
  return order.before(all[other], all[one]) ? other : one;
}

/// Those of the positions that cost hardly more than the cheapest; all, where prices are alike or
/// one is unknown.
std::vector<std::size_t> cheapest(Candidates all, std::span<const std::size_t> positions,
                                  std::span<const double> usd_s) {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  double least = low;
  for (const std::size_t at : positions) {
    low = std::min(low, usd_s[at]);
    high = std::max(high, usd_s[at]);
    least = std::min(least, all[at].usd);
  }
  std::vector<std::size_t> kept(positions.begin(), positions.end());
  if (least <= 0 || high <= low * kPriceStep) return kept;
  std::erase_if(kept, [&](std::size_t at) { return all[at].usd > least * kPriceStep; });
  return kept;
}

Pick by_cost(Candidates all, std::span<const std::size_t> free, std::span<const double> usd_s,
             const ChoiceTerms& terms) {
  std::vector<std::size_t> good;
  std::vector<std::size_t> sticky;
  good.reserve(free.size());
  const double headroom_s = std::min(terms.sticky_wait_s, terms.targets.ttft_s);
  for (const std::size_t at : free) {
    const RouteCandidate& each = all[at];
    if (miss_of(each, terms.targets) > 1) continue;
    good.push_back(at);
    const double share = static_cast<double>(each.cached_tokens) / terms.prompt_tokens;
    const double wait_s = each.expected.ttft_s > 0
                              ? each.expected.ttft_s
                              : static_cast<double>(each.tokens) * each.seconds_per_token;
    if (share >= kStickyShare && wait_s <= headroom_s) sticky.push_back(at);
  }
  constexpr CandidateOrder kOrder{is_lighter, is_nearly_as_light};
  if (!sticky.empty()) {
    return {first_near(all, sticky, terms, kOrder), CandidateVerdict::kFewerBlocks};
  }
  if (good.empty()) {
    const auto misses_less = [&](const RouteCandidate& a, const RouteCandidate& b) {
      return miss_of(a, terms.targets) < miss_of(b, terms.targets);
    };
    return {first_of(all, free, misses_less), CandidateVerdict::kLate};
  }
  return {first_near(all, cheapest(all, good, usd_s), terms, kOrder), CandidateVerdict::kSlower};
}

/// Chooses one of the free positions. Precondition: there is one.
Pick pick(Candidates all, std::span<const std::size_t> free, std::span<const double> usd_s,
          const ChoiceTerms& terms) {
  switch (terms.policy) {
    case RoutePolicy::kRandom:
    case RoutePolicy::kRoundRobin:
      return {free[terms.turn % free.size()], CandidateVerdict::kOtherTurn};
    case RoutePolicy::kLeastRequests:
      return {first_near(all, free, terms, {is_idler, is_as_idle}), CandidateVerdict::kBusier};
    case RoutePolicy::kLeastWait:
      return {first_near(all, free, terms, {is_sooner, is_nearly_as_soon}),
              CandidateVerdict::kSlower};
    case RoutePolicy::kPrefix:
      return {first_near(all, free, terms, {has_more, has_as_much}),
              CandidateVerdict::kFewerBlocks};
    case RoutePolicy::kCost:
      break;
  }
  return by_cost(all, free, usd_s, terms);
}

std::vector<std::size_t> free_of(Candidates all, const Allowed& allowed) {
  std::vector<std::size_t> free;
  free.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].verdict == CandidateVerdict::kSlower && allowed(all[i])) free.push_back(i);
  }
  return free;
}

/// Whether an allowed replica is free or full, not failing or excluded.
bool any_may_be_tried(Candidates all, const Allowed& allowed) {
  return std::ranges::any_of(all, [&](const RouteCandidate& each) {
    const bool may =
        each.verdict != CandidateVerdict::kExcluded && each.verdict != CandidateVerdict::kFailing;
    return may && allowed(each);
  });
}

ChoiceTerms terms_of(const RouterState& state, const RouteQuery& query) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  const RouteTargets& targets = state.targets_of(query.service);
  ChoiceTerms terms{
      .policy = state.options().policy,
      .targets = {targets.ttft_s > 0 ? targets.ttft_s * kMargin : kNone,
                  targets.tpot_s > 0 ? targets.tpot_s * kMargin : kNone},
      .sticky_wait_s = state.options().sticky_wait.count_seconds(),
      .prompt_tokens = static_cast<double>(std::max<std::uint64_t>(query.prompt_tokens, 1)),
      .turn = state.turns_of(query.service)};
  if (state.other_gateways() > 0) {
    constexpr std::uint64_t kOdd = 0x9E37'79B9'7F4A'7C15U;  // of the golden ratio
    terms.spread = state.options().seed ^ (terms.turn + 1) * kOdd;
  }
  if (terms.policy == RoutePolicy::kRandom) {
    // Other bits than those that a canary's share is compared with.
    terms.turn = (std::bit_cast<std::uint64_t>(query.draw) * 0x9E37'79B9'7F4A'7C15U) >> 33U;
  }
  return terms;
}

/// Tells why the free replicas were not chosen.
void judge(std::vector<RouteCandidate>& candidates, const Allowed& allowed, const Pick& pick,
           const ChoiceTerms& terms) {
  for (RouteCandidate& each : candidates) {
    if (each.verdict != CandidateVerdict::kSlower) continue;
    each.verdict = pick.others;
    if (!allowed(each)) {
      each.verdict = CandidateVerdict::kOtherRevision;
    } else if (pick.others == CandidateVerdict::kSlower && terms.policy == RoutePolicy::kCost) {
      const RouteCandidate& chosen = candidates[pick.at];
      if (miss_of(each, terms.targets) > 1) {
        each.verdict = CandidateVerdict::kLate;
      } else if (terms.spread && is_lighter(each, chosen) && each.usd <= chosen.usd * kPriceStep) {
        each.verdict = CandidateVerdict::kOtherTurn;
      } else if (is_lighter(each, chosen)) {
        each.verdict = CandidateVerdict::kDearer;
      }
    } else if (pick.others == CandidateVerdict::kFewerBlocks &&
               each.cached_tokens >= candidates[pick.at].cached_tokens) {
      each.verdict = CandidateVerdict::kSlower;
    }
  }
}

RouteLoad load_at(const SeenReplica& seen, const RouteQuery& query) {
  RouteLoad load{.work = work_at(seen, query), .cached_tokens = seen.believed};
  if (!is_paced(seen.replica.speed)) return load;
  const PredictedRequest plain =
      predict(seen.replica.speed, seen.replica.work.all(), load.work, query.now);
  load.ttft_s = plain.ttft_s;
  load.tpot_s = plain.tpot_s;
  return load;
}

/// Gives the answer and the prompt of a request that was chosen for one replica to two. `seen`: the
/// replicas by their positions.
template <class Seen>
void send_apart(RouteDecision& decision, const ApartChoice& apart, const RouteQuery& query,
                const Seen& seen) {
  std::vector<RouteCandidate>& all = decision.candidates;
  RouteCandidate& answer = all[apart.answer];
  RemotePrompt& remote = decision.remote.emplace();
  remote.slot = all[apart.prompt].slot;
  remote.load = load_at(seen(apart.prompt), query);
  remote.otherwise = load_at(seen(apart.answer), query);
  remote.transfer_s = apart.transfer_s;
  const auto local = std::ranges::find(all, CandidateVerdict::kChosen, &RouteCandidate::verdict);
  remote.local = local->expected;
  remote.local_replica = local->replica;
  local->verdict = CandidateVerdict::kSlower;
  answer.verdict = CandidateVerdict::kChosen;
  answer.expected = apart.expected;
  all[apart.prompt].verdict = CandidateVerdict::kPrefill;
  decision.slot = answer.slot;
  decision.load = {.work = {.prompt_tokens = 0, .output_tokens = query.output_tokens},
                   .ttft_s = apart.received_s,
                   .tpot_s = remote.otherwise.tpot_s,
                   .prompt = RouteLoad::Prompt::kReceived};
}

}  // namespace

RouteDecision choose(const RouterState& state, const RouteQuery& query) {
  RouteDecision decision;
  std::vector<RouteCandidate>& all = decision.candidates;
  const std::span<const std::uint32_t> slots = state.slots_of(query.service);
  std::vector<std::uint32_t> leading(slots.size());
  if (!query.blocks.empty()) state.index().match(query.blocks, slots, leading);
  std::vector<double> usd_s;
  usd_s.reserve(slots.size());
  all.reserve(slots.size());
  const double mean = mean_pace(state, query.service);
  const auto seen = [&](std::size_t at) {
    return SeenReplica{state.replica(slots[at]), slots[at], tokens_in(leading[at], state, query),
                       mean};
  };
  for (std::size_t at = 0; at < slots.size(); ++at) {
    all.push_back(rate(state, seen(at), query));
    usd_s.push_back(state.replica(slots[at]).usd_s);
  }
  const std::optional<RoutedCanary>& canary = state.canary_of(query.service);
  const Allowed first{canary, canary && query.draw < canary->share};
  Allowed allowed = first;
  std::vector<std::size_t> free = free_of(all, first);
  if (canary && free.empty() && (first.of_canary || !any_may_be_tried(all, first))) {
    allowed.of_canary = !first.of_canary;
    free = free_of(all, allowed);
  }
  const ChoiceTerms terms = terms_of(state, query);
  const bool found = !free.empty();
  const Pick best = found ? pick(all, free, usd_s, terms) : Pick{};
  const bool taken = found && query.waiting == 0;
  const bool waits = found || any_may_be_tried(all, first) || any_may_be_tried(all, allowed);
  std::optional<ApartChoice> apart;
  if (taken && query.prompt_places == PromptPlaces::kAny && terms.policy == RoutePolicy::kCost) {
    apart = choose_apart(state, query, {all, best.at, terms.targets});
  }
  if (taken) all[best.at].verdict = CandidateVerdict::kChosen;
  judge(all, allowed, best, terms);
  if (found) {
    decision.slot = slots[best.at];
    decision.load = load_at(seen(best.at), query);
  }
  if (apart) send_apart(decision, *apart, query, seen);
  if (taken) {
    decision.outcome = RouteOutcome::kReplica;
  } else if (waits) {
    decision.outcome =
        query.waiting < state.options().queue_max ? RouteOutcome::kWait : RouteOutcome::kShed;
  }
  return decision;
}

}  // namespace orrery
