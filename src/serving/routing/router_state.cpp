#include "serving/routing/router_state.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace orrery {
namespace {

/// Weight of a request in what is known of a replica's cache.
constexpr double kNewestHit = 0.1;
constexpr double kUnsureHit = 0.02;
/// Fewer tokens than this part of those expected in a cache show that it has lost others, too.
constexpr double kFewFound = 0.5;

std::uint32_t in_flight_max_of(const RoutedReplica& replica, const RouterOptions& options) {
  // A few more than it computes at a time, so that it need not wait for its next.
  return replica.slots == 0 ? options.in_flight_max : replica.slots + replica.slots / 4 + 1;
}

bool believes_in_caches(RoutePolicy policy) {
  return policy == RoutePolicy::kPrefix || policy == RoutePolicy::kCost;
}

}  // namespace

void RouterState::set_table(const RouteTable& table) {
  std::vector<bool> routed(replicas_.size(), false);
  services_.assign(table.services.size(), {});
  for (std::uint32_t at = 0; at < services_.size(); ++at) {
    ServiceSlots& service = services_[at];
    const RoutedService& from = table.services[at];
    service.canary = from.canary;
    service.targets = {from.ttft_p99_s, from.tpot_p99_s};
    service.slots.reserve(from.replicas.size());
    const auto own = options_.caches.model_block_tokens.find(from.model);
    const std::uint32_t block_tokens = own == options_.caches.model_block_tokens.end()
                                           ? options_.caches.block_tokens
                                           : own->second;
    for (const RoutedReplica& each : from.replicas) {
      const std::uint32_t slot = slot_of({each.job, each.attempt});
      if (slot >= routed.size()) routed.resize(slot + 1);
      routed[slot] = true;
      take(slot, each, block_tokens);
      replicas_[slot].service = at;
      service.slots.push_back(slot);
    }
    std::ranges::sort(service.slots, {},
                      [this](std::uint32_t slot) { return replicas_[slot].key; });
  }
  for (std::uint32_t slot = 0; slot < replicas_.size(); ++slot) {
    RouterReplica& replica = replicas_[slot];
    if (routed[slot] || replica.presence == RouterReplica::Presence::kGone) continue;
    replica.presence = RouterReplica::Presence::kGone;
    index_.set_capacity(slot, 0);
    if (replica.work.own.in_flight == 0) release(slot);
  }
}

void RouterState::take(std::uint32_t slot, const RoutedReplica& routed,
                       std::uint32_t block_tokens) {
  RouterReplica& replica = replicas_[slot];
  replica.presence = RouterReplica::Presence::kRouted;
  replica.endpoint = routed.endpoint;
  replica.revision = routed.revision;
  replica.in_flight_max = in_flight_max_of(routed, options_);
  replica.usd_s = routed.usd_s;
  replica.part = {routed.duty, routed.transfer};
  replica.speed.cost = engine_step_cost_of(routed.pace, routed.slots);
  replica.speed.slots = routed.slots == 0 ? replica.in_flight_max : routed.slots;
  if (!believes_in_caches(options_.policy)) return;
  const std::uint64_t tokens = routed.kv_tokens == 0 ? options_.caches.tokens : routed.kv_tokens;
  index_.set_capacity(slot, tokens / block_tokens);
}

