#include "inference/engine/inference_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/numbers/rng.hpp"
#include "tokens/incremental_decoder.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBlock = KvBlockPool::kTokens;

std::size_t blocks_of(std::size_t tokens) { return (tokens + kBlock - 1) / kBlock; }

EngineLimits complete(EngineLimits limits, const TransformerConfig& config) {
  if (limits.blocks == 0) limits.blocks = blocks_for_all(config, limits.slots);
  return limits;
}

}  // namespace

std::size_t blocks_for_one(const TransformerConfig& config) {
  return blocks_of(static_cast<std::size_t>(config.sequence));
}

std::size_t blocks_for_all(const TransformerConfig& config, std::size_t slots) {
  return slots * blocks_for_one(config);
}

Status check(const EngineLimits& limits, const TransformerConfig& config) {
  constexpr std::size_t kSlotsMax = 1024;
  constexpr std::size_t kStepTokensMax = std::size_t{1} << 16;
  if (limits.slots == 0 || limits.slots > kSlotsMax) {
    return input_error({}, fmt::format("slots: {}, expected 1 to {}", limits.slots, kSlotsMax));
  }
  if (limits.step_tokens < limits.slots || limits.step_tokens > kStepTokensMax) {
    return input_error({}, fmt::format("tokens of a step: {}, expected {} (the slots) to {}",
                                       limits.step_tokens, limits.slots, kStepTokensMax));
  }
  const std::size_t least = blocks_for_one(config);
  if (limits.blocks != 0 && limits.blocks < least) {
    return input_error(
        {}, fmt::format("blocks of the KV cache: {}, expected at least {}, which a text of {} "
                        "tokens takes",
                        limits.blocks, least, config.sequence));
  }
  return {};
}

/// A request and what has become of it.
struct InferenceEngine::Text {
  Text(GenerationId name, GenerationRequest asked, const Tokenizer& tokenizer)
      : id(name),
        tokens(std::move(asked.prompt)),
        prompt_tokens(tokens.size()),
        sampling(asked.sampling),
        ends(std::move(asked.ends)),
        decoder(tokenizer, {.stops = std::move(asked.stops)}),
        rng(Rng::stream(sampling.seed, "generate")) {
    // Decoder and draws go as far as they had gone; the text that this releases is known.
    for (const std::int32_t token : asked.continued) {
      tokens.push_back(token);
      (void)decoder.add(token);
      if (sampling.temperature > 0) (void)rng.uniform();
    }
  }

  GenerationId id;
  std::vector<std::int32_t> tokens;  ///< the prompt, then what was generated
  std::size_t prompt_tokens;
  GenerateOptions sampling;
  std::vector<std::int32_t> ends;
  IncrementalDecoder decoder;
  Rng rng;
  std::optional<std::size_t> cached;  ///< tokens found when it first began
  std::size_t computed = 0;           ///< tokens whose keys and values are in `blocks`
  std::vector<KvBlockId> blocks;
  std::vector<KvBlockHash> hashes;  ///< of the full blocks that are published

  [[nodiscard]] std::size_t generated() const { return tokens.size() - prompt_tokens; }
  [[nodiscard]] std::span<const std::int32_t> block_tokens(std::size_t block) const {
    return std::span(tokens).subspan(block * kBlock, kBlock);
  }
  [[nodiscard]] std::optional<KvBlockHash> last_hash() const {
    return hashes.empty() ? std::nullopt : std::optional(hashes.back());
  }
  [[nodiscard]] KvBlockHash next_hash() const {
    return KvBlockPool::chain(last_hash(), block_tokens(hashes.size()));
  }
};

/// The tokens of a text that a step computes, from the first that is not computed.
struct InferenceEngine::Share {
  Text* text = nullptr;
  std::size_t tokens = 0;

  [[nodiscard]] std::size_t end() const { return text->computed + tokens; }
  [[nodiscard]] bool reaches_end() const { return end() == text->tokens.size(); }
};

