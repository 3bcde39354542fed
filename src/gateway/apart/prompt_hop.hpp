// gateway/apart/prompt_hop.hpp - the call that has a replica compute the prompt of a request, and
// keep its cache for the one that answers.
//
// A GatewayCall owns one while it runs. It charges the replica when it is made, and credits it when
// it ends, or is cancelled by the end of the object. All on the loop's thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/gateway_core.hpp"
#include "http/web_client.hpp"

namespace orrery {

/// What the replica is asked. Borrowed for the time of the constructor, but for the service.
struct PromptHopTerms {
  GatewayService& service;
  const RoutedPrompt& prompt;
  std::string_view target;
  std::string_view request;  ///< its id
  std::span<const WebHeader> headers;
  std::string_view body;  ///< for the replica that answers
};

class PromptHop final : public WebCallEvents {
 public:
  /// Called once, and may destroy the hop: cache_place() of the answer; empty: there is none.
  using Done = std::function<void(const std::string& place)>;

  PromptHop(GatewayCore& core, const PromptHopTerms& terms, const RemotePrompt& remote, Done done);
  PromptHop(const PromptHop&) = delete;
  PromptHop& operator=(const PromptHop&) = delete;
  ~PromptHop() override;

  void on_head(const WebResponseHead& head) override { status_ = head.status; }
  void on_body(std::string_view bytes) override;
  void on_end() override;
  void on_error(const WebCallFailure& failure) override { fail(failure.error.message); }

 private:
  void fail(std::string_view why);
  void end(const RouteDone& shown, const std::string& place);

  GatewayCore& core_;
  GatewayService& service_;
  Done done_;
  std::uint64_t prompt_tokens_;
  std::string request_;
  std::string body_;
  std::optional<RouteCharge> charge_;
  int status_ = 0;
  std::string received_;
  WebCall call_;
};

}  // namespace orrery
