// gateway/admission/call_admission_test.cpp - limits, shares and classes of requests, through a
// gateway with scripted replicas.
#include "gateway/admission/call_admission.hpp"

#include <gtest/gtest.h>

#include "gateway/gateway_test.hpp"

namespace orrery {
namespace {

class AdmissionTest : public GatewayTest {
 protected:
  /// A gateway whose replicas compute one request at a time; `queue_max` may wait.
  void start_narrow(std::size_t queue_max, Duration wait) {
    start(
        {.wait = wait, .queue_wait = wait, .router = {.in_flight_max = 1, .queue_max = queue_max}});
  }

  RouteTable limited(const std::string& endpoint, std::vector<RoutedTenant> tenants) {
    RouteTable table = table_of({endpoint});
    table.services[0].tenants = std::move(tenants);
    return table;
  }

  /// A request of a key; `mark` tells it from others.
  static std::string by(std::string_view key, std::string_view mark, std::string_view more = "") {
    std::string text = request(kChat, fmt::format(R"({{"model":"m","user":"{}"{}}})", mark, more));
    return text.replace(text.find("Bearer all"), 10, fmt::format("Bearer {}", key));
  }

  /// Sends a request, of which the gateway has `calls` afterwards.
  RawPeer& send(const std::string& text, std::size_t calls) {
    peers_.push_back(std::make_unique<RawPeer>(gateway_->address()));
    peers_.back()->send(text);
    EXPECT_TRUE(run_until([&] { return gateway_->calls() == calls; })) << text;
    return *peers_.back();
  }

  /// Answers what the replica has, one request after the other, and returns their marks.
  std::string serve_all(ScriptedReplica& replica, std::size_t count) {
    std::string marks;
    for (std::size_t i = 0; i < count; ++i) {
      if (!run_until([&] { return !replica.kept.empty(); })) return marks + " and no more";
      const std::string& body = replica.kept.front().request().body;
      marks += body.substr(body.find("\"user\":\"") + 8, 1);
      replica.kept.front().respond(200, "application/json", "{}");
      replica.kept.pop_front();
    }
    return marks;
  }

  CallerCounts usage_of(std::string_view name) {
    const GatewayReport report = gateway_->report();
    for (const CallerCounts& each : report.services.at(0).tenants) {
      if (each.name == name) return each;
    }
    return {"none", {}};
  }

  std::vector<std::unique_ptr<RawPeer>> peers_;
};

/// The value of a header field of an answer; "": it has none.
std::string header(const std::string& answer, const std::string& name) {
  const std::size_t at = answer.find("\r\n" + name + ": ");
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 4;
  return answer.substr(begin, answer.find('\r', begin) - begin);
}

TEST_F(AdmissionTest, RefusesATenantBeyondItsLimitAndTellsWhenThereIsRoom) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  // A full bucket has a tenth of a token: a request empties it, and is paid off for long.
  gateway_->set_table(limited(replica.address(), {{"org", 1, 0, 0.01}}));
  RawPeer& first = send(by("org", "a", R"(,"max_tokens":60)"), 1);
  const std::string refused = ask(by("org", "b"));
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 429")) << refused;
  EXPECT_NE(refused.find(R"("code":"rate_limit_exceeded")"), std::string::npos) << refused;
  const double wait = std::stod("0" + header(refused, "Retry-After"));
  EXPECT_GE(wait, 6000) << "60 output tokens and the prompt's are charged";
  EXPECT_LE(wait, 8000);
  EXPECT_EQ(header(refused, "x-ratelimit-limit-tokens"), "0");
  EXPECT_EQ(header(refused, "x-ratelimit-remaining-tokens"), "0");
  EXPECT_TRUE(header(refused, "x-ratelimit-reset-tokens").ends_with("s"));

  replica.kept[0].respond(200, "application/json",
                          R"({"usage":{"prompt_tokens":3,"completion_tokens":5}})");
  ASSERT_TRUE(receives(first, "completion_tokens"));
  EXPECT_EQ(header(first.received(), "x-ratelimit-remaining-tokens"), "0");
  const std::string later = ask(by("org", "c"));
  EXPECT_TRUE(later.starts_with("HTTP/1.1 429")) << later;
  EXPECT_LE(std::stod("0" + header(later, "Retry-After")), 800) << "it used eight tokens";
  EXPECT_GE(std::stod("0" + header(later, "Retry-After")), 400);

