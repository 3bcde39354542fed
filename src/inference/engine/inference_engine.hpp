// inference/engine/inference_engine.hpp - continuous batching over one model: many texts are
// generated together, a step at a time.
//
// Made by its thread, which alone uses it; borrows model and tokenizer. Pure: it owns no clock, and
// a step depends on the calls before it alone. A step computes one token of each text that runs and
// parts of the prompts of new texts, within a budget of tokens; requests wait in the order of
// arrival for one of `slots` places. A text that finds no free block of the KV cache takes those of
// the newest, which waits at the front and is computed again. Blocks that begin alike are shared.
//
// Invariants:
//   1. With temperature 0 a text depends on its own request alone; so it does with a seed.
//   2. After each call, free and used blocks are all blocks, and only running texts use any.
//   3. The oldest running text is never preempted, so each step ends some work.
// Cost of a step: that of the forward pass of its tokens.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "inference/engine/generation.hpp"
#include "inference/engine/kv_block_pool.hpp"
#include "inference/engine/packed_transformer.hpp"
#include "inference/engine/paged_decoder.hpp"
#include "tokens/tokenizer.hpp"

namespace orrery {

struct EngineLimits {
  std::size_t slots = 8;          ///< texts that run at once
  std::size_t step_tokens = 256;  ///< computed in a step; at least `slots`
  std::size_t blocks = 0;         ///< of the KV cache; 0: blocks_for_all()
};

/// Returns the blocks that a text of the whole context takes.
[[nodiscard]] std::size_t blocks_for_one(const TransformerConfig& config);
/// Returns the blocks with which no text is ever preempted.
[[nodiscard]] std::size_t blocks_for_all(const TransformerConfig& config, std::size_t slots);
/// Input errors: no slot, a step that is smaller than the slots, too few blocks for one text.
[[nodiscard]] Status check(const EngineLimits& limits, const TransformerConfig& config);

/// What a step computed.
struct EngineStep {
  std::size_t prefill_tokens = 0;    ///< tokens of prompts, and of texts that are computed again
  std::size_t decode_sequences = 0;  ///< texts of which the newest token was computed
  std::size_t context_tokens = 0;    ///< tokens that all texts of the step have in the cache
  std::size_t decode_context = 0;    ///< of these, of texts of which the newest was computed
  std::size_t prefill_pairs = 0;     ///< of a token of a prompt and a token that it attends to
  std::vector<GenerationDelta> deltas;
  std::vector<KvEvent> cache_events;  ///< what its cache has got and lost
};

/// Totals since the engine was made.
struct EngineCounters {
  std::uint64_t prompt_tokens = 0;  ///< of prompts that began to run
  std::uint64_t cached_tokens = 0;  ///< of these, found in the cache
  std::uint64_t generated_tokens = 0;
  std::uint64_t preemptions = 0;
};

class InferenceEngine {
 public:
  /// Preconditions: check(limits, model.config()) is fine, and the model has a row for each token.
  InferenceEngine(const PackedTransformer& model, const Tokenizer& tokenizer,
                  const EngineLimits& limits);
  ~InferenceEngine();
  InferenceEngine(const InferenceEngine&) = delete;
  InferenceEngine& operator=(const InferenceEngine&) = delete;

  /// Adds a request to the end of the queue. Precondition: the prompt has 1 to `sequence` - 1
  /// tokens of the vocabulary; `continued` has fewer than may be generated.
  GenerationId submit(GenerationRequest request);
  /// Ends a text without a further delta; one that has ended is fine.
  void cancel(GenerationId id);
  /// Computes the next tokens. Without any request it does nothing.
  [[nodiscard]] EngineStep step();

  [[nodiscard]] bool idle() const { return texts_.empty(); }
  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const KvBlockPool& blocks() const { return pool_; }
  [[nodiscard]] const EngineCounters& counters() const { return counters_; }

 private:
  struct Text;
  struct Share;

  void plan_running(std::vector<Share>& shares, std::size_t& budget);
  void plan_waiting(std::vector<Share>& shares, std::size_t& budget);
  [[nodiscard]] bool make_room(Text& text, std::size_t end);
  void start(Text& text);
  void preempt_newest();
  void publish_blocks(Text& text);
  [[nodiscard]] GenerationDelta extend(Text& text, std::span<const float> scores);
  void release_blocks(Text& text);
  void remove(GenerationId id);

  const PackedTransformer& model_;
  const Tokenizer& tokenizer_;
  EngineLimits limits_;
  KvBlockPool pool_;
  PagedDecoder decoder_;
  std::map<GenerationId, std::unique_ptr<Text>> texts_;
  std::deque<Text*> waiting_;
  std::vector<Text*> running_;  ///< in the order in which they began
  EngineCounters counters_;
  std::uint64_t next_id_ = 1;
};

}  // namespace orrery
