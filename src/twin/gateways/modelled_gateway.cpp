#include "twin/gateways/modelled_gateway.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/format/xxh3.hpp"

namespace orrery {
namespace {

/// Weight of the newest answer's length in the expected one, as in a live gateway.
constexpr double kNewest = 0.05;

/// Blocks that a router keeps of all replicas.
constexpr std::size_t kIndexBlocksMax = 4'000'000;

RouterOptions options_of(RouterOptions options, std::uint32_t number) {
  options.seed = xxh3(fmt::format("gateway-{}", number));
  options.caches.block_tokens = kTraceBlockTokens;
  options.caches.blocks_max = kIndexBlocksMax;
  return options;
}

}  // namespace

ReplicaPace pace_of(const ReplicaGroup& group) {
  constexpr double kPrompt = 512;  // tokens of a warm-up's prompt, and of a context
  const auto slots = static_cast<double>(group.rules.sequences_max);
  const double prompt_s =
      seconds_of(group.cost, {.prompt = kPrompt, .prompt_context = kPrompt * (kPrompt + 1) / 2});
  return {.prefill_tokens_s = prompt_s > 0 ? kPrompt / prompt_s : 0,
          .step_s = seconds_of(group.cost, {.sequences = 1, .context = kPrompt}),
          .step_full_s = seconds_of(group.cost, {.sequences = slots, .context = slots * kPrompt})};
}

ModelledGateway::ModelledGateway(const RequestTrace& trace, const ServiceSetup& setup,
                                 std::uint32_t number)
    : trace_(trace),
      setup_(setup),
      router_(options_of(setup.router, number)),
      calls_(trace.requests.size()),
      draws_(Rng::stream(setup.seed + number, "gateway.draws")) {}

void ModelledGateway::set_replicas(const std::vector<ReadyReplica>& ready) {
  RouteTable table;
  table.epoch = ++epoch_;
  RoutedService& service = table.services.emplace_back();
  service.name = service.model = "service";
  service.ttft_p99_s = setup_.targets.ttft_s;
  service.tpot_p99_s = setup_.targets.tpot_s;
  service.replicas.reserve(ready.size());
  for (const ReadyReplica& each : ready) {
    service.replicas.push_back(
        {.job = each.number,
         .attempt = each.attempt,
         .endpoint = fmt::format("replica-{}:1", each.number),
         .slots = each.group->rules.sequences_max,
         .pace = pace_of(*each.group),
         .usd_s = each.group->usd_h / 3600,
         .kv_tokens = std::uint64_t{each.group->rules.kv_blocks} * kKvBlockTokens,
         .duty = each.group->duty,
         .transfer = each.group->transfer});
  }
  router_.set_table(table);
}

RouteDecision ModelledGateway::decide(std::uint32_t request, std::size_t waiting, Instant now) {
  const TraceRequest& asked = trace_.requests[request];
  return choose(router_, {.service = 0,
                          .prompt_tokens = asked.prompt_tokens,
                          .output_tokens = calls_[request].tokens - asked.prompt_tokens,
                          .blocks = blocks_of(asked),
                          .waiting = waiting,
                          .draw = draws_.uniform(),
                          .now = now,
                          .prompt_places = calls_[request].prompt_places});
}

ModelledWay ModelledGateway::charge(std::uint32_t request, const RouteDecision& decision,
                                    Instant now) {
  const std::span<const std::uint64_t> blocks = blocks_of(trace_.requests[request]);
  const auto number = [&](std::uint32_t slot) {
    return static_cast<std::uint32_t>(router_.replica(slot).key.job);
  };
  Charges charges{.answer = router_.charge(decision.slot, decision.load, blocks, now)};
  ModelledWay way{.replica = number(decision.slot)};
  if (decision.remote) {
    charges.prompt = router_.charge(decision.remote->slot, decision.remote->load, blocks, now);
    charges.otherwise = decision.remote->otherwise;
    way.prompt = number(decision.remote->slot);
    way.transfer_s = decision.remote->transfer_s;
  }
  charges_.emplace(request, std::move(charges));
  return way;
}

std::span<const std::uint64_t> ModelledGateway::blocks_of(const TraceRequest& request) {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // of the golden ratio: spreads the numbers
  blocks_.clear();
  const std::size_t full = request.prompt_tokens / kTraceBlockTokens;
  for (const std::uint32_t block : trace_.chain_of(request)) {
    if (blocks_.size() == full) break;
    std::uint64_t hash = (block + 1) * kOdd;
    hash = (hash ^ (hash >> 31)) * kOdd;
    blocks_.push_back(hash ^ (hash >> 29));
  }
  return blocks_;
}

FairQueue::Flow ModelledGateway::flow_of(const TraceRequest& request) {
  QueueLevel level;
  if (request.request_class == RequestClass::kBatch) level.service_class = ServiceClass::kBatch;
  const std::string& name = trace_.tenants[request.tenant];
  const auto terms = std::ranges::find(setup_.tenants, name, &ServiceTenantSpec::name);
  if (terms == setup_.tenants.end()) return queue_.flow(level, name, 1);
  level.priority = terms->priority;
  return queue_.flow(level, name, terms->weight);
}

ModelledGateway::Dispatch ModelledGateway::offer(std::uint32_t request, Coming coming,
                                                 Instant now) {
  const TraceRequest& asked = trace_.requests[request];
  Call& call = calls_[request];
  if (coming == Coming::kNew) {
    call.tokens = asked.prompt_tokens + static_cast<std::uint64_t>(output_mean_);
    call.flow = flow_of(asked);
  } else {
    call.prompt_places = PromptPlaces::kAnswering;
  }
  const RouteDecision decision = decide(request, coming == Coming::kNew ? queue_.size() : 0, now);
  if (decision.outcome == RouteOutcome::kReplica) {
    if (coming == Coming::kNew) queue_.pass(call.flow, call.tokens);
    return {.answer = Answer::kSent, .way = charge(request, decision, now)};
  }
  Dispatch dispatch;
  if (coming == Coming::kNew && queue_.size() >= setup_.router.queue_max) {
    const auto last = queue_.last_but(call.flow, call.tokens);
    if (!last) return {.answer = Answer::kRefused};
    dispatch.displaced = waiting_.at(*last);
    const bool taken = expire(*dispatch.displaced);
    ORRERY_ASSERT(taken, "it waits");
  }
  const bool batch = asked.request_class == RequestClass::kBatch;
  const Instant deadline = now + (batch ? setup_.batch_wait : setup_.queue_wait);
  call.ticket = coming == Coming::kAgain ? queue_.push_again()
                                         : queue_.push(call.flow, call.tokens, deadline);
  waiting_[call.ticket] = request;
  return dispatch;
}

std::optional<ModelledGateway::Sent> ModelledGateway::next(Instant now) {
  const auto ticket = queue_.front();
  if (!ticket) return std::nullopt;
  const std::uint32_t request = waiting_.at(*ticket);
  const RouteDecision decision = decide(request, 0, now);
  if (decision.outcome != RouteOutcome::kReplica) return std::nullopt;
  queue_.serve(*ticket);
  waiting_.erase(*ticket);
  calls_[request].ticket = 0;
  return Sent{.request = request, .way = charge(request, decision, now)};
}

bool ModelledGateway::expire(std::uint32_t request) {
  Call& call = calls_[request];
  if (call.ticket == 0) return false;
  queue_.erase(call.ticket);
  waiting_.erase(call.ticket);
  call.ticket = 0;
  return true;
}

void ModelledGateway::send_on(std::uint32_t request, std::uint32_t cached_tokens, Instant now) {
  Charges& charges = charges_.at(request);
  RouteCharge& charge = *charges.prompt;
  router_.note_success(charge.slot);
  router_.begin(charge, now);
  router_.note_cached(charge, cached_tokens);
  const std::uint32_t computed = trace_.requests[request].prompt_tokens - cached_tokens;
  router_.credit(charge, {.tokens = computed}, now);
  charges.prompt.reset();
  charges.answer.since = now;
}

void ModelledGateway::keep_together(std::uint32_t request, Instant now) {
  Charges& charges = charges_.at(request);
  router_.note_failure(charges.prompt->slot, now);
  router_.credit(*charges.prompt, {}, now);
  charges.prompt.reset();
  // A slot without a charge may become that of another replica.
  const RouteCharge again = router_.charge(charges.answer.slot, charges.otherwise, {}, now);
  router_.credit(charges.answer, {}, now);
  charges.answer = again;
}

void ModelledGateway::begin(std::uint32_t request, std::uint32_t cached_tokens, Instant now) {
  RouteCharge& charge = charges_.at(request).answer;
  router_.note_success(charge.slot);
  router_.begin(charge, now);
  router_.note_cached(charge, cached_tokens);
}

void ModelledGateway::end(const Ended& ended, Instant now) {
  const auto found = charges_.extract(ended.request);
  ORRERY_ASSERT(!found.empty() && !found.mapped().prompt, "only what is charged ends");
  const RouteCharge& charge = found.mapped().answer;
  Call& call = calls_[ended.request];
  const std::uint64_t done =
      trace_.requests[ended.request].prompt_tokens + std::uint64_t{ended.output_tokens};
  const bool received = charge.load.prompt == RouteLoad::Prompt::kReceived;
  router_.credit(charge, {.tokens = received ? ended.output_tokens : done, .tpot_s = ended.tpot_s},
                 now);
  queue_.settle(call.flow, static_cast<double>(done) - static_cast<double>(call.tokens));
  output_mean_ += kNewest * (static_cast<double>(ended.output_tokens) - output_mean_);
}

void ModelledGateway::lose(std::uint32_t request, Instant now) {
  const auto found = charges_.extract(request);
  ORRERY_ASSERT(!found.empty(), "only what is charged is lost");
  const Charges& charges = found.mapped();
  router_.note_failure(charges.answer.slot, now);
  router_.credit(charges.answer, {}, now);
  if (charges.prompt) router_.credit(*charges.prompt, {}, now);
}

}  // namespace orrery
