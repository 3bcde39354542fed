// end_to_end/agent_controller.hpp - the parts of a controller that the agent of one node needs, on
// a real loop and over real gRPC; records the reports it receives. For one test program.
#pragma once

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/agents/agent_messages.hpp"
#include "api/agents/certificates.hpp"
#include "api/grpc/grpc_stream.hpp"
#include "base/system/real_env.hpp"
#include "orrery/v1/orrery.pb.h"

namespace orrery {

inline constexpr NodeId kNode(3);

/// What an agent has reported to a controller.
struct Told {
  std::vector<AgentOpening> openings;
  std::vector<Hello> hellos;
  std::map<AttemptId, AttemptReport> attempts;
  std::uint64_t number = 0;  ///< of the newest report of an attempt
  std::map<AttemptId, AttemptNotes> notes;
  int times_noted = 0;
  std::vector<AttemptLogPart> logs;
  std::map<std::uint32_t, std::string> kept;  ///< by rank
  std::vector<NodeReading> readings;
  std::vector<HealthFault> faults;
  int mended = 0;
};

/// The parts of a controller that an agent needs; runs on the loop of `env`.
class TestController final {
 public:
  explicit TestController(const Env& env)
      : authority(make_authority(env.clock.now_wall()).value()), env_(env) {
    serve("127.0.0.1:0");
  }
  ~TestController() { end(); }

  /// Acts as after a failover: all streams end, and it serves at the same address.
  void restart() {
    end();
    serve(fmt::format("127.0.0.1:{}", port_));
  }
  [[nodiscard]] int port() const { return port_; }

  void order(OrderKind what, NodeProgram program = {}) {
    const AgentOpening& agent = told.openings.back();
    NodeOrder ordered{
        {cluster, {1, ++sequence_}, {kNode, agent.boot, agent.incarnation}, std::move(what)},
        std::move(program)};
    stream_->send(to_proto(ControllerMessage(std::move(ordered))));
  }
  void ask(const AttemptLogQuestion& question) {
    stream_->send(to_proto(ControllerMessage(question)));
  }
  void burn_in() { stream_->send(to_proto(ControllerMessage(BurnIn{}))); }

  const TlsIdentity authority;
  Told told;
  std::uint64_t cluster = 7;

 private:
  class Reactor final : public GrpcReactor {
   public:
    explicit Reactor(TestController& controller) : controller_(controller) {
      stream_->read(bytes_);
    }
    void OnReadDone(bool read) override {
      if (!read) return stream_->finish({});
      v1::AgentMessage message;
      Result<AgentMessage> heard = parse(bytes_, message)
                                       ? from_proto(message)
                                       : environment_error("bytes that are no message");
      controller_.env_.post([&to = controller_, from = stream_, heard = std::move(heard)] {
        ASSERT_TRUE(heard) << heard.error().text();
        to.hear(from, *heard);
      });
      stream_->read(bytes_);
    }

   private:
    TestController& controller_;
  };

  /// A request to renew the agent's certificate.
  class Renewal final : public GrpcReactor {
   public:
    explicit Renewal(const TlsIdentity& authority) : authority_(authority) {
      stream_->read(bytes_);
    }
    void OnReadDone(bool read) override {
      v1::RenewCertificateRequest request;
      ASSERT_TRUE(read && parse(bytes_, request));
      v1::RenewCertificateResponse response;
      response.set_certificate(
          certify_node(authority_, {"n3", request.certificate_request()}, RealClock().now_wall())
              .value());
      stream_->send(response);
      stream_->finish({});
    }

   private:
    const TlsIdentity& authority_;
  };

  class Service final : public grpc::CallbackGenericService {
   public:
    explicit Service(TestController& controller) : controller_(controller) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override {
      if (context->method().ends_with("/RenewCertificate")) {
        return new Renewal(controller_.authority);
      }
      return new Reactor(controller_);
    }

   private:
    TestController& controller_;
  };

  void serve(const std::string& address) {
    grpc::ServerBuilder builder;
    const ServerTls tls = certify_server(authority, {}, env_.clock.now_wall()).value();
    grpc::SslServerCredentialsOptions options(
        GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
    options.pem_root_certs = tls.authority;
    options.pem_key_cert_pairs.push_back({tls.identity.key, tls.identity.certificate});
    builder.AddListeningPort(address, grpc::SslServerCredentials(options), &port_);
    service_ = std::make_unique<Service>(*this);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void end() {
    if (!server_) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }

  void hear(const std::shared_ptr<GrpcStream>& from, const AgentMessage& message) {
    if (const auto* opening = std::get_if<AgentOpening>(&message)) {
      stream_ = from;
      // Each agent counts its reports anew.
      const bool another =
          !told.openings.empty() && told.openings.back().incarnation != opening->incarnation;
      if (another) fault_number_ = 0;
      told.openings.push_back(*opening);
      stream_->send(to_proto(ControllerMessage(
          AgentWelcome{cluster, kNode, Duration::milliseconds(50), Duration::milliseconds(200)})));
    } else if (const auto* report = std::get_if<Report>(&message)) {
      hear(*report);
    } else if (const auto* part = std::get_if<AttemptLogPart>(&message)) {
      told.logs.push_back(*part);
    } else if (const auto* kept = std::get_if<KeptLog>(&message)) {
      told.kept[kept->rank] = kept->part.bytes;
    } else if (const auto* notes = std::get_if<AttemptNotes>(&message)) {
      told.notes[notes->attempt] = *notes;
      ++told.times_noted;
    } else if (const auto* reading = std::get_if<NodeReading>(&message)) {
      told.readings.push_back(*reading);
    }
  }
  void hear(const Report& report) {
    if (const auto* hello = std::get_if<Hello>(&report.what)) told.hellos.push_back(*hello);
    told.mended += std::holds_alternative<Mended>(report.what) ? 1 : 0;
    const auto* fault = std::get_if<HealthFault>(&report.what);
    // The report is repeated until it is acknowledged.
    if (fault != nullptr && report.number > fault_number_) {
      fault_number_ = report.number;
      told.faults.push_back(*fault);
      order(Acknowledge{report.number});
    }
    const auto* attempt = std::get_if<AttemptReport>(&report.what);
    if (attempt == nullptr) return;
    told.attempts[attempt->token.id] = *attempt;
    told.number = report.number;
  }

  Env env_;
  std::uint64_t fault_number_ = 0;
  int port_ = 0;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<GrpcStream> stream_;  ///< of the newest agent
  std::uint64_t sequence_ = 0;
};

}  // namespace orrery
