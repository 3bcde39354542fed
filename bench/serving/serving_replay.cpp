// serving_replay: sends the requests of a trace to an endpoint of OpenAI's API when they arrive,
// and times their answers.
//
//   serving_replay --to HOST:PORT --model M --requests FILE [--key KEY] [--vocab V] [--speed X]
//                  [--count N] [--out FILE.csv]
//
// The file is one that workload/requests/request_reader.hpp reads, so that the twin can play the
// same (`orrery simulate --serve`). A prompt is a list of tokens: those of a block of a chain
// follow from the number of the block, so that prompts begin alike exactly where the trace says.
// Answers are streams of the trace's length (ignore_eos); a token is an event (return_token_ids).
// Each request is timed from the moment at which it was to be sent, however late the sender was.
// Prints a line of JSON with quantiles as `simulate -o json` has them; --out has a line for each
// request. One thread, a connection for each open request.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "base/system/real_loop.hpp"
#include "bench/figure.hpp"
#include "http/web_client.hpp"
#include "twin/serving/request_book.hpp"
#include "workload/requests/request_reader.hpp"

namespace orrery {
namespace {

struct Options {
  std::string to;
  std::string model;
  std::string requests;
  std::string key = "key";
  std::string out;
  std::uint64_t vocab = 256;
  double speed = 1;
  std::size_t count = 0;
};

/// The tokens of a prompt; `salt` is of those that no chain tells.
std::vector<std::uint64_t> prompt_of(const RequestTrace& trace, const TraceRequest& request,
                                     std::uint64_t salt, std::uint64_t vocab) {
  std::vector<std::uint64_t> tokens;
  tokens.reserve(request.prompt_tokens);
  const auto chain = trace.chain_of(request);
  for (std::uint32_t block = 0; tokens.size() < request.prompt_tokens; ++block) {
    const std::uint64_t seed = block < chain.size() ? chain[block] : (salt << 32) + block;
    Rng rng(seed * 2 + (block < chain.size() ? 0 : 1));
    for (std::uint32_t i = 0; i < kTraceBlockTokens && tokens.size() < request.prompt_tokens; ++i) {
      tokens.push_back(rng.below(vocab));
    }
  }
  return tokens;
}

class ReplayClient;

/// One request and its answer.
class ReplayCall final : public WebCallEvents {
 public:
  ReplayCall(ReplayClient& owner, std::uint32_t number) : owner_(owner), number_(number) {}

  void start(WebClient& client, std::string_view to, const WebCallRequest& request) {
    call_ = client.start(to, request, *this);
  }
  void on_head(const WebResponseHead& head) override { status_ = head.status; }
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_error(const WebCallFailure& failure) override;

 private:
  ReplayClient& owner_;
  std::uint32_t number_;
  int status_ = 0;
  WebCall call_;
};

class ReplayClient {
 public:
  ReplayClient(RealLoop& loop, const Options& options, RequestTrace trace)
      : loop_(loop),
        options_(options),
        trace_(std::move(trace)),
        book_(trace_, {}),
        client_(WebClient::make(loop, {.idle_connections_max = 1024})) {}

  void run() {
    bodies_.reserve(trace_.requests.size());
    for (std::uint32_t i = 0; i < trace_.requests.size(); ++i) bodies_.push_back(body_of(i));
    calls_.resize(trace_.requests.size());
    begin_ = clock_.now_monotonic() + Duration::milliseconds(100);
    loop_.call_at(begin_, [this] { fire(); });
    while (book_.open() > 0) loop_.run_round();
  }

  [[nodiscard]] Picoseconds now() const {
    return (clock_.now_monotonic() - begin_).count_ns() * 1000;
  }
  [[nodiscard]] RequestBook& book() { return book_; }
  [[nodiscard]] const RequestTrace& trace() const { return trace_; }

  void fail(std::uint32_t request, const std::string& why) {
    if (failures_++ == 0) fmt::print(stderr, "request {}: {}\n", request, why);
    book_.refuse(request, RequestFate::kFailed);
  }

 private:
  [[nodiscard]] std::string body_of(std::uint32_t request) const {
    const TraceRequest& asked = trace_.requests[request];
    return fmt::format(
        R"({{"model":"{}","prompt":[{}],"max_tokens":{},"temperature":0,"ignore_eos":true,)"
        R"("stream":true,"return_token_ids":true}})",
        options_.model, fmt::join(prompt_of(trace_, asked, request + 1, options_.vocab), ","),
        asked.output_tokens);
  }

