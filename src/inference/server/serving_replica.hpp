// inference/server/serving_replica.hpp - a whole server of one model: its engine, its HTTP server,
// and its life as its keeper sees it.
//
//   1. loading: it listens, and refuses completions with 503.
//   2. warming: the model is loaded and measured.
//   3. ready: completions are served.
//   4. draining: new ones are refused, those that run or wait end.
//
// Made by main() with the loop that outlives it; used on the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/system/real_loop.hpp"
#include "http/web_server.hpp"
#include "inference/server/completion_server.hpp"
#include "inference/server/engine_thread.hpp"
#include "inference/server/replica_reports.hpp"

namespace orrery {

class ServingReplica final : public EngineEvents {
 public:
  struct Options {
    EngineThread::Options engine;
    CompletionServer::Options server;
    std::string listen = "127.0.0.1:0";  ///< "HOST:PORT", numeric; port 0: any
    /// Host under which others reach it, where it listens on all of the machine's addresses.
    std::string host = "127.0.0.1";
    std::string progress;  ///< the keeper's pipe; "": none
    /// "HOST:PORT" where it publishes what its cache has, as vLLM does, numeric; port 0: any; "":
    /// nowhere.
    std::string kv_events;
    /// Called once with a line for people, when it is ready.
    std::function<void(const std::string& line)> announce;
  };

  /// Errors: an address is malformed or taken. `ended` runs once, at the end of a drain or when
  /// the model cannot be served.
  [[nodiscard]] static Result<std::unique_ptr<ServingReplica>> start(RealLoop& loop, Env env,
                                                                     Options options,
                                                                     Callback ended);
  ServingReplica(Env env, Options options, Callback ended);

  /// "HOST:PORT" at which others reach it.
  [[nodiscard]] std::string endpoint() const;
  void drain();
  /// Why the model cannot be served; nothing: it can, as far as is known.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

  void on_loaded(const ServedModel& model) override;
  void on_ready(const ReadyEngine& engine) override;
  void on_failed(const Error& error) override;
  void on_step(const std::vector<GenerationDelta>& deltas, const EngineStatus& status) override;

 private:
  /// A local address as others reach it.
  [[nodiscard]] std::string reached_at(const std::string& address) const;

  Options options_;
  Callback ended_;
  std::optional<Error> failure_;
  ReplicaReports reports_;
  CompletionServer server_;
  std::unique_ptr<WebServer> web_;
  std::unique_ptr<EngineThread> engine_;  ///< ends first
};

}  // namespace orrery
