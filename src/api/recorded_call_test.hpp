// api/recorded_call_test.hpp - a call without a carrier, for tests that call methods on the
// controller's loop.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "api/grpc/call.hpp"

namespace orrery {

/// A call made on the loop, which keeps all that it is told as text.
class RecordedCall final : public Call {
 public:
  explicit RecordedCall(Caller caller) : caller_(std::move(caller)) {}
  void send(const google::protobuf::Message& message) override {
    text += message.ShortDebugString() + "\n";
  }
  void when_taken(std::function<void()> ready) override { ready(); }
  void receive(Received) override {}
  void when_gone(std::function<void()>) override {}
  void finish(const CallStatus& status) override { ended = status; }
  [[nodiscard]] bool wanted() const override { return !ended; }
  [[nodiscard]] const Caller& caller() const override { return caller_; }

  std::string text;
  std::optional<CallStatus> ended;

 private:
  Caller caller_;
};

}  // namespace orrery
