// api/services/service_methods_test.cpp - gateways ask a controller for their table, and a job
// shows the service that it is a replica of.
#include "api/services/service_methods.hpp"

#include <algorithm>

#include "api/services/service_views.hpp"
#include "api/serving_test.hpp"

namespace orrery {
namespace {

constexpr const char* kService =
    "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{replicas: 2, accelerators: 1}]\n"
    "revisions: [{model: gpt, artifact: /models/gpt}]\n";

class ServiceMethodsTest : public ServerTest {
 protected:
  std::uint64_t submit_service() {
    v1::SubmitJobRequest asked;
    asked.set_spec(kService);
    const auto answer = client().call<v1::SubmitJobResponse>("SubmitJob", asked);
    EXPECT_TRUE(answer) << answer.error().text();
    return answer->id();
  }
  v1::SyncGatewayRequest request(std::uint64_t epoch, std::uint32_t wait_ms = 0) {
    v1::SyncGatewayRequest asked;
    asked.set_gateway("g1");
    asked.set_url("http://127.0.0.1:8080");
    asked.set_epoch(epoch);
    asked.set_wait_ms(wait_ms);
    return asked;
  }
  Result<v1::SyncGatewayResponse> sync(const v1::SyncGatewayRequest& asked,
                                       const std::string& token = "operator") {
    return client(token).call<v1::SyncGatewayResponse>("SyncGateway", asked);
  }
};

TEST_F(ServiceMethodsTest, AGatewayGetsTheTableOnceAndWaitsForTheNext) {
  const auto first = sync(request(0));
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_GT(first->epoch(), 0u);
  EXPECT_EQ(first->services_size(), 0);
  const auto again = sync(request(first->epoch()));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->epoch(), first->epoch());
  EXPECT_EQ(again->keys_size(), 0) << "nothing is sent twice";
  // The answer of a call that waits comes with the submission, long before its 30 s are over.
  std::thread submits([&] { (void)submit_service(); });
  const auto next = sync(request(first->epoch(), 30'000));
  submits.join();
  ASSERT_TRUE(next) << next.error().text();
  EXPECT_GT(next->epoch(), first->epoch());
  ASSERT_EQ(next->services_size(), 1);
  EXPECT_EQ(next->services(0).model(), "gpt");
  EXPECT_EQ(next->services(0).tenant(), "default");
}

TEST_F(ServiceMethodsTest, TheKeysAreThoseOfWhomMayCallServices) {
  const auto table = sync(request(0));
  ASSERT_TRUE(table);
  std::vector<std::string> names;
  for (const v1::RoutedKey& key : table->keys()) {
    names.push_back(key.name());
    EXPECT_EQ(key.sha256(), sha256_text(key.name()));
  }
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"admin", "client", "operator", "user"}));
  const std::uint64_t id = submit_service();
  v1::AddServiceKeyRequest asked;
  asked.set_id(id);
  const auto key = client("user").call<v1::AddServiceKeyResponse>("AddServiceKey", asked);
  ASSERT_TRUE(key) << key.error().text();
  const auto later = sync(request(table->epoch()));
  ASSERT_TRUE(later);
  const auto& keys = later->keys();
  const auto added = std::ranges::find(keys, sha256_text(key->key()), &v1::RoutedKey::sha256);
  ASSERT_NE(added, keys.end());
  EXPECT_EQ(added->tenant(), "default");
}

TEST_F(ServiceMethodsTest, TwoGatewaysGetAKeyAndEachOthersAddresses) {
  v1::SyncGatewayRequest asked = request(0);
  asked.set_process(1);
  asked.set_peer_address("127.0.0.1:9001");
  ASSERT_TRUE(sync(asked));
  v1::SyncGatewayRequest second = asked;
  second.set_process(2);
  const auto namesake = sync(second);
  ASSERT_FALSE(namesake);
  EXPECT_NE(namesake.error().message.find("start this one with another --name"), std::string::npos)
      << namesake.error().text();
  second.set_gateway("g2");
  second.set_peer_address("127.0.0.1:9002");
  const auto table = sync(second);
  ASSERT_TRUE(table) << table.error().text();
  EXPECT_EQ(table->peers().key().size(), 64u);
  ASSERT_EQ(table->peers().gateways_size(), 2);
  EXPECT_EQ(table->peers().gateways(0).address(), "127.0.0.1:9001");
  EXPECT_EQ(sync(asked)->peers().key(), table->peers().key());
}

TEST_F(ServiceMethodsTest, OnlyOperatorsRunGateways) {
  for (const char* role : {"client", "viewer", "user"})
    EXPECT_FALSE(sync(request(0), role)) << role;
  v1::SyncGatewayRequest unnamed = request(0);
  unnamed.clear_gateway();
  EXPECT_FALSE(sync(unnamed));
}

