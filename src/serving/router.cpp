#include "serving/router.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Weight of what was learned before, at each end of a request.
constexpr double kMemory = 0.95;

std::uint32_t in_flight_max_of(const RoutedReplica& replica, const RouterOptions& options) {
  // A few more than it computes at a time, so that it need not wait for its next.
  return replica.slots == 0 ? options.in_flight_max : replica.slots + replica.slots / 4 + 1;
}

/// The mean seconds per token of the replicas of a service that have ended requests.
double mean_pace(const RouterState& state, std::uint32_t service) {
  double busy_s = 0;
  double tokens = 0;
  for (const std::uint32_t slot : state.slots_of(service)) {
    busy_s += state.replica(slot).busy_s;
    tokens += state.replica(slot).tokens_done;
  }
  return tokens > 0 ? busy_s / tokens : 0;
}

bool is_excluded(const RouterReplica& replica, const RouteQuery& query) {
  return std::ranges::find(query.excluded, replica.key) != query.excluded.end();
}

RouteCandidate rate(const RouterReplica& replica, const RouteQuery& query, double mean) {
  RouteCandidate candidate{.replica = replica.key,
                           .revision = replica.revision,
                           .in_flight = replica.in_flight,
                           .tokens = replica.tokens};
  candidate.seconds_per_token =
      replica.tokens_done > 0 ? replica.busy_s / replica.tokens_done : mean;
  const auto tokens = static_cast<double>(replica.tokens + query.tokens);
  candidate.wait_s = tokens * candidate.seconds_per_token;
  if (is_excluded(replica, query)) {
    candidate.verdict = CandidateVerdict::kExcluded;
  } else if (query.now < replica.out_until) {
    candidate.verdict = CandidateVerdict::kFailing;
  } else if (replica.in_flight >= replica.in_flight_max) {
    candidate.verdict = CandidateVerdict::kFull;
  }
  return candidate;
}

/// Which replicas of a service a request may go to.
struct Allowed {
  std::optional<RoutedCanary> canary;
  bool of_canary = false;

  [[nodiscard]] bool operator()(const RouteCandidate& candidate) const {
    return !canary || (candidate.revision == canary->revision) == of_canary;
  }
};

/// Whether `a` is expected to be done before `b`. Where nothing is learned, fewer tokens count.
bool is_sooner(const RouteCandidate& a, const RouteCandidate& b) {
  if (a.wait_s != b.wait_s) return a.wait_s < b.wait_s;
  if (a.tokens != b.tokens) return a.tokens < b.tokens;
  return a.in_flight < b.in_flight;
}

/// The position of the allowed replica that is done soonest; the number of replicas: none is free.
std::size_t soonest(std::span<const RouteCandidate> candidates, const Allowed& allowed) {
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].verdict != CandidateVerdict::kSlower || !allowed(candidates[i])) continue;
    if (best == candidates.size() || is_sooner(candidates[i], candidates[best])) best = i;
  }
  return best;
}

/// Whether an allowed replica is free or full, not failing or excluded.
bool any_may_be_tried(std::span<const RouteCandidate> candidates, const Allowed& allowed) {
  return std::ranges::any_of(candidates, [&](const RouteCandidate& each) {
    const bool may = each.verdict == CandidateVerdict::kSlower ||
                     each.verdict == CandidateVerdict::kFull ||
                     each.verdict == CandidateVerdict::kOtherRevision;
    return may && allowed(each);
  });
}

}  // namespace

std::string_view name_of(CandidateVerdict verdict) {
  switch (verdict) {
    case CandidateVerdict::kChosen:
      return "chosen";
    case CandidateVerdict::kSlower:
      return "slower";
    case CandidateVerdict::kFull:
      return "full";
    case CandidateVerdict::kExcluded:
      return "excluded";
    case CandidateVerdict::kFailing:
      return "failing";
    case CandidateVerdict::kOtherRevision:
      return "other revision";
  }
  return "";
}

std::string_view name_of(RouteOutcome outcome) {
  switch (outcome) {
    case RouteOutcome::kReplica:
      return "replica";
    case RouteOutcome::kWait:
      return "wait";
    case RouteOutcome::kShed:
      return "shed";
    case RouteOutcome::kNone:
      return "none";
  }
  return "";
}

