// serving_mock: stands for replicas of a service behind a router under load.
//
//   serving_mock [--ports N] [--bytes B] [--rate R] [--burst K]
//
// It listens at N ports of loopback (1), each a replica, prints the address of each in a line, and
// serves until it is ended: /v1/completions and /v1/chat/completions, whole answers of B bytes
// (1024), or, where the request asks for it, streams of max_tokens events (16) and usage at the
// end: R events a second in each stream (0: as fast as they leave), K of them in a write (1). Also
// /health, /metrics, /v1/models. One thread.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/system/real_loop.hpp"
#include "bench/figure.hpp"
#include "gateway/request_facts.hpp"
#include "http/web_server.hpp"

namespace orrery {
namespace {

constexpr std::uint64_t kEventsDefault = 16;
constexpr std::uint64_t kPromptTokens = 256;
/// What may wait in a stream whose router does not keep up.
constexpr std::size_t kBufferedMax = std::size_t{256} << 10;
constexpr std::string_view kJson = "application/json";
constexpr std::string_view kModels =
    R"({"object":"list","data":[{"id":"m","object":"model","created":1,"owned_by":"mock"}]})";

struct Options {
  std::size_t ports = 1;
  std::size_t bytes = 1024;
  double rate = 0;
  std::uint64_t burst = 1;
};

/// What differs between the two kinds of answers.
struct AnswerTexts {
  std::string whole;
  std::string event;
  std::string last_event;  ///< up to the numbers of its usage
};

AnswerTexts completion_texts(std::size_t bytes) {
  AnswerTexts texts;
  const std::string begin =
      R"({"id":"cmpl-mock","object":"text_completion","created":1,"model":"m","choices":[)"
      R"({"index":0,"text":")";
  const std::string end =
      R"(","logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":256,)"
      R"("completion_tokens":16,"total_tokens":272}})";
  const std::size_t fixed = begin.size() + end.size();
  texts.whole = begin + std::string(bytes > fixed ? bytes - fixed : 1, 'x') + end;
  texts.event = "data: " + begin + R"( token","logprobs":null,"finish_reason":null}]})" + "\n\n";
  texts.last_event =
      R"(data: {"id":"cmpl-mock","object":"text_completion","created":1,"model":"m",)"
      R"("choices":[],"usage":)";
  return texts;
}

AnswerTexts chat_texts(std::size_t bytes) {
  AnswerTexts texts;
  const std::string begin =
      R"({"id":"chatcmpl-mock","object":"chat.completion","created":1,"model":"m","choices":[)"
      R"({"index":0,"message":{"role":"assistant","content":")";
  const std::string end =
      R"("},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":256,)"
      R"("completion_tokens":16,"total_tokens":272}})";
  const std::size_t fixed = begin.size() + end.size();
  texts.whole = begin + std::string(bytes > fixed ? bytes - fixed : 1, 'x') + end;
  texts.event =
      R"(data: {"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1,"model":"m",)"
      R"("choices":[{"index":0,"delta":{"content":" token"},"finish_reason":null}]})"
      "\n\n";
  texts.last_event =
      R"(data: {"id":"chatcmpl-mock","object":"chat.completion.chunk","created":1,"model":"m",)"
      R"("choices":[],"usage":)";
  return texts;
}

/// A stream on its way; the worker owns it until its answer ends.
struct MockStream {
  WebExchange exchange;
  const AnswerTexts& texts;
  std::uint64_t events = 0;
  std::uint64_t sent = 0;
  Instant due;  ///< of its next events
  TimerId timer;
};

class MockWorker final : public WebHandler {
 public:
  MockWorker(RealLoop& loop, const Options& options)
      : loop_(loop),
        options_(options),
        completions_(completion_texts(options.bytes)),
        chats_(chat_texts(options.bytes)) {}

