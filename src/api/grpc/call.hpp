// api/grpc/call.hpp - one call of a client, over any carrier: its caller, the messages sent back,
// and its end.
//
// Made by a server (gRPC, HTTP), handed to a method (api/grpc/method_table.hpp) on the controller's
// loop. A call with one answer is a stream of one message. Everything here is used on the loop
// alone; a server carries what is sent to its own threads. A call that its client has given up
// takes what is sent and drops it.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace orrery {

/// The numbers are those of gRPC.
enum class CallCode : std::uint8_t {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

struct CallStatus {
  CallCode code = CallCode::kOk;
  std::string message;  ///< for a person
};

/// Returns the status of an Error: the user's errors are kInvalidArgument, infeasible requests
/// kFailedPrecondition.
[[nodiscard]] CallStatus status_of(const Error& error);

/// The end of a stream whose client does not take its messages while so many bytes wait.
[[nodiscard]] CallStatus too_slow(std::size_t waiting_bytes);

/// What a caller may do. Each role has the rights of those before it. A client calls services
/// through their gateways, and no method here.
enum class Role : std::uint8_t { kNobody, kClient, kViewer, kUser, kOperator, kAdmin };

struct Caller {
  std::string name;
  Role role = Role::kNobody;
  std::string tenant;  ///< sees and changes its jobs alone; empty: those of any tenant
  std::string node;    ///< of the agent's certificate that the connection shows; empty: none
  /// The POSIX user that jobs of this caller run as; empty: the table of its tenant decides.
  std::string run_as = {};
  /// The hash of the token that was shown (api/access/token_book.hpp); empty: none was shown.
  std::string credential = {};
  /// The hash of the public key of the connection's certificate.
  std::string key = {};
};

class Call {
 public:
  virtual ~Call() = default;
  /// Reports to the client that the call is accepted, where the first message may be long in
  /// coming.
  virtual void open() {}
  virtual void send(const google::protobuf::Message& message) = 0;
  /// Calls `ready` once, on the loop: when the client has taken the sent messages, or wants no
  /// more. A method with more to send than fits into memory waits for it before it sends again.
  virtual void when_taken(std::function<void()> ready) = 0;
  using Received = std::function<void(const google::protobuf::Message*)>;
  /// Reads the client's next message and calls `received` with it once, on the loop and not inside
  /// this call; with nullptr where the client sends no more. One read at a time: a client that is
  /// not read from waits. A carrier with one message a call has no more.
  virtual void receive(Received received) = 0;
  /// Calls `gone` once, on the loop, when the client has given the call up before it was finished.
  virtual void when_gone(std::function<void()> gone) = 0;
  /// Ends the call after all sent messages; the last use of it.
  virtual void finish(const CallStatus& status) = 0;
  /// Whether the client still wants messages.
  [[nodiscard]] virtual bool wanted() const = 0;
  [[nodiscard]] virtual const Caller& caller() const = 0;

  void reply(const google::protobuf::Message& message) {
    send(message);
    finish({});
  }
  void fail(const Error& error) { finish(status_of(error)); }
};

/// A call that passes everything on to another one. A class that observes part of a call overrides
/// that part only.
class ForwardedCall : public Call {
 public:
  explicit ForwardedCall(std::shared_ptr<Call> inner) : inner_(std::move(inner)) {}
  void open() override { inner_->open(); }
  void send(const google::protobuf::Message& message) override { inner_->send(message); }
  void when_taken(std::function<void()> ready) override { inner_->when_taken(std::move(ready)); }
  void receive(Received received) override { inner_->receive(std::move(received)); }
  void when_gone(std::function<void()> gone) override { inner_->when_gone(std::move(gone)); }
  void finish(const CallStatus& status) override { inner_->finish(status); }
  [[nodiscard]] bool wanted() const override { return inner_->wanted(); }
  [[nodiscard]] const Caller& caller() const override { return inner_->caller(); }

 protected:
  [[nodiscard]] Call& inner() const { return *inner_; }

 private:
  std::shared_ptr<Call> inner_;
};

}  // namespace orrery