InferenceEngine::InferenceEngine(const PackedTransformer& model, const Tokenizer& tokenizer,
                                 const EngineLimits& limits)
    : model_(model),
      tokenizer_(tokenizer),
      limits_(complete(limits, model.config())),
      pool_(limits_.blocks),
      decoder_(model,
               {.blocks = limits_.blocks, .rows = static_cast<std::int64_t>(limits_.step_tokens)}) {
  ORRERY_ASSERT(check(limits_, model.config()).has_value(), "the limits are checked");
  ORRERY_ASSERT(tokenizer.kinds() <= model.config().vocab, "the model has a row for each token");
}

InferenceEngine::~InferenceEngine() = default;

GenerationId InferenceEngine::submit(GenerationRequest request) {
  const auto context = static_cast<std::size_t>(model_.config().sequence);
  const std::size_t size = request.prompt.size();
  ORRERY_ASSERT(size > 0 && size < context, "the prompt leaves room for a token");
  const auto left = static_cast<std::int64_t>(context - size);
  request.sampling.tokens = std::clamp<std::int64_t>(request.sampling.tokens, 1, left);
  ORRERY_ASSERT(request.continued.size() < static_cast<std::size_t>(request.sampling.tokens),
                "the continued tokens leave one to generate");
  const GenerationId id{next_id_++};
  auto text = std::make_unique<Text>(id, std::move(request), tokenizer_);
  waiting_.push_back(text.get());
  texts_.emplace(id, std::move(text));
  return id;
}

void InferenceEngine::cancel(GenerationId id) {
  if (texts_.contains(id)) remove(id);
}

void InferenceEngine::remove(GenerationId id) {
  const auto found = texts_.find(id);
  Text* text = found->second.get();
  release_blocks(*text);
  std::erase(running_, text);
  std::erase(waiting_, text);
  texts_.erase(found);
}

// The last blocks go first: they are the first to be taken by others.
void InferenceEngine::release_blocks(Text& text) {
  while (!text.blocks.empty()) {
    pool_.release(text.blocks.back());
    text.blocks.pop_back();
  }
  text.hashes.clear();
  text.computed = 0;
}

void InferenceEngine::preempt_newest() {
  Text* text = running_.back();
  running_.pop_back();
  release_blocks(*text);
  waiting_.push_front(text);
  ++counters_.preemptions;
}

/// Gives a running text blocks for its tokens up to `end`, from newer texts where no other is free;
/// returns whether the text still runs.
bool InferenceEngine::make_room(Text& text, std::size_t end) {
  while (text.blocks.size() < blocks_of(end)) {
    if (const auto block = pool_.take()) {
      text.blocks.push_back(*block);
      continue;
    }
    const bool itself = running_.back() == &text;
    preempt_newest();
    if (itself) return false;
  }
  return true;
}

// Each text keeps a token of the budget for every one behind it, so that a long prompt delays none.
// Texts before a text in the order have their blocks already; those behind it may lose theirs.
void InferenceEngine::plan_running(std::vector<Share>& shares, std::size_t& budget) {
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Text& text = *running_[i];
    const std::size_t behind = running_.size() - 1 - i;
    const Share share{&text, std::min(budget - behind, text.tokens.size() - text.computed)};
    if (!make_room(text, share.end())) return;
    shares.push_back(share);
    budget -= share.tokens;
  }
}

/// Gives a waiting text the known blocks that it begins with. Its last token is computed in any
/// case: its scores are needed.
void InferenceEngine::start(Text& text) {
  while ((text.blocks.size() + 1) * kBlock < text.tokens.size()) {
    const KvBlockHash hash = text.next_hash();
    const auto block = pool_.find(hash, text.block_tokens(text.blocks.size()));
    if (!block) break;
    text.blocks.push_back(*block);
    text.hashes.push_back(hash);
  }
  text.computed = text.blocks.size() * kBlock;
}

