// gateway/picker/picker_test.cpp - requests that get a replica, in each order of messages that
// Envoy sends, and how they end.
#include "gateway/picker/picker_fixture_test.hpp"

namespace orrery {
namespace {

TEST_F(PickerTest, NamesAReplicaAndGivesTheBodyBackInPieces) {
  route({kA});
  auto stream = open();
  stream->send(request_headers({{"x-request-id", "r1"}}));
  const std::string body = R"({"model":"m","prompt":")" + std::string(200'000, 'x') + "\"}";
  for (std::size_t at = 0; at < body.size(); at += 50'000) {
    const bool last = at + 50'000 >= body.size();
    stream->send(request_body(body.substr(at, 50'000), last ? Ends::kYes : Ends::kNo));
  }
  std::string back;
  ASSERT_TRUE(run_until([&] { return stream->answers().size() >= 5; }));
  const auto all = stream->answers();
  EXPECT_EQ(endpoints_in(all[0]), kA);
  const ext_proc::CommonResponse& common = all[0].request_headers().response();
  EXPECT_TRUE(common.clear_route_cache());
  EXPECT_EQ(set_by(common.header_mutation(), "x-request-id"), "r1");
  ASSERT_EQ(common.header_mutation().remove_headers_size(), 1);
  EXPECT_EQ(common.header_mutation().remove_headers(0), "authorization");
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto& piece = all[i].request_body().response().body_mutation().streamed_response();
    EXPECT_LE(piece.body().size(), 62'000u);
    EXPECT_EQ(piece.end_of_stream(), i + 1 == all.size());
    back += piece.body();
  }
  EXPECT_EQ(back, body);
  EXPECT_EQ(in_flight(1), 1u);
  stream->cancel();
  EXPECT_TRUE(nothing_charged());
}

TEST_F(PickerTest, CountsAnAnswerThatComesInPiecesAndCreditsItAtItsEnd) {
  route({kA});
  auto stream = ask();
  ASSERT_TRUE(answers(*stream, 2));
  stream->send(answer_headers({{"content-type", "text/event-stream"}}));
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_TRUE(stream->answers()[2].has_response_headers());
  const std::string first = "data: {\"choices\":[1]}\n\ndata: {\"choi";
  const std::string second =
      "ces\":[]}\n\ndata: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":5}}\n\n"
      "data: [DONE]\n\n";
  stream->send(answer_body(first, Ends::kNo));
  ASSERT_TRUE(answers(*stream, 4));
  EXPECT_EQ(in_flight(1), 1u);
  EXPECT_EQ(counts().completed, 0u);
  stream->send(answer_body(second));
  ASSERT_TRUE(answers(*stream, 5));
  const auto last = stream->answers()[4].response_body().response().body_mutation();
  EXPECT_EQ(last.streamed_response().body(), second);
  EXPECT_TRUE(last.streamed_response().end_of_stream());
  EXPECT_EQ(in_flight(1), 0u);
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().prompt_tokens, 3u);
  EXPECT_EQ(counts().output_tokens, 5u);
  EXPECT_EQ(gateway_->report().services[0].ttft.count(), 1u);
  stream->close();
  ASSERT_TRUE(run_until([&] { return stream->end().has_value(); }));
  EXPECT_TRUE(stream->end()->ok());
  EXPECT_EQ(counts().cancelled, 0u);
}

TEST_F(PickerTest, AnswersEachMessageOfABufferedRequestOnce) {
  route({kA});
  auto stream = open();
  stream->send(with_modes(request_headers(), ext_proc::BUFFERED, ext_proc::STREAMED));
  ASSERT_TRUE(answers(*stream, 1));
  EXPECT_TRUE(stream->answers()[0].has_request_headers());
  stream->send(request_body(kBody, Ends::kNo));
  ASSERT_TRUE(answers(*stream, 2));
  EXPECT_TRUE(stream->answers()[1].has_request_body());
  EXPECT_EQ(endpoints_in(stream->answers()[1]), kA);
  EXPECT_FALSE(stream->answers()[1].request_body().response().has_body_mutation());
  stream->send(request_trailers());
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_TRUE(stream->answers()[2].has_request_trailers());
  stream->send(answer_headers());
  stream->send(answer_body(kAnswer, Ends::kNo));
  ASSERT_TRUE(answers(*stream, 5));
  EXPECT_FALSE(stream->answers()[4].response_body().response().has_body_mutation());
  EXPECT_EQ(in_flight(1), 1u);
  stream->send(answer_trailers());
  ASSERT_TRUE(answers(*stream, 6));
  EXPECT_TRUE(stream->answers()[5].has_response_trailers());
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().output_tokens, 5u);
}

