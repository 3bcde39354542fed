// gateway/spans/call_span_test.cpp - traces pass through a gateway, and its spans reach a receiver.
#include "gateway/spans/call_span.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway_test.hpp"
#include "gateway/spans/span_exporter.hpp"
#include "gateway/spans/trace_context.hpp"

namespace orrery {
namespace {

constexpr std::string_view kTrace = "0af7651916cd43dd8448eb211c80319c";
constexpr std::string_view kCaller = "b7ad6b7169203331";

std::string parent_header(std::string_view flags) {
  return fmt::format("traceparent: 00-{}-{}-{}\r\ntracestate: vendor=1\r\n", kTrace, kCaller,
                     flags);
}

TEST(TraceContext, IsReadAsItWasWritten) {
  const std::string text = fmt::format("00-{}-{}-01", kTrace, kCaller);
  const auto context = parse_traceparent(text);
  ASSERT_TRUE(context);
  EXPECT_EQ(context->trace, kTrace);
  EXPECT_EQ(context->span, kCaller);
  EXPECT_TRUE(context->sampled);
  EXPECT_EQ(traceparent_text(*context), text);
  EXPECT_FALSE(parse_traceparent(fmt::format("00-{}-{}-02", kTrace, kCaller))->sampled);
  EXPECT_TRUE(parse_traceparent(fmt::format("01-{}-{}-01-more", kTrace, kCaller)));
  const std::string zeros(16, '0');
  for (const std::string& wrong :
       {std::string(), std::string("00-1-2-3"), text + "-more", text + "0",
        fmt::format("ff-{}-{}-01", kTrace, kCaller), fmt::format("00-{}-{}-01", kTrace, zeros),
        fmt::format("00-{}{}-{}-01", zeros, zeros, kCaller),
        fmt::format("00-{}-{}-0x", kTrace, kCaller), fmt::format("00_{}-{}-01", kTrace, kCaller),
        fmt::format("00-{}-{}-01", "0AF7651916CD43DD8448EB211C80319C", kCaller)}) {
    EXPECT_FALSE(parse_traceparent(wrong)) << wrong;
  }
  EXPECT_EQ(hex_text(0x1f), "000000000000001f");
}

TEST(SpanReceivers, AreReadFromUrls) {
  const auto read = [](std::string_view url) {
    const auto receiver = read_span_receiver(url);
    return receiver ? receiver->endpoint + " " + receiver->path : receiver.error().message;
  };
  EXPECT_EQ(read("http://h:1"), "h:1 /v1/traces");
  EXPECT_EQ(read("http://h/"), "h:4318 /v1/traces");
  EXPECT_EQ(read("http://[::1]/base/"), "[::1]:4318 /base/v1/traces");
  EXPECT_EQ(read("http://[::1]:5"), "[::1]:5 /v1/traces");
  for (const char* wrong : {"https://h:1", "h:1", "http://", "http://:1"}) {
    EXPECT_NE(read(wrong).find("expected http://HOST:PORT"), std::string::npos) << wrong;
  }
}

class SpanTest : public GatewayTest {
 protected:
  void SetUp() override {
    tick();
    receiver_.react = [](WebExchange& exchange) {
      exchange.respond(200, "application/json", "{}");
    };
    start({.wait = Duration::milliseconds(50), .otlp = "http://" + receiver_.address()});
  }

  /// The spans that the receiver has got, of all batches, once there are that many.
  std::vector<nlohmann::json> spans(std::size_t count) {
    std::vector<nlohmann::json> all;
    EXPECT_TRUE(run_until([&] {
      all.clear();
      for (const WebRequest& each : receiver_.seen) {
        const auto batch = nlohmann::json::parse(each.body)["resourceSpans"][0];
        for (const auto& span : batch["scopeSpans"][0]["spans"]) all.push_back(span);
      }
      return all.size() >= count;
    })) << all.size();
    return all;
  }

