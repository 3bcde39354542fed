// serving_load: requests of OpenAI's chat API to a router, counted and timed.
//
//   serving_load --to HOST:PORT [--key KEY] [--connections C | --rate R] [--seconds S] [--warm S]
//                [--bytes B] [--stream N] [--open N]
//
// By default a closed loop: C requests at a time (64) for S seconds (3). With --rate an open loop:
// a Poisson process of R requests a second, each on a kept connection or a new one, timed from the
// moment at which it was to be sent, however late the sender was. The first --warm seconds (0.5)
// are not timed. Requests have B bytes (1024) and ask for a whole answer, or for a stream of N
// events. One line of JSON tells requests, errors, seconds, events, and exact quantiles in
// microseconds: of whole answers, and of the first byte of a stream.
//
// --open N opens N streams, 2,000 a second, prints "open OPENED ERRORS" once each has begun or
// failed, and holds them until it is ended. One thread.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/numbers/rng.hpp"
#include "base/system/real_loop.hpp"
#include "bench/figure.hpp"
#include "http/web_client.hpp"

namespace orrery {
namespace {

constexpr double kOpenedPerSecond = 2000;
/// What the last requests have to end in.
constexpr Duration kPatience = Duration::seconds(10);

struct Options {
  std::string to;
  std::string key = "key";
  std::size_t connections = 64;
  double rate = 0;
  double seconds = 3;
  double warm = 0.5;
  std::size_t bytes = 1024;
  std::uint64_t stream = 0;
  std::size_t open = 0;
};

std::string request_body(const Options& options) {
  const std::string begin = R"({"model":"m","messages":[{"role":"user","content":")";
  const std::string end = options.stream > 0
                              ? fmt::format(R"("}}],"max_tokens":{},"stream":true,)"
                                            R"("stream_options":{{"include_usage":true}}}})",
                                            options.stream)
                              : R"("}],"max_tokens":16})";
  const std::size_t fixed = begin.size() + end.size();
  return begin + std::string(options.bytes > fixed ? options.bytes - fixed : 1, 'x') + end;
}

/// The value below which this share of them lies, in microseconds; 0 where there is none.
double quantile_us(std::vector<Duration>& values, double share) {
  if (values.empty()) return 0;
  const double at = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(at, 0.0));
  std::nth_element(values.begin(), place, values.end());
  return place->count_seconds() * 1e6;
}

struct Tally {
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;
  std::uint64_t lines = 0;   ///< of streams; an event has two
  std::uint64_t opened = 0;  ///< streams that have begun
  std::vector<Duration> whole;
  std::vector<Duration> first;
};

class LoadCall;

/// What calls tell of themselves.
class LoadOwner {
 public:
  virtual ~LoadOwner() = default;
  virtual void on_first(LoadCall& call) = 0;
  virtual void on_bytes(std::string_view bytes) = 0;
  enum class Outcome : std::uint8_t { kAnswered, kFailed };
  virtual void on_done(LoadCall& call, Outcome outcome) = 0;
};

/// A request at a time; used again for the next.
class LoadCall final : public WebCallEvents {
 public:
  explicit LoadCall(LoadOwner& owner) : owner_(owner) {}

  void start(WebClient& client, std::string_view to, const WebCallRequest& request) {
    status_ = 0;
    begun_ = false;
    call_ = client.start(to, request, *this);
  }
  /// When the request was to be sent.
  Instant intended;

  void on_head(const WebResponseHead& head) override { status_ = head.status; }
  void on_body(std::string_view bytes) override {
    if (!std::exchange(begun_, true)) owner_.on_first(*this);
    owner_.on_bytes(bytes);
  }
  void on_end() override {
    owner_.on_done(*this,
                   status_ == 200 ? LoadOwner::Outcome::kAnswered : LoadOwner::Outcome::kFailed);
  }
  void on_error(const WebCallFailure&) override {
    owner_.on_done(*this, LoadOwner::Outcome::kFailed);
  }

 private:
  LoadOwner& owner_;
  WebCall call_;
  int status_ = 0;
  bool begun_ = false;
};

class LoadClient final : public LoadOwner {
 public:
  LoadClient(RealLoop& loop, const Options& options)
      : loop_(loop),
        options_(options),
        body_(request_body(options)),
        key_("Bearer " + options.key),
        client_(WebClient::make(loop, {.connect_max = Duration::seconds(20),
                                       .idle_connections_max = std::size_t{1} << 16})) {}

  /// Runs the closed or the open loop to its end.
  void run() {
    times_.begin = times_.next = clock_.now_monotonic();
    times_.timed = times_.begin + Duration::from_seconds(options_.warm);
    times_.end = times_.timed + Duration::from_seconds(options_.seconds);
    if (options_.rate > 0) {
      fire(options_.rate);
    } else {
      for (std::size_t i = 0; i < options_.connections; ++i) begin_call(clock_.now_monotonic());
    }
    const Instant limit = times_.end + kPatience;
    for (const Instant wake : {times_.end, limit}) loop_.call_at(wake, [] {});
    while (clock_.now_monotonic() < times_.end ||
           (calls_.running > 0 && clock_.now_monotonic() < limit)) {
      loop_.run_round();
    }
    tally_.errors += calls_.running;
    times_.last = clock_.now_monotonic();
  }

