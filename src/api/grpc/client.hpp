// api/grpc/client.hpp - calls the controller that leads a cluster by the schema of proto/orrery/v1,
// over TLS.
//
// Made by a program for one cluster; it connects with the first call and again after a loss. One
// thread uses it and waits in it. A call that the controller may not have received is made again
// with the same request, for as long as `retry` allows: a request_id makes that safe. A call that a
// standby refuses was not received; it goes to the leader that the standby names, else to the next
// address, at once (api/grpc/controller_route.hpp). Each controller is tried at least once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/grpc/client_stream.hpp"
#include "base/env.hpp"
#include "base/error.hpp"
#include "base/time.hpp"

namespace google::protobuf {
class MessageLite;
}

namespace orrery {

struct ClientOptions {
  /// Addresses of the controllers, at least one; the first is tried first: "127.0.0.1:7000",
  /// "[::1]:7000" or "name:7000".
  std::vector<std::string> addresses;
  /// The certificate of the cluster's authority, PEM; empty: those this machine trusts.
  std::string authority;
  std::string token;                          ///< sent as "authorization: Bearer"; empty: none
  Duration retry = Duration::seconds(10);     ///< how long to try to reach one
  Duration patience = Duration::seconds(60);  ///< for the answer of a call that was received
  /// Called once for each time that no controller serves, before they are tried again.
  std::function<void()> on_retry = [] {};
};

class Client {
 public:
  using Message = google::protobuf::MessageLite;

  explicit Client(ClientOptions options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();

  /// Calls "/orrery.v1.Orrery/METHOD". Errors carry the controller's text as it is: kInput where
  /// the request is wrong or names nothing, kInfeasible where it cannot be met, kEnvironment for
  /// the rest.
  template <class Response>
  [[nodiscard]] Result<Response> call(std::string_view method, const Message& request) {
    return answer<Response>({method, options_.patience}, request);
  }
  /// Like call(), for a call whose answer may take any time.
  template <class Response>
  [[nodiscard]] Result<Response> wait(std::string_view method, const Message& request) {
    return answer<Response>({method, Duration::max()}, request);
  }

  /// Reads a stream to its end, calling `visit` each time `into` was filled, until that returns
  /// false. After a loss the stream is begun anew with what `request` returns then.
  [[nodiscard]] Status read(std::string_view method, const std::function<const Message&()>& request,
                            Message& into, const std::function<bool()>& visit);

  /// Begins a call in which both sides send messages, to the controller that answered last. It is
  /// not repeated after a loss or a standby's refusal, so that a call() that finds the leader
  /// should go before it.
  [[nodiscard]] std::unique_ptr<ClientStream> open_stream(std::string_view method);

  [[nodiscard]] const std::vector<std::string>& addresses() const { return options_.addresses; }

 private:
  struct Call {
    std::string_view method;
    Duration patience;
  };
  class Wire;

  template <class Response>
  Result<Response> answer(const Call& call, const Message& request) {
    Response response;
    if (Status called = call_with(call, request, response); !called) return forward_error(called);
    return response;
  }
  [[nodiscard]] Status call_with(const Call& call, const Message& request, Message& response);

  ClientOptions options_;
  std::unique_ptr<Wire> wire_;
};

/// Returns a unique name for one requested change: 128 random bits in hexadecimal.
[[nodiscard]] std::string make_request_id(Entropy& entropy);

}  // namespace orrery
