// gateway/admission/call_admission.hpp - one call before the limits of its tenant and in the queue
// of its service.
//
// A call owns one; the service outlives it. On the loop's thread. Invariants: what was reserved is
// settled once, at the latest when this ends; a call has at most one place in the queue. Cost:
// O(log tenants + log waiting).
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "gateway/error_answer.hpp"
#include "gateway/gateway_core.hpp"
#include "http/web_headers.hpp"
#include "serving/admission/fair_queue.hpp"

namespace orrery {

class CallAdmission {
 public:
  CallAdmission(GatewayService& service, CallerAccount& account, ServiceClass service_class);
  CallAdmission(const CallAdmission&) = delete;
  CallAdmission& operator=(const CallAdmission&) = delete;
  ~CallAdmission();

  /// How long the request waits where others wait for `usual`: those of class batch have a time of
  /// their own.
  [[nodiscard]] Duration patience(Duration usual) const {
    return class_ == ServiceClass::kBatch ? service_.waits.batch : usual;
  }
  /// Takes tokens from the tenant's limit. False: there is no room, and the request is refused.
  [[nodiscard]] bool reserve(std::uint64_t tokens, Instant now);
  [[nodiscard]] bool refused() const { return refused_; }
  /// Whether the request, for which a decision found no room, is refused as it would be answered
  /// too late (serving/routing/shedding.hpp).
  [[nodiscard]] bool sheds(GatewayCore& core, const RouteDecision& decision) const;

  /// Notes that the call goes to a replica: out of the queue, or without having waited.
  void serve();
  /// Waits for its turn among others; one that was served before waits before them.
  void wait(GatewayCall& call, Instant deadline);
  void leave();
  /// The waiting call that is to be refused so that this one may wait; null: this one is.
  [[nodiscard]] GatewayCall* last_but_this() const;

  /// Charges the tenant what the request really used, in place of what was reserved. Only the first
  /// call counts.
  void settle(double tokens, Instant now);
  void count(const EndedRequest& request) { ::orrery::count(request, account_.used); }

  /// The error of a request for which reserve() found no room.
  [[nodiscard]] ErrorAnswer quota_error() const;
  /// Whole seconds until there is room for the request, from 1 to a day.
  [[nodiscard]] std::string retry_after(Instant now) const;
  /// Adds what OpenAI's API tells of a limit: x-ratelimit-limit-tokens, -remaining-tokens and
  /// -reset-tokens. Nothing for a tenant without one. The values live as long as this object.
  void add_limit_headers(std::vector<WebHeader>& headers, Instant now);

 private:
  GatewayService& service_;
  CallerAccount& account_;
  ServiceClass class_;
  FairQueue::Flow flow_;
  FairQueue::Ticket ticket_ = 0;  ///< 0: not in the queue
  std::uint64_t tokens_ = 0;      ///< as estimated
  bool reserved_ = false;         ///< and not settled
  bool refused_ = false;          ///< there was no room
  bool served_ = false;           ///< charged to its flow
  std::array<std::string, 3> values_;
};

/// A time as OpenAI's API writes it: "1.25s", "2m0s", "850ms".
[[nodiscard]] std::string reset_text(Duration time);

}  // namespace orrery
