// gateway/admission/waiting_calls.hpp - the calls that wait for a replica of one service, in their
// turn.
//
// A service of the gateway has one (gateway/gateway_core.hpp), which borrows the calls; each takes
// itself out before it ends. The order is that of serving/admission/fair_queue.hpp. On the
// loop's thread.
// Invariant: each ticket of the queue has its call. Cost: that of the queue.
#pragma once

#include <unordered_map>
#include <vector>

#include "serving/admission/fair_queue.hpp"

namespace orrery {

class GatewayCall;

class WaitingCalls {
 public:
  [[nodiscard]] FairQueue& order() { return order_; }
  [[nodiscard]] std::size_t size() const { return order_.size(); }
  [[nodiscard]] bool empty() const { return order_.empty(); }
  /// Requests of an endpoint picker that wait beside the calls.
  [[nodiscard]] std::size_t picks() const { return picks_; }
  void add_pick() { ++picks_; }
  void remove_pick() { --picks_; }

  /// Gives a ticket of the queue its call.
  void bind(FairQueue::Ticket ticket, GatewayCall& call) { calls_[ticket] = &call; }
  void unbind(FairQueue::Ticket ticket) { calls_.erase(ticket); }

  /// The call whose turn it is; null: none waits.
  [[nodiscard]] GatewayCall* front() const {
    const auto ticket = order_.front();
    return ticket ? calls_.at(*ticket) : nullptr;
  }
  [[nodiscard]] GatewayCall& at(FairQueue::Ticket ticket) const { return *calls_.at(ticket); }
  [[nodiscard]] std::vector<GatewayCall*> calls() const {
    std::vector<GatewayCall*> all;
    all.reserve(calls_.size());
    for (const FairQueue::Ticket ticket : order_.tickets()) all.push_back(calls_.at(ticket));
    return all;
  }

 private:
  FairQueue order_;
  std::size_t picks_ = 0;
  std::unordered_map<FairQueue::Ticket, GatewayCall*> calls_;
};

}  // namespace orrery
