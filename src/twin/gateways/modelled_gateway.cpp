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
         .kv_tokens = std::uint64_t{each.group->rules.kv_blocks} * kKvBlockTokens});
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
                          .now = now});
}

std::uint32_t ModelledGateway::charge(std::uint32_t request, const RouteDecision& decision,
                                      Instant now) {
  charges_.emplace(request, router_.charge(decision.slot, decision.load,
                                           blocks_of(trace_.requests[request]), now));
  return static_cast<std::uint32_t>(router_.replica(decision.slot).key.job);
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
  }
  const RouteDecision decision = decide(request, coming == Coming::kNew ? queue_.size() : 0, now);
  if (decision.outcome == RouteOutcome::kReplica) {
    if (coming == Coming::kNew) queue_.pass(call.flow, call.tokens);
    return {.answer = Answer::kSent, .replica = charge(request, decision, now)};
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
  return Sent{.request = request, .replica = charge(request, decision, now)};
}

bool ModelledGateway::expire(std::uint32_t request) {
  Call& call = calls_[request];
  if (call.ticket == 0) return false;
  queue_.erase(call.ticket);
  waiting_.erase(call.ticket);
  call.ticket = 0;
  return true;
}

void ModelledGateway::begin(std::uint32_t request, std::uint32_t cached_tokens, Instant now) {
  RouteCharge& charge = charges_.at(request);
  router_.note_success(charge.slot);
  router_.begin(charge, now);
  router_.note_cached(charge, cached_tokens);
}

void ModelledGateway::end(const Ended& ended, Instant now) {
  const auto charge = charges_.extract(ended.request);
  ORRERY_ASSERT(!charge.empty(), "only what is charged ends");
  Call& call = calls_[ended.request];
  const std::uint64_t done =
      trace_.requests[ended.request].prompt_tokens + std::uint64_t{ended.output_tokens};
  router_.credit(charge.mapped(), {.tokens = done, .tpot_s = ended.tpot_s}, now);
  queue_.settle(call.flow, static_cast<double>(done) - static_cast<double>(call.tokens));
  output_mean_ += kNewest * (static_cast<double>(ended.output_tokens) - output_mean_);
}

void ModelledGateway::lose(std::uint32_t request, Instant now) {
  const auto charge = charges_.extract(request);
  ORRERY_ASSERT(!charge.empty(), "only what is charged is lost");
  router_.note_failure(charge.mapped().slot, now);
  router_.credit(charge.mapped(), {}, now);
}

}  // namespace orrery