TEST_F(ServiceMethodsTest, AJobShowsItsServiceWithWhatGatewaysMeasured) {
  const std::uint64_t id = submit_service();
  GatewayReport report{
      .gateway = "g1", .url = "http://127.0.0.1:8080", .services = {}, .replicas = {}};
  ServiceReport& service = report.services.emplace_back();
  service.service = id;
  service.counts = {.completed = 3, .prompt_tokens = 30, .output_tokens = 60};
  service.window = Duration::seconds(10);
  service.window_output_tokens = 60;
  service.window_requests = 3;
  service.ttft.add(Duration::milliseconds(100));
  service.tenants = {{"lab", {.completed = 2, .output_tokens = 40}}};
  report.replicas.push_back({id, 0, 2});
  ASSERT_TRUE(sync(sync_request(report)));
  v1::GetJobRequest asked;
  asked.set_id(id + 1);
  const auto job = client("viewer").call<v1::Job>("GetJob", asked);
  ASSERT_TRUE(job) << job.error().text();
  const v1::ServiceView& view = job->service();
  EXPECT_EQ(view.id(), id);
  EXPECT_EQ(view.model(), "gpt");
  ASSERT_EQ(view.endpoints_size(), 1);
  EXPECT_EQ(view.endpoints(0), "http://127.0.0.1:8080");
  ASSERT_EQ(view.replicas_size(), 2);
  EXPECT_EQ(view.replicas(0).in_flight(), 2u);
  EXPECT_EQ(view.replicas(1).state(), "requested");
  EXPECT_EQ(view.counts().completed(), 3u);
  EXPECT_DOUBLE_EQ(view.tokens_s(), 6);
  ASSERT_EQ(view.tenants_size(), 1);
  EXPECT_EQ(view.tenants(0).name(), "lab");
  EXPECT_EQ(view.tenants(0).counts().output_tokens(), 40u);
  EXPECT_NEAR(view.ttft_s().p50(), 0.1, 0.01);
  v1::GetJobRequest other;
  other.set_id(submit());
  EXPECT_FALSE(client().call<v1::Job>("GetJob", other)->has_service());
}

TEST(ServiceViews, ReadBackAReport) {
  GatewayReport report{
      .gateway = "g", .url = "u", .epoch = 7, .services = {}, .replicas = {{4, 2, 9}}};
  report.process = 11;
  report.peer_address = "h:9";
  ServiceReport& service = report.services.emplace_back();
  service.service = 4;
  service.counts = {1, 2, 3, 4, 5, 6};
  service.window = Duration::milliseconds(1500);
  service.window_prompt_tokens = 8;
  service.window_output_tokens = 9;
  service.window_requests = 10;
  service.counts.timed = 8;
  service.counts.late = 7;
  service.ttft.add(Duration::milliseconds(3));
  service.ttft.add(Duration::seconds(3));
  service.tenants = {{"lab/a", {6, 5, 4, 3, 2, 1}}};
  const GatewayReport read = gateway_report(sync_request(report));
  EXPECT_EQ(read.epoch, 7u);
  EXPECT_EQ(read.process, 11u);
  EXPECT_EQ(read.peer_address, "h:9");
  EXPECT_EQ(read.replicas.at(0).in_flight, 9u);
  EXPECT_EQ(read.services.at(0).counts.output_tokens, 6u);
  EXPECT_EQ(read.services[0].counts.timed, 8u);
  EXPECT_EQ(read.services[0].counts.late, 7u);
  ASSERT_EQ(read.services[0].tenants.size(), 1u);
  EXPECT_EQ(read.services[0].tenants[0].name, "lab/a");
  EXPECT_EQ(read.services[0].tenants[0].counts.completed, 6u);
  EXPECT_EQ(read.services[0].tenants[0].counts.output_tokens, 1u);
  EXPECT_EQ(read.services[0].window, Duration::milliseconds(1500));
  EXPECT_EQ(read.services[0].window_requests, 10u);
  EXPECT_EQ(read.services[0].ttft.count(), 2u);
  EXPECT_EQ(read.services[0].ttft.quantile(1), service.ttft.quantile(1));
  v1::SyncGatewayRequest wrong;
  wrong.add_services()->add_ttft()->set_bucket(1'000'000);
  EXPECT_EQ(gateway_report(wrong).services.at(0).ttft.count(), 0u);
}

TEST(ServiceViews, ReadBackATableOfRoutes) {
  const RouteTable table{
      .epoch = 3,
      .services = {{.id = 4,
                    .name = "chat",
                    .model = "gpt",
                    .tenant = "a/b",
                    .replicas = {{4, 1, "h:1", 8, 2, {900, 0.01, 0.02}, 0.5, 4096},
                                 {.job = 5,
                                  .attempt = 1,
                                  .endpoint = "h:2",
                                  .duty = ReplicaDuty::kPrefill,
                                  .transfer = RoutedTransfer{131072, 25e9}}},
                    .tenants = {{"a", 2.5, -3, 100}},
                    .batch_deadline_s = 60,
                    .canary = RoutedCanary{2, 0.1},
                    .ttft_p99_s = 0.8,
                    .tpot_p99_s = 0.05}},
      .keys = {{"00", "n", "a"}},
      .gateways = 3,
      .peers = RoutedPeers{"key", {{"g1", "h:1"}, {"g2", "h:2"}}}};
  v1::SyncGatewayResponse response;
  response.set_epoch(3);
  add_routes(table, response);
  EXPECT_EQ(routes_of(response), table);
}

}  // namespace
}  // namespace orrery