void RouterState::set_table(const RouteTable& table) {
  std::vector<bool> routed(replicas_.size(), false);
  services_.assign(table.services.size(), {});
  for (std::uint32_t at = 0; at < services_.size(); ++at) {
    ServiceSlots& service = services_[at];
    service.canary = table.services[at].canary;
    for (const RoutedReplica& each : table.services[at].replicas) {
      const std::uint32_t slot = slot_of({each.job, each.attempt});
      if (slot >= routed.size()) routed.resize(slot + 1);
      routed[slot] = true;
      RouterReplica& replica = replicas_[slot];
      replica.presence = RouterReplica::Presence::kRouted;
      replica.endpoint = each.endpoint;
      replica.service = at;
      replica.revision = each.revision;
      replica.in_flight_max = in_flight_max_of(each, options_);
      service.slots.push_back(slot);
    }
    std::ranges::sort(service.slots, {},
                      [this](std::uint32_t slot) { return replicas_[slot].key; });
  }
  for (std::uint32_t slot = 0; slot < replicas_.size(); ++slot) {
    RouterReplica& replica = replicas_[slot];
    if (routed[slot] || replica.presence == RouterReplica::Presence::kGone) continue;
    replica.presence = RouterReplica::Presence::kGone;
    if (replica.in_flight == 0) release(slot);
  }
}

std::uint32_t RouterState::slot_of(const ReplicaKey& key) {
  for (std::uint32_t slot = 0; slot < replicas_.size(); ++slot) {
    const RouterReplica& replica = replicas_[slot];
    const bool used = replica.presence == RouterReplica::Presence::kRouted || replica.in_flight > 0;
    if (used && replica.key == key) return slot;
  }
  std::uint32_t slot = static_cast<std::uint32_t>(replicas_.size());
  if (free_slots_.empty()) {
    replicas_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  replicas_[slot] = {.key = key};
  return slot;
}

void RouterState::release(std::uint32_t slot) {
  replicas_[slot] = {};
  free_slots_.push_back(slot);
}

void RouterState::charge(std::uint32_t slot, std::uint64_t tokens, Instant now) {
  RouterReplica& replica = replicas_[slot];
  if (replica.in_flight++ == 0) replica.busy_since = now;
  replica.tokens += tokens;
}

void RouterState::credit(std::uint32_t slot, const Credit& credit, Instant now) {
  RouterReplica& replica = replicas_[slot];
  ORRERY_ASSERT(replica.in_flight > 0 && replica.tokens >= credit.tokens,
                "only what was charged is credited");
  --replica.in_flight;
  replica.tokens -= credit.tokens;
  if (credit.done > 0) {
    replica.busy_s = replica.busy_s * kMemory + (now - replica.busy_since).count_seconds();
    replica.tokens_done = replica.tokens_done * kMemory + static_cast<double>(credit.done);
    replica.busy_since = now;
  }
  if (replica.in_flight == 0 && replica.presence == RouterReplica::Presence::kGone) release(slot);
}

void RouterState::note_failure(std::uint32_t slot, Instant now) {
  RouterReplica& replica = replicas_[slot];
  if (++replica.failures < 2) return;
  const std::uint32_t doublings = std::min<std::uint32_t>(replica.failures - 2, 16);
  const Duration backoff = options_.backoff_min * (std::int64_t{1} << doublings);
  replica.out_until = now + std::min(backoff, options_.backoff_max);
}

RouteDecision choose(const RouterState& state, const RouteQuery& query) {
  RouteDecision decision;
  const std::span<const std::uint32_t> slots = state.slots_of(query.service);
  decision.candidates.reserve(slots.size());
  const double mean = mean_pace(state, query.service);
  for (const std::uint32_t slot : slots) {
    decision.candidates.push_back(rate(state.replica(slot), query, mean));
  }
  const std::optional<RoutedCanary>& canary = state.canary_of(query.service);
  const Allowed first{canary, canary && query.draw < canary->share};
  std::size_t best = soonest(decision.candidates, first);
  Allowed allowed = first;
  const bool may_change = first.of_canary || !any_may_be_tried(decision.candidates, first);
  if (canary && best == decision.candidates.size() && may_change) {
    allowed.of_canary = !first.of_canary;
    best = soonest(decision.candidates, allowed);
  }
  for (RouteCandidate& each : decision.candidates) {
    const bool other = each.verdict == CandidateVerdict::kSlower && !allowed(each);
    if (other) each.verdict = CandidateVerdict::kOtherRevision;
  }
  const bool found = best < decision.candidates.size();
  if (found) decision.slot = slots[best];
  if (found && query.waiting == 0) {
    decision.candidates[best].verdict = CandidateVerdict::kChosen;
    decision.outcome = RouteOutcome::kReplica;
  } else if (found || any_may_be_tried(decision.candidates, first) ||
             any_may_be_tried(decision.candidates, allowed)) {
    decision.outcome =
        query.waiting < state.options().queue_max ? RouteOutcome::kWait : RouteOutcome::kShed;
  }
  return decision;
}

}  // namespace orrery
