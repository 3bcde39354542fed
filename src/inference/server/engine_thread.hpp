// inference/server/engine_thread.hpp - the thread of an engine: loads a model, measures it, and
// then computes steps while there are requests.
//
// Made and destroyed by the loop's thread, which calls submit() and cancel(); all events come on
// the loop, in the order in which they happened, and none after the end of this object. The model
// is shared with the loop, since it never changes. Requests reach the engine in the order of their
// calls, before its next step. The destructor waits for the step, or the loading, in progress.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/env.hpp"
#include "base/quantity.hpp"
#include "inference/engine/inference_engine.hpp"
#include "inference/engine/model_files.hpp"
#include "inference/server/engine_measurement.hpp"
#include "kv_events/kv_event_publisher.hpp"

namespace orrery {

struct ReadyEngine {
  std::shared_ptr<const ServedModel> model;
  EngineLimits limits;  ///< complete
  EngineSpeed speed;
};

/// What an engine holds after a step.
struct EngineStatus {
  std::size_t running = 0;
  std::size_t waiting = 0;
  std::size_t blocks_used = 0;
  std::size_t blocks = 0;
  EngineCounters counters;
};

/// Told on the loop what the engine does.
class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  /// The model is loaded and is measured next.
  virtual void on_loaded(const ServedModel& model) = 0;
  virtual void on_ready(const ReadyEngine& engine) = 0;
  /// The model cannot be served; the last event.
  virtual void on_failed(const Error& error) = 0;
  virtual void on_step(const std::vector<GenerationDelta>& deltas, const EngineStatus& status) = 0;
};

class EngineThread {
 public:
  struct Options {
    std::function<Result<ServedModel>()> load;
    EngineLimits limits;
    std::optional<Bytes> kv_memory;  ///< determines limits.blocks
    std::string step_log;            ///< file; "": none
    /// Where it tells what its cache has; used by the thread alone. Null: nowhere.
    std::shared_ptr<KvEventPublisher> cache_events;
  };

  /// `inbox` and `events` outlive it.
  EngineThread(Options options, Inbox& inbox, EngineEvents& events);
  ~EngineThread();
  EngineThread(const EngineThread&) = delete;
  EngineThread& operator=(const EngineThread&) = delete;

  /// Preconditions: on_ready() has come; those of InferenceEngine::submit().
  GenerationId submit(GenerationRequest request);
  void cancel(GenerationId id);

 private:
  struct Link;
  struct Command {
    GenerationId id = GenerationId::kNone;
    std::optional<GenerationRequest> request;  ///< nothing: the text is cancelled
  };

  void run();
  [[nodiscard]] Status serve();
  [[nodiscard]] Result<EngineLimits> limits_for(const TransformerConfig& config) const;
  [[nodiscard]] bool take_commands(InferenceEngine& engine);
  [[nodiscard]] bool ending();
  void give(Command command);
  void post(std::function<void(EngineEvents&)> event);

  const Options options_;
  Inbox& inbox_;
  std::shared_ptr<Link> link_;
  std::uint64_t submitted_ = 0;  ///< used by the loop alone
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Command> commands_;  ///< guarded by mutex_, as phase_ is
  enum class Phase : std::uint8_t { kRuns, kEnding } phase_ = Phase::kRuns;
  std::thread thread_;
};

}  // namespace orrery
