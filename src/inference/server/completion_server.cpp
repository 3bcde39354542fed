#include "inference/server/completion_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::size_t kReadAtOnce = std::size_t{32} << 10;  // about a millisecond
constexpr std::size_t kReadingMax = std::size_t{64} << 20;  // bytes of bodies that are being read

/// The method and the handler's purpose of a path.
struct Route {
  std::string_view path;
  std::string_view method;
};
constexpr std::array kRoutes{Route{"/v1/completions", "POST"},
                             Route{"/v1/chat/completions", "POST"}, Route{"/v1/models", "GET"},
                             Route{"/health", "GET"}, Route{"/metrics", "GET"}};

std::optional<ApiError> wrong_route(const WebRequest& request) {
  const auto route = std::ranges::find(kRoutes, request.path(), &Route::path);
  if (route == kRoutes.end()) {
    return ApiError{.status = 404,
                    .message = fmt::format("there is no {}", printable(request.path(), 100)),
                    .code = "not_found"};
  }
  if (route->method == request.method) return std::nullopt;
  return ApiError{.status = 405,
                  .message = fmt::format("{}: expected {}, found {}", route->path, route->method,
                                         printable(request.method, 20)),
                  .code = "method_not_allowed"};
}

std::int64_t unix_seconds(const Env& env) { return env.clock.now_wall().ns() / 1'000'000'000; }

void begin_events(WebExchange& exchange, CompletionMarks::Wanted marks) {
  constexpr std::array kHeaders{WebHeader{"Content-Type", "text/event-stream; charset=utf-8"},
                                WebHeader{"Cache-Control", "no-cache"},
                                WebHeader{kContinueHeader, "marks"}};
  const std::span headers(kHeaders);
  exchange.begin(200, marks == CompletionMarks::Wanted::kYes ? headers : headers.first(2));
}

}  // namespace

/// A request that the engine has.
struct CompletionServer::Active {
  WebExchange exchange;
  CompletionReply reply;
  bool stream = false;
  Instant begun;
  std::optional<Instant> first;  ///< when its first token came
};

CompletionServer::CompletionServer(Env env, Options options)
    : env_(env), options_(std::move(options)), salt_(env_.entropy.draw()), reader_(env_.inbox) {}

CompletionServer::~CompletionServer() = default;

void CompletionServer::ready(const ReadyEngine& engine, EngineThread& thread) {
  engine_ = engine;
  thread_ = &thread;
  if (options_.model.empty()) options_.model = engine.model->name;
  metrics_.engine.blocks = engine.limits.blocks;
  if (phase_ == Phase::kLoading) phase_ = Phase::kReady;
}

void CompletionServer::drain(Callback ended) {
  phase_ = Phase::kDraining;
  ended_ = std::move(ended);
  note_end();
}

std::optional<ApiError> CompletionServer::unavailable() const {
  if (phase_ == Phase::kReady) return std::nullopt;
  return ApiError{.status = 503,
                  .message = phase_ == Phase::kLoading ? "the model is being loaded"
                                                       : "this server is about to end",
                  .type = "service_unavailable",
                  .code = phase_ == Phase::kLoading ? "loading" : "draining"};
}

void CompletionServer::refuse(WebExchange& exchange, const ApiError& error) {
  std::vector<WebHeader> headers{{"Content-Type", kJson}};
  if (error.status == 429) headers.push_back({"Retry-After", "1"});
  if (error.status == 503) {
    headers.push_back({"Retry-After", phase_ == Phase::kDraining ? "0" : "1"});
  }
  exchange.respond(error.status, headers, api_error_body(error));
}

void CompletionServer::on_request(WebExchange exchange) {
  if (const auto wrong = wrong_route(exchange.request())) return refuse(exchange, *wrong);
  const std::string_view path = exchange.request().path();
  if (path == "/health") return health(exchange);
  if (path == "/v1/models") return models(exchange);
  if (path == "/metrics") {
    metrics_.active = active();
    return exchange.respond(200, "text/plain; version=0.0.4", prometheus_text(metrics_));
  }
  const bool chat = path == "/v1/chat/completions";
  complete(std::move(exchange), chat ? CompletionKind::kChat : CompletionKind::kText);
}

