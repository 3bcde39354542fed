#include "verbs/cluster/service_text.hpp"

#include <gtest/gtest.h>

namespace orrery {
namespace {

v1::ServiceView chat() {
  v1::ServiceView service;
  service.set_id(3);
  service.set_name("chat");
  service.set_model("gpt-small");
  service.add_endpoints("http://127.0.0.1:8100");
  v1::ServiceReplica& ready = *service.add_replicas();
  ready.set_job(3);
  ready.set_revision("r1");
  ready.set_attempt(2);
  ready.set_state("ready");
  ready.set_node("node-0");
  ready.set_endpoint("127.0.0.1:9000");
  ready.set_slots(8);
  ready.set_in_flight(5);
  ready.set_start_s(2.125);
  v1::ServiceReplica& loading = *service.add_replicas();
  loading.set_job(4);
  loading.set_revision("r1");
  loading.set_attempt(1);
  loading.set_state("loading");
  loading.set_node("node-1");
  return service;
}

TEST(ServiceTextTest, ReplicasAreListedAndWhatIsNotMeasuredIsLeftOpen) {
  EXPECT_EQ(service_text({}, chat()),
            "service chat: model gpt-small at http://127.0.0.1:8100\n"
            "REPLICA  REVISION  ATTEMPT  STATE    NODE    ENDPOINT        IN FLIGHT   START\n"
            "      3  r1              2  ready    node-0  127.0.0.1:9000        5/8  2.12 s\n"
            "      4  r1              1  loading  node-1                          0\n"
            "\n"
            "LAST 0 s              P50  P99  TARGET  PREDICTED\n"
            "TTFT\n"
            "TPOT\n"
            "tokens/s\n"
            "$ per million tokens\n"
            "requests: 0 completed, 0 cancelled, 0 shed, 0 failed; 0 tokens in, 0 tokens out\n");
}

TEST(ServiceTextTest, SaysHowFarAnUpdateIsAndWhyItFailed) {
  const auto second_line = [](const v1::ServiceView& service) {
    const std::string text = service_text({}, service);
    const std::size_t begin = text.find('\n') + 1;
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  v1::ServiceView service = chat();
  service.mutable_update()->set_revision("r2");
  service.mutable_update()->set_replicas(3);
  service.mutable_update()->set_ready(1);
  EXPECT_EQ(second_line(service), "update to revision r2: 1 of 3 replicas ready");
  service.mutable_update()->set_back("job 7 failed");
  EXPECT_EQ(second_line(service),
            "update to revision r2: 1 of 3 replicas ready, going back: job 7 failed");
  service.clear_update();
  service.set_outcome("job 7 failed");
  EXPECT_EQ(second_line(service), "the last update did not succeed: job 7 failed");
}

struct Target {
  const char* latency;
  double quantile;
  double target_s;
  double measured_s;
};
void add_target(v1::ServiceView& service, const Target& of) {
  v1::ServiceTarget& target = *service.add_targets();
  target.set_latency(of.latency);
  target.set_quantile(of.quantile);
  target.set_target_s(of.target_s);
  target.set_measured_s(of.measured_s);
}

TEST(ServiceTextTest, ASmallerModelIsShownWithWhatItMayCost) {
  v1::ServiceView service = chat();
  EXPECT_EQ(service_text({}, service).find("smaller"), std::string::npos);
  v1::QualityView& quality = *service.mutable_quality();
  quality.set_small("chat-1b");
  quality.set_max_loss(0.05);
  quality.set_confidence(0.95);
  EXPECT_NE(
      service_text({}, service)
          .find("smaller model: chat-1b has answered nothing yet (promised 5 %, 95 % sure)\n"),
      std::string::npos);
  quality.set_missing(true);
  EXPECT_NE(
      service_text({}, service)
          .find(
              "smaller model: no service chat-1b runs in this tenant (promised 5 %, 95 % sure)\n"),
      std::string::npos);
  quality.set_missing(false);
  quality.mutable_report()->set_requests(1000);
  quality.mutable_report()->set_small(700);
  quality.mutable_report()->set_compared(40);
  quality.mutable_report()->set_worse(1);
  quality.mutable_report()->set_bound(21);
  quality.mutable_report()->set_retreats(1);
  EXPECT_NE(service_text({}, service)
                .find("smaller model: chat-1b answered 700 of 1,000 requests; at most 2.1 % of all "
                      "answers are worse (promised 5 %, 95 % sure; 40 compared, 1 worse or still "
                      "open); 1 retreat "
                      "as it became worse\n"),
            std::string::npos)
      << service_text({}, service);
}

TEST(ServiceTextTest, SaysHowManyReplicasAreWantedAndWhy) {
  v1::ServiceView service = chat();
  v1::ServiceScalingView& scaling = *service.mutable_scaling();
  scaling.set_min(1);
  scaling.set_max(8);
  scaling.set_replicas(3);
  EXPECT_NE(service_text({}, service)
                .find("\nSCALING  3 of 1..8 replicas: no gateway has reported its requests yet\n"),
            std::string::npos);
  scaling.set_why("2140 prompt tokens/s are expected");
  v1::ScaleOrderView& last = *scaling.mutable_last();
  last.set_at("2026-01-31T23:59:59Z");
  last.set_from(2);
  last.set_to(3);
  last.set_why("more was expected");
  EXPECT_NE(service_text({}, service)
                .find("\nSCALING  3 of 1..8 replicas: 2140 prompt tokens/s are expected\n"
                      "  last order 2026-01-31T23:59:59Z: 2 to 3: more was expected\n"),
            std::string::npos);
}

TEST(ServiceTextTest, WhatWasMeasuredStandsBesideWhatWasPredicted) {
  v1::ServiceView service = chat();
  service.set_window_s(60);
  service.mutable_ttft_s()->set_p50(0.012);
  service.mutable_ttft_s()->set_p99(1.5);
  service.mutable_tpot_s()->set_p50(0.0021);
  service.mutable_tpot_s()->set_p99(0.004);
  service.set_tokens_s(812.5);
  service.set_usd_per_million_tokens(1.25);
  service.mutable_predicted()->set_ttft_s(0.01);
  service.mutable_predicted()->set_tpot_s(0.002);
  service.mutable_predicted()->set_tpot_full_s(0.005);
  service.mutable_predicted()->set_tokens_s(1600);
  service.mutable_predicted()->set_usd_per_million_tokens(0.5);
  add_target(service, {"ttft", 0.5, 0.3, 0.012});
  add_target(service, {"ttft", 0.99, 0.8, 1.5});
  add_target(service, {"tpot", 0.99, 0.005, 0.004});
  service.mutable_counts()->set_completed(1234);
  service.mutable_counts()->set_shed(2);
  service.mutable_counts()->set_output_tokens(1);
  const std::string text = service_text({}, service);
  EXPECT_NE(
      text.find(
          "LAST 60 s                P50    P99  TARGET                                 PREDICTED\n"
          "TTFT                   12 ms  1.5 s  p50 300 ms, p99 800 ms missed (1.5 s)  10 ms\n"
          "TPOT                  2.1 ms   4 ms  p99 5 ms                               2 ms, 5 ms "
          "when full\n"
          "tokens/s               812.5                                                1600 when "
          "full\n"
          "$ per million tokens    1.25                                                0.5 when "
          "full\n"
          "requests: 1234 completed, 0 cancelled, 2 shed, 0 failed; 0 tokens in, "
          "1 token out\n"),
      std::string::npos)
      << text;
}

TEST(ServiceTextTest, EachTenantIsShownWithWhatItUsed) {
  v1::ServiceView service = chat();
  EXPECT_EQ(service_text({}, service).find("TENANT"), std::string::npos);
  for (const char* name : {"lab/a", "key-1"}) {
    v1::TenantUsage& tenant = *service.add_tenants();
    tenant.set_name(name);
    tenant.mutable_counts()->set_completed(10);
    tenant.mutable_counts()->set_shed(3);
    tenant.mutable_counts()->set_prompt_tokens(700);
    tenant.mutable_counts()->set_output_tokens(80);
  }
  const std::string text = service_text({}, service);
  EXPECT_TRUE(
      text.ends_with("TENANT  REQUESTS  SHED  TOKENS IN  TOKENS OUT\n"
                     "lab/a         13     3        700          80\n"
                     "key-1         13     3        700          80\n"))
      << text;
}

TEST(ServiceTextTest, AServiceWithoutAGatewayIsTold) {
  v1::ServiceView service = chat();
  service.clear_endpoints();
  EXPECT_TRUE(service_text({}, service)
                  .starts_with("service chat: model gpt-small, no gateway is connected\n"));
}

}  // namespace
}  // namespace orrery
