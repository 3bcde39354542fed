// adapter/engine_watch.hpp - whether an inference engine that serves is well: its health, its load,
// and, while it is idle, a token.
//
// Every `pause` it asks for the engine's health, then for its metrics. An engine whose metrics show
// no request, or that has none, is asked for a token. What fails is asked again; `failures_max`
// failures in a row end the watch. After a token that did not come in time the engine may count the
// question as running for ever, so that it is asked on, idle or not, until tokens come: those that
// the engine counts, or one of its own. An engine that counts steps, but none for `stall_max` while
// requests are there, is sick, too. Used on the loop; its end ends it without a call of `sick`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "adapter/engine_calls.hpp"
#include "adapter/engine_metrics.hpp"

namespace orrery {

struct EngineWatchOptions {
  EngineName engine = EngineName::kVllm;
  std::string endpoint;  ///< "HOST:PORT", numeric
  std::string model;
  Duration pause = Duration::seconds(10);
  Duration health_max = Duration::seconds(30);
  Duration token_max = Duration::seconds(60);
  /// Without a step; the longest prompt is computed in less.
  Duration stall_max = Duration::minutes(5);
  int failures_max = 3;
};

class EngineWatch {
 public:
  /// `sick` runs once, with what failed last; it may destroy this.
  EngineWatch(RealLoop& loop, EngineWatchOptions options,
              std::function<void(const std::string&)> sick);
  EngineWatch(const EngineWatch&) = delete;
  EngineWatch& operator=(const EngineWatch&) = delete;
  ~EngineWatch();

 private:
  void wait();
  void ask_health();
  void ask_load();
  void take_load(const EngineLoad& load);
  void ask_token();
  void note_well();
  void note_failure(const std::string& what);
  void end(const std::string& what);

  RealLoop& loop_;
  EngineWatchOptions options_;
  std::function<void(const std::string&)> sick_;
  EngineCalls calls_;
  EngineLoad load_;  ///< the newest
  Instant moved_;    ///< when it last stood for no stall
  int failures_ = 0;
  bool no_token_ = false;  ///< the last question for a token failed
  std::optional<TimerId> timer_;
};

/// Waits until the metrics of an engine that gets no new requests show that it has none.
class EngineDrain {
 public:
  enum class Outcome : std::uint8_t {
    kIdle,     ///< nothing runs or waits
    kUnknown,  ///< the engine does not say
    kTimeout,
  };
  struct Options {
    EngineName engine = EngineName::kVllm;
    std::string endpoint;
    Duration limit;
    Duration pause = Duration::milliseconds(200);
  };

  /// `done` runs once; it may destroy this.
  EngineDrain(RealLoop& loop, Options options, std::function<void(Outcome)> done);
  EngineDrain(const EngineDrain&) = delete;
  EngineDrain& operator=(const EngineDrain&) = delete;
  ~EngineDrain();

 private:
  void ask();
  void take(const EngineAnswer& answer);
  void finish(Outcome outcome);

  RealLoop& loop_;
  Options options_;
  std::function<void(Outcome)> done_;
  EngineCalls calls_;
  Instant end_;
  int idle_ = 0;     ///< answers in a row without requests
  int unknown_ = 0;  ///< answers in a row that do not say
  std::optional<TimerId> timer_;
};

}  // namespace orrery
