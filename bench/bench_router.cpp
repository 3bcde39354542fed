// What the choice of a replica costs: the prefix index, choose() and the chain of a prompt. No
// network, one thread.
//
// The prompts are those of sessions: a system prompt of 8 blocks, one of 200, then 8 to 56 blocks
// of the session's own; 20,000 sessions ask in any order 64 replicas with 7,812 blocks each, so
// that what was cached is evicted all the time. An operation of the index is a block that is
// matched or stored.
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "bench/bench_process.hpp"
#include "bench/figure.hpp"
#include "gateway/caches/engine_blocks.hpp"
#include "gateway/prompt/routed_prompt.hpp"
#include "kv_events/kv_event_wire.hpp"
#include "serving/routing/router.hpp"

namespace orrery {
namespace {

constexpr std::uint32_t kReplicas = 64;
constexpr std::size_t kSessions = 20'000;
constexpr std::size_t kSystemBlocks = 8;
constexpr int kRequests = 200'000;

std::vector<std::vector<std::uint64_t>> make_prompts(Rng& rng) {
  std::vector<std::vector<std::uint64_t>> prompts(kSessions);
  for (std::vector<std::uint64_t>& prompt : prompts) {
    Rng system(rng.below(200));
    const std::size_t own = 8 + rng.below(49);
    prompt.reserve(kSystemBlocks + own);
    for (std::size_t i = 0; i < kSystemBlocks; ++i) prompt.push_back(system.next_u64());
    for (std::size_t i = 0; i < own; ++i) prompt.push_back(rng.next_u64());
  }
  return prompts;
}

RouteTable make_table() {
  RouteTable table;
  table.services.push_back({.id = 1, .name = "chat", .model = "m"});
  table.services[0].ttft_p99_s = 1;
  table.services[0].tpot_p99_s = 0.05;
  for (std::uint64_t job = 1; job <= kReplicas; ++job) {
    table.services[0].replicas.push_back({.job = job,
                                          .attempt = 1,
                                          .endpoint = "10.0.0.1:8000",
                                          .slots = 64,
                                          .pace = {20'000, 0.01, 0.03},
                                          .usd_s = 0.001,
                                          .kv_tokens = 500'000});
  }
  return table;
}

void show(const std::string& name, double value, const std::string& unit, double target) {
  print_figure({.bench = "router", .name = name, .value = value, .unit = unit, .target = target});
}

void measure_index(const std::vector<std::vector<std::uint64_t>>& prompts) {
  PrefixIndex index(1'000'000);
  std::vector<std::uint32_t> slots(kReplicas);
  for (std::uint32_t slot = 0; slot < kReplicas; ++slot) {
    slots[slot] = slot;
    index.set_capacity(slot, 7812);
  }
  Rng rng(2);
  std::vector<std::uint32_t> leading(kReplicas);
  std::uint64_t operations = 0;
  const auto run = [&](int requests) {
    for (int i = 0; i < requests; ++i) {
      const std::vector<std::uint64_t>& prompt = prompts[rng.below(kSessions)];
      index.match(prompt, slots, leading);
      std::uint32_t best = static_cast<std::uint32_t>(rng.below(kReplicas));
      for (const std::uint32_t slot : slots) {
        if (leading[slot] > leading[best]) best = slot;
      }
      index.store(best, prompt);
      operations += leading[best] + prompt.size();
    }
  };
  run(kRequests);  // until all is full
  operations = 0;
  const double seconds = seconds_of([&] { run(kRequests); });
  show("an operation of the prefix index, 64 replicas",
       seconds / static_cast<double>(operations) * 1e9, "ns", 100);
  show("memory of a block of a replica in the index",
       static_cast<double>(index.bytes()) / static_cast<double>(index.blocks()), "bytes", 104);
}

void measure_choice(RoutePolicy policy, const std::vector<std::vector<std::uint64_t>>& prompts) {
  RouterState state({.policy = policy});
  state.set_table(make_table());
  Rng rng(3);
  std::vector<RouteCharge> charges;
  double now_s = 1000;
  const auto step = [&] {
    const std::vector<std::uint64_t>& prompt = prompts[rng.below(kSessions)];
    const Instant now = Instant() + Duration::from_seconds(now_s);
    now_s += 0.0005;
    const RouteDecision decision = choose(state, {.prompt_tokens = prompt.size() * 64,
                                                  .output_tokens = 100,
                                                  .blocks = prompt,
                                                  .draw = rng.uniform(),
                                                  .now = now});
    if (decision.outcome == RouteOutcome::kReplica) {
      charges.push_back(state.charge(decision.slot, decision.load, prompt, now));
    }
    if (charges.size() < 1000) return;
    const std::size_t at = rng.below(charges.size());
    state.begin(charges[at], now);
    state.credit(charges[at], {.tokens = 500, .tpot_s = 0.02}, now);
    charges[at] = charges.back();
    charges.pop_back();
  };
  for (int i = 0; i < kRequests / 2; ++i) step();
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kRequests; ++i) step();
  });
  show(fmt::format("R1: a decision among 64 replicas with its charges, policy {}", word_of(policy)),
       seconds / kRequests * 1e6, "us", 100);
}

void measure_chain() {
  std::string body = R"({"model":"m","messages":[)";
  while (body.size() < 4000)
    body += R"({"role":"user","content":"What is the answer to it all?"},)";
  body.back() = ']';
  body += "}";
  body.reserve(body.size() + 64);
  RequestReader reader;
  std::size_t blocks = 0;
  constexpr int kTimes = 100'000;
  const double read = seconds_of([&] {
    for (int i = 0; i < kTimes; ++i) blocks += reader.read(body)->prompt.size > 0 ? 1U : 0U;
  });
  const auto facts = reader.read(body);
  const ServiceTokens tokens;
  const double chained = seconds_of([&] {
    for (int i = 0; i < kTimes; ++i)
      blocks += routed_prompt(body, *facts, {1, tokens, Instant()}).blocks.size();
  });
  if (blocks < kTimes) give_up("a prompt without blocks");
  show("the body of a request of 4 KB, read", read / kTimes * 1e6, "us", 10);
  show("its chain of blocks", chained / kTimes * 1e6, "us", 20);
}

/// Texts of 62 blocks under names of their own enter the cache of an engine, the oldest leave.
void measure_events() {
  constexpr std::uint64_t kTexts = 20'000;
  constexpr std::uint64_t kBlocks = 62;
  constexpr std::uint64_t kKept = 500;
  std::vector<std::vector<KvEvent>> messages(kTexts);
  for (std::uint64_t text = 0; text < kTexts; ++text) {
    KvBlocksStored stored{.hashes = {}, .parent = {}, .tokens = {}, .block_tokens = kChainTokens};
    KvBlocksRemoved removed;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      stored.hashes.push_back(text * kBlocks + i);
      if (text >= kKept) removed.hashes.push_back((text - kKept) * kBlocks + i);
    }
    for (std::uint64_t i = 0; i < kBlocks * kChainTokens; ++i) {
      stored.tokens.push_back(static_cast<std::int32_t>(text * 31 + i));
    }
    messages[text] = {std::move(removed), std::move(stored)};
  }
  EngineBlocks blocks;
  PrefixIndex index(1'000'000);
  index.set_capacity(0, 2 * kKept * kBlocks);
  const double applied = seconds_of([&] {
    for (const std::vector<KvEvent>& each : messages) {
      for (const std::uint64_t name : std::get<KvBlocksRemoved>(each[0]).hashes) {
        for (const std::uint64_t block : blocks.remove(name)) index.remove(0, block);
      }
      index.store(0, blocks.store(std::get<KvBlocksStored>(each[1])));
    }
  });
  if (index.blocks_of(0) != kKept * kBlocks) give_up("the index has not what the engine has");
  const double operations = static_cast<double>((2 * kTexts - kKept) * kBlocks);
  show("R6: a block that an engine has stored or removed", applied / operations * 1e9, "ns", 100);
  const std::string message = write_kv_events({.time_s = 1, .events = {messages.back()[1]}});
  constexpr int kTimes = 2000;
  std::size_t read = 0;
  const double seconds = seconds_of([&] {
    for (int i = 0; i < kTimes; ++i) read += read_kv_events(message)->events.size();
  });
  if (read != kTimes) give_up("a message that is not read");
  show("a block of a message of vLLM's form, read", seconds / (kTimes * kBlocks) * 1e6, "us", 5);
}

int run() {
  Rng rng(1);
  const std::vector<std::vector<std::uint64_t>> prompts = make_prompts(rng);
  measure_index(prompts);
  for (const auto& each : enum_words(RoutePolicy())) measure_choice(each.value, prompts);
  measure_chain();
  measure_events();
  return 0;
}

}  // namespace
}  // namespace orrery

int main() { return orrery::run(); }