TEST_F(PickerTest, TakesTrailersForTheEndOfABodyInPieces) {
  route({kA});
  auto stream = open();
  stream->send(request_headers());
  stream->send(request_body(kBody, Ends::kNo));
  stream->send(request_trailers());
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_EQ(endpoints_in(stream->answers()[0]), kA);
  EXPECT_FALSE(stream->answers()[1]
                   .request_body()
                   .response()
                   .body_mutation()
                   .streamed_response()
                   .end_of_stream());
  EXPECT_TRUE(stream->answers()[2].has_request_trailers());
}

TEST_F(PickerTest, TakesTheEndOfAStreamForThatOfAnAnswerWhoseBodyItDoesNotSee) {
  route({kA});
  auto stream = ask(with_modes(request_headers(), ext_proc::FULL_DUPLEX_STREAMED, ext_proc::NONE));
  ASSERT_TRUE(answers(*stream, 2));
  stream->send(answer_headers());
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_EQ(in_flight(1), 1u);
  stream->cancel();
  EXPECT_TRUE(nothing_charged());
  EXPECT_EQ(counts().completed, 1u);
  EXPECT_EQ(counts().cancelled, 0u);
}

TEST_F(PickerTest, AnswersRequestsWithoutABodyItself) {
  route({kA});
  auto models = open();
  models->send(request_headers({{":method", "GET"}, {":path", "/v1/models?x"}}, Ends::kYes));
  const ext_proc::ImmediateResponse list = immediate(*models);
  EXPECT_EQ(list.status().code(), 200);
  EXPECT_NE(list.body().find(R"("id":"m")"), std::string::npos);
  auto other = open();
  other->send(request_headers({{":method", "GET"}, {":path", "/x"}}, Ends::kYes));
  EXPECT_EQ(immediate(*other).status().code(), 404);
}

TEST_F(PickerTest, ChoosesInTheSubsetAlone) {
  start({.wait = Duration::seconds(600)});
  route({kA, kB, kC});
  for (int i = 0; i < 6; ++i) {
    auto stream = ask(limited_to(request_headers(), {kB, "10.9.9.9:80"}));
    EXPECT_EQ(picked(*stream), kB);
  }
  EXPECT_TRUE(nothing_charged());
  auto none = ask(limited_to(request_headers(), {"10.9.9.9:80"}));
  const ext_proc::ImmediateResponse refused = immediate(*none);
  EXPECT_EQ(refused.status().code(), 503);
  EXPECT_NE(refused.body().find("limited to"), std::string::npos) << refused.body();
  auto empty = ask(limited_to(request_headers(), {}));
  EXPECT_EQ(immediate(*empty).status().code(), 503);
}

TEST_F(PickerTest, NamesTheOthersAsFallbacksByTheirLoad) {
  route({kA, kB, kC});
  auto first = ask();
  EXPECT_EQ(picked(*first), kA + "," + kB + "," + kC);
  auto second = ask();
  EXPECT_EQ(picked(*second), kB + "," + kC + "," + kA);
  auto third = ask();
  EXPECT_EQ(picked(*third), kC + "," + kA + "," + kB);
}

TEST_F(PickerTest, SpreadsRequestsOverTheReplicas) {
  route({kA, kB, kC});
  std::vector<std::unique_ptr<EnvoyStream>> streams(60);
  for (auto& each : streams) each = ask();
  for (auto& each : streams) ASSERT_TRUE(answers(*each, 2));
  for (std::uint64_t job = 1; job <= 3; ++job) EXPECT_EQ(in_flight(job), 20u);
  streams.clear();
  EXPECT_TRUE(nothing_charged());
  EXPECT_EQ(counts().cancelled, 60u);
}

TEST_F(PickerTest, MovesTheChargeToTheReplicaThatServed) {
  route({kA, kB});
  auto stream = ask();
  EXPECT_EQ(picked(*stream), kA + "," + kB);
  stream->send(served_by(answer_headers(), kB));
  ASSERT_TRUE(answers(*stream, 3));
  EXPECT_EQ(in_flight(1), 0u);
  EXPECT_EQ(in_flight(2), 1u);
  stream->send(answer_body(kAnswer));
  stream->close();
  EXPECT_TRUE(nothing_charged());
  // The second failure in a row leaves the first replica out.
  auto again = ask();
  EXPECT_EQ(picked(*again).substr(0, kA.size()), kA);
  again->send(served_by(answer_headers(), kB));
  again->send(answer_body(kAnswer));
  again->close();
  EXPECT_TRUE(nothing_charged());
  auto then = ask();
  EXPECT_EQ(picked(*then), kB);
}