std::uint32_t RouterState::slot_of(const ReplicaKey& key) {
  for (std::uint32_t slot = 0; slot < replicas_.size(); ++slot) {
    const RouterReplica& replica = replicas_[slot];
    const bool used =
        replica.presence == RouterReplica::Presence::kRouted || replica.work.own.in_flight > 0;
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
  index_.clear(slot);
  free_slots_.push_back(slot);
}

void RouterState::set_others(std::span<const ReplicaCharges> sums, std::uint32_t gateways) {
  other_gateways_ = gateways;
  for (RouterReplica& replica : replicas_) {
    const auto at = std::ranges::lower_bound(sums, replica.key, {}, &ReplicaCharges::replica);
    const bool told = at != sums.end() && at->replica == replica.key;
    replica.work.others = told ? at->work : ReplicaWork();
  }
}

std::vector<ReplicaCharges> RouterState::own_charges() const {
  std::vector<ReplicaCharges> charges;
  for (const RouterReplica& replica : replicas_) {
    if (replica.work.own.in_flight > 0) charges.push_back({replica.key, replica.work.own});
  }
  return charges;
}

bool RouterState::is_full(const RouterReplica& replica) const {
  if (replica.work.all().in_flight < replica.in_flight_max) return false;
  const std::uint32_t gateways = other_gateways_ + 1;
  return replica.work.own.in_flight >= (replica.in_flight_max + gateways - 1) / gateways;
}

RouteCharge RouterState::charge(std::uint32_t slot, const RouteLoad& load,
                                std::span<const std::uint64_t> blocks, Instant now) {
  RouterReplica& replica = replicas_[slot];
  const ReplicaWork before = replica.work.all();
  const bool behind_prompts =
      before.prompt_tokens > 0 && (!is_paced(replica.speed) || before.prompts_until > now);
  ++changes_;
  if (replica.work.own.in_flight++ == 0) replica.busy_since = now;
  replica.work.own.tokens += load.work.prompt_tokens + load.work.output_tokens;
  replica.work.own.prompt_tokens += load.work.prompt_tokens;
  if (is_paced(replica.speed)) {
    replica.work.own.prompts_until =
        std::max(before.prompts_until, now) +
        Duration::from_seconds(prompt_seconds(replica.speed, load.work.prompt_tokens));
  }
  if (replica.presence == RouterReplica::Presence::kRouted) {
    ++services_[replica.service].turns;
    index_.store(slot, blocks);
  }
  return {.slot = slot, .load = load, .since = now, .behind_prompts = behind_prompts};
}

void RouterState::begin(RouteCharge& charge, Instant now) {
  if (std::exchange(charge.begun, true)) return;
  ++changes_;
  RouterReplica& replica = replicas_[charge.slot];
  replica.work.own.tokens -= charge.load.work.prompt_tokens;
  replica.work.own.prompt_tokens -= charge.load.work.prompt_tokens;
  ReplicaSpeed& speed = replica.speed;
  LearnedRatio& ratio =
      charge.load.prompt == RouteLoad::Prompt::kReceived ? speed.received : speed.ttft;
  ratio.add(charge.load.ttft_s, (now - charge.since).count_seconds());
}

void RouterState::credit(const RouteCharge& charge, const RouteDone& done, Instant now) {
  RouterReplica& replica = replicas_[charge.slot];
  const RequestWork& charged = charge.load.work;
  const std::uint64_t prompt = charge.begun ? 0 : charged.prompt_tokens;
  ORRERY_ASSERT(replica.work.own.in_flight > 0 && replica.work.own.prompt_tokens >= prompt &&
                    replica.work.own.tokens >= prompt + charged.output_tokens,
                "only what was charged is credited");
  ++changes_;
  --replica.work.own.in_flight;
  replica.work.own.tokens -= prompt + charged.output_tokens;
  replica.work.own.prompt_tokens -= prompt;
  replica.speed.tpot.add(charge.load.tpot_s, done.tpot_s);
  if (done.tokens > 0) {
    replica.speed.learn(done.tokens, now - replica.busy_since);
    replica.busy_since = now;
  }
  if (replica.work.own.in_flight == 0 && replica.presence == RouterReplica::Presence::kGone) {
    release(charge.slot);
  }
}

void RouterState::note_cached(const RouteCharge& charge, std::uint64_t tokens) {
  const std::uint64_t expected = charge.load.cached_tokens;
  if (expected < options_.caches.block_tokens) return;
  RouterReplica& replica = replicas_[charge.slot];
  const double found = std::min(static_cast<double>(tokens) / static_cast<double>(expected), 1.0);
  // What was sent just before may not have been computed yet.
  const double weight = charge.behind_prompts ? kUnsureHit : kNewestHit;
  replica.hit_ratio += weight * (found - replica.hit_ratio);
  if (replica.cache == RouterReplica::Cache::kTold) return;
  if (found < kFewFound && !charge.behind_prompts)
    index_.forget_oldest(charge.slot, index_.blocks_of(charge.slot) / 2);
}

void RouterState::note_failure(std::uint32_t slot, Instant now) {
  RouterReplica& replica = replicas_[slot];
  if (++replica.failing.in_a_row < 2) return;
  const std::uint32_t doublings = std::min<std::uint32_t>(replica.failing.in_a_row - 2, 16);
  const Duration backoff = options_.backoff_min * (std::int64_t{1} << doublings);
  replica.failing.out_until = now + std::min(backoff, options_.backoff_max);
}

}  // namespace orrery
