// serving/route_table_test.cpp - tables are read as they were written, and errors name their place.
#include "serving/routing/route_table.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

Result<RouteTable> read(const std::string& text) {
  const Result<Document> document = Document::parse(text, "table.yaml");
  if (!document) return tl::unexpected(document.error());
  return read_route_table(*document);
}

std::string error_in(const std::string& text) {
  const Result<RouteTable> table = read(text);
  return table ? "no error" : table.error().text();
}

TEST(RouteTable, IsReadAsItWasWritten) {
  RouteTable table{.epoch = 7};
  table.services = {{.id = 3,
                     .name = "chat",
                     .model = "org/m",
                     .tenant = "a/b",
                     .replicas = {{.job = 4,
                                   .attempt = 2,
                                   .endpoint = "h:80",
                                   .slots = 8,
                                   .revision = 2,
                                   .pace = {900, 0.01, 0.02},
                                   .usd_s = 0.25,
                                   .kv_tokens = 4096,
                                   .kv_events = "h:81",
                                   .duty = ReplicaDuty::kPrefill,
                                   .transfer = RoutedTransfer{131072, 2.5e10}}},
                     .tenants = {{"a", 2.5, -3, 100}},
                     .batch_deadline_s = 60,
                     .canary = RoutedCanary{2, 0.25},
                     .tiers = RoutedTiers{9, 0.1, 0.9, 0.2, TierMeasure::kJudge},
                     .ttft_p99_s = 0.8,
                     .tpot_p99_s = 0.05,
                     .wakes_in_s = 40},
                    {.id = 9, .name = "other", .model = "n"}};
  table.keys = {{.sha256 = std::string(64, 'a'), .name = "k", .tenant = "a"}};
  table.gateways = 3;
  table.peers = RoutedPeers{std::string(32, 'k'), {{"g1", "10.0.0.1:9"}, {"g2", "[::1]:9"}}};
  const Result<RouteTable> again = read(write_route_table(table));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, table);
}

TEST(RouteTable, IsPutInOrder) {
  const Result<RouteTable> table = read(
      "epoch: 1\n"
      "services:\n"
      "- {id: 2, name: b, model: m, tenant: x}\n"
      "- id: 1\n"
      "  name: a\n"
      "  model: m\n"
      "  replicas: [{job: 5, attempt: 1, endpoint: 'h:1'}, {job: 4, attempt: 1, endpoint: "
      "'h:2'}]\n");
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->services[0].id, 1u);
  EXPECT_EQ(table->services[0].replicas[0].job, 4u);
}

TEST(RouteTable, HasServicesOfSeveralModelsAndTenants) {
  const Result<RouteTable> table = read(
      "epoch: 1\nservices:\n- {id: 1, name: a, model: m}\n- {id: 2, name: b, model: n}\n"
      "- {id: 3, name: c, model: m, tenant: t}\n");
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->services.size(), 3u);
}

TEST(RouteTable, NamesWhatDoesNotFit) {
  const std::string one = "epoch: 1\nservices:\n- {id: 1, name: a, model: m, replicas: [";
  EXPECT_NE(error_in("services: []").find("epoch"), std::string::npos);
  EXPECT_NE(error_in("epoch: 1\nother: 2").find("table.yaml:2:1"), std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: 'h:1', kv_events: 'h:0'}]}")
                .find("kv_events \"h:0\": expected HOST:PORT"),
            std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: 'h:1', transfer: {token_bytes: 1, "
                           "bytes_s: 0}}]}")
                .find("bytes_s 0, expected more than 0"),
            std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: host}]}").find("expected HOST:PORT"),
            std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: 'h:0'}]}").find("table.yaml:3:"),
            std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: 'h:1'},"
                           "{job: 1, attempt: 2, endpoint: 'h:2'}]}")
                .find("a second replica with job 1"),
            std::string::npos);
  EXPECT_NE(error_in(one + "]}\n- {id: 2, name: b, model: m}").find("the first is at"),
            std::string::npos);
  EXPECT_NE(error_in(one + "]}\n- {id: 1, name: b, model: n}").find("a second service with id 1"),
            std::string::npos);
  EXPECT_NE(error_in(one + "], canary: {revision: 2, share: 1.5}}").find("expected 0 to 1"),
            std::string::npos);
  const auto tenants = [](const std::string& list) {
    return error_in("epoch: 1\nservices:\n- {id: 1, name: a, model: m, tenants: [" + list + "]}");
  };
  EXPECT_NE(tenants("{name: a, weight: 0}").find("table.yaml:3:"), std::string::npos);
  EXPECT_NE(tenants("{name: a, weight: 0}").find("weight 0"), std::string::npos);
  EXPECT_NE(tenants("{name: a, tokens_per_s: -1}").find("tokens_per_s -1"), std::string::npos);
  EXPECT_NE(tenants("{name: a}, {name: a}").find("a second tenant"), std::string::npos);
  EXPECT_NE(tenants("], batch_deadline_s: -1, replicas: [").find("-1, expected 0 or more"),
            std::string::npos);
  EXPECT_NE(tenants("], tpot_p99_s: -0.1, replicas: [").find("tpot_p99_s -0.1, expected 0 or more"),
            std::string::npos);
  EXPECT_NE(
      error_in(one + "{job: 1, attempt: 1, endpoint: 'h:1', usd_s: -1}]}").find("table.yaml:3:"),
      std::string::npos);
  EXPECT_NE(error_in(one + "{job: 1, attempt: 1, endpoint: 'h:1', pace: {step_s: -2}}]}")
                .find("step_s -2, expected 0 or more"),
            std::string::npos);
  EXPECT_NE(tenants("], wakes_in_s: -2, replicas: [").find("-2, expected 0 or more"),
            std::string::npos);
  EXPECT_NE(error_in("epoch: 1\nkeys: [{sha256: abc, name: k}]").find("64 lower-case"),
            std::string::npos);
  const std::string peers = "epoch: 1\npeers: {key: " + std::string(32, 'k') + ", gateways: [";
  EXPECT_NE(error_in("epoch: 1\npeers: {key: short, gateways: []}").find("a key of 5 bytes"),
            std::string::npos);
  EXPECT_NE(error_in(peers + "{name: a, address: h}]}").find("expected HOST:PORT"),
            std::string::npos);
  EXPECT_NE(error_in(peers + "{name: a, address: 'h:1'}, {name: a, address: 'h:2'}]}")
                .find("a second gateway with name \"a\""),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