TEST_F(PickerTest, LeavesOutAReplicaThatAnswers503Twice) {
  route({kA, kB});
  for (int i = 0; i < 2; ++i) {
    auto stream = ask(limited_to(request_headers(), {kA}));
    EXPECT_EQ(picked(*stream), kA);
    stream->send(answer_headers({{":status", "503"}}, Ends::kYes));
    ASSERT_TRUE(answers(*stream, 3));
  }
  EXPECT_EQ(counts().failed, 2u);
  auto stream = ask();
  EXPECT_EQ(picked(*stream), kB);
}

TEST_F(PickerTest, ServesTwoHundredStreamsAtATime) {
  route({kA, kB, kC});
  std::vector<std::unique_ptr<EnvoyStream>> streams(200);
  for (auto& each : streams) each = ask();
  for (auto& each : streams) ASSERT_TRUE(answers(*each, 2));
  EXPECT_EQ(gateway_->calls(), 200u);
  EXPECT_EQ(in_flight(1) + in_flight(2) + in_flight(3), 200u);
  for (auto& each : streams) {
    each->send(answer_headers());
    each->send(answer_body(kAnswer));
    each->close();
  }
  EXPECT_TRUE(nothing_charged());
  EXPECT_EQ(counts().completed, 200u);
  EXPECT_EQ(counts().output_tokens, 1000u);
}

TEST_F(PickerTest, LetsOpenStreamsEndAndRefusesOthersWhenItStops) {
  route({kA});
  auto stream = ask();
  ASSERT_TRUE(answers(*stream, 2));
  bool stopped = false;
  gateway_->stop([&] { stopped = true; });
  auto late = ask();
  ASSERT_TRUE(run_until([&] { return late->end().has_value(); }));
  EXPECT_EQ(late->end()->error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(stopped);
  stream->send(answer_headers());
  stream->send(answer_body(kAnswer));
  stream->close();
  EXPECT_TRUE(run_until([&] { return stopped; }));
  EXPECT_EQ(counts().completed, 1u);
}

TEST_F(PickerTest, BreaksOpenStreamsWhenTheGatewayEnds) {
  route({kA});
  std::vector<std::unique_ptr<EnvoyStream>> streams(20);
  for (auto& each : streams) each = ask();
  ASSERT_TRUE(answers(*streams.front(), 2));
  gateway_.reset();
  for (auto& each : streams) {
    ASSERT_TRUE(run_until([&] { return each->end().has_value(); }));
    EXPECT_FALSE(each->end()->ok());
  }
}

TEST_F(PickerTest, TellsItsHealth) {
  const auto health = [this](const std::string& service) {
    HealthStream stream(channel_, "/grpc.health.v1.Health/Check");
    ext_proc::HealthCheckRequest question;
    question.set_service(service);
    stream.send(question);
    EXPECT_TRUE(run_until([&] { return stream.end().has_value(); }));
    const auto all = stream.answers();
    if (all.empty()) return static_cast<int>(stream.end()->error_code()) + 100;
    return static_cast<int>(all[0].status());
  };
  const std::string service = "envoy.service.ext_proc.v3.ExternalProcessor";
  EXPECT_EQ(health("liveness"), ext_proc::HealthCheckResponse::SERVING);
  EXPECT_EQ(health("readiness"), ext_proc::HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(health(service), ext_proc::HealthCheckResponse::NOT_SERVING);
  route({kA});
  EXPECT_EQ(health("readiness"), ext_proc::HealthCheckResponse::SERVING);
  EXPECT_EQ(health(service), ext_proc::HealthCheckResponse::SERVING);
  EXPECT_EQ(health(""), ext_proc::HealthCheckResponse::SERVING);
  EXPECT_EQ(health("other"), 100 + grpc::StatusCode::NOT_FOUND);
  gateway_->stop([] {});
  EXPECT_EQ(health("liveness"), ext_proc::HealthCheckResponse::SERVING);
  EXPECT_EQ(health("readiness"), ext_proc::HealthCheckResponse::NOT_SERVING);
}

TEST_F(PickerTest, NamesAnAddressThatIsInUse) {
  GatewayOptions options;
  options.picker.address = gateway_->picker_address();
  const auto second = Gateway::start(*env_, Log(sink_), options);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find(gateway_->picker_address()), std::string::npos);
  EXPECT_EQ(second.error().kind, ErrorKind::kEnvironment);
  options.picker.address = "nonsense";
  const auto third = Gateway::start(*env_, Log(sink_), options);
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().kind, ErrorKind::kInput);
}

}  // namespace
}  // namespace orrery
