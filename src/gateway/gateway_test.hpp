// gateway/gateway_test.hpp - for tests: a gateway on loopback, clients that write raw HTTP, and
// replicas that are scripted.
//
// One thread, the test's.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/real_env.hpp"
#include "gateway/access_keys.hpp"
#include "gateway/gateway.hpp"
#include "http/loop_test.hpp"

namespace orrery {

inline constexpr std::string_view kChat = "/v1/chat/completions";

class NoLog final : public LogSink {
 public:
  void write_line(std::string_view) override {}
};

/// A replica: keeps the requests it gets; `react` answers them, or leaves them in `kept`.
class ScriptedReplica final : public WebHandler {
 public:
  explicit ScriptedReplica(RealLoop& loop) : server_(*WebServer::listen(loop, {}, *this)) {
    react = [](WebExchange& exchange) {
      exchange.respond(200, "application/json",
                       R"({"id":"x","usage":{"prompt_tokens":3,)"
                       R"("completion_tokens":5,"total_tokens":8}})");
    };
  }

  void on_request(WebExchange exchange) override {
    seen.push_back(exchange.request());
    kept.push_back(std::move(exchange));
    kept.back().on_gone([this] { ++gone; });
    react(kept.back());
    if (!kept.back().open()) kept.pop_back();
  }

  [[nodiscard]] const std::string& address() const { return server_->address(); }
  void close() { server_.reset(); }

  std::function<void(WebExchange&)> react;
  std::vector<WebRequest> seen;
  std::deque<WebExchange> kept;
  int gone = 0;

 private:
  std::unique_ptr<WebServer> server_;
};

inline void begin_stream(WebExchange& exchange) {
  const WebHeader type{"Content-Type", "text/event-stream; charset=utf-8"};
  exchange.begin(200, {&type, 1});
}

class GatewayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    tick();
    start({.wait = Duration::milliseconds(150)});
  }

  void start(GatewayOptions options) {
    gateway_.reset();
    options.name = "g1";
    Result<std::unique_ptr<Gateway>> gateway = Gateway::start(*env_, Log(sink_), options);
    ASSERT_TRUE(gateway) << gateway.error().message;
    gateway_ = *std::move(gateway);
  }

  void tick() {
    env_->loop().call_after(Duration::milliseconds(2), [this] { tick(); });
  }

  bool run_until(const std::function<bool()>& condition) {
    const RealClock clock;
    const Instant limit = clock.now_monotonic() + Duration::seconds(20);
    while (!condition()) {
      if (clock.now_monotonic() > limit) return false;
      env_->loop().run_round();
    }
    return true;
  }
  void run_for(Duration duration) {
    const RealClock clock;
    const Instant end = clock.now_monotonic() + duration;
    run_until([&] { return clock.now_monotonic() >= end; });
  }

  /// A table with the service "chat" of model "m" at these endpoints, jobs from 1, and three keys.
  RouteTable table_of(const std::vector<std::string>& endpoints) {
    RouteTable table{.epoch = ++epoch_};
    table.services.push_back({.id = 1, .name = "chat", .model = "m", .tenant = "org/a"});
    std::uint64_t job = 1;
    for (const std::string& endpoint : endpoints) {
      table.services[0].replicas.push_back({.job = job++, .attempt = 1, .endpoint = endpoint});
    }
    table.keys = {{.sha256 = sha256_hex("all"), .name = "root", .tenant = ""},
                  {.sha256 = sha256_hex("org"), .name = "org", .tenant = "org"},
                  {.sha256 = sha256_hex("b"), .name = "other", .tenant = "org/b"}};
    return table;
  }

  static std::string request(std::string_view path, std::string_view body,
                             std::string_view more = "") {
    return fmt::format(
        "POST {} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer all\r\nContent-Length: "
        "{}\r\n{}\r\n{}",
        path, body.size(), more, body);
  }
  static std::string get(std::string_view path, std::string_view key = "all") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer {}\r\n\r\n", path, key);
  }

  /// Sends a request on a connection of its own, which says that it is the last, and returns the
  /// whole answer.
  std::string ask(std::string text) {
    text.insert(text.find("\r\n") + 2, "Connection: close\r\n");
    RawPeer peer(gateway_->address());
    peer.send(text);
    EXPECT_TRUE(run_until([&] {
      peer.read();
      return peer.ended();
    })) << peer.received();
    return peer.received();
  }
  bool receives(RawPeer& peer, std::string_view text) {
    return run_until([&] {
      peer.read();
      return peer.received().find(text) != std::string::npos;
    });
  }

  /// Has a client ask for a stream, which the replica begins and keeps.
  RawPeer stream_of(ScriptedReplica& replica) {
    replica.react = begin_stream;
    gateway_->set_table(table_of({replica.address()}));
    RawPeer peer(gateway_->address());
    peer.send(request(kChat, R"({"model":"m","stream":true})"));
    EXPECT_TRUE(run_until([&] { return replica.kept.size() == 1; }));
    return peer;
  }

  ServiceCounts counts() { return gateway_->report().services.at(0).counts; }

  NoLog sink_;
  std::unique_ptr<RealEnv> env_ = *RealEnv::create();
  std::unique_ptr<Gateway> gateway_;
  std::uint64_t epoch_ = 0;
};

}  // namespace orrery
