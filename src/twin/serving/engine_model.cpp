#include "twin/serving/engine_model.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {
namespace {

/// The most steps that are computed at once, and about how long they may be.
constexpr std::uint32_t kStepsMax = 1u << 20;
constexpr Picoseconds kStepsPs = Picoseconds{86'400} * 1'000'000'000'000;

/// Tokens of a prompt that another replica has computed.
std::uint32_t received_tokens(const EngineRequest& request) {
  return request.prompt == EngineRequest::Prompt::kReceived ? request.prompt_tokens - 1 : 0;
}

std::uint32_t blocks_in_cache(const EngineRules& rules) {
  if (rules.discipline != EngineDiscipline::kSlots) return rules.kv_blocks;
  return rules.sequences_max * kv_blocks_of(rules.context_max);
}

}  // namespace

Picoseconds picoseconds(double seconds) { return std::llround(seconds * 1e12); }

EngineModel::EngineModel(const EngineRules& rules, const EngineStepCost& cost, std::uint32_t units)
    : rules_(rules),
      price_{.step = picoseconds(cost.step_s),
             .sequence = picoseconds(cost.sequence_s),
             .context = picoseconds(cost.context_token_s),
             .prompt = picoseconds(cost.prompt_token_s),
             .pair = picoseconds(cost.prompt_pair_s)},
      cache_(blocks_in_cache(rules), units),
      slots_(rules.discipline == EngineDiscipline::kSlots ? rules.sequences_max : 0) {
  ORRERY_ASSERT(rules.sequences_max > 0 && rules.step_tokens >= rules.sequences_max,
                "a step has a token for each sequence");
}

bool EngineModel::fits(std::uint32_t prompt_tokens, std::uint32_t output_tokens) const {
  const std::uint64_t tokens = std::uint64_t{prompt_tokens} + output_tokens;
  if (rules_.context_max > 0 && tokens > rules_.context_max) return false;
  return kv_blocks_of(tokens) <= cache_.total();
}

void EngineModel::submit(const EngineRequest& request, Picoseconds now) {
  ORRERY_ASSERT(fits(request.prompt_tokens, request.output_tokens) &&
                    request.generated < request.output_tokens,
                "the request fits, and is not at its end");
  Id id = 0;
  if (pool_.unused.empty()) {
    id = static_cast<Id>(pool_.all.size());
    pool_.all.emplace_back();
  } else {
    id = pool_.unused.back();
    pool_.unused.pop_back();
  }
  pool_.all[id] = {.request = request};
  // Where others wait, the one in front of them waits for an end, and no step is cut short.
  const bool matters = waiting_.empty();
  waiting_.push_back(id);
  if (stretch_.end == kNeverPs) {
    stretch_ = {.begin = now, .end = now};
  } else if (matters && parts_.empty()) {
    shorten(now);
  }
}

/// Lets the present stretch end with the step that runs at that time.
void EngineModel::shorten(Picoseconds now) {
  std::uint32_t low = 0;  // as many steps begin before `now`
  std::uint32_t high = stretch_.steps;
  while (low < high) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (stretch_.begin + stretch_.length(middle) < now) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  stretch_.steps = low;
  stretch_.end = stretch_.begin + stretch_.length(low);
}

std::span<const EngineEvent> EngineModel::complete() {
  told_.events.clear();
  const Picoseconds now = stretch_.end;
  counters_.steps += stretch_.steps;
  counters_.events += stretch_.steps > 0 ? 1 : 0;
  counters_.busy += now - stretch_.begin;
  end_answers(stretch_.steps);
  for (const Part& part : parts_) finish_part(part);
  plan(now);
  return told_.events;
}

/// Lets the answers grow by so many tokens; the blocks of one step are taken already.
void EngineModel::end_answers(std::uint32_t steps) {
  if (answers_.size() == 0) return;
  const auto taken = static_cast<std::uint32_t>(answers_.blocks_needed(1));
  const auto needed = static_cast<std::uint32_t>(answers_.blocks_needed(steps));
  if (steps == 0) return cache_.give(taken);
  cache_.take(needed - taken);
  counters_.generated_tokens += std::uint64_t{steps} * answers_.size();
  told_.ended.clear();
  answers_.advance(steps, told_.ended);
  for (const Id id : told_.ended) {
    Sequence& sequence = pool_.all[id];
    const std::uint32_t more = sequence.request.output_tokens - sequence.request.generated;
    sequence.own_blocks += kv_blocks_of(sequence.computed + more) - kv_blocks_of(sequence.computed);
    end(id);
  }
}

/// Ends a sequence whose own_blocks are up to date.
void EngineModel::end(Id id) {
  told_.events.push_back(
      {.kind = EngineEventKind::kEnd, .id = pool_.all[id].request.id, .time = stretch_.end});
  give_back(pool_.all[id]);
  std::erase(running_, id);
  pool_.unused.push_back(id);
}

void EngineModel::finish_part(const Part& part) {
  Sequence& sequence = pool_.all[part.id];
  sequence.computed += part.tokens;
  publish(sequence);
  if (sequence.computed < sequence.goal()) return;
  ++sequence.request.generated;
  ++counters_.generated_tokens;
  if (sequence.request.generated == 1) {
    told_.events.push_back({.kind = EngineEventKind::kFirst,
                            .id = sequence.request.id,
                            .time = stretch_.end,
                            .cached_tokens = sequence.cached});
  }
  const std::uint32_t left = sequence.request.output_tokens - sequence.request.generated;
  if (left == 0) return end(part.id);
  answers_.join(part.id, sequence.computed, left);
}

/// Blocks that a unit of a prompt fills: those of its tokens that fill blocks.
std::uint32_t EngineModel::unit_blocks(const Sequence& sequence, std::uint32_t unit) const {
  const std::uint32_t begin = unit * kTraceBlockTokens;
  return std::min(sequence.request.prompt_tokens - begin, kTraceBlockTokens) / kKvBlockTokens;
}

/// Makes the units known that are computed by now.
void EngineModel::publish(Sequence& sequence) {
  if (rules_.discipline == EngineDiscipline::kSlots ||
      rules_.prefixes == EngineRules::Prefixes::kIgnored) {
    return;
  }
  while (sequence.units < sequence.request.chain.size()) {
    const std::uint32_t full = unit_blocks(sequence, sequence.units);
    const std::uint32_t end = sequence.units * kTraceBlockTokens + full * kKvBlockTokens;
    if (full == 0 || sequence.computed < end) return;
    const std::uint32_t own = full - sequence.part_held;
    if (own > 0) cache_.publish(sequence.request.chain[sequence.units], full, own);
    sequence.own_blocks -= own;
    sequence.part_held = 0;
    ++sequence.units;
  }
}

void EngineModel::plan(Picoseconds now) {
  parts_.clear();
  bool preempted = make_room_for_answers();
  if (answers_.size() > 0) cache_.take(static_cast<std::uint32_t>(answers_.blocks_needed(1)));
  std::uint32_t budget = rules_.step_tokens - answers_.size();
  if (!plan_begun(budget)) preempted = true;
  if (!preempted) plan_waiting(budget);
  // After a preemption nothing begins in this step, but may in the next.
  const bool each = rules_.steps == EngineRules::Steps::kEach || preempted;
  plan_steps(now, each ? 1 : kStepsMax);
}

/// Preempts the newest sequences until each answer finds a block; returns whether it had to.
bool EngineModel::make_room_for_answers() {
  bool preempted = false;
  while (answers_.size() > 0 && answers_.blocks_needed(1) > cache_.available()) {
    preempt_newest();
    preempted = true;
  }
  return preempted;
}

void EngineModel::preempt_newest() {
  const Id id = running_.back();
  running_.pop_back();
  Sequence& sequence = pool_.all[id];
  if (answers_.has(id)) {
    sequence.own_blocks = own_blocks_of(id);
    sequence.request.generated += answers_.leave(id);
  }
  give_back(sequence);
  sequence.request.prompt = EngineRequest::Prompt::kComputed;  // what it received is lost
  waiting_.push_front(id);
  ++counters_.preemptions;
}

std::uint32_t EngineModel::own_blocks_of(Id id) const {
  const Sequence& sequence = pool_.all[id];
  if (!answers_.has(id)) return sequence.own_blocks;
  const std::uint32_t steps = answers_.steps_of(id);
  return sequence.own_blocks + kv_blocks_of(sequence.computed + steps) -
         kv_blocks_of(sequence.computed);
}

/// Gives blocks and units of a sequence back; the last units become old first.
void EngineModel::give_back(Sequence& sequence) {
  cache_.give(sequence.own_blocks);
  if (rules_.discipline == EngineDiscipline::kSlots && sequence.computed > 0) {
    slots_.give(sequence.slot,
                {.chain = sequence.request.chain,
                 .tokens = std::min(sequence.computed, sequence.request.prompt_tokens)});
  }
  if (sequence.part_held > 0) cache_.release(sequence.request.chain[sequence.units]);
  while (sequence.units > 0) cache_.release(sequence.request.chain[--sequence.units]);
  sequence.own_blocks = sequence.part_held = sequence.computed = 0;
}

/// Plans the rest of a prompt that has begun; returns false where it had to be preempted.
bool EngineModel::plan_begun(std::uint32_t& budget) {
  if (running_.empty() || answers_.has(running_.back()) || budget == 0) return true;
  const Id id = running_.back();
  const Sequence& sequence = pool_.all[id];
  const std::uint32_t tokens = std::min(budget, sequence.goal() - sequence.computed);
  const std::uint32_t needed =
      kv_blocks_of(sequence.computed + tokens) - kv_blocks_of(sequence.computed);
  if (needed > cache_.available()) {
    preempt_newest();
    return false;
  }
  add_part(id, tokens);
  budget -= tokens;
  return true;
}

void EngineModel::add_part(Id id, std::uint32_t tokens) {
  Sequence& sequence = pool_.all[id];
  const std::uint32_t needed =
      kv_blocks_of(sequence.computed + tokens) - kv_blocks_of(sequence.computed);
  cache_.take(needed);
  sequence.own_blocks += needed;
  parts_.push_back({.id = id, .tokens = tokens});
}

void EngineModel::plan_waiting(std::uint32_t& budget) {
  while (!waiting_.empty() && running_.size() < rules_.sequences_max && budget > 0) {
    const Id id = waiting_.front();
    Sequence& sequence = pool_.all[id];
    if (!begin(sequence, budget)) return;
    waiting_.pop_front();
    running_.push_back(id);
    const bool received = received_tokens(sequence.request) > 0;
    if (!std::exchange(sequence.begun, true) && !received) {
      sequence.cached = std::min(sequence.computed, sequence.request.prompt_tokens);
      counters_.prompt_tokens += sequence.request.prompt_tokens;
      counters_.cached_tokens += sequence.cached;
    }
    const std::uint32_t tokens = std::min(budget, sequence.goal() - sequence.computed);
    add_part(id, tokens);
    budget -= tokens;
  }
}

/// Gives a waiting sequence what is known of its prompt, if there are blocks for the rest, or for
/// the part that this step computes.
bool EngineModel::begin(Sequence& sequence, std::uint32_t budget) {
  if (rules_.discipline == EngineDiscipline::kSlots) {
    const SlotCacheModel::Taken taken =
        slots_.take({.chain = sequence.request.chain, .tokens = sequence.request.prompt_tokens});
    sequence.slot = taken.slot;
    sequence.computed = std::min(taken.tokens, sequence.goal() - 1);
    sequence.own_blocks = kv_blocks_of(sequence.computed);
    cache_.take(sequence.own_blocks);
    return true;
  }
  const Prefix known = look_up(sequence);
  const bool whole = rules_.discipline == EngineDiscipline::kOrrery;
  const std::uint32_t there = std::max(known.tokens, received_tokens(sequence.request));
  const std::uint32_t tokens = whole ? sequence.goal() : std::min(sequence.goal(), there + budget);
  const std::uint32_t needed = kv_blocks_of(tokens) - kv_blocks_of(known.tokens);
  if (needed + known.idle_blocks > cache_.available()) return false;
  hold_prefix(sequence);
  receive(sequence);
  return true;
}

/// Takes blocks for what another replica has computed and the cache has not.
void EngineModel::receive(Sequence& sequence) {
  const std::uint32_t tokens = received_tokens(sequence.request);
  if (tokens <= sequence.computed) return;
  const std::uint32_t needed = kv_blocks_of(tokens) - kv_blocks_of(sequence.computed);
  cache_.take(needed);
  sequence.own_blocks += needed;
  sequence.computed = tokens;
  publish(sequence);
}

EngineModel::Prefix EngineModel::look_up(const Sequence& sequence) const {
  Prefix known;
  if (rules_.prefixes == EngineRules::Prefixes::kIgnored) return known;
  // The last token is computed in any case: the next one is drawn from it.
  std::uint32_t left = (sequence.goal() - 1) / kKvBlockTokens;
  for (std::uint32_t unit = 0; unit < sequence.request.chain.size() && left > 0; ++unit) {
    const std::uint32_t number = sequence.request.chain[unit];
    const std::uint32_t full = unit_blocks(sequence, unit);
    const std::uint32_t there = cache_.blocks_in(number);
    if (cache_.is_idle(number)) known.idle_blocks += there;
    const std::uint32_t found = std::min({there, full, left});
    known.tokens += found * kKvBlockTokens;
    left -= found;
    if (found < full) break;
  }
  return known;
}

/// Holds the units that look_up() counts.
void EngineModel::hold_prefix(Sequence& sequence) {
  if (rules_.prefixes == EngineRules::Prefixes::kIgnored) return;
  std::uint32_t left = (sequence.goal() - 1) / kKvBlockTokens;
  while (sequence.units < sequence.request.chain.size() && left > 0) {
    const std::uint32_t full = unit_blocks(sequence, sequence.units);
    if (full == 0) return;
    const std::uint32_t there = cache_.hold(sequence.request.chain[sequence.units]);
    const std::uint32_t found = std::min({there, full, left});
    sequence.computed += found * kKvBlockTokens;
    left -= found;
    if (found < full) {
      sequence.part_held = found;
      return;
    }
    ++sequence.units;
  }
}

/// Begins the steps of the plan: one where prompts are computed, else as many as are alike.
void EngineModel::plan_steps(Picoseconds now, std::uint32_t steps_max) {
  const auto members = static_cast<Picoseconds>(answers_.size());
  Picoseconds prompt = 0;
  Picoseconds pairs = 0;
  for (const Part& part : parts_) {
    const auto tokens = static_cast<Picoseconds>(part.tokens);
    prompt += tokens;
    pairs +=
        tokens * static_cast<Picoseconds>(pool_.all[part.id].computed) + tokens * (tokens + 1) / 2;
  }
  stretch_ = {.begin = now};
  if (members == 0 && parts_.empty()) return;
  const auto context = static_cast<Picoseconds>(answers_.context()) + members;
  // No step is longer than a day: beyond it, whole numbers would overflow.
  const double about = static_cast<double>(context) * static_cast<double>(price_.context) +
                       static_cast<double>(prompt) * static_cast<double>(price_.prompt) +
                       static_cast<double>(pairs) * static_cast<double>(price_.pair);
  stretch_.first = about > static_cast<double>(kStepsPs)
                       ? kStepsPs
                       : price_.step + members * price_.sequence + context * price_.context +
                             prompt * price_.prompt + pairs * price_.pair;
  stretch_.growth = members * price_.context;
  stretch_.steps = 1;
  if (parts_.empty() && steps_max > 1) {
    const auto taken = static_cast<std::uint32_t>(answers_.blocks_needed(1));
    const std::uint32_t ends = std::min(answers_.steps_to_end(), steps_max);
    const Picoseconds longest = stretch_.first + stretch_.growth * static_cast<Picoseconds>(ends);
    const auto limit = static_cast<std::uint32_t>(
        std::min<Picoseconds>(ends, 1 + kStepsPs / std::max<Picoseconds>(longest, 1)));
    stretch_.steps = answers_.steps_within(cache_.available() + taken, limit);
  }
  stretch_.end = now + stretch_.length(stretch_.steps);
}

std::vector<EngineRequest> EngineModel::fail(Picoseconds now) {
  // Tokens of steps that ended by then have been sent.
  std::uint32_t steps = 0;
  const bool answers_alone = parts_.empty() && stretch_.end != kNeverPs;
  while (answers_alone && steps < stretch_.steps &&
         stretch_.begin + stretch_.length(steps + 1) <= now) {
    ++steps;
  }
  if (stretch_.end != kNeverPs) counters_.busy += std::max<Picoseconds>(now - stretch_.begin, 0);
  counters_.steps += steps;
  counters_.generated_tokens += std::uint64_t{steps} * answers_.size();
  std::vector<EngineRequest> lost;
  lost.reserve(running_.size() + waiting_.size());
  for (const Id id : running_) {
    EngineRequest request = pool_.all[id].request;
    if (answers_.has(id)) request.generated += answers_.steps_of(id) + steps;
    lost.push_back(request);
  }
  for (const Id id : waiting_) lost.push_back(pool_.all[id].request);
  answers_.clear();
  cache_.clear();
  slots_.clear();
  pool_ = {};
  waiting_.clear();
  running_.clear();
  parts_.clear();
  stretch_ = {};
  return lost;
}

bool EngineModel::consistent() const {
  // The blocks of the present step are taken, and its tokens are not counted yet.
  std::uint64_t own = answers_.size() > 0 ? answers_.blocks_needed(1) : 0;
  if (stretch_.end == kNeverPs && answers_.size() > 0) return false;
  for (const Id id : running_) own += own_blocks_of(id);
  return cache_.consistent(static_cast<std::uint32_t>(own)) &&
         running_.size() + waiting_.size() + pool_.unused.size() == pool_.all.size();
}

}  // namespace orrery