void CompletionServer::health(WebExchange& exchange) {
  if (const auto why = unavailable()) return refuse(exchange, *why);
  exchange.respond(200, kJson, R"({"status":"ok"})");
}

void CompletionServer::models(WebExchange& exchange) {
  nlohmann::ordered_json list{{"object", "list"}, {"data", nlohmann::ordered_json::array()}};
  if (engine_) {
    list["data"].push_back({{"id", options_.model},
                            {"object", "model"},
                            {"created", unix_seconds(env_)},
                            {"owned_by", "orrery"},
                            {"max_model_len", engine_->model->model.config().sequence}});
  }
  exchange.respond(200, kJson, list.dump());
}

std::optional<ApiError> CompletionServer::overloaded(std::size_t body_bytes) const {
  const std::size_t most = engine_->limits.slots + options_.waiting_max;
  std::size_t bytes = body_bytes;
  for (const auto& [number, read] : reading_) bytes += read.request().body.size();
  if (active() < most && (reading_.empty() || bytes <= kReadingMax)) return std::nullopt;
  return ApiError{.status = 429,
                  .message = "too many requests wait",
                  .type = "rate_limit_error",
                  .code = "overloaded"};
}

void CompletionServer::complete(WebExchange exchange, CompletionKind kind) {
  const std::string_view body = exchange.request().body;
  std::optional<ApiError> why = unavailable();
  if (!why) why = overloaded(body.size());
  if (why) {
    ++metrics_.refused;
    return refuse(exchange, *why);
  }
  ReadingTerms terms{engine_->model, options_.model, unix_seconds(env_)};
  if (body.size() <= kReadAtOnce) {
    return begin(std::move(exchange), read_completion(terms, kind, body));
  }
  const std::uint64_t number = ++readings_;
  reading_.emplace(number, std::move(exchange));
  reader_.read(std::move(terms), kind, body, [this, number](ApiResult<ReadCompletion> read) {
    begin(std::move(reading_.extract(number).mapped()), std::move(read));
    note_end();
  });
}

void CompletionServer::begin(WebExchange exchange, ApiResult<ReadCompletion> read) {
  if (!exchange.open()) {
    ++metrics_.cancelled;
    return;
  }
  if (!read) {
    ++metrics_.refused;
    return refuse(exchange, read.error());
  }
  if (!read->request.seed) read->generation.sampling.seed = env_.entropy.draw();
  if (read->request.continues()) {
    if (const auto fits = take_over(read->request, read->generation); !fits) {
      ++metrics_.refused;
      return refuse(exchange, fits.error());
    }
  }
  begin(std::move(exchange), read->request, std::move(read->generation));
}

std::size_t CompletionServer::tokens_max(const GenerationRequest& generation) const {
  const auto context = static_cast<std::size_t>(engine_->model->model.config().sequence);
  return std::min(static_cast<std::size_t>(generation.sampling.tokens),
                  context - generation.prompt.size());
}

ApiResult<void> CompletionServer::take_over(const CompletionRequest& request,
                                            GenerationRequest& generation) const {
  const ServedModel& model = *engine_->model;
  const ContinuedStream& stream = request.so_far;
  const auto refused = [](int status, std::string_view why) {
    return tl::unexpected(ApiError{.status = status,
                                   .message = fmt::format("continue: {}", why),
                                   .param = "continue",
                                   .code = "cannot_continue"});
  };
  if (stream.tokenizer != mark_of(*model.tokenizer)) {
    return refused(409, "the stream has the tokens of another tokenizer");
  }
  const std::int64_t vocab = model.model.config().vocab;
  if (std::ranges::any_of(stream.tokens, [&](std::int32_t token) { return token >= vocab; })) {
    return refused(400, "the stream has a token that this model lacks");
  }
  if (stream.tokens.size() > tokens_max(generation)) {
    return refused(400, "the stream has more tokens than the request allows");
  }
  generation.continued = stream.tokens;
  generation.sampling.seed = stream.seed;
  return {};
}