  static std::string value(const nlohmann::json& attributes, std::string_view key) {
    for (const auto& each : attributes) {
      if (each["key"] != key) continue;
      const auto& value = each["value"];
      return value.contains("stringValue") ? value["stringValue"].get<std::string>()
                                           : value.value("intValue", "no whole number");
    }
    return "absent";
  }

  ScriptedReplica receiver_{env_->loop()};
};

TEST_F(SpanTest, ARequestIsASpanOfItsCallersTrace) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  ask(request(kChat, R"({"model":"m","max_tokens":9})",
              "x-request-id: r1\r\n" + parent_header("01")));
  ASSERT_EQ(replica.seen.size(), 1u);
  const auto passed = parse_traceparent(replica.seen[0].headers.find("traceparent").value_or(""));
  ASSERT_TRUE(passed);
  EXPECT_EQ(passed->trace, kTrace);
  EXPECT_NE(passed->span, kCaller) << "the gateway's span is the replica's caller";
  EXPECT_EQ(replica.seen[0].headers.find("tracestate"), "vendor=1");

  const std::vector<nlohmann::json> all = spans(1);
  ASSERT_EQ(all.size(), 1u);
  const nlohmann::json& span = all[0];
  EXPECT_EQ(receiver_.seen[0].target, "/v1/traces");
  EXPECT_EQ(receiver_.seen[0].headers.find("content-type"), "application/json");
  EXPECT_EQ(span["traceId"], kTrace);
  EXPECT_EQ(span["spanId"], passed->span);
  EXPECT_EQ(span["parentSpanId"], kCaller);
  EXPECT_EQ(span["name"], "chat m");
  EXPECT_EQ(span["kind"], 2);
  EXPECT_FALSE(span.contains("status"));
  EXPECT_LE(std::stoll(span["startTimeUnixNano"].get<std::string>()),
            std::stoll(span["endTimeUnixNano"].get<std::string>()));
  const std::map<std::string, std::string> expected{{"gen_ai.operation.name", "chat"},
                                                    {"gen_ai.request.model", "m"},
                                                    {"gen_ai.request.max_tokens", "9"},
                                                    {"gen_ai.usage.input_tokens", "3"},
                                                    {"gen_ai.usage.output_tokens", "5"},
                                                    {"http.response.status_code", "200"},
                                                    {"error.type", "absent"},
                                                    {"orrery.service", "chat"},
                                                    {"orrery.tenant", "root"},
                                                    {"orrery.request", "r1"},
                                                    {"orrery.replica", replica.address()}};
  for (const auto& [key, text] : expected) EXPECT_EQ(value(span["attributes"], key), text) << key;
  const auto resource = nlohmann::json::parse(receiver_.seen[0].body)["resourceSpans"][0];
  EXPECT_EQ(value(resource["resource"]["attributes"], "service.name"), "orrery-gateway");
  EXPECT_EQ(value(resource["resource"]["attributes"], "service.instance.id"), "g1");
  EXPECT_NE(ask(get("/metrics")).find("orrery_gateway_spans_sent_total 1\n"), std::string::npos);
}

TEST_F(SpanTest, WithoutACallerATraceBeginsAndFailuresAreMarked) {
  gateway_->set_table(table_of({}));
  ask(request("/v1/embeddings", R"({"model":"m"})"));
  const std::vector<nlohmann::json> all = spans(1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_FALSE(all[0].contains("parentSpanId"));
  EXPECT_EQ(all[0]["traceId"].get<std::string>().size(), 32u);
  EXPECT_EQ(all[0]["status"]["code"], 2);
  EXPECT_EQ(value(all[0]["attributes"], "error.type"), "failed");
  EXPECT_EQ(value(all[0]["attributes"], "gen_ai.operation.name"), "embeddings");
  EXPECT_EQ(value(all[0]["attributes"], "http.response.status_code"), "503");
}

TEST_F(SpanTest, ATraceThatIsNotSampledPassesAndIsNotSent) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  ask(request(kChat, R"({"model":"m"})", parent_header("00")));
  ask(request(kChat, R"({"model":"m"})", "x-request-id: second\r\n"));
  const auto first = replica.seen.at(0).headers.find("traceparent").value_or("");
  EXPECT_TRUE(first.starts_with(fmt::format("00-{}-", kTrace))) << first;
  EXPECT_TRUE(first.ends_with("-00")) << first;
  const std::vector<nlohmann::json> all = spans(1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(value(all[0]["attributes"], "orrery.request"), "second");
}

TEST_F(SpanTest, AReceiverThatRefusesCostsSpansAndNothingElse) {
  receiver_.react = [](WebExchange& exchange) { exchange.respond(500, "text/plain", "full"); };
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  EXPECT_TRUE(ask(request(kChat, R"({"model":"m"})")).starts_with("HTTP/1.1 200"));
  ASSERT_TRUE(run_until([&] {
    return ask(get("/metrics")).find("orrery_gateway_spans_dropped_total 1\n") != std::string::npos;
  }));
  receiver_.close();
  EXPECT_TRUE(ask(request(kChat, R"({"model":"m"})")).starts_with("HTTP/1.1 200"));
  EXPECT_TRUE(run_until([&] {
    return ask(get("/metrics")).find("orrery_gateway_spans_dropped_total 2\n") != std::string::npos;
  }));
}

TEST_F(SpanTest, AReceiverThatBeginsToRefuseIsToldOfOnce) {
  int status = 503;
  receiver_.react = [&](WebExchange& exchange) { exchange.respond(status, "text/plain", ""); };
  std::vector<std::string> told;
  SpanExporter exporter(env_->loop(), {.endpoint = receiver_.address()}, "g",
                        [&](const std::string& why) { told.push_back(why); });
  const auto send = [&] {
    const std::uint64_t before = exporter.sent() + exporter.dropped();
    exporter.add({});
    EXPECT_TRUE(run_until([&] { return exporter.sent() + exporter.dropped() > before; }));
  };
  send();
  send();
  EXPECT_EQ(told, std::vector<std::string>{"HTTP status 503"});
  status = 200;
  send();
  status = 404;
  send();
  EXPECT_EQ(told, (std::vector<std::string>{"HTTP status 503", "HTTP status 404"}));
  receiver_.close();
  send();
  EXPECT_EQ(told.size(), 2u);
}

TEST_F(SpanTest, NoMoreSpansWaitThanTheLimitAndAFullBatchLeavesAtOnce) {
  receiver_.react = [](WebExchange&) {};
  SpanExporter exporter(env_->loop(), {.endpoint = receiver_.address()}, "g",
                        [](const std::string&) {});
  constexpr std::size_t kMore = 10;
  constexpr std::size_t kAll = SpanExporter::kBatchMax + SpanExporter::kWaitingMax + kMore;
  for (std::size_t i = 0; i < kAll; ++i) exporter.add({});
  EXPECT_EQ(exporter.dropped(), kMore) << "one batch is under way";
  ASSERT_TRUE(run_until([&] { return receiver_.kept.size() == 1; }));
  receiver_.react = [](WebExchange& exchange) { exchange.respond(200, "text/plain", ""); };
  receiver_.kept[0].respond(200, "text/plain", "");
  EXPECT_TRUE(run_until([&] { return exporter.sent() == kAll - kMore; })) << exporter.sent();
}

TEST_F(GatewayTest, WithoutAReceiverTracesPassAndBeginAllTheSame) {
  ScriptedReplica replica(env_->loop());
  gateway_->set_table(table_of({replica.address()}));
  ask(request(kChat, R"({"model":"m"})", parent_header("01")));
  ask(request(kChat, R"({"model":"m"})"));
  ASSERT_EQ(replica.seen.size(), 2u);
  EXPECT_EQ(replica.seen[0].headers.find("traceparent"),
            fmt::format("00-{}-{}-01", kTrace, kCaller));
  EXPECT_TRUE(parse_traceparent(replica.seen[1].headers.find("traceparent").value_or("")));
}

}  // namespace
}  // namespace orrery
