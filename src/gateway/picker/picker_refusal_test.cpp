// gateway/picker/picker_refusal_test.cpp - requests that wait, are refused, or are left by their
// clients.
#include "gateway/picker/picker_fixture_test.hpp"

namespace orrery {
namespace {

TEST_F(PickerTest, WaitsForARoomThenRefusesWith429) {
  slots_ = 1;  // and one more, so that it need not wait for its next
  route({kA});
  auto first = ask();
  auto second = ask();
  ASSERT_TRUE(answers(*first, 2));
  ASSERT_TRUE(answers(*second, 2));
  auto third = ask(request_headers({{"x-request-id", "r3"}}));
  const ext_proc::ImmediateResponse refused = immediate(*third);
  EXPECT_EQ(refused.status().code(), 429);
  EXPECT_EQ(code_of(refused), "overloaded");
  EXPECT_EQ(set_by(refused.headers(), "content-type"), "application/json");
  EXPECT_GE(std::stoi(set_by(refused.headers(), "retry-after")), 1);
  EXPECT_EQ(set_by(refused.headers(), "x-request-id"), "r3");
  EXPECT_EQ(counts().shed, 1u);
  EXPECT_EQ(in_flight(1), 2u);
}

TEST_F(PickerTest, GivesAWaitingRequestTheRoomThatAnotherLeaves) {
  start({.queue_wait = Duration::seconds(600)});
  slots_ = 1;
  route({kA});
  auto first = ask();
  auto second = ask();
  ASSERT_TRUE(answers(*first, 2));
  ASSERT_TRUE(answers(*second, 2));
  auto third = ask(with_modes(request_headers(), ext_proc::BUFFERED, ext_proc::NONE));
  ASSERT_TRUE(answers(*third, 2));
  EXPECT_EQ(third->answers()[1].override_message_timeout().seconds(), 601);
  EXPECT_EQ(waiting(), 1);
  auto fourth = ask();
  ASSERT_TRUE(run_until([&] { return waiting() == 2; }));
  EXPECT_EQ(in_flight(1), 2u);
  first->cancel();
  ASSERT_TRUE(answers(*third, 3));
  EXPECT_EQ(endpoints_in(third->answers()[2]), kA);
  EXPECT_EQ(in_flight(1), 2u);
  EXPECT_EQ(waiting(), 1);
  second->cancel();
  EXPECT_EQ(picked(*fourth), kA);
  EXPECT_EQ(in_flight(1), 2u);
  EXPECT_EQ(waiting(), 0);
}

TEST_F(PickerTest, GivesAWaitingRequestAReplicaOfANewTable) {
  start({.wait = Duration::seconds(600)});
  route({});
  auto stream = ask();
  ASSERT_TRUE(run_until([&] { return !gateway_->report().services.empty() && waiting() == 1; }));
  route({kB});
  EXPECT_EQ(picked(*stream), kB);
  EXPECT_EQ(waiting(), 0);
}

TEST_F(PickerTest, RefusesWith503WhereThereIsNoReplica) {
  route({});
  auto stream = ask();
  const ext_proc::ImmediateResponse refused = immediate(*stream);
  EXPECT_EQ(refused.status().code(), 503);
  EXPECT_EQ(code_of(refused), "no_replica");
  EXPECT_FALSE(set_by(refused.headers(), "retry-after").empty());
  EXPECT_EQ(counts().failed, 1u);
  route({"node-1:80"});
  auto named = ask();
  EXPECT_NE(immediate(*named).body().find("address in numbers"), std::string::npos);
}

TEST_F(PickerTest, RefusesWhatNoReplicaCouldAnswer) {
  route({kA});
  const auto refusal = [this](const ext_proc::ProcessingRequest& headers, std::string_view body) {
    auto stream = ask(headers, body);
    const ext_proc::ImmediateResponse answer = immediate(*stream);
    return fmt::format("{} {}", answer.status().code(),
                       nlohmann::json::parse(answer.body()).at("error").dump());
  };
  EXPECT_EQ(refusal(request_headers(), R"({"model":"none"})").substr(0, 4), "404 ");
  EXPECT_NE(refusal(request_headers(), R"({"model":"none"})").find("model_not_found"),
            std::string::npos);
  EXPECT_EQ(refusal(request_headers(), R"({"prompt":"x"})").substr(0, 4), "400 ");
  EXPECT_EQ(refusal(request_headers(), "{").substr(0, 4), "400 ");
  EXPECT_EQ(refusal(request_headers({{"authorization", "Bearer b"}}), kBody).substr(0, 4), "404 ");
  EXPECT_EQ(refusal(request_headers({{"authorization", "Bearer x"}}), kBody).substr(0, 4), "401 ");
  EXPECT_EQ(refusal(with_modes(request_headers(), ext_proc::STREAMED, ext_proc::NONE), kBody)
                .substr(0, 4),
            "500 ");
  EXPECT_TRUE(nothing_charged());
}

TEST_F(PickerTest, NeedsNoKeyWhereItIsGivenATenant) {
  GatewayOptions options;
  options.picker.tenant = "org/a";
  start(options);
  route({kA});
  auto stream = ask(request_headers({{"authorization", "Bearer of Envoy"}}));
  EXPECT_EQ(picked(*stream), kA);
  EXPECT_EQ(
      stream->answers()[0].request_headers().response().header_mutation().remove_headers_size(), 0);
  options.picker.tenant = "org/b";
  start(options);
  route({kA});
  auto other = ask();
  EXPECT_EQ(immediate(*other).status().code(), 404);
}

TEST_F(PickerTest, BoundsTheBodiesThatItHolds) {
  GatewayOptions options;
  options.picker.body_bytes_max = 10'000'000;
  options.picker.held_bytes_max = 12'000'000;
  start(options);
  route({kA});
  const std::string half(5'000'000, 'x');
  auto large = open();
  large->send(with_modes(request_headers(), ext_proc::BUFFERED, ext_proc::NONE));
  large->send(request_body(half + half + "x"));
  const ext_proc::ImmediateResponse refused = immediate(*large);
  EXPECT_EQ(refused.status().code(), 413);
  EXPECT_NE(refused.body().find("10000000"), std::string::npos);
  std::vector<std::unique_ptr<EnvoyStream>> streams;
  for (int i = 0; i < 3; ++i) {
    streams.push_back(open());
    streams.back()->send(request_headers());
    for (int piece = 0; piece < 2 - i / 2; ++piece) {
      streams.back()->send(request_body(std::string(4'000'000, 'x'), Ends::kNo));
    }
  }
  const auto ended = [&] {
    std::size_t count = 0;
    for (auto& each : streams) count += each->end() ? 1 : 0;
    return count;
  };
  ASSERT_TRUE(run_until([&] { return ended() > 0; }));
  for (auto& each : streams) {
    if (each->end()) EXPECT_EQ(immediate(*each).status().code(), 429);
  }
  streams.clear();
  ASSERT_TRUE(nothing_charged());
  auto then = ask();
  EXPECT_EQ(picked(*then), kA);
}

TEST_F(PickerTest, KeepsTheLimitOfATenantAndCountsWhatItUses) {
  RouteTable table = table_of({kA});
  table.services[0].tenants = {{.name = "root", .tokens_per_s = 0.01}};
  gateway_->set_table(table);
  const auto first = ask();
  EXPECT_EQ(picked(*first), kA) << "a full bucket grants one request";
  const auto second = ask();
  const ext_proc::ImmediateResponse refused = immediate(*second);
  EXPECT_EQ(refused.status().code(), 429);
  EXPECT_EQ(code_of(refused), "rate_limit_exceeded");
  const std::vector<CallerCounts> tenants = gateway_->report().services.at(0).tenants;
  ASSERT_EQ(tenants.size(), 1U);
  EXPECT_EQ(tenants[0].name, "root");
  EXPECT_EQ(tenants[0].counts.shed, 1U);
}

TEST_F(PickerTest, TriesACanaryOnItsShareOfTheRequests) {
  slots_ = 100;
  RouteTable table = table_of({kA, kB});
  table.services[0].replicas[1].revision = 2;
  table.services[0].canary = RoutedCanary{2, 0.25};
  gateway_->set_table(table);
  std::vector<std::unique_ptr<EnvoyStream>> streams;
  int tried = 0;
  for (int i = 0; i < 60; ++i) {
    streams.push_back(ask());
    tried += picked(*streams.back()) == kB ? 1 : 0;
  }
  EXPECT_GT(tried, 0);
  EXPECT_LT(tried, 40);
}

TEST_F(PickerTest, ExplainsAndCountsAsForProxiedRequests) {
  route({kA, kB});
  auto stream = ask(request_headers({{"x-request-id", "r9"}}));
  ASSERT_TRUE(answers(*stream, 2));
  const std::string why = get("/explain/r9");
  EXPECT_NE(why.find(R"("outcome":"replica")"), std::string::npos) << why;
  EXPECT_NE(why.find(R"("verdict":"chosen")"), std::string::npos) << why;
  EXPECT_NE(get("/metrics").find("requests_in_flight{service=\"chat\""), std::string::npos);
  stream->send(answer_headers());
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_EQ(
      set_by(stream->answers()[2].response_headers().response().header_mutation(), "x-request-id"),
      "r9");
}

TEST_F(PickerTest, CreditsWhatAClientLeavesAtAnyPoint) {
  route({kA});
  const std::vector<ext_proc::ProcessingRequest> story = {
      with_modes(request_headers(), ext_proc::FULL_DUPLEX_STREAMED, ext_proc::FULL_DUPLEX_STREAMED),
      request_body(kBody.substr(0, 9), Ends::kNo), request_body(kBody.substr(9)), answer_headers(),
      answer_body("{", Ends::kNo)};
  for (std::size_t sent = 1; sent <= story.size(); ++sent) {
    auto stream = open();
    for (std::size_t i = 0; i < sent; ++i) stream->send(story[i]);
    const std::vector<std::size_t> expected = {0, 0, 0, 2, 3, 4};
    if (expected[sent] > 0) ASSERT_TRUE(answers(*stream, expected[sent]));
    EXPECT_EQ(in_flight(1), sent >= 3 ? 1u : 0u);
    stream->cancel();
    EXPECT_TRUE(nothing_charged()) << sent;
  }
  EXPECT_EQ(counts().cancelled, 3u);
}

TEST_F(PickerTest, EndsAStreamWhoseMessagesDoNotFollowEachOther) {
  route({kA});
  auto stream = open();
  stream->send(request_body(kBody));
  ASSERT_TRUE(run_until([&] { return stream->end().has_value(); }));
  EXPECT_EQ(stream->end()->error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  auto twice = ask();
  ASSERT_TRUE(answers(*twice, 2));
  twice->send(request_body(kBody));
  ASSERT_TRUE(run_until([&] { return twice->end().has_value(); }));
  EXPECT_TRUE(nothing_charged());
}

}  // namespace
}  // namespace orrery
