#include "adapter/engine_replica.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "adapter/engine_slots.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

constexpr Duration kHealthMax = Duration::seconds(30);

std::string report_line(const ReplicaReport& report) {
  Json replica = {{"phase", word_of(report.phase)}};
  if (report.phase == ReplicaPhase::kReady) {
    replica["endpoint"] = report.endpoint;
    replica["pid"] = report.pid;
    if (report.slots > 0) replica["slots"] = report.slots;
    if (report.kv_tokens > 0) replica["kv_tokens"] = report.kv_tokens;
    if (!report.kv_events.empty()) replica["kv_events"] = report.kv_events;
    replica["prefill_tokens_s"] = report.pace.prefill_tokens_s;
    replica["step_s"] = report.pace.step_s;
    replica["step_full_s"] = report.pace.step_full_s;
  }
  return Json{{"replica", std::move(replica)}}.dump();
}

/// ", 7633 KV blocks of 16 tokens", as far as the engine says.
std::string cache_words(const EngineLoad& load) {
  if (!load.blocks) return "";
  return fmt::format(", {:.0f} KV blocks{}", *load.blocks,
                     load.block_tokens ? fmt::format(" of {:.0f} tokens", *load.block_tokens) : "");
}

}  // namespace

Result<std::unique_ptr<EngineReplica>> EngineReplica::start(RealLoop& loop, Options options,
                                                            Callback ended) {
  auto replica = std::make_unique<EngineReplica>(loop, std::move(options), std::move(ended));
  auto process =
      EngineProcess::start(loop, replica->options_.command,
                           [made = replica.get()](const EngineEnd& end) { made->note_end(end); });
  if (!process) return forward_error(process);
  replica->process_ = std::move(*process);
  replica->report({.phase = ReplicaPhase::kLoading});
  replica->look();
  return replica;
}

EngineReplica::EngineReplica(RealLoop& loop, Options options, Callback ended)
    : loop_(loop),
      options_(std::move(options)),
      ended_(std::move(ended)),
      pipe_(options_.progress),
      begun_(RealClock().now_monotonic()) {
  asking_.calls = std::make_unique<EngineCalls>(loop_, options_.endpoint);
  // An engine takes no steps of its own: silence is no hang.
  pipe_.write(R"({"quiet": 1e9})");
}

EngineReplica::~EngineReplica() {
  if (timer_) loop_.cancel(*timer_);
}

void EngineReplica::report(const ReplicaReport& report) {
  phase_ = report.phase;
  pipe_.write(report_line(report));
}

void EngineReplica::say(const std::string& line) const {
  if (options_.announce) options_.announce(line);
}

void EngineReplica::after(Duration delay, Callback callback) {
  if (timer_) loop_.cancel(*timer_);
  timer_ = loop_.call_after(delay, [this, call = std::move(callback)] {
    timer_.reset();
    call();
  });
}

// --- Until it is ready --------------------------------------------------------------------------

void EngineReplica::look() {
  after(options_.times.look, [this] {
    asking_.calls->get("/health", kHealthMax,
                       [this](const EngineAnswer& answer) { take_health(answer); });
  });
}

void EngineReplica::take_health(const EngineAnswer& answer) {
  if (answer.status == 200) {
    report({.phase = ReplicaPhase::kWarming});
    return options_.slots ? warm_up() : ask_slots();
  }
  if (RealClock().now_monotonic() - begun_ > options_.times.start_max) {
    return fail(fmt::format("did not become healthy in {}: /health {}",
                            options_.times.start_max.text(), answer.text()));
  }
  look();
}

void EngineReplica::ask_slots() {
  const std::string_view path = slots_path(options_.engine);
  if (path.empty()) return warm_up();
  asking_.calls->get(path, kHealthMax, [this](const EngineAnswer& answer) {
    if (answer.status == 200) options_.slots = slots_answered(options_.engine, answer.body);
    warm_up();
  });
}

