// twin/serving/engine_model.hpp - one replica of an inference engine in virtual time, step by step.
//
// Owned by a service run; borrows the chains of the trace. A step computes one token of each
// sequence that runs and parts of prompts within a budget of tokens, and takes what EngineStepCost
// says. The rules are those of vLLM V1 (running sequences first, then waiting ones in their order;
// prompts in chunks; blocks of 16 tokens, full ones found again by later prompts; without a free
// block the newest sequence is preempted and computed again), of orrery-serve, or of llama.cpp's
// slots.
//
// Time is counted in whole picoseconds, and the cost of a step is rounded to them term by term, so
// that many steps at once end exactly when they would have one by one. While nothing but the
// answers of the same sequences is computed, the steps up to the next end, or up to the last one
// for which there are blocks, are one event.
//
// Use: next() says when the present steps end; complete() ends them, tells what became of sequences
// and begins the next; submit() may come at any time before next(). Not thread-safe. Invariants:
//   1. Blocks in use, cached and free are all blocks.
//   2. At most one running sequence has a part of its prompt to compute, and it is the newest.
//   3. The oldest running sequence is never preempted, so each step ends some work.
// Cost: O(1) for steps without prompts, O(log sequences) for each sequence that begins or ends.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "base/format/field_reader.hpp"
#include "serving/engine_step_cost.hpp"
#include "twin/serving/decode_group.hpp"
#include "twin/serving/kv_cache_model.hpp"
#include "twin/serving/slot_cache_model.hpp"

namespace orrery {

/// A point or a length of virtual time; 106 days at most.
using Picoseconds = std::int64_t;

/// The end of virtual time: later, numbers would overflow.
inline constexpr Picoseconds kLastPs = Picoseconds{100} * 86'400 * 1'000'000'000'000;

inline constexpr Picoseconds kNeverPs = std::numeric_limits<Picoseconds>::max();

[[nodiscard]] constexpr double seconds_of_ps(Picoseconds ps) {
  return static_cast<double>(ps) * 1e-12;
}
[[nodiscard]] Picoseconds picoseconds(double seconds);

/// Whose rules an engine follows.
enum class EngineDiscipline : std::uint8_t {
  kVllm,    ///< a prompt begins where its first part finds blocks
  kOrrery,  ///< a prompt begins where all of it finds blocks
  kSlots,   ///< llama.cpp: each sequence has a slot with a fixed part of the context
};

inline std::array<EnumWord<EngineDiscipline>, 3> enum_words(EngineDiscipline) {
  return {{{"vllm", EngineDiscipline::kVllm},
           {"orrery", EngineDiscipline::kOrrery},
           {"llamacpp", EngineDiscipline::kSlots}}};
}

struct EngineRules {
  EngineDiscipline discipline = EngineDiscipline::kVllm;
  std::uint32_t sequences_max = 256;  ///< that run at a time
  std::uint32_t step_tokens = 2048;   ///< computed in a step; at least sequences_max
  std::uint32_t kv_blocks = 0;        ///< of the cache, of kKvBlockTokens tokens
  std::uint32_t context_max = 0;      ///< tokens of a prompt and its answer; 0: all blocks
  enum class Prefixes : std::uint8_t { kFound, kIgnored } prefixes = Prefixes::kFound;
  enum class Steps : std::uint8_t { kSkipped, kEach } steps = Steps::kSkipped;
};

struct EngineRequest {
  std::uint32_t id = 0;  ///< the caller's
  std::uint32_t prompt_tokens = 1;
  std::uint32_t output_tokens = 1;
  std::uint32_t generated = 0;           ///< tokens of the answer that another replica computed
  std::span<const std::uint32_t> chain;  ///< as of RequestTrace
  /// A prompt that another replica has computed comes with all but its last token in the cache.
  enum class Prompt : std::uint8_t { kComputed, kReceived } prompt = Prompt::kComputed;
};

enum class EngineEventKind : std::uint8_t {
  kFirst,  ///< the first token of an answer that began here
  kEnd,    ///< the last token
};

struct EngineEvent {
  EngineEventKind kind = EngineEventKind::kFirst;
  std::uint32_t id = 0;
  Picoseconds time = 0;
  std::uint32_t cached_tokens = 0;  ///< of the prompt, found when it first began
};

struct EngineModelCounters {
  std::uint64_t steps = 0;
  std::uint64_t events = 0;  ///< stretches of steps that were computed at once
  std::uint64_t preemptions = 0;
  std::uint64_t prompt_tokens = 0;  ///< of prompts that began
  std::uint64_t cached_tokens = 0;  ///< of these, found in the cache
  std::uint64_t generated_tokens = 0;
  Picoseconds busy = 0;
};

class EngineModel {
 public:
  /// `units`: RequestTrace::blocks. Precondition: step_tokens >= sequences_max > 0.
  EngineModel(const EngineRules& rules, const EngineStepCost& cost, std::uint32_t units);