CompletionMarks CompletionServer::marks_for(const WebRequest& received,
                                            const CompletionRequest& request,
                                            const GenerationRequest& generation) const {
  const Tokenizer& tokenizer = *engine_->model->tokenizer;
  CompletionMarks marks;
  marks.origin.created = request.so_far.created;
  marks.origin.seed = generation.sampling.seed;
  marks.origin.tokenizer = mark_of(tokenizer);
  if (request.continues()) {
    marks.origin.id = request.so_far.id;
    marks.origin.usage = request.so_far.usage;
  }
  const bool asked = received.headers.find(kContinueHeader).has_value();
  if (request.stream && asked && has_marks(tokenizer)) {
    marks.wanted = CompletionMarks::Wanted::kYes;
  }
  return marks;
}

void CompletionServer::begin(WebExchange exchange, const CompletionRequest& request,
                             GenerationRequest generation) {
  CompletionMarks marks = marks_for(exchange.request(), request, generation);
  const CompletionMarks::Wanted wanted = marks.wanted;
  CompletionIdentity identity{
      .id = marks.origin.id, .model = options_.model, .created = request.so_far.created};
  if (request.continues() &&
      is_over(generation, *engine_->model->tokenizer, tokens_max(generation))) {
    CompletionReply reply(std::move(identity), request, std::move(marks));
    begin_events(exchange, wanted);
    return end_at_once(exchange, reply, generation);
  }
  const GenerationId id = thread_->submit(std::move(generation));
  if (!request.continues()) {
    const std::string_view prefix = request.kind == CompletionKind::kText ? "cmpl" : "chatcmpl";
    identity.id = fmt::format("{}-{:016x}{:08x}", prefix, salt_, static_cast<std::uint64_t>(id));
    marks.origin.id = identity.id;
  }
  auto active = std::make_unique<Active>(
      Active{.exchange = std::move(exchange),
             .reply = CompletionReply(std::move(identity), request, std::move(marks)),
             .stream = request.stream,
             .begun = env_.clock.now_monotonic()});
  active->exchange.on_gone([this, id] { gone(id); });
  if (request.stream) begin_events(active->exchange, wanted);
  active_.emplace(id, std::move(active));
}

void CompletionServer::end_at_once(WebExchange& exchange, CompletionReply& reply,
                                   const GenerationRequest& generation) {
  exchange.send(reply.rest(
      {.prompt_tokens = generation.prompt.size(), .tokens = generation.continued.size()}));
  exchange.end();
  ++metrics_.completed;
}

void CompletionServer::take(const std::vector<GenerationDelta>& deltas,
                            const EngineStatus& status) {
  metrics_.engine = status;
  for (const GenerationDelta& delta : deltas) take(delta);
}

// The client of a delta may have left since the engine made it.
void CompletionServer::take(const GenerationDelta& delta) {
  const auto found = active_.find(delta.id);
  if (found == active_.end()) return;
  Active& active = *found->second;
  const Instant now = env_.clock.now_monotonic();
  if (!active.first) {
    active.first = now;
    metrics_.first_token.add(now - active.begun);
  }
  const std::string events = active.reply.take(delta);
  if (!events.empty()) active.exchange.send(events);
  if (delta.finish == FinishReason::kNone) return;
  if (active.stream) {
    active.exchange.end();
  } else {
    active.exchange.respond(200, kJson, active.reply.whole());
  }
  ++metrics_.completed;
  metrics_.whole.add(now - active.begun);
  if (delta.tokens > 1) {
    const double each =
        (now - *active.first).count_seconds() / static_cast<double>(delta.tokens - 1);
    metrics_.each_token.add(Duration::from_seconds(each));
  }
  end(delta.id);
}

void CompletionServer::gone(GenerationId id) {
  thread_->cancel(id);
  ++metrics_.cancelled;
  end(id);
}

void CompletionServer::end(GenerationId id) {
  active_.erase(id);
  note_end();
}

void CompletionServer::note_end() {
  if (active() == 0 && ended_) std::exchange(ended_, nullptr)();
}

}  // namespace orrery