  replica.react = [](WebExchange& exchange) { exchange.respond(200, "text/plain", "x"); };
  const std::string other = ask(by("all", "d"));
  EXPECT_TRUE(other.starts_with("HTTP/1.1 200")) << other;
  EXPECT_EQ(header(other, "x-ratelimit-limit-tokens"), "");
  EXPECT_EQ(usage_of("org").counts.shed, 2u);
  EXPECT_EQ(usage_of("org").counts.completed, 1u);
  EXPECT_EQ(usage_of("root").counts.shed, 0u);
}

TEST_F(AdmissionTest, SharesALimitWithTheOtherGateways) {
  ScriptedReplica replica(env_->loop());
  RouteTable table = limited(replica.address(), {{"org", 1, 0, 1000}});
  table.gateways = 4;
  gateway_->set_table(table);
  const std::string answer = ask(by("org", "a"));
  EXPECT_EQ(header(answer, "x-ratelimit-limit-tokens"), "2500") << answer;
}

TEST_F(AdmissionTest, WhatComesToNothingCostsNothing) {
  gateway_->set_table(limited("127.0.0.1:1", {{"org", 1, 0, 0.01}}));
  EXPECT_TRUE(ask(by("org", "a")).starts_with("HTTP/1.1 502"));
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(limited(replica.address(), {{"org", 1, 0, 0.01}}));
  const std::string answer = ask(by("org", "b"));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200")) << answer;
}

TEST_F(AdmissionTest, TenantsTakeTurnsHoweverManyOneHasWaiting) {
  start_narrow(100, Duration::seconds(20));
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  gateway_->set_table(limited(replica.address(), {{"org", 2, 0, 0}}));
  std::size_t calls = 0;
  for (const char* mark : {"0", "1", "2", "3", "4"}) send(by("all", mark), ++calls);
  for (const char* mark : {"a", "b", "c", "d"}) send(by("org", mark), ++calls);
  // The first was served before others came; then "org" has two for each one of the other.
  EXPECT_EQ(serve_all(replica, 9), "0ab1cd234");
  ASSERT_TRUE(run_until([&] { return gateway_->calls() == 0; }));
  EXPECT_EQ(usage_of("org").counts.completed, 4u);
  EXPECT_EQ(usage_of("root").counts.completed, 5u);
}

TEST_F(AdmissionTest, AHigherPriorityAndAnInteractiveRequestComeFirst) {
  start_narrow(100, Duration::seconds(20));
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  gateway_->set_table(limited(replica.address(), {{"org", 1, 1, 0}}));
  send(by("all", "0"), 1);
  send(by("org", "x", R"(,"service_tier":"flex")"), 2);
  send(by("all", "1", R"(,"service_tier":"auto")"), 3);
  send(by("org", "a"), 4);
  EXPECT_EQ(serve_all(replica, 4), "0a1x");
}

TEST_F(AdmissionTest, BatchGivesItsPlaceInAFullQueueAway) {
  start_narrow(1, Duration::seconds(20));
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  gateway_->set_table(table_of({replica.address()}));
  send(by("all", "0"), 1);
  RawPeer& batch = send(by("all", "x", R"(,"service_tier":"flex")"), 2);
  RawPeer& interactive = send(by("all", "1"), 2);
  ASSERT_TRUE(receives(batch, "overloaded"));
  EXPECT_TRUE(batch.received().starts_with("HTTP/1.1 429"));
  EXPECT_NE(header(batch.received(), "Retry-After"), "");
  EXPECT_TRUE(ask(by("all", "y", R"(,"service_tier":"flex")")).starts_with("HTTP/1.1 429"));
  EXPECT_EQ(serve_all(replica, 2), "01");
  EXPECT_TRUE(receives(interactive, "200 OK"));
}

TEST_F(AdmissionTest, BatchWaitsUntilItsDeadline) {
  start_narrow(10, Duration::milliseconds(20));
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  RouteTable table = table_of({replica.address()});
  gateway_->set_table(table);
  send(by("all", "0"), 1);
  RawPeer& batch = send(by("all", "x", R"(,"service_tier":"flex")"), 2);
  EXPECT_TRUE(ask(by("all", "1")).starts_with("HTTP/1.1 429"));
  run_for(Duration::milliseconds(120));
  EXPECT_EQ(gateway_->calls(), 2u) << "it waits for a day";
  table.services[0].batch_deadline_s = 0.03;
  gateway_->set_table(table);
  ASSERT_TRUE(receives(batch, "overloaded"));
}

TEST_F(AdmissionTest, RequestsThatWouldBeFarTooLateAreRefusedAtOnceUnlessTheyAreBatch) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange&) {};
  start({.queue_wait = Duration::seconds(60), .router = {.in_flight_max = 1}});
  RouteTable table = table_of({replica.address()});
  table.services[0].ttft_p99_s = 1e-6;  // a request takes seconds: it is millions of times late
  table.services[0].replicas[0].slots = 1;
  table.services[0].replicas[0].pace = {1000, 0.1, 0.1};
  gateway_->set_table(table);
  std::size_t calls = 0;
  for (const char* mark : {"a", "b"}) send(by("all", mark), ++calls);
  ASSERT_TRUE(run_until([&] { return replica.kept.size() == 2; })) << "all that it has room for";
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const std::string answer = ask(by("org", "c"));
    if (!answer.starts_with("HTTP/1.1 429")) continue;
    ++refused;
    EXPECT_NE(answer.find("Retry-After: "), std::string::npos) << answer;
  }
  EXPECT_EQ(refused, 20);
  send(by("org", "d", R"(,"service_tier":"flex")"), ++calls);
  EXPECT_EQ(usage_of("org").counts.shed, 20u);
  // Where nothing is refused, requests wait.
  start({.shed_beyond = 0, .router = {.in_flight_max = 1}});
  gateway_->set_table(table);
  calls = 0;
  for (const char* mark : {"a", "b", "c", "d"}) send(by("all", mark), ++calls);
  EXPECT_EQ(usage_of("root").counts.shed, 0u);
}

