#include "adapter/engine_warm_up.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace orrery {
namespace {

constexpr std::uint32_t kTextsMax = 256;  // more at once say no more of a step
constexpr std::size_t kWordsShort = 4;
constexpr int kRounds = 2;

}  // namespace

EngineWarmUp::EngineWarmUp(RealLoop& loop, WarmUpOptions options, Done done)
    : calls_(loop, options.endpoint), options_(std::move(options)), done_(std::move(done)) {
  ask_first();
}

void EngineWarmUp::ask_first() {
  calls_.post("/v1/completions", completion_body(options_.model, prompt(1), 1), options_.token_max,
              [this](const EngineAnswer& answer) {
                const Result<CompletionUsage> token = read_completion(answer);
                if (!token) {
                  const Done done = std::exchange(done_, nullptr);
                  return done(tl::unexpected(token.error()));
                }
                end_ = clock_.now_monotonic() + options_.measure_max;
                measure(Stage::kPrefill);
              });
}

std::string EngineWarmUp::prompt(std::size_t words) {
  constexpr std::uint64_t kWords = 10'000;
  std::string text;
  for (std::size_t i = 0; i < words; ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : " ", rng_.below(kWords));
  }
  return text;
}

void EngineWarmUp::measure(Stage stage) {
  const Duration left = end_ - clock_.now_monotonic();
  if (left <= Duration::seconds(0)) return finish();
  stage_ = stage;
  const bool full = stage == Stage::kFullFirst || stage == Stage::kFull;
  const bool several = stage == Stage::kAlone || stage == Stage::kFull;
  const std::uint32_t texts = full ? std::clamp(options_.slots, 1u, kTextsMax) : 1;
  const std::size_t words =
      stage == Stage::kPrefill ? sizes_.words : std::min(sizes_.words, kWordsShort);
  batch_ = {.left = texts};
  for (std::uint32_t i = 0; i < texts; ++i) {
    calls_.post("/v1/completions",
                completion_body(options_.model, prompt(words), several ? sizes_.tokens : 1), left,
                [this](const EngineAnswer& answer) { take(answer); });
  }
}

void EngineWarmUp::take(const EngineAnswer& answer) {
  const Result<CompletionUsage> usage = read_completion(answer);
  if (usage) {
    if (batch_.usage.completion_tokens == 0) batch_.usage = *usage;
  } else if (answer.status >= 400 && answer.status < 500) {
    ++batch_.refused;
  } else {
    ++batch_.failed;
  }
  batch_.seconds = std::max(batch_.seconds, answer.seconds);
  if (--batch_.left == 0) note_batch();
}

/// Tries the stage again with less of what may be too long for the model.
void EngineWarmUp::shorten() {
  if (stage_ == Stage::kPrefill && sizes_.words > 1) {
    sizes_.words /= 2;
  } else if (stage_ != Stage::kPrefill && sizes_.tokens > 2) {
    sizes_.tokens = sizes_.tokens / 2 + 1;
  } else {
    return finish();
  }
  measure(stage_);
}

double EngineWarmUp::step_seconds() const {
  const auto tokens = static_cast<double>(batch_.usage.completion_tokens);
  if (tokens < 2) return 0;
  // Noise can exceed the difference where a step is short; the whole request is its upper bound.
  return times_.best > times_.first ? (times_.best - times_.first) / (tokens - 1)
                                    : times_.best / tokens;
}

void EngineWarmUp::note_batch() {
  if (batch_.failed > 0) return finish();
  if (batch_.refused > 0) return shorten();
  times_.best = times_.rounds == 0 ? batch_.seconds : std::min(times_.best, batch_.seconds);
  if (++times_.rounds < kRounds) return measure(stage_);
  times_.rounds = 0;
  note_stage();
}

void EngineWarmUp::note_stage() {
  switch (stage_) {
    case Stage::kPrefill:
      if (times_.best > 0) {
        pace_.prefill_tokens_s = static_cast<double>(batch_.usage.prompt_tokens) / times_.best;
      }
      return measure(Stage::kAloneFirst);
    case Stage::kAloneFirst:
      times_.first = times_.best;
      return measure(Stage::kAlone);
    case Stage::kAlone:
      pace_.step_s = step_seconds();
      return measure(Stage::kFullFirst);
    case Stage::kFullFirst:
      times_.first = times_.best;
      return measure(Stage::kFull);
    case Stage::kFull:
      pace_.step_full_s = step_seconds();
      return finish();
  }
}

void EngineWarmUp::finish() {
  const Done done = std::exchange(done_, nullptr);
  done(pace_);
}

}  // namespace orrery