// A text begins only if all of its tokens so far find a block.
void InferenceEngine::plan_waiting(std::vector<Share>& shares, std::size_t& budget) {
  while (!waiting_.empty() && running_.size() < limits_.slots && budget > 0) {
    Text& text = *waiting_.front();
    start(text);
    if (pool_.free() < blocks_of(text.tokens.size()) - text.blocks.size()) {
      return release_blocks(text);
    }
    waiting_.pop_front();
    running_.push_back(&text);
    if (!text.cached) {
      text.cached = std::min(text.computed, text.prompt_tokens);
      counters_.prompt_tokens += text.prompt_tokens;
      counters_.cached_tokens += *text.cached;
    }
    const Share share{&text, std::min(budget, text.tokens.size() - text.computed)};
    ORRERY_ASSERT(make_room(text, share.end()), "the blocks are free");
    shares.push_back(share);
    budget -= share.tokens;
  }
}

void InferenceEngine::publish_blocks(Text& text) {
  while ((text.hashes.size() + 1) * kBlock <= text.computed) {
    const std::size_t block = text.hashes.size();
    const KvBlockHash hash =
        pool_.publish(text.blocks[block], text.last_hash(), text.block_tokens(block));
    text.hashes.push_back(hash);
  }
}

/// Adds the next token to a text; the text may have ended then.
GenerationDelta InferenceEngine::extend(Text& text, std::span<const float> scores) {
  const std::int32_t token = sample_token(scores, text.sampling, text.rng);
  text.tokens.push_back(token);
  ++counters_.generated_tokens;
  GenerationDelta delta{.id = text.id,
                        .token = token,
                        .prompt_tokens = text.prompt_tokens,
                        .cached_tokens = text.cached.value_or(0),
                        .tokens = text.generated()};
  const bool ends = std::ranges::find(text.ends, token) != text.ends.end();
  if (!ends) delta.text = text.decoder.add(token);
  if (ends || text.decoder.stop()) {
    delta.finish = FinishReason::kStop;
  } else if (text.generated() == static_cast<std::size_t>(text.sampling.tokens)) {
    delta.finish = FinishReason::kLength;
  }
  if (delta.finish != FinishReason::kNone) delta.text += text.decoder.finish();
  return delta;
}

EngineStep InferenceEngine::step() {
  EngineStep step;
  std::vector<Share> shares;
  std::size_t budget = limits_.step_tokens;
  const std::uint64_t preemptions = counters_.preemptions;
  plan_running(shares, budget);
  if (counters_.preemptions == preemptions) plan_waiting(shares, budget);
  std::vector<DecoderRow> rows;
  for (const Share& share : shares) {
    const Text& text = *share.text;
    const bool decodes = share.tokens == 1 && share.reaches_end() && text.generated() > 0;
    (decodes ? step.decode_sequences : step.prefill_tokens) += share.tokens;
    if (decodes) {
      step.decode_context += share.end();
    } else {
      step.prefill_pairs += share.tokens * text.computed + share.tokens * (share.tokens + 1) / 2;
    }
    step.context_tokens += share.end();
    for (std::size_t i = text.computed; i < share.end(); ++i) {
      rows.push_back({.token = text.tokens[i],
                      .position = static_cast<std::int64_t>(i),
                      .blocks = text.blocks});
    }
    if (share.reaches_end()) rows.back().scores = DecoderRow::Scores::kWanted;
  }
  if (rows.empty()) return step;
  std::span<const float> scores = decoder_.compute(rows);
  const auto vocab = static_cast<std::size_t>(model_.config().vocab);
  for (const Share& share : shares) {
    Text& text = *share.text;
    const bool scored = share.reaches_end();
    text.computed = share.end();
    publish_blocks(text);
    if (!scored) continue;
    step.deltas.push_back(extend(text, scores.first(vocab)));
    scores = scores.subspan(vocab);
  }
  for (const GenerationDelta& delta : step.deltas) {
    if (delta.finish != FinishReason::kNone) remove(delta.id);
  }
  step.cache_events = pool_.take_events();
  return step;
}

}  // namespace orrery