  /// Opens the streams and holds them for ever.
  [[noreturn]] void hold() {
    times_.begin = times_.next = clock_.now_monotonic();
    times_.timed = times_.end = Instant::max();
    fire(kOpenedPerSecond);
    while (tally_.opened + tally_.errors < options_.open) loop_.run_round();
    fmt::print("open {} {}\n", tally_.opened, tally_.errors);
    (void)std::fflush(stdout);
    while (true) loop_.run_round();
  }

  void print() {
    Json json;
    json["requests"] = tally_.requests;
    json["errors"] = tally_.errors;
    json["seconds"] = (times_.last - times_.begin).count_seconds();
    json["events"] = tally_.lines / 2;
    json["p50_us"] = quantile_us(tally_.whole, 0.5);
    json["p99_us"] = quantile_us(tally_.whole, 0.99);
    json["first_p50_us"] = quantile_us(tally_.first, 0.5);
    json["first_p99_us"] = quantile_us(tally_.first, 0.99);
    fmt::print("{}\n", json.dump());
  }

  void on_first(LoadCall& call) override {
    ++tally_.opened;
    if (options_.stream > 0 && call.intended >= times_.timed) {
      tally_.first.push_back(clock_.now_monotonic() - call.intended);
    }
  }
  void on_bytes(std::string_view bytes) override {
    if (options_.stream > 0) {
      tally_.lines += static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
    }
  }
  void on_done(LoadCall& call, Outcome outcome) override {
    const Instant now = clock_.now_monotonic();
    --calls_.running;
    ++(outcome == Outcome::kAnswered ? tally_.requests : tally_.errors);
    if (outcome == Outcome::kAnswered && call.intended >= times_.timed) {
      tally_.whole.push_back(now - call.intended);
    }
    calls_.free.push_back(&call);
    if (options_.rate == 0 && now < times_.end && options_.open == 0) begin_call(now);
  }

 private:
  struct Times {
    Instant begin;
    Instant timed;  ///< requests from then on are timed
    Instant end;    ///< no request from then on
    Instant next;   ///< of the open loop
    Instant last;   ///< end of the last request
  };

  struct Calls {
    std::size_t running = 0;
    std::size_t started = 0;
    std::vector<LoadCall*> free;
    std::vector<std::unique_ptr<LoadCall>> all;
  };

  void begin_call(Instant intended) {
    if (calls_.free.empty()) {
      calls_.all.push_back(std::make_unique<LoadCall>(*this));
      calls_.free.push_back(calls_.all.back().get());
    }
    LoadCall& call = *calls_.free.back();
    calls_.free.pop_back();
    ++calls_.running;
    ++calls_.started;
    call.intended = intended;
    const WebHeader headers[] = {{"Content-Type", "application/json"}, {"Authorization", key_}};
    call.start(
        *client_, options_.to,
        {.method = "POST", .target = "/v1/chat/completions", .headers = headers, .body = body_});
  }

  /// Begins the calls of the open loop that are due, and comes back for the next.
  void fire(double rate) {
    const Instant now = clock_.now_monotonic();
    const auto goes_on = [&] {
      return times_.next < times_.end && (options_.open == 0 || calls_.started < options_.open);
    };
    while (goes_on() && times_.next <= now) {
      begin_call(times_.next);
      times_.next = times_.next + Duration::from_seconds(-std::log(1 - gaps_.uniform()) / rate);
    }
    if (goes_on()) loop_.call_at(times_.next, [this, rate] { fire(rate); });
  }

  RealLoop& loop_;
  const Options& options_;
  const std::string body_;
  const std::string key_;
  RealClock clock_;
  Rng gaps_ = Rng(1);
  Times times_;
  Tally tally_;
  Calls calls_;
  std::unique_ptr<WebClient> client_;
};

}  // namespace
}  // namespace orrery

int main(int count, char** arguments) {
  CLI::App app("Sends requests of OpenAI's chat API to a router.", "serving_load");
  orrery::Options options;
  app.add_option("--to", options.to, "HOST:PORT of the router")->required();
  app.add_option("--key", options.key, "shown as \"Authorization: Bearer KEY\"");
  app.add_option("--connections", options.connections, "requests at a time in the closed loop");
  app.add_option("--rate", options.rate, "requests a second of the open loop");
  app.add_option("--seconds", options.seconds, "of timed load");
  app.add_option("--warm", options.warm, "seconds before them");
  app.add_option("--bytes", options.bytes, "of a request");
  app.add_option("--stream", options.stream, "events of a stream; 0: whole answers");
  app.add_option("--open", options.open, "opens so many streams and holds them");
  CLI11_PARSE(app, count, arguments);
  const std::unique_ptr<orrery::RealLoop> loop = orrery::must(orrery::RealLoop::create());
  orrery::LoadClient client(*loop, options);
  if (options.open > 0) client.hold();
  client.run();
  client.print();
  return 0;
}
