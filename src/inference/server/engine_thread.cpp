#include "inference/server/engine_thread.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/assert.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "base/text/quantity_text.hpp"
#include "inference/engine/step_log.hpp"

namespace orrery {
namespace {

EngineStatus status_of(const InferenceEngine& engine) {
  return {.running = engine.running(),
          .waiting = engine.waiting(),
          .blocks_used = engine.blocks().used(),
          .blocks = engine.blocks().total(),
          .counters = engine.counters()};
}

}  // namespace

/// What posted events find on the loop, while the thread's owner lives.
struct EngineThread::Link {
  EngineEvents& events;
};

EngineThread::EngineThread(Options options, Inbox& inbox, EngineEvents& events)
    : options_(std::move(options)),
      inbox_(inbox),
      link_(std::make_shared<Link>(events)),
      thread_([this] { run(); }) {}

EngineThread::~EngineThread() {
  {
    const std::scoped_lock lock(mutex_);
    phase_ = Phase::kEnding;
  }
  wake_.notify_one();
  thread_.join();
}

void EngineThread::give(Command command) {
  {
    const std::scoped_lock lock(mutex_);
    commands_.push_back(std::move(command));
  }
  wake_.notify_one();
}

// The engine numbers requests in the order in which it gets them.
GenerationId EngineThread::submit(GenerationRequest request) {
  const GenerationId id{++submitted_};
  give({.id = id, .request = std::move(request)});
  return id;
}

void EngineThread::cancel(GenerationId id) { give({.id = id}); }

void EngineThread::post(std::function<void(EngineEvents&)> event) {
  inbox_.post([link = std::weak_ptr(link_), event = std::move(event)] {
    if (const auto held = link.lock()) event(held->events);
  });
}

bool EngineThread::ending() {
  const std::scoped_lock lock(mutex_);
  return phase_ == Phase::kEnding;
}

Result<EngineLimits> EngineThread::limits_for(const TransformerConfig& config) const {
  EngineLimits limits = options_.limits;
  const std::size_t block_bytes = PagedDecoder::block_floats(config) * sizeof(float);
  if (options_.kv_memory) {
    limits.blocks =
        static_cast<std::size_t>(options_.kv_memory->value() / static_cast<double>(block_bytes));
    const std::size_t least = blocks_for_one(config);
    if (limits.blocks < least) {
      const Bytes needed(static_cast<double>(least * block_bytes));
      return input_error({},
                         fmt::format("--kv-memory: {}, expected at least {}, which a text of "
                                     "{} tokens takes",
                                     print(*options_.kv_memory), print(needed), config.sequence));
    }
  }
  if (limits.blocks == 0) limits.blocks = blocks_for_all(config, limits.slots);
  if (Status possible = check(limits, config); !possible) return forward_error(possible);
  return limits;
}

void EngineThread::run() {
  const Status served = serve();
  if (!served) post([error = served.error()](EngineEvents& events) { events.on_failed(error); });
}

Status EngineThread::serve() {
  Result<ServedModel> loaded = options_.load();
  if (!loaded) return forward_error(loaded);
  const auto model = std::make_shared<const ServedModel>(std::move(*loaded));
  Result<EngineLimits> limits = limits_for(model->model.config());
  if (!limits) return forward_error(limits);
  RealStorage storage(Durability::kUntilBoot);
  Result<StepLog> log = StepLog::open(storage, options_.step_log);
  if (!log) return forward_error(log);
  if (ending()) return {};
  post([model](EngineEvents& events) { events.on_loaded(*model); });
  const RealClock clock;
  const EngineSpeed speed = measure_engine(model->model, *model->tokenizer, *limits, clock);
  InferenceEngine engine(model->model, *model->tokenizer, *limits);
  post([ready = ReadyEngine{model, *limits, speed}](EngineEvents& events) {
    events.on_ready(ready);
  });
  // A step without tokens only reports what a cancelled request has left.
  // The log's steps begin where the one before ended, as those of a client that waits for tokens
  // do.
  Instant begin = clock.now_monotonic();
  while (true) {
    const bool was_idle = engine.idle();
    if (!take_commands(engine)) break;
    if (was_idle) begin = clock.now_monotonic();
    EngineStep step = engine.step();
    const Instant end = clock.now_monotonic();
    if (step.context_tokens > 0) log->add(step, clock.now_wall(), end - begin);
    begin = end;
    if (options_.cache_events && !step.cache_events.empty()) {
      options_.cache_events->publish(
          {(clock.now_wall() - Instant()).count_seconds(), std::move(step.cache_events)});
    }
    post([deltas = std::move(step.deltas), status = status_of(engine)](EngineEvents& events) {
      events.on_step(deltas, status);
    });
  }
  return {};
}

/// Waits for something to do; returns false at the end.
bool EngineThread::take_commands(InferenceEngine& engine) {
  std::unique_lock lock(mutex_);
  if (engine.idle()) {
    wake_.wait(lock, [this] { return phase_ == Phase::kEnding || !commands_.empty(); });
  }
  if (phase_ == Phase::kEnding) return false;
  std::deque<Command> commands = std::exchange(commands_, {});
  lock.unlock();
  for (Command& command : commands) {
    if (!command.request) {
      engine.cancel(command.id);
      continue;
    }
    const GenerationId id = engine.submit(*std::move(command.request));
    ORRERY_ASSERT(id == command.id, "both number requests alike");
  }
  return true;
}

}  // namespace orrery
