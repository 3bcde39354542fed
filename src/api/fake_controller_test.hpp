// api/fake_controller_test.hpp - a server of orrery.v1.Orrery on loopback, with an authority of its
// own, that answers as a test says: a function a method, and every request kept.
//
// The test owns it; the functions run on its threads, one at a time.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "api/agents/certificates.hpp"
#include "api/grpc/controller_route.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {

/// What one call is answered with: messages, then the status.
struct FakeAnswer {
  std::vector<std::string> messages;
  grpc::Status status;
  std::string leader = {};  ///< whom a standby names; empty: no one
};

inline FakeAnswer answer_with(const google::protobuf::MessageLite& message) {
  return {{message.SerializeAsString()}, grpc::Status::OK};
}

inline FakeAnswer refuse(grpc::StatusCode code, const std::string& text) {
  return {{}, grpc::Status(code, text)};
}

/// The refusal by a standby. `leader`: HOST:PORT; empty: it knows none.
inline FakeAnswer refuse_as_standby(const std::string& leader = "") {
  const std::string known = leader.empty() ? "no leader is known" : "the leader is at " + leader;
  FakeAnswer answer =
      refuse(grpc::StatusCode::UNAVAILABLE, "this controller is a standby; " + known);
  answer.leader = leader;
  return answer;
}

class FakeController {
 public:
  struct Heard {
    std::string request;
    std::string authorization;
  };
  using Answer = std::function<FakeAnswer(const Heard&)>;

  FakeController() : FakeController(make_authority(RealClock().now_wall()).value()) {}
  /// A controller of the cluster that the authority is of.
  explicit FakeController(TlsIdentity authority) : authority_(std::move(authority)) {}
  FakeController(const FakeController&) = delete;
  FakeController& operator=(const FakeController&) = delete;
  ~FakeController() { stop(); }

  void on(const std::string& method, Answer answer) {
    on_path("/orrery.v1.Orrery/" + method, std::move(answer));
  }
  void on_path(const std::string& path, Answer answer) {
    const std::lock_guard lock(mutex_);
    answers_[path] = std::move(answer);
  }

  /// On the port it had before, or on a free one; with a certificate that was made at an instant.
  void start(Instant certified = RealClock().now_wall()) {
    grpc::ServerBuilder builder;
    const ServerTls tls = certify_server(authority_, {}, certified).value();
    grpc::SslServerCredentialsOptions options;
    options.pem_key_cert_pairs.push_back({tls.identity.key, tls.identity.certificate});
    builder.AddListeningPort("127.0.0.1:" + std::to_string(port_),
                             grpc::SslServerCredentials(options), &port_);
    service_ = std::make_unique<Service>(*this);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
  }
  void stop() {
    if (server_) server_->Shutdown();
    server_.reset();
  }
  [[nodiscard]] const std::string& authority() const { return authority_.certificate; }
  /// The authority with its key, for another controller of the same cluster.
  [[nodiscard]] const TlsIdentity& identity() const { return authority_; }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  class Reactor;
  struct Service final : grpc::CallbackGenericService {
    explicit Service(FakeController& its) : controller(its) {}
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext* context) override;
    FakeController& controller;
  };

  FakeAnswer answer(const std::string& method, const Heard& heard) {
    const std::lock_guard lock(mutex_);
    const auto found = answers_.find(method);
    if (found == answers_.end()) return refuse(grpc::StatusCode::UNIMPLEMENTED, method);
    return found->second(heard);
  }

  const TlsIdentity authority_;
  std::mutex mutex_;
  std::map<std::string, Answer> answers_;
  std::unique_ptr<Service> service_;  // of one server
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

/// One call: reads the request, writes the messages, ends.
class FakeController::Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  Reactor(FakeController& controller, grpc::GenericCallbackServerContext& context)
      : controller_(controller), context_(context) {
    StartRead(&buffer_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    Heard heard{text_of(buffer_), ""};
    const auto token = context_.client_metadata().find("authorization");
    if (token != context_.client_metadata().end()) {
      heard.authorization.assign(token->second.data(), token->second.size());
    }
    answer_ = controller_.answer(context_.method(), heard);
    write_next();
  }
  void OnWriteDone(bool ok) override { ok ? write_next() : Finish(grpc::Status::CANCELLED); }
  void OnDone() override { const std::unique_ptr<Reactor> self(this); }

 private:
  static std::string text_of(const grpc::ByteBuffer& buffer) {
    std::vector<grpc::Slice> slices;
    (void)buffer.Dump(&slices);
    std::string text;
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return text;
  }
  void write_next() {
    if (next_ == answer_.messages.size()) {
      if (!answer_.leader.empty()) context_.AddTrailingMetadata(kLeaderKey, answer_.leader);
      return Finish(answer_.status);
    }
    const grpc::Slice bytes(answer_.messages[next_++]);
    buffer_ = grpc::ByteBuffer(&bytes, 1);
    StartWrite(&buffer_);
  }

  FakeController& controller_;
  grpc::GenericCallbackServerContext& context_;
  grpc::ByteBuffer buffer_;
  FakeAnswer answer_;
  std::size_t next_ = 0;
};

inline grpc::ServerGenericBidiReactor* FakeController::Service::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  return std::make_unique<Reactor>(controller, *context).release();
}

}  // namespace orrery