TEST_F(AdmissionTest, CountsWhatEachTenantUsesOfEmbeddingsToo) {
  ScriptedReplica replica(env_->loop());
  replica.react = [](WebExchange& exchange) {
    exchange.respond(200, "application/json",
                     R"({"data":[],"usage":{"prompt_tokens":9,"total_tokens":9}})");
  };
  gateway_->set_table(table_of({replica.address()}));
  ask(request("/v1/embeddings", R"({"model":"m","input":"some text"})"));
  ask(request("/v1/embeddings", R"({"model":"m","input":"some text"})"));
  EXPECT_EQ(counts().prompt_tokens, 18u);
  EXPECT_EQ(counts().output_tokens, 0u);
  EXPECT_EQ(usage_of("root").counts.prompt_tokens, 18u);
  EXPECT_EQ(usage_of("root").counts.completed, 2u);
  const std::string metrics = ask(get("/metrics"));
  const std::string labels = "{service=\"chat\",tenant=\"org/a\",caller=\"root\"} ";
  for (const char* line : {"requests_total", "prompt_tokens_total"}) {
    EXPECT_NE(metrics.find(fmt::format("orrery_gateway_tenant_{}{}", line, labels)),
              std::string::npos)
        << metrics;
  }
  EXPECT_NE(metrics.find("tenant_prompt_tokens_total" + labels + "18\n"), std::string::npos);
}

TEST(ResetText, IsWrittenAsOpenAiDoes) {
  EXPECT_EQ(reset_text(Duration()), "0ms");
  EXPECT_EQ(reset_text(Duration::milliseconds(850)), "850ms");
  EXPECT_EQ(reset_text(Duration::milliseconds(1250)), "1.25s");
  EXPECT_EQ(reset_text(Duration::seconds(121)), "2m1s");
}

}  // namespace
}  // namespace orrery
