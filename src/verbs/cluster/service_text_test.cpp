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
            "LAST 0 s              P50  P99  TARGET P99  PREDICTED\n"
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
  service.set_ttft_p99_target_s(0.8);
  service.set_tpot_p99_target_s(0.005);
  service.mutable_counts()->set_completed(1234);
  service.mutable_counts()->set_shed(2);
  service.mutable_counts()->set_output_tokens(1);
  const std::string text = service_text({}, service);
  EXPECT_NE(text.find("LAST 60 s                P50    P99  TARGET P99      PREDICTED\n"
                      "TTFT                   12 ms  1.5 s  800 ms, missed  10 ms\n"
                      "TPOT                  2.1 ms   4 ms  5 ms            2 ms, 5 ms when full\n"
                      "tokens/s               812.5                         1600 when full\n"
                      "$ per million tokens    1.25                         0.5 when full\n"
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
