// executor/services/service_book_test.cpp - the table of routes that follows from control's state,
// and what gateways measure, on a controller whose agents the test plays.
#include "executor/services/service_book.hpp"

#include <utility>

#include "executor/controller_test.hpp"

namespace orrery {
namespace {

class ServiceBookTest : public ControllerTest {
 protected:
  static std::string service(const std::string& name, int replicas) {
    return "apiVersion: orrery/v1\nkind: Serve\nname: " + name +
           "\nroles: [{replicas: " + std::to_string(replicas) +
           ", accelerators: 8}]\nrevisions: [{model: gpt, artifact: /models/gpt}]\n";
  }

  /// Submits a service; its first replica runs on node1, where the test plays the agent.
  void run_service(int replicas) { run_service(service("chat", replicas)); }
  void run_service(const std::string& spec) {
    join("node1", node_);
    const Result<std::vector<JobId>> jobs = submit(spec);
    ASSERT_TRUE(jobs) << jobs.error().text();
    await([&] { return !node_.orders<LaunchRanks>().empty(); });
    launch_ = node_.orders<LaunchRanks>().back();
    report({.stage = RankStage::kRunning, .up_epoch = 0});
    await([&] { return controller_->state().job(job()).phase == JobPhase::kRunning; });
  }
  [[nodiscard]] JobId job() const { return std::get<LaunchRanks>(launch_.order.what).token.id.job; }
  void report(AttemptReport state) {
    state.token = std::get<LaunchRanks>(launch_.order.what).token;
    state.applied = launch_.order.stamp;
    controller_->receive(launch_.order.to.node, Report{launch_.order.to, ++numbers_, state});
  }
  void report(ReplicaPhase phase, const ReplicaPace& pace = {}) {
    AttemptReport state{.stage = RankStage::kRunning, .up_epoch = 0};
    state.replica = ReplicaReport{phase, "127.0.0.1:4711", 31, 8, pace, 4096, "127.0.0.1:4712"};
    report(state);
  }
  /// The program of the replica fails, for good.
  void fail() {
    report({.stage = RankStage::kGone,
            .up_epoch = 0,
            .end = AttemptEnd{.kind = ExitKind::kProgram, .blame = {}}});
    await([&] { return controller_->state().job(job()).phase == JobPhase::kFailed; });
  }
  ServiceBook& book() {
    if (!book_) book_.emplace(controller_->state(), controller_->host().clock(), "key");
    return *book_;
  }
  void TearDown() override {
    book_.reset();
    ControllerTest::TearDown();
  }

