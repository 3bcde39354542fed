#include "inference/server/engine_measurement.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/numbers/rng.hpp"

namespace orrery {
namespace {

constexpr double kSecondsEach = 0.25;
constexpr std::size_t kStepsMin = 5;
constexpr std::size_t kStepsMax = 200;
constexpr std::int64_t kPromptMax = 256;  ///< tokens

/// Times steps of an engine whose prompts have no beginning in common.
class StepTimer {
 public:
  StepTimer(const PackedTransformer& model, const Tokenizer& tokenizer, const EngineLimits& limits,
            const Clock& clock)
      : config_(model.config()), engine_(model, tokenizer, limits), clock_(clock) {}

  void submit() {
    const auto size =
        static_cast<std::size_t>(std::clamp<std::int64_t>(config_.sequence / 2, 1, kPromptMax));
    GenerationRequest request{.prompt = std::vector<std::int32_t>(size),
                              .sampling = {.tokens = config_.sequence, .temperature = 0}};
    for (std::int32_t& token : request.prompt) {
      token = static_cast<std::int32_t>(rng_.below(static_cast<std::uint64_t>(config_.vocab)));
    }
    running_.push_back(engine_.submit(std::move(request)));
  }

  /// Runs a step and returns its seconds.
  double step(EngineStep& step) {
    const Instant begin = clock_.now_monotonic();
    step = engine_.step();
    for (const GenerationDelta& delta : step.deltas) {
      if (delta.finish != FinishReason::kNone) std::erase(running_, delta.id);
    }
    return (clock_.now_monotonic() - begin).count_seconds();
  }

  void clear() {
    for (const GenerationId id : std::exchange(running_, {})) engine_.cancel(id);
  }
  [[nodiscard]] std::size_t running() const { return running_.size(); }

 private:
  const TransformerConfig& config_;
  InferenceEngine engine_;
  const Clock& clock_;
  Rng rng_{1};
  std::vector<GenerationId> running_;
};

/// The median seconds of steps in which `texts` texts decode and no prompt is computed.
double decode_seconds(StepTimer& timer, std::size_t texts) {
  std::vector<double> seconds;
  double total = 0;
  for (std::size_t i = 0; i < kStepsMax && (seconds.size() < kStepsMin || total < kSecondsEach);
       ++i) {
    while (timer.running() < texts) timer.submit();
    EngineStep step;
    const double took = timer.step(step);
    total += took;
    if (step.prefill_tokens == 0 && step.decode_sequences == texts) seconds.push_back(took);
  }
  timer.clear();
  if (seconds.empty()) return total / static_cast<double>(kStepsMax);  // a context of two tokens
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::ranges::nth_element(seconds, middle);
  return *middle;
}

/// Tokens of prompts a second, in steps that compute nothing else.
double prefill_rate(StepTimer& timer, std::size_t texts) {
  double total = 0;
  std::size_t tokens = 0;
  for (std::size_t i = 0; i < kStepsMax && (i < kStepsMin || total < kSecondsEach); ++i) {
    while (timer.running() < texts) timer.submit();
    EngineStep step;
    const double took = timer.step(step);
    if (step.decode_sequences > 0) {
      timer.clear();
      continue;
    }
    total += took;
    tokens += step.prefill_tokens;
  }
  timer.clear();
  return total > 0 ? static_cast<double>(tokens) / total : 0;
}

}  // namespace

EngineSpeed measure_engine(const PackedTransformer& model, const Tokenizer& tokenizer,
                           const EngineLimits& limits, const Clock& clock) {
  StepTimer timer(model, tokenizer, limits, clock);
  (void)decode_seconds(timer, 1);  // the caches of the CPU, and memory that was never touched
  return {.prefill_tokens_s = prefill_rate(timer, limits.slots),
          .step_s = decode_seconds(timer, 1),
          .step_full_s = decode_seconds(timer, limits.slots)};
}

}  // namespace orrery
