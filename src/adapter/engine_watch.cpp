#include "adapter/engine_watch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/system/real_clock.hpp"

namespace orrery {

// --- Health -------------------------------------------------------------------------------------

EngineWatch::EngineWatch(RealLoop& loop, EngineWatchOptions options,
                         std::function<void(const std::string&)> sick)
    : loop_(loop),
      options_(std::move(options)),
      sick_(std::move(sick)),
      calls_(loop, options_.endpoint),
      moved_(RealClock().now_monotonic()) {
  wait();
}

EngineWatch::~EngineWatch() {
  if (timer_) loop_.cancel(*timer_);
}

void EngineWatch::wait() {
  timer_ = loop_.call_after(options_.pause, [this] {
    timer_.reset();
    ask_health();
  });
}

void EngineWatch::ask_health() {
  calls_.get("/health", options_.health_max, [this](const EngineAnswer& answer) {
    if (answer.status == 200) return ask_load();
    note_failure("/health " + answer.text());
  });
}

void EngineWatch::ask_load() {
  calls_.get(
      metrics_path(options_.engine), options_.health_max, [this](const EngineAnswer& answer) {
        take_load(answer.status == 200 ? engine_load(options_.engine, answer.body) : EngineLoad{});
      });
}

void EngineWatch::take_load(const EngineLoad& load) {
  const EngineLoad before = std::exchange(load_, load);
  const Instant now = RealClock().now_monotonic();
  if (!load.stands_since(before)) moved_ = now;
  if (now - moved_ >= options_.stall_max) {
    return end(fmt::format("{} requests run and {} wait, and it has counted no token for {}",
                           load.running.value_or(0), load.waiting.value_or(0),
                           options_.stall_max.text()));
  }
  const bool computes = before.generated && load.generated && *load.generated > *before.generated;
  if (no_token_ ? computes : load.busy().value_or(false)) return note_well();
  ask_token();
}

void EngineWatch::ask_token() {
  calls_.post("/v1/completions", completion_body(options_.model, "1", 1), options_.token_max,
              [this](const EngineAnswer& answer) {
                const Result<CompletionUsage> token = read_completion(answer);
                // An engine that is full is at work.
                no_token_ = !token && answer.status != 429;
                if (!no_token_) return note_well();
                note_failure(token.error().message);
              });
}

void EngineWatch::note_well() {
  failures_ = 0;
  wait();
}

void EngineWatch::note_failure(const std::string& what) {
  if (++failures_ < options_.failures_max) return wait();
  end(fmt::format("{}, {} times in a row", what, failures_));
}

void EngineWatch::end(const std::string& what) {
  const auto sick = std::exchange(sick_, nullptr);
  sick(what);
}

// --- Drain --------------------------------------------------------------------------------------

EngineDrain::EngineDrain(RealLoop& loop, Options options, std::function<void(Outcome)> done)
    : loop_(loop),
      options_(std::move(options)),
      done_(std::move(done)),
      calls_(loop, options_.endpoint),
      end_(RealClock().now_monotonic() + options_.limit) {
  ask();
}

EngineDrain::~EngineDrain() {
  if (timer_) loop_.cancel(*timer_);
}

void EngineDrain::ask() {
  const Duration left = end_ - RealClock().now_monotonic();
  if (left <= Duration::seconds(0)) return finish(Outcome::kTimeout);
  calls_.get(metrics_path(options_.engine), std::min(left, Duration::seconds(30)),
             [this](const EngineAnswer& answer) { take(answer); });
}

void EngineDrain::take(const EngineAnswer& answer) {
  // Figures may be older than a request that has just arrived.
  constexpr int kIdleAnswers = 3;
  constexpr int kUnknownAnswers = 3;
  const EngineLoad load =
      answer.status == 200 ? engine_load(options_.engine, answer.body) : EngineLoad{};
  const std::optional<bool> busy = load.busy();
  unknown_ = busy ? 0 : unknown_ + 1;
  idle_ = busy && !*busy ? idle_ + 1 : 0;
  if (idle_ >= kIdleAnswers) return finish(Outcome::kIdle);
  if (unknown_ >= kUnknownAnswers) return finish(Outcome::kUnknown);
  timer_ = loop_.call_after(options_.pause, [this] {
    timer_.reset();
    ask();
  });
}

void EngineDrain::finish(Outcome outcome) {
  const auto done = std::exchange(done_, nullptr);
  done(outcome);
}

}  // namespace orrery