void EngineReplica::warm_up() {
  WarmUpOptions warm_up = options_.warm_up;
  warm_up.endpoint = options_.endpoint;
  warm_up.model = options_.model;
  warm_up.slots = options_.slots.value_or(1);
  asking_.warm_up = std::make_unique<EngineWarmUp>(
      loop_, std::move(warm_up), [this](const Result<ReplicaPace>& pace) { take_pace(pace); });
}

void EngineReplica::take_pace(const Result<ReplicaPace>& pace) {
  if (!pace) return fail("is healthy but generates no token: " + pace.error().message);
  asking_.calls->get(metrics_path(options_.engine), kHealthMax,
                     [this, measured = *pace](const EngineAnswer& answer) {
                       become_ready(measured, answer.status == 200
                                                  ? engine_load(options_.engine, answer.body)
                                                  : EngineLoad{});
                     });
  asking_.warm_up.reset();
}

void EngineReplica::become_ready(const ReplicaPace& pace, const EngineLoad& load) {
  report({.phase = ReplicaPhase::kReady,
          .endpoint = options_.address,
          .pid = static_cast<std::uint64_t>(::getpid()),
          .slots = options_.slots.value_or(0),
          .pace = pace,
          .kv_tokens = load.kv_tokens().value_or(0),
          .kv_events = options_.kv_events});
  say(fmt::format(
      "{} of {} at http://{}/v1: {} slots{}; prompts {:.0f} tokens/s, a step {:.2g} ms, "
      "with all slots {:.2g} ms{}",
      options_.model, word_of(options_.engine), options_.address,
      options_.slots ? std::to_string(*options_.slots) : "an unknown number of", cache_words(load),
      pace.prefill_tokens_s, 1e3 * pace.step_s, 1e3 * pace.step_full_s,
      load.busy() ? "" : "; it has no metrics, so a drain cannot wait for its requests"));
  EngineWatchOptions watch = options_.watch;
  watch.engine = options_.engine;
  watch.endpoint = options_.endpoint;
  watch.model = options_.model;
  asking_.watch = std::make_unique<EngineWatch>(
      loop_, std::move(watch), [this](const std::string& what) { fail("is sick: " + what); });
}

// --- Its end ------------------------------------------------------------------------------------

void EngineReplica::end_watching() {
  if (timer_) loop_.cancel(*std::exchange(timer_, std::nullopt));
  asking_ = {};
}

void EngineReplica::drain() {
  if (ending_ || phase_ == ReplicaPhase::kDraining) return;
  const bool serves = phase_ == ReplicaPhase::kReady;
  end_watching();
  report({.phase = ReplicaPhase::kDraining});
  if (!serves) return stop();
  asking_.drain = std::make_unique<EngineDrain>(
      loop_,
      EngineDrain::Options{.engine = options_.engine,
                           .endpoint = options_.endpoint,
                           .limit = options_.times.drain_max},
      [this](EngineDrain::Outcome outcome) {
        if (outcome == EngineDrain::Outcome::kTimeout) {
          say(fmt::format("requests still run after {}; the engine is ended",
                          options_.times.drain_max.text()));
        }
        const bool unknown = outcome == EngineDrain::Outcome::kUnknown;
        terminate(unknown ? options_.times.drain_max : options_.times.grace);
      });
}

void EngineReplica::stop() { terminate(options_.times.grace); }

void EngineReplica::terminate(Duration grace) {
  end_watching();
  ending_ = true;
  process_->terminate();
  after(grace, [this] { process_->kill(); });
}

void EngineReplica::fail(const std::string& what) {
  failure_ = Error{.kind = ErrorKind::kEnvironment,
                   .message = fmt::format("inference engine {} {}", options_.command[0], what)};
  end_watching();
  ending_ = true;
  process_->kill();
}

void EngineReplica::note_end(const EngineEnd& end) {
  end_watching();
  if (!ending_) {
    failure_ = Error{.kind = ErrorKind::kEnvironment,
                     .message = fmt::format("inference engine {} {} while {}", options_.command[0],
                                            end.text(), word_of(phase_))};
  }
  const Callback ended = std::exchange(ended_, nullptr);
  ended();
}

}  // namespace orrery