  void on_request(WebExchange exchange) override {
    const WebRequest& request = exchange.request();
    const std::string_view path = request.path();
    if (path == "/v1/completions") {
      complete(std::move(exchange), completions_);
    } else if (path == "/v1/chat/completions") {
      complete(std::move(exchange), chats_);
    } else if (path == "/v1/models") {
      exchange.respond(200, kJson, kModels);
    } else if (path == "/metrics") {
      exchange.respond(200, "text/plain; version=0.0.4",
                       fmt::format("vllm:num_requests_running{{model_name=\"m\"}} {}\n"
                                   "vllm:num_requests_waiting{{model_name=\"m\"}} 0\n",
                                   streams_.size()));
    } else if (path == "/health") {
      exchange.respond(200, kJson, "{}");
    } else {
      exchange.respond(404, kJson, R"({"error":{"message":"unknown path"}})");
    }
  }

 private:
  using Place = std::list<MockStream>::iterator;

  void complete(WebExchange exchange, const AnswerTexts& texts) {
    const auto facts = reader_.read(exchange.request().body);
    if (!facts) {
      exchange.respond(400, kJson, R"({"error":{"message":"malformed"}})");
    } else if (facts->form == AnswerForm::kWhole) {
      exchange.respond(200, kJson, texts.whole);
    } else {
      const std::uint64_t asked = facts->output_tokens_max;
      stream(std::move(exchange), texts, asked == 0 ? kEventsDefault : asked);
    }
  }

  void stream(WebExchange exchange, const AnswerTexts& texts, std::uint64_t events) {
    streams_.push_back({.exchange = std::move(exchange),
                        .texts = texts,
                        .events = events,
                        .due = clock_.now_monotonic()});
    const Place at = std::prev(streams_.end());
    at->exchange.on_gone([this, at] { end(at); });
    const WebHeader type{"Content-Type", "text/event-stream; charset=utf-8"};
    at->exchange.begin(200, {&type, 1});
    advance(at);
  }

  /// Sends the next events and comes back for those after them.
  void advance(Place at) {
    burst_.clear();
    for (std::uint64_t i = 0; i < options_.burst && at->sent < at->events; ++i, ++at->sent) {
      burst_ += at->texts.event;
    }
    if (at->sent == at->events) {
      burst_ += fmt::format(
          "{}{{\"prompt_tokens\":{},\"completion_tokens\":{},"
          "\"total_tokens\":{}}}}}\n\ndata: [DONE]\n\n",
          at->texts.last_event, kPromptTokens, at->events, kPromptTokens + at->events);
      at->exchange.send(burst_);
      at->exchange.end();
      end(at);
      return;
    }
    at->exchange.send(burst_);
    if (options_.rate > 0) {
      at->due =
          at->due + Duration::from_seconds(static_cast<double>(options_.burst) / options_.rate);
      at->timer = loop_.call_at(at->due, [this, at] { advance(at); });
    } else if (at->exchange.buffered() > kBufferedMax) {
      at->exchange.on_drained(0, [this, at] { advance(at); });
    } else {
      at->timer = loop_.call_after(Duration(), [this, at] { advance(at); });
    }
  }

  void end(Place at) {
    loop_.cancel(at->timer);
    streams_.erase(at);
  }

  RealLoop& loop_;
  const Options options_;
  const AnswerTexts completions_;
  const AnswerTexts chats_;
  RealClock clock_;
  RequestReader reader_;
  std::list<MockStream> streams_;
  std::string burst_;  ///< of the stream in progress
};

[[noreturn]] void serve(const Options& options) {
  const std::unique_ptr<RealLoop> loop = must(RealLoop::create());
  MockWorker worker(*loop, options);
  std::vector<std::unique_ptr<WebServer>> servers;
  for (std::size_t port = 0; port < options.ports; ++port) {
    servers.push_back(must(WebServer::listen(*loop, {}, worker)));
    fmt::print("{}\n", servers.back()->address());
  }
  (void)std::fflush(stdout);
  while (true) loop->run_round();
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app("Stands for replicas of a service behind a router under load.", "serving_mock");
  orrery::Options options;
  app.add_option("--ports", options.ports, "replicas")->check(CLI::Range(1, 1024));
  app.add_option("--bytes", options.bytes, "of a whole answer");
  app.add_option("--rate", options.rate, "events a second in each stream; 0: no limit");
  app.add_option("--burst", options.burst, "events in a write")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, count, arguments);
  orrery::serve(options);
}
