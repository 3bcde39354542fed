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
  RouteCandidate candidate{
      .replica = replica.key, .in_flight = replica.in_flight, .tokens = replica.tokens};
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

/// Whether `a` is expected to be done before `b`. Where nothing is learned, fewer tokens count.
bool is_sooner(const RouteCandidate& a, const RouteCandidate& b) {
  if (a.wait_s != b.wait_s) return a.wait_s < b.wait_s;
  if (a.tokens != b.tokens) return a.tokens < b.tokens;
  return a.in_flight < b.in_flight;
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
    for (const RoutedReplica& each : table.services[at].replicas) {
      const std::uint32_t slot = slot_of({each.job, each.attempt});
      if (slot >= routed.size()) routed.resize(slot + 1);
      routed[slot] = true;
      RouterReplica& replica = replicas_[slot];
      replica.presence = RouterReplica::Presence::kRouted;
      replica.endpoint = each.endpoint;
      replica.service = at;
      replica.in_flight_max = in_flight_max_of(each, options_);
      services_[at].push_back(slot);
    }
    std::ranges::sort(services_[at], {},
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
  RouteCandidate* best = nullptr;
  bool any_full = false;
  for (const std::uint32_t slot : slots) {
    RouteCandidate& candidate =
        decision.candidates.emplace_back(rate(state.replica(slot), query, mean));
    any_full = any_full || candidate.verdict == CandidateVerdict::kFull;
    if (candidate.verdict != CandidateVerdict::kSlower) continue;
    if (best != nullptr && !is_sooner(candidate, *best)) continue;
    best = &candidate;
    decision.slot = slot;
  }
  if (best != nullptr && query.waiting == 0) {
    best->verdict = CandidateVerdict::kChosen;
    decision.outcome = RouteOutcome::kReplica;
  } else if (best != nullptr || any_full) {
    decision.outcome =
        query.waiting < state.options().queue_max ? RouteOutcome::kWait : RouteOutcome::kShed;
  }
  return decision;
}

}  // namespace orrery
