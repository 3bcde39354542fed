// gateway/picker/picker_fixture_test.hpp - a gateway with an endpoint picker on real sockets, and
// an Envoy that asks it.
//
// Each test makes its own; the table is the test's. The test's thread runs the gateway's loop.
#pragma once

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gateway/gateway_test.hpp"
#include "gateway/picker/envoy_test.hpp"

namespace orrery {

inline constexpr std::string_view kBody = R"({"model":"m","messages":[],"max_tokens":8})";
inline constexpr std::string_view kAnswer =
    R"({"id":"x","usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}})";
// These endpoints have no replica behind them: the tests play Envoy, which would call them.
inline const std::string kA = "10.0.0.1:80";
inline const std::string kB = "10.0.0.2:80";
inline const std::string kC = "10.0.0.3:80";

class PickerTest : public GatewayTest {
 protected:
  void SetUp() override {
    tick();
    start({.wait = Duration::milliseconds(100), .queue_wait = Duration::milliseconds(100)});
  }

  void start(GatewayOptions options) {
    channel_.reset();
    gateway_.reset();
    options.picker.address = "127.0.0.1:0";
    // A replica that is left out stays so for as long as a test lasts.
    options.router.backoff_min = options.router.backoff_max = Duration::seconds(600);
    Result<std::unique_ptr<Gateway>> gateway = Gateway::start(*env_, Log(sink_), options);
    ASSERT_TRUE(gateway) << gateway.error().message;
    gateway_ = *std::move(gateway);
    channel_ = grpc::CreateChannel(gateway_->picker_address(), grpc::InsecureChannelCredentials());
  }
  /// The table of GatewayTest, whose replicas have `slots_` slots each.
  RouteTable table_of(const std::vector<std::string>& endpoints) {
    RouteTable table = GatewayTest::table_of(endpoints);
    for (RoutedReplica& each : table.services[0].replicas) each.slots = slots_;
    return table;
  }
  void route(const std::vector<std::string>& endpoints) {
    gateway_->set_table(table_of(endpoints));
  }

  std::unique_ptr<EnvoyStream> open() {
    return std::make_unique<EnvoyStream>(channel_,
                                         "/envoy.service.ext_proc.v3.ExternalProcessor/Process");
  }
  /// A stream whose request has been asked about, in pieces.
  std::unique_ptr<EnvoyStream> ask(const ext_proc::ProcessingRequest& headers = request_headers(),
                                   std::string_view body = kBody) {
    auto stream = open();
    stream->send(headers);
    stream->send(request_body(body));
    return stream;
  }
  ::testing::AssertionResult answers(EnvoyStream& stream, std::size_t count) {
    if (run_until([&] { return stream.answers().size() >= count; })) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << stream.answers().size() << " answers";
  }
  /// The endpoints that a stream is told, once it is.
  std::string picked(EnvoyStream& stream) {
    EXPECT_TRUE(answers(stream, 1));
    return endpoints_in(stream.answers().at(0));
  }
  /// The answer in a replica's place, once it has come and the stream has ended.
  ext_proc::ImmediateResponse immediate(EnvoyStream& stream) {
    EXPECT_TRUE(run_until([&] { return stream.end().has_value(); }));
    const auto all = stream.answers();
    EXPECT_FALSE(all.empty());
    return all.empty() ? ext_proc::ImmediateResponse() : all.back().immediate_response();
  }
  static std::string code_of(const ext_proc::ImmediateResponse& answer) {
    return nlohmann::json::parse(answer.body()).at("error").at("code").get<std::string>();
  }

  std::uint32_t in_flight(std::uint64_t job) const {
    for (const ReplicaLoad& each : gateway_->report().replicas) {
      if (each.job == job) return each.in_flight;
    }
    return 0;
  }
  bool nothing_charged() {
    return run_until([this] {
      for (const ReplicaLoad& each : gateway_->report().replicas) {
        if (each.in_flight > 0) return false;
      }
      return gateway_->calls() == 0;
    });
  }
  /// Requests that wait, by the metrics.
  int waiting() {
    const std::string metrics = get("/metrics");
    const std::string name = "\norrery_gateway_requests_waiting{";
    const std::size_t at = metrics.find(name);
    return at == metrics.npos ? -1 : std::stoi(metrics.substr(metrics.find("} ", at) + 2));
  }
  std::string get(std::string_view path) { return GatewayTest::ask(GatewayTest::get(path)); }

  std::uint32_t slots_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace orrery
