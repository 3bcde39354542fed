// adapter/engine_replica.hpp - an inference engine of others as a replica of a service: its
// process, and its life as its keeper sees it.
//
//   1. loading: the engine's program runs; its /health is not yet 200.
//   2. warming: it is asked for a token, and measured (adapter/engine_warm_up.hpp).
//   3. ready: it serves, and is watched (adapter/engine_watch.hpp).
//   4. draining: gateways send it no new requests. When its metrics show no running or waiting
//      request, or the time limit is over, it gets SIGTERM, and SIGKILL after a grace period. An
//      engine without metrics gets SIGTERM at once and has the same time limit to end its requests.
//
// An engine that ends, answers nonsense, or is sick ends the replica with a reason; Orrery then
// starts it again. Whatever happens, nothing of the engine is left (adapter/engine_process.hpp).
// Made by main() with the loop that outlives it; used on the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "adapter/engine_process.hpp"
#include "adapter/engine_warm_up.hpp"
#include "adapter/engine_watch.hpp"
#include "base/launch/progress_pipe.hpp"
#include "base/system/real_loop.hpp"
#include "serving/replica.hpp"

namespace orrery {

/// Limits of an engine's life. A drain and its grace end before control kills the replica
/// (ControlTiming::drain in control/setup.hpp).
struct EngineTimes {
  Duration look = Duration::milliseconds(250);  ///< between questions for its health, at first
  Duration start_max = Duration::hours(2);      ///< until it is healthy
  Duration drain_max = Duration::seconds(95);
  Duration grace = Duration::seconds(15);  ///< from SIGTERM to SIGKILL
};

class EngineReplica {
 public:
  struct Options {
    EngineName engine = EngineName::kVllm;
    std::vector<std::string> command;
    std::string endpoint;        ///< "HOST:PORT" at which it is asked, numeric
    std::string address;         ///< "HOST:PORT" at which others reach it
    std::string kv_events = {};  ///< the same, of where it tells what its cache has; "": nowhere
    std::string model;
    std::optional<std::uint32_t> slots;  ///< none: as it answers itself
    std::string progress;                ///< the keeper's pipe; "": none
    EngineTimes times;
    EngineWatchOptions watch;  ///< engine, endpoint and model are set here
    WarmUpOptions warm_up;     ///< endpoint, model and slots are set here
    /// Called with lines for people.
    std::function<void(const std::string& line)> announce;
  };

  /// `ended` runs once, when nothing of the engine is left. Error: no process is left.
  [[nodiscard]] static Result<std::unique_ptr<EngineReplica>> start(RealLoop& loop, Options options,
                                                                    Callback ended);
  EngineReplica(RealLoop& loop, Options options, Callback ended);
  EngineReplica(const EngineReplica&) = delete;
  EngineReplica& operator=(const EngineReplica&) = delete;
  ~EngineReplica();

  void drain();
  /// Ends the engine without waiting for its requests.
  void stop();
  /// Why it ended; nothing: because it was drained or stopped.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  void report(const ReplicaReport& report);
  void say(const std::string& line) const;
  void look();
  void take_health(const EngineAnswer& answer);
  void ask_slots();
  void warm_up();
  void take_pace(const Result<ReplicaPace>& pace);
  void become_ready(const ReplicaPace& pace, const EngineLoad& load);
  void end_watching();
  void terminate(Duration grace);
  void fail(const std::string& what);
  void note_end(const EngineEnd& end);
  void after(Duration delay, Callback callback);

  RealLoop& loop_;
  Options options_;
  Callback ended_;
  std::optional<Error> failure_;
  ReplicaPhase phase_ = ReplicaPhase::kLoading;
  bool ending_ = false;  ///< its end is wanted
  ProgressPipe pipe_;
  std::optional<TimerId> timer_;
  Instant begun_;
  /// The objects that send requests to the engine; at most one of them does at a time.
  struct Asking {
    std::unique_ptr<EngineCalls> calls;
    std::unique_ptr<EngineWarmUp> warm_up;
    std::unique_ptr<EngineWatch> watch;
    std::unique_ptr<EngineDrain> drain;
  };
  Asking asking_;
  std::unique_ptr<EngineProcess> process_;
};

}  // namespace orrery
