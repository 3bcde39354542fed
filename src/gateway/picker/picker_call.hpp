// gateway/picker/picker_call.hpp - one HTTP request at an Envoy, from its headers to the end of its
// answer, as an endpoint picker hears of it.
//
// The picker makes one for each stream, gives it the stream's messages, and ends it with the
// stream. All on the loop's thread. It collects the request's body, chooses a replica (or waits for
// one), names it with its fallbacks and gives the body back; then it follows the answer.
// Envoy sends bodies in pieces that are given back (FULL_DUPLEX_STREAMED) or whole, to be left as
// they are (BUFFERED); those of answers also in pieces that are left (STREAMED), or not at all.
// Invariants:
//   1. From the choice to settle(), one replica is charged, once.
//   2. A request of a known service is counted once, as it ends.
//   3. A waiting call is in the desk's list, once, and in its service's count.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "gateway/admission/call_admission.hpp"
#include "gateway/error_answer.hpp"
#include "gateway/gateway_core.hpp"
#include "gateway/picker/followed_answer.hpp"
#include "gateway/picker/picked_endpoints.hpp"
#include "gateway/picker/picker_messages.hpp"
#include "gateway/picker/rpc_stream.hpp"
#include "gateway/request_facts.hpp"

namespace orrery {

class PickerCall;

/// What the calls of a picker share.
struct PickerDesk {
  GatewayCore& core;
  RequestReader reader;
  std::list<PickerCall*> waiting;  ///< oldest first
  std::size_t held_bytes = 0;      ///< of bodies that are collected
  Callback look_soon;              ///< has waiting calls looked at in a later round ..
  Callback look_later;             ///< .. after some time
};

class PickerCall {
 public:
  PickerCall(PickerDesk& desk, std::shared_ptr<RpcStream> stream);
  PickerCall(const PickerCall&) = delete;
  PickerCall& operator=(const PickerCall&) = delete;
  /// Counts a request that has not ended as cancelled.
  ~PickerCall();

  /// Takes in the next message of the stream and asks for another.
  void take(const ext_proc::ProcessingRequest& message);
  /// Ends the stream, as its peer has.
  void close();

  /// Tries to find a replica for a waiting call. Where there is none, it waits on.
  RouteOutcome try_again();
  /// Ends a waiting call whose time is over. `outcome`: of a choice for it, now.
  void check_time(Instant now, RouteOutcome outcome);
  /// The service of a waiting call, where what is chosen for one call holds for the next; null:
  /// only some endpoints may serve this one.
  [[nodiscard]] const GatewayService* like_others_of() const {
    const bool draws = service_->canary.report().has_value();
    return request_.subset || draws ? nullptr : service_;
  }

 private:
  enum class Phase : std::uint8_t {
    kHeaders,    ///< the request's headers are yet to come
    kBody,       ///< its body comes
    kWaiting,    ///< for a replica
    kAsked,      ///< Envoy has been told of a replica
    kAnswering,  ///< the answer's headers have come
    kOver,       ///< nothing more is said
  };
  struct Modes {
    bool known = false;  ///< told by Envoy
    ext_proc::BodySendMode request = ext_proc::FULL_DUPLEX_STREAMED;
    ext_proc::BodySendMode answer = ext_proc::FULL_DUPLEX_STREAMED;
  };
  struct Request {
    std::string id;
    std::optional<RoutedKey> key;
    std::optional<std::vector<std::string>> subset;
    std::string body;
    std::size_t body_bytes = 0;
    RoutedPrompt prompt;
    BodyEnd end = BodyEnd::kEnded;  ///< kOpen: trailers follow
  };
  struct Target {
    std::uint64_t tokens = 0;         ///< of the prompt and the output, estimated
    std::uint64_t output_tokens = 0;  ///< of these, of the output
    double draw = 0;                  ///< RouteQuery::draw
    std::optional<RouteCharge> charge;
    std::vector<PickedEndpoint> endpoints;  ///< as told to Envoy
  };

  void on_headers(const ext_proc::ProcessingRequest& message);
  void on_request_without_body(const ext_proc::HttpHeaders& headers);
  void on_body(const ext_proc::HttpBody& body);
  void on_trailers();
  void on_answer_headers(const ext_proc::ProcessingRequest& message);
  void on_answer_body(const ext_proc::HttpBody& body);
  void on_answer_trailers();
  void refuse_order();

  void pick();
  void dispatch();
  [[nodiscard]] PickedEndpoints choose_now(std::size_t waiting) const;
  void record(RouteDecision decision);
  void wait();
  void leave_queue();
  void answer_route(PickedEndpoints picked);
  void note_served(std::string_view endpoint);
  void charge(std::uint32_t slot, const RouteLoad& load);

  void answer_now(const ErrorAnswer& error, RequestEnd end);
  void refuse_waiting(const PickedEndpoints& picked);
  void settle(RequestEnd end);
  void drop_body();

  PickerDesk& desk_;
  std::shared_ptr<RpcStream> stream_;
  Phase phase_ = Phase::kHeaders;
  Instant arrived_;
  Modes modes_;
  Request request_;
  GatewayService* service_ = nullptr;  ///< once it is known, until the request is counted
  std::optional<std::list<PickerCall*>::iterator> place_;  ///< among those that wait
  Target target_;
  std::optional<CallAdmission> admission_;  ///< once the service is known
  int retry_after_ = 1;                     ///< seconds, of an answer that refuses
  FollowedAnswer answer_;
};

}  // namespace orrery