  Session node_;
  NodeOrder launch_;
  std::uint64_t numbers_ = 0;
  std::optional<ServiceBook> book_;
};

GatewayReport measured(std::uint64_t service, std::uint64_t requests) {
  ServiceReport report;
  report.service = service;
  report.counts = {
      .completed = requests, .prompt_tokens = 100 * requests, .output_tokens = 50 * requests};
  report.window = Duration::seconds(10);
  report.window_prompt_tokens = 100 * requests;
  report.window_output_tokens = 50 * requests;
  report.window_requests = requests;
  for (std::uint64_t i = 0; i < requests; ++i) report.ttft.add(Duration::milliseconds(80));
  return {.gateway = "g1", .url = "http://127.0.0.1:8080", .services = {report}, .replicas = {}};
}

TEST_F(ServiceBookTest, AReplicaIsInTheTableFromReadyUntilItStops) {
  run_service(1);
  ASSERT_EQ(book().table().services.size(), 1u);
  EXPECT_EQ(book().table().services[0].model, "gpt");
  EXPECT_TRUE(book().table().services[0].replicas.empty());
  const std::uint64_t before = book().table().epoch;
  report(ReplicaPhase::kLoading);
  EXPECT_TRUE(book().table().services[0].replicas.empty());
  EXPECT_EQ(book().table().epoch, before) << "nothing has changed";
  report(ReplicaPhase::kReady);
  const RouteTable ready = book().table();
  ASSERT_EQ(ready.services[0].replicas.size(), 1u);
  EXPECT_GT(ready.epoch, before);
  RoutedReplica replica = ready.services[0].replicas[0];
  EXPECT_GT(std::exchange(replica.usd_s, 0), 0);
  EXPECT_EQ(std::exchange(replica.kv_tokens, 0), 4096u);
  EXPECT_EQ(std::exchange(replica.kv_events, ""), "10.0.0.1:4712");
  EXPECT_EQ(replica, (RoutedReplica{job().value(), 1, "10.0.0.1:4711", 8, 1}))
      << "the port is the replica's, the address its agent's";
  EXPECT_EQ(book().table().epoch, ready.epoch) << "dollars that hardly change are no change";
  report(ReplicaPhase::kDraining);
  EXPECT_TRUE(book().table().services[0].replicas.empty());
  EXPECT_GT(book().table().epoch, ready.epoch);
}

TEST_F(ServiceBookTest, ReplicasHaveTheDutiesOfTheirRoles) {
  run_service(
      "apiVersion: orrery/v1\nkind: Serve\nname: chat\nroles: [{name: prefill, accelerators: 8}, "
      "{name: decode, accelerators: 8}]\nrevisions: [{model: gpt, artifact: /models/gpt, engine: "
      "vllm}]\ntransfer: {token: 128 kB, rate: 25 GB/s}\n");
  report(ReplicaPhase::kReady, {.prefill_tokens_s = 1000, .step_s = 0.01, .step_full_s = 0.02});
  ASSERT_TRUE(book().take(measured(0, 0)));
  ASSERT_TRUE(book().take(measured(0, 40)));
  ASSERT_EQ(book().table().services.size(), 1u);
  ASSERT_EQ(book().table().services[0].replicas.size(), 1u);
  const RoutedReplica& replica = book().table().services[0].replicas[0];
  const std::string& role = controller_->state().job(job()).submission->request.roles[0].name;
  EXPECT_EQ(replica.duty, role == "prefill" ? ReplicaDuty::kPrefill : ReplicaDuty::kDecode);
  EXPECT_EQ(replica.transfer,
            role == "prefill" ? std::optional(RoutedTransfer{128e3, 25e9}) : std::nullopt);
  EXPECT_FALSE(book().summary(job()).predicted) << "one replica's pace does not tell";
}

TEST_F(ServiceBookTest, ShowsEachReplicaAndWhatTheGatewaysMeasured) {
  run_service(2);
  report(ReplicaPhase::kReady, {.prefill_tokens_s = 1000, .step_s = 0.01, .step_full_s = 0.02});
  ASSERT_TRUE(book().take(measured(0, 0)));
  ASSERT_TRUE(book().take(measured(0, 40)));
  const ServiceSummary summary = book().summary(JobId(1));
  EXPECT_EQ(summary.id, 0u);
  EXPECT_EQ(summary.name, "chat");
  ASSERT_EQ(summary.replicas.size(), 2u);
  EXPECT_EQ(summary.replicas[0].state, "ready");
  EXPECT_EQ(summary.replicas[0].report.pid, 31u);
  EXPECT_TRUE(summary.replicas[0].starts);
  EXPECT_EQ(summary.replicas[1].state, "requested") << "the other node has no agent";
  EXPECT_EQ(summary.urls, std::vector<std::string>{"http://127.0.0.1:8080"});
  EXPECT_EQ(summary.measured.counts.completed, 40u);
  EXPECT_EQ(summary.measured.ttft.count(), 40u);
  ASSERT_TRUE(summary.predicted);
  EXPECT_NEAR(summary.predicted->ttft_s, 0.1 + 0.01, 1e-9);
  EXPECT_NEAR(summary.predicted->tpot_full_s, 0.02, 1e-9);
  // A request has a slot for 0.1 s of prefill and an eighth of 50 steps of 0.02 s.
  EXPECT_NEAR(summary.predicted->tokens_s, 50 / (0.1 + 50 * 0.02 / 8), 1e-6);
  EXPECT_TRUE(summary.usd_per_million_tokens);
  const RoutedReplica routed = book().table().services[0].replicas.at(0);
  EXPECT_EQ(routed.pace, (ReplicaPace{1000, 0.01, 0.02}));
}

TEST_F(ServiceBookTest, TheTableCarriesTheTenantsOfTheSpecAndHowManyGatewaysShareTheirLimits) {
  ASSERT_TRUE(submit(service("plain", 1)));
  const GatewayReport first = measured(0, 1);
  GatewayReport second = measured(0, 1);
  second.gateway = "g2";
  ASSERT_TRUE(book().take(first));
  ASSERT_TRUE(book().take(second));
  EXPECT_EQ(book().table().gateways, 1u) << "no tenant has a limit";
  std::string text = service("other", 1);
  text.replace(text.find("model: gpt"), 10, "model: own");
  ASSERT_TRUE(submit(text +
                     "tenants: [{name: lab, weight: 2, priority: 1, tokens_per_s: 50}, key-1]\n"
                     "slo: {batch_deadline: 60 s, ttft_p99: 800 ms, tpot_p99: 50 ms}\n"));
  const RouteTable table = book().table();
  ASSERT_EQ(table.services.size(), 2u);
  EXPECT_TRUE(table.services[0].tenants.empty());
  const RoutedService& other = table.services[1];
  EXPECT_EQ(other.tenants, (std::vector<RoutedTenant>{{"lab", 2, 1, 50}, {"key-1", 1, 0, 0}}));
  EXPECT_EQ(other.batch_deadline_s, 60);
  EXPECT_EQ(other.ttft_p99_s, 0.8);
  EXPECT_EQ(other.tpot_p99_s, 0.05);
  EXPECT_EQ(table.gateways, 2u);
}

TEST_F(ServiceBookTest, SeveralGatewaysAreToldOfEachOther) {
  GatewayReport report = measured(0, 1);
  report.peer_address = "10.0.0.1:9000";
  ASSERT_TRUE(book().take(report));
  const RouteTable alone = book().table();
  EXPECT_FALSE(alone.peers);
  report.gateway = "g2";
  report.peer_address = "";
  ASSERT_TRUE(book().take(report));
  EXPECT_EQ(book().table().epoch, alone.epoch) << "it cannot be told anything";
  report.peer_address = "10.0.0.2:9000";
  ASSERT_TRUE(book().take(report));
  const RouteTable both = book().table();
  EXPECT_GT(both.epoch, alone.epoch);
  EXPECT_EQ(
      both.peers,
      (RoutedPeers{.key = "key", .gateways = {{"g1", "10.0.0.1:9000"}, {"g2", "10.0.0.2:9000"}}}));
}

TEST_F(ServiceBookTest, ASecondGatewayOfANameIsRefusedUntilTheFirstIsSilent) {
  GatewayReport first = measured(0, 1);
  first.process = 7;
  GatewayReport second = measured(0, 9);
  second.process = 8;
  ASSERT_TRUE(book().take(first));
  ASSERT_TRUE(book().take(first)) << "it reports again";
  const Status refused = book().take(second);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("\"g1\" reports, at http://127.0.0.1:8080"),
            std::string::npos)
      << refused.error().message;
  // The first is not heard again, as if it had been started anew.
  await([&] { return book().take(second).has_value(); });
  EXPECT_FALSE(book().take(first));
}

TEST_F(ServiceBookTest, AddsUpWhatGatewaysCounted) {
  run_service(1);
  GatewayReport first = measured(0, 1);
  first.services[0].tenants = {{"a", {.completed = 1}}, {"c", {.shed = 2}}};
  first.services[0].counts.timed = 5;
  first.services[0].counts.late = 2;
  GatewayReport second = measured(0, 1);
  second.gateway = "g2";
  second.services[0].tenants = {{"b", {.failed = 3}}, {"c", {.shed = 4, .prompt_tokens = 5}}};
  ASSERT_TRUE(book().take(first));
  second.services[0].counts.timed = 3;
  second.services[0].counts.late = 1;
  ASSERT_TRUE(book().take(second));
  const ServiceReport all = book().summary(JobId(0)).measured;
  EXPECT_EQ(all.counts.timed, 8u);
  EXPECT_EQ(all.counts.late, 3u);
  const std::vector<CallerCounts>& tenants = all.tenants;
  ASSERT_EQ(tenants.size(), 3u);
  EXPECT_EQ(tenants[0].name, "a");
  EXPECT_EQ(tenants[0].counts.completed, 1u);
  EXPECT_EQ(tenants[1].name, "b");
  EXPECT_EQ(tenants[2].counts.shed, 6u);
  EXPECT_EQ(tenants[2].counts.prompt_tokens, 5u);
}

TEST_F(ServiceBookTest, AGatewayThatStartsAnewDoesNotTakeTokensBack) {
  run_service(1);
  ASSERT_TRUE(book().take(measured(0, 10)));
  ASSERT_TRUE(book().take(measured(0, 30)));
  const double after_twenty = book().summary(JobId(0)).usd_per_million_tokens.value();
  ASSERT_TRUE(book().take(measured(0, 20)));
  EXPECT_LE(book().summary(JobId(0)).usd_per_million_tokens.value(), after_twenty * 1.5);
  EXPECT_EQ(book().summary(JobId(0)).measured.counts.completed, 20u);
}

TEST_F(ServiceBookTest, TheDollarsOfArchivedReplicasStayInTheSum) {
  run_service(2);
  report(ReplicaPhase::kReady);
  ASSERT_TRUE(book().take(measured(0, 0)));
  ASSERT_TRUE(book().take(measured(0, 10)));
  // Else the other replica would have the node.
  bool drained = false;
  controller_->command(DrainNode{.node = launch_.order.to.node, .why = "a test"}, "",
                       [&](const Result<JobId>&) { drained = true; });
  await([&] { return drained; });
  fail();
  const double before = book().summary(JobId(1)).usd_per_million_tokens.value();
  ASSERT_GT(before, 0);
  ControllerSettings settings;
  settings.retain = Seconds(0);
  controller_->set_limits(settings);
  await([&] { return !controller_->state().has(job()); });
  EXPECT_DOUBLE_EQ(book().summary(JobId(1)).usd_per_million_tokens.value(), before);
}

TEST_F(ServiceBookTest, AReplicaThatFailedIsShownForADay) {
  run_service(2);
  fail();
  ASSERT_EQ(book().summary(JobId(1)).replicas.size(), 2u);
  EXPECT_EQ(book().summary(JobId(1)).replicas[0].state, "failed");
  const ControlClock next_day(real_->env().clock,
                              controller_->host().clock().now() + Duration::hours(25));
  const ServiceSummary later = ServiceBook(controller_->state(), next_day, "").summary(JobId(1));
  ASSERT_EQ(later.replicas.size(), 1u);
  EXPECT_EQ(later.replicas[0].job, JobId(1));
}

TEST_F(ServiceBookTest, OfTwoServicesWithOneModelTheOneWithReplicasHasTheRequests) {
  const Result<std::vector<JobId>> waits = submit(service("waits", 1));
  ASSERT_TRUE(waits) << waits.error().text();
  EXPECT_EQ(book().table().services.at(0).name, "waits");
  // A job without revisions serves the model of its name.
  run_service(
      "apiVersion: orrery/v1\nkind: Serve\nname: gpt\nroles: [{accelerators: 8}]\n"
      "launch: {command: [sh]}\n");
  // The first service took the node: it is the one with a replica.
  report(ReplicaPhase::kReady);
  const RouteTable table = book().table();
  ASSERT_EQ(table.services.size(), 1u);
  EXPECT_EQ(table.services[0].replicas.size(), 1u);
}

TEST_F(ServiceBookTest, ACanaryIsInTheTableAndIsJudgedByTheReportsOfAllGateways) {
  run_service(1);
  report(ReplicaPhase::kReady);
  std::optional<Result<std::vector<JobId>>> answer;
  std::string text = service("chat", 1) + "rollout: {canary: [1%], bake: 0 s}\n";
  text.replace(text.find("{model"), 1, "{id: r2, ");
  controller_->submissions().update({text, "chat.yaml"}, job(), "",
                                    [&](Result<std::vector<JobId>> of) { answer = of; });
  await([&] { return answer.has_value(); });
  ASSERT_TRUE(*answer) << answer->error().text();
  EXPECT_EQ(book().table().services.at(0).canary, (RoutedCanary{2, 0.01}));
  GatewayReport gateway = measured(0, 10);
  gateway.services[0].canary = CanaryReport{.revision = 2, .canary = {}, .others = {}};
  gateway.services[0].canary->canary = {.requests = 10, .failed = 8};
  gateway.services[0].canary->others = {.requests = 100};
  ASSERT_TRUE(book().take(gateway));
  gateway.gateway = "g2";
  ASSERT_TRUE(book().take(gateway));
  EXPECT_TRUE(book().judge_canaries().empty()) << "no replica of it is ready";
  const std::optional<UpdateView> update = book().summary(job()).update;
  ASSERT_TRUE(update && update->canary);
  EXPECT_EQ(update->canary->requests, 20u);
  EXPECT_EQ(update->canary->stages, 1u);
  EXPECT_EQ(update->canary->waits_for, "a replica of the new revision");
}

TEST_F(ServiceBookTest, AServiceThatRestsIsWokenByARequestThatWaits) {
  run_service(service("chat", 1) + "scaling: {min: 0, max: 4}\n");
  EXPECT_EQ(book().table().services.at(0).wakes_in_s, 130) << "a start may take a minute, twice";
  report(ReplicaPhase::kReady);
  EXPECT_EQ(book().table().services.at(0).wakes_in_s, 20);
  GatewayReport gateway = measured(0, 1);
  ASSERT_TRUE(book().take(gateway));
  EXPECT_TRUE(book().scale_orders().empty());
  bool told = false;
  controller_->command(ScaleOrder{JobId(0), 0, "idle"}, "",
                       [&](const Result<JobId>&) { told = true; });
  await([&] { return told; });
  report({.stage = RankStage::kGone, .up_epoch = 0});
  await([&] { return controller_->state().job(job()).phase == JobPhase::kHeld; });
  const ServiceSummary rests = book().summary(JobId(0));
  EXPECT_EQ(rests.replicas.at(0).state, "resting");
  ASSERT_TRUE(rests.aims.scaling);
  EXPECT_EQ(rests.aims.scaling->replicas, 0u);
  EXPECT_EQ(rests.aims.scaling->max, 4u);
  EXPECT_EQ(rests.aims.scaling->last->why, "idle");
  ASSERT_EQ(book().table().services.size(), 1u);
  EXPECT_TRUE(book().table().services[0].replicas.empty());
  ASSERT_TRUE(book().take(gateway));
  EXPECT_TRUE(book().scale_orders().empty()) << "no request waits";
  gateway.services[0].waiting = 1;
  ASSERT_TRUE(book().take(gateway));
  const std::vector<ScaleOrder> orders = book().scale_orders();
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].service, JobId(0));
  EXPECT_EQ(orders[0].replicas, 1u);
}

TEST(ServiceNames, FollowFromTheNamesOfTheJobs) {
  EXPECT_EQ(service_name("chat[3]"), "chat");
  EXPECT_EQ(service_name("chat"), "chat");
}

}  // namespace
}  // namespace orrery
