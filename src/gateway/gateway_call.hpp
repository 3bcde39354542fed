// gateway/gateway_call.hpp - one request to a model on its way through a gateway.
//
// Made for a request that is authorised and names a service; the core owns it until it ends. It
// waits for a replica, calls it, passes the answer on, and tries another replica where nothing of
// an answer has reached the client. A stream that breaks off later goes on at another replica
// behind the events that have been passed on, where its engine left marks (StreamMarks); else it
// ends with an error event. Every way out ends in finish(), which removes the call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/admission/call_admission.hpp"
#include "gateway/apart/prompt_hop.hpp"
#include "gateway/error_answer.hpp"
#include "gateway/gateway_core.hpp"
#include "gateway/request_facts.hpp"
#include "gateway/spans/call_trace.hpp"
#include "gateway/stream/event_scanner.hpp"
#include "gateway/stream/stream_marks.hpp"
#include "gateway/tiers/tier_desk.hpp"
#include "http/web_client.hpp"
#include "http/web_server.hpp"

namespace orrery {

/// What a request asks for, and of whom.
struct GatewayRequest {
  std::string id;  ///< x-request-id
  GatewayService& service;
  CallerAccount& tenant;  ///< of the key, at that service
  RequestFacts facts;
  CallTrace trace;
  ChosenTier tier;
  RoutedPrompt prompt = {};
  std::optional<Instant> arrived = {};  ///< none: when the call starts
};

class GatewayCall final : public WebCallEvents {
 public:
  GatewayCall(GatewayCore& core, GatewayRequest request, WebExchange exchange);
  GatewayCall(const GatewayCall&) = delete;
  GatewayCall& operator=(const GatewayCall&) = delete;

  /// Begins. The call may end inside.
  void start();
  /// Tries to find a replica for a waiting call; false: it waits on. The call may end inside.
  bool try_again();
  /// Ends a waiting call whose time is over.
  void check_time(Instant now);
  /// Ends a waiting call whose place another one gets.
  void shed();

  void on_head(const WebResponseHead& head) override;
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_error(const WebCallFailure& failure) override;

 private:
  enum class Phase : std::uint8_t { kWaiting, kAsking, kPassing };
  enum class Queueing : std::uint8_t { kBehind, kFirst };

  struct Target {
    std::uint32_t slot = 0;
    std::uint64_t tokens = 0;         ///< of the prompt and the output, estimated
    std::uint64_t output_tokens = 0;  ///< of these, of the output
    std::optional<RouteCharge> charge;
    bool answered = false;       ///< a byte of an answer's body has come from it
    std::uint32_t failures = 0;  ///< of replicas, so far
    double draw = 0;             ///< RouteQuery::draw
    /// Revision of the replica that began the stream, which alone goes on with it.
    std::optional<std::uint32_t> revision;
    std::string revision_text;
    std::uint32_t moves = 0;             ///< of the stream from one replica to another
    std::optional<RemotePrompt> remote;  ///< where its prompt is to be computed
    std::unique_ptr<PromptHop> hop;      ///< is asked for it
  };
  struct Times {
    Instant arrived;
    Instant asked;  ///< since when it looks for a replica
    Instant first;  ///< byte of the answer's body
    Instant last;
  };
  struct Answer {
    int status = 0;
    WebHeaders headers;
    bool is_events = false;
    bool is_marked = false;     ///< the events have marks
    bool begun = false;         ///< the client has got its head
    bool first_missing = true;  ///< no byte of the body has arrived
    std::string held;           ///< bytes of the body that have not been sent
    EventScanner events;
    TokenUsage usage;  ///< of a whole answer
    std::string copy;  ///< of what the client got, where it is compared
  };

  void dispatch(Queueing queueing);
  [[nodiscard]] RouteDecision decide(std::size_t waiting) const;
  void record(RouteDecision decision);
  void call_replica(std::uint32_t slot, const RouteLoad& load);
  /// Asks the replica that answers; `cache_place`: of its prompt; empty: it computes it.
  void ask(const std::string& cache_place);
  void export_span(const EndedRequest& ended);
  [[nodiscard]] std::vector<WebHeader> headers_for_client();
  [[nodiscard]] double tokens_charged(RequestEnd end) const;
  void retry_elsewhere(std::string_view why);
  void break_off(std::string_view why);
  void refuse_rest();
  void hand_over(TierDesk::Ending ending);
  void lose();
  void pass_events(std::string_view bytes);
  void send(std::string_view bytes);
  void answer_error(const ErrorAnswer& error, RequestEnd end);
  void finish(RequestEnd end);
  void release(const RouteDone& done);
  [[nodiscard]] TokenUsage usage() const;

  GatewayCore& core_;
  GatewayRequest request_;
  WebExchange exchange_;
  Phase phase_ = Phase::kWaiting;
  Target target_;
  Times times_;
  std::vector<ReplicaKey> tried_;
  CallAdmission admission_;
  Answer answer_;
  StreamMarks marks_;
  std::string body_;  ///< as a replica gets it, where that is not as received
  WebCall upstream_;
};

}  // namespace orrery