  void fire() {
    while (next_ < calls_.size() && book_.arrival_of(next_) <= now()) {
      calls_[next_] = std::make_unique<ReplayCall>(*this, next_);
      const std::string key = "Bearer " + options_.key;
      const WebHeader headers[] = {{"Content-Type", "application/json"}, {"Authorization", key}};
      calls_[next_]->start(*client_, options_.to,
                           {.method = "POST",
                            .target = "/v1/completions",
                            .headers = headers,
                            .body = bodies_[next_]});
      ++next_;
    }
    if (next_ == calls_.size()) return;
    loop_.call_at(begin_ + trace_.requests[next_].arrival, [this] { fire(); });
  }

  RealLoop& loop_;
  const Options& options_;
  RealClock clock_;
  RequestTrace trace_;
  RequestBook book_;
  Instant begin_;
  std::uint32_t next_ = 0;
  std::size_t failures_ = 0;
  std::vector<std::string> bodies_;
  std::unique_ptr<WebClient> client_;
  std::vector<std::unique_ptr<ReplayCall>> calls_;
};

void ReplayCall::on_body(std::string_view) { owner_.book().begin(number_, owner_.now()); }

void ReplayCall::on_end() {
  if (status_ == 200 && owner_.book().has_begun(number_)) {
    owner_.book().complete(number_, owner_.now());
  } else {
    owner_.fail(number_, fmt::format("status {}", status_));
  }
}

void ReplayCall::on_error(const WebCallFailure& failure) {
  owner_.fail(number_, failure.error.message);
}

Json quantiles_json(const QuantilesOf& of) {
  return {{"mean", of.mean}, {"p50", of.p50}, {"p90", of.p90}, {"p99", of.p99}, {"max", of.max}};
}

void report(ReplayClient& client, const std::string& out) {
  ServiceFigures figures;
  client.book().report(figures);
  Json json;
  json["requests"] = figures.all.requests;
  json["completed"] = figures.all.completed;
  json["failed"] = figures.all.failed;
  json["ttft_s"] = quantiles_json(figures.all.ttft);
  json["tpot_s"] = quantiles_json(figures.all.tpot);
  json["request_s"] = quantiles_json(figures.all.whole);
  fmt::print("{}\n", json.dump());
  if (out.empty()) return;
  std::ofstream file(out);
  file << "arrival_s,prompt_tokens,output_tokens,fate,ttft_s,end_s\n";
  for (std::uint32_t i = 0; i < client.trace().requests.size(); ++i) {
    const TraceRequest& each = client.trace().requests[i];
    const RequestBook& book = client.book();
    file << fmt::format("{:.6f},{},{},{},{:.6f},{:.6f}\n", each.arrival.count_seconds(),
                        each.prompt_tokens, each.output_tokens, word_of(book.fate_of(i)),
                        seconds_of_ps(book.first_of(i) - book.arrival_of(i)),
                        seconds_of_ps(book.end_of(i)));
  }
}

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app("Sends the requests of a trace to a server of OpenAI's API.", "serving_replay");
  orrery::Options options;
  app.add_option("--to", options.to, "HOST:PORT of the server")->required();
  app.add_option("--model", options.model, "that is asked")->required();
  app.add_option("--requests", options.requests, "trace of requests")->required();
  app.add_option("--key", options.key, "shown as \"Authorization: Bearer KEY\"");
  app.add_option("--vocab", options.vocab, "tokens are below this");
  app.add_option("--speed", options.speed, "factor on the rate of arrivals");
  app.add_option("--count", options.count, "only so many requests");
  app.add_option("--out", options.out, "CSV with a line for each request");
  CLI11_PARSE(app, count, arguments);
  orrery::RequestTrace trace = orrery::must(orrery::load_requests(options.requests, {}));
  if (options.count > 0 && options.count < trace.requests.size()) {
    trace.requests.resize(options.count);
  }
  orrery::speed_up(trace, options.speed);
  const std::unique_ptr<orrery::RealLoop> loop = orrery::must(orrery::RealLoop::create());
  orrery::ReplayClient client(*loop, options, std::move(trace));
  client.run();
  orrery::report(client, options.out);
  return 0;
}
