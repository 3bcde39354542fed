// adapter/engine_warm_up.hpp - the first token of an inference engine, and how fast it computes:
// what a router needs to predict waiting times.
//
//   1. One token. Without it the engine is not ready, whatever its port answers.
//   2. Tokens of a prompt a second, computed alone.
//   3. Seconds of a step with one text, and with a text in each slot: the time of texts of several
//      tokens, less the time of as many texts of one token. Where noise exceeds this difference, a
//      step is the time of a text over its number of tokens: an upper bound.
//
// Prompts have no beginning in common, so no cache helps. A model whose context is too short for a
// prompt gets a shorter one. Each is measured twice, and the faster counts: the first may compile.
// What cannot be measured, or not in time, is zero. Made by EngineReplica, used on the loop. Its
// end ends its calls, without a call of `done`.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "adapter/engine_calls.hpp"
#include "base/error.hpp"
#include "base/numbers/rng.hpp"
#include "base/system/real_clock.hpp"
#include "serving/replica.hpp"

namespace orrery {

struct WarmUpOptions {
  std::string endpoint;  ///< "HOST:PORT", numeric
  std::string model;
  std::uint32_t slots = 1;
  Duration token_max = Duration::minutes(10);    ///< for the first token, which compiles
  Duration measure_max = Duration::seconds(60);  ///< for all that follows
};

class EngineWarmUp {
 public:
  using Done = std::function<void(const Result<ReplicaPace>&)>;

  /// `done` runs once, in a later round; it may destroy this. Error: there was no token.
  EngineWarmUp(RealLoop& loop, WarmUpOptions options, Done done);
  EngineWarmUp(const EngineWarmUp&) = delete;
  EngineWarmUp& operator=(const EngineWarmUp&) = delete;

 private:
  enum class Stage : std::uint8_t { kPrefill, kAloneFirst, kAlone, kFullFirst, kFull };
  /// Several requests at once.
  struct Batch {
    std::uint32_t left = 0;     ///< without an answer
    std::uint32_t refused = 0;  ///< 4xx: too long
    std::uint32_t failed = 0;
    double seconds = 0;     ///< of the slowest
    CompletionUsage usage;  ///< of the first
  };

  struct Times {
    double first = 0;  ///< of the texts of one token
    double best = 0;   ///< of the stage
    int rounds = 0;    ///< of the stage
  };
  struct Sizes {
    std::size_t words = 256;    ///< of the long prompt
    std::uint64_t tokens = 17;  ///< of the texts of several
  };

  void ask_first();
  void measure(Stage stage);
  void take(const EngineAnswer& answer);
  void shorten();
  void note_batch();
  void note_stage();
  [[nodiscard]] std::string prompt(std::size_t words);
  /// Seconds of a step, from as many texts of one token and of several.
  [[nodiscard]] double step_seconds() const;
  void finish();

  EngineCalls calls_;
  WarmUpOptions options_;
  Done done_;
  RealClock clock_;
  Instant end_;  ///< of the measurement
  Rng rng_{1};
  Stage stage_ = Stage::kPrefill;
  Batch batch_;
  Times times_;
  Sizes sizes_;
  ReplicaPace pace_;
};

}  // namespace orrery