  /// Whether the engine can ever compute a request of that size.
  [[nodiscard]] bool fits(std::uint32_t prompt_tokens, std::uint32_t output_tokens) const;
  /// Preconditions: fits(); generated < output_tokens; `now` is not before any earlier call.
  void submit(const EngineRequest& request, Picoseconds now);
  /// When complete() is due; kNeverPs: nothing runs or waits.
  [[nodiscard]] Picoseconds next() const { return stretch_.end; }
  /// Ends the steps that end at next() and begins others. The events live until the next call.
  std::span<const EngineEvent> complete();
  /// Ends everything, as a crash does; returns the requests with what was generated of each.
  std::vector<EngineRequest> fail(Picoseconds now);

  [[nodiscard]] std::size_t running() const { return running_.size(); }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }
  [[nodiscard]] const EngineModelCounters& counters() const { return counters_; }
  /// Counts again what the counters say. For tests. O(units + sequences).
  [[nodiscard]] bool consistent() const;

 private:
  using Id = DecodeGroup::Id;

  struct Sequence {
    EngineRequest request;
    std::uint32_t computed = 0;    ///< tokens in the cache while the prompt is computed
    std::uint32_t units = 0;       ///< leading units that are published and held
    std::uint32_t part_held = 0;   ///< blocks held of the unit that follows them
    std::uint32_t own_blocks = 0;  ///< private ones, when it began or became an answer
    std::uint32_t slot = 0;
    std::uint32_t cached = 0;  ///< tokens found when it first began
    bool begun = false;
    /// Tokens to compute before the next one can be drawn.
    [[nodiscard]] std::uint32_t goal() const { return request.prompt_tokens + request.generated; }
  };
  /// Tokens of a prompt that the present step computes.
  struct Part {
    Id id = 0;
    std::uint32_t tokens = 0;
  };
  /// Terms of the cost in picoseconds.
  struct Price {
    Picoseconds step = 0;
    Picoseconds sequence = 0;
    Picoseconds context = 0;
    Picoseconds prompt = 0;
    Picoseconds pair = 0;
  };
  /// Steps that are computed at once; more than one only without parts of prompts.
  struct Stretch {
    Picoseconds begin = 0;
    Picoseconds end = kNeverPs;
    Picoseconds first = 0;   ///< length of the first step
    Picoseconds growth = 0;  ///< by which each step is longer than the one before
    std::uint32_t steps = 0;
    [[nodiscard]] Picoseconds length(std::uint32_t count) const {
      const auto n = static_cast<Picoseconds>(count);
      return n * first + growth * (n * (n - 1) / 2);
    }
  };

  /// Sequences that run or wait, by a number that is used again.
  struct Pool {
    std::vector<Sequence> all;
    std::vector<Id> unused;
  };
  /// What complete() tells.
  struct Told {
    std::vector<EngineEvent> events;
    std::vector<Id> ended;
  };
  /// What the cache has of a prompt.
  struct Prefix {
    std::uint32_t tokens = 0;
    std::uint32_t idle_blocks = 0;  ///< of these, in no use by other sequences
  };

  void plan(Picoseconds now);
  [[nodiscard]] bool make_room_for_answers();
  [[nodiscard]] bool plan_begun(std::uint32_t& budget);
  void plan_waiting(std::uint32_t& budget);
  void plan_steps(Picoseconds now, std::uint32_t steps_max);
  [[nodiscard]] bool begin(Sequence& sequence, std::uint32_t budget);
  [[nodiscard]] Prefix look_up(const Sequence& sequence) const;
  void hold_prefix(Sequence& sequence);
  void receive(Sequence& sequence);
  void add_part(Id id, std::uint32_t tokens);
  void preempt_newest();
  void give_back(Sequence& sequence);
  void end_answers(std::uint32_t steps);
  void finish_part(const Part& part);
  void publish(Sequence& sequence);
  void end(Id id);
  void shorten(Picoseconds now);
  [[nodiscard]] std::uint32_t unit_blocks(const Sequence& sequence, std::uint32_t unit) const;
  [[nodiscard]] std::uint32_t own_blocks_of(Id id) const;

  EngineRules rules_;
  Price price_;
  KvCacheModel cache_;
  SlotCacheModel slots_;
  DecodeGroup answers_;
  Pool pool_;
  std::deque<Id> waiting_;
  std::vector<Id> running_;  ///< in the order in which they began
  std::vector<Part> parts_;  ///< of the present step
  Stretch stretch_;
  EngineModelCounters counters_;
  Told told_;
};

}  // namespace orrery
