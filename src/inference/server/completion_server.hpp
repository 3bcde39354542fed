// inference/server/completion_server.hpp - OpenAI's completions over HTTP, from the engine of an
// EngineThread.
//
//   POST /v1/completions, /v1/chat/completions   whole, or as server-sent events
//   GET  /v1/models, /health, /metrics
//
// Owned by a ServingReplica, used on its loop. Before ready() and after drain() completions are
// refused with 503; Retry-After: 0 tells a gateway to ask another replica at once. A client that
// leaves ends its request. Long bodies are read beside the loop. Invariant: each request ends once,
// as completed, cancelled or refused. Cost: O(log requests) for each token.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "http/web_server.hpp"
#include "inference/request/completion_reading.hpp"
#include "inference/request/completion_request.hpp"
#include "inference/server/completion_metrics.hpp"
#include "inference/server/completion_reply.hpp"
#include "inference/server/engine_thread.hpp"

namespace orrery {

class CompletionServer final : public WebHandler {
 public:
  struct Options {
    std::string model;              ///< name by which it is served; "": that of the spec
    std::size_t waiting_max = 256;  ///< requests beyond the slots; more are refused with 429
  };

  CompletionServer(Env env, Options options);
  ~CompletionServer() override;

  /// Begins to serve. `thread` outlives the last on_request().
  void ready(const ReadyEngine& engine, EngineThread& thread);
  /// Sends what a step generated.
  void take(const std::vector<GenerationDelta>& deltas, const EngineStatus& status);
  /// Refuses new requests from now on; `ended` runs once, when all others have ended, perhaps in
  /// this call.
  void drain(Callback ended);
  /// Number of requests that run or wait.
  [[nodiscard]] std::size_t active() const { return active_.size() + reading_.size(); }

  void on_request(WebExchange exchange) override;

 private:
  struct Active;
  enum class Phase : std::uint8_t { kLoading, kReady, kDraining };

  void complete(WebExchange exchange, CompletionKind kind);
  [[nodiscard]] ApiResult<void> take_over(const CompletionRequest& request,
                                          GenerationRequest& generation) const;
  [[nodiscard]] std::size_t tokens_max(const GenerationRequest& generation) const;
  [[nodiscard]] CompletionMarks marks_for(const WebRequest& received,
                                          const CompletionRequest& request,
                                          const GenerationRequest& generation) const;
  [[nodiscard]] std::optional<ApiError> unavailable() const;
  [[nodiscard]] std::optional<ApiError> overloaded(std::size_t body_bytes) const;
  void begin(WebExchange exchange, ApiResult<ReadCompletion> read);
  void begin(WebExchange exchange, const CompletionRequest& request, GenerationRequest generation);
  /// Answers a request of which nothing but counts and the end mark is missing.
  void end_at_once(WebExchange& exchange, CompletionReply& reply,
                   const GenerationRequest& generation);
  void take(const GenerationDelta& delta);
  void gone(GenerationId id);
  void end(GenerationId id);
  void note_end();
  void refuse(WebExchange& exchange, const ApiError& error);
  void health(WebExchange& exchange);
  void models(WebExchange& exchange);

  Env env_;
  Options options_;
  Phase phase_ = Phase::kLoading;
  std::optional<ReadyEngine> engine_;
  EngineThread* thread_ = nullptr;
  std::map<GenerationId, std::unique_ptr<Active>> active_;
  /// Requests with long bodies, by their order; also of clients that have left meanwhile.
  std::map<std::uint64_t, WebExchange> reading_;
  std::uint64_t readings_ = 0;
  CompletionMetrics metrics_;
  std::uint64_t salt_;  ///< makes ids differ from those of other replicas
  Callback ended_;
  CompletionReader reader_;  ///< ends first: it reads the bodies
};

}  // namespace orrery
