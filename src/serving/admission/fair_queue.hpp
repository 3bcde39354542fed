// serving/admission/fair_queue.hpp - requests that wait for a replica of one service: whose turn
// it is, and which is refused where too many wait.
//
// The gateway has one for each service. Pure; times are values, and only their order counts. Not
// thread-safe.
//
// The order:
//   1. Requests that were served and came back (a replica failed), in the order of their return.
//   2. Requests of class interactive before those of class batch.
//   3. Of one class, requests of the higher priority.
//   4. Of these, tenants share what is served in proportion to their weights (start-time fair
//      queueing, Goyal, Vin and Cheng, SIGCOMM 1996): each tenant has a start tag, in tokens of
//      weight 1; the least one is served, and grows by the request's tokens over the weight. A
//      tenant whose first request comes starts at the tag that was served last, so that idling
//      earns nothing. Ties break by the order in which tenants came.
//   5. Of one tenant, the request with the earliest deadline, then the older one.
//
// Invariants: a waiting request is of one flow; front() is empty only where nothing waits; while
// two tenants wait at one level, what they are served (over their weights) differs by at most one
// request of each. Cost: O(log waiting) an operation, and O(levels) where the front is asked for.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.hpp"

namespace orrery {

enum class ServiceClass : std::uint8_t { kInteractive, kBatch };

/// "interactive", "batch".
[[nodiscard]] std::string_view name_of(ServiceClass service_class);

/// Requests of a lesser level are served first.
struct QueueLevel {
  ServiceClass service_class = ServiceClass::kInteractive;
  std::int32_t priority = 0;

  friend bool operator==(const QueueLevel&, const QueueLevel&) = default;
  friend auto operator<=>(const QueueLevel& a, const QueueLevel& b) {
    const auto by_class = a.service_class <=> b.service_class;
    return by_class != 0 ? by_class : b.priority <=> a.priority;
  }
};

class FairQueue {
 public:
  using Ticket = std::uint64_t;  ///< of a waiting request; grows, from 1
  using Flow = std::uint32_t;    ///< a tenant at a level, for good

  /// Returns the flow of a tenant at a level, which has this weight from now on. Precondition:
  /// weight > 0.
  Flow flow(const QueueLevel& level, std::string_view tenant, double weight);

  /// Charges a request that is served without waiting. Precondition: nothing waits.
  void pass(Flow flow, std::uint64_t tokens);
  Ticket push(Flow flow, std::uint64_t tokens, Instant deadline);
  /// Adds a request that was charged before, before all others.
  Ticket push_again();
  /// Takes out a request that is served now. Precondition: it is the front.
  void serve(Ticket ticket);
  /// Takes out a request that goes without being served.
  void erase(Ticket ticket);
  /// Corrects what a flow was charged: the request took that many tokens more (or fewer).
  void settle(Flow flow, double tokens_more);

  [[nodiscard]] std::optional<Ticket> front() const;
  /// Returns the waiting request that is refused so that one more of `flow` may wait: that with the
  /// latest deadline of the tenant that has most waiting for its weight, at the last level that
  /// waits; none: the new one itself is refused.
  [[nodiscard]] std::optional<Ticket> last_but(Flow flow, std::uint64_t tokens) const;

  /// Tokens of waiting requests that are served before one more of `flow`: those of earlier levels,
  /// its own, and of others of its level those that their weights give them meanwhile.
  [[nodiscard]] double tokens_ahead(Flow flow, std::uint64_t tokens) const;

  [[nodiscard]] std::size_t size() const { return requests_.size() + again_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  /// The tickets of all that wait, in no particular order.
  [[nodiscard]] std::vector<Ticket> tickets() const;

 private:
  struct Request {
    Flow flow = 0;
    double tokens = 0;
    Instant deadline;
  };
  struct FlowState {
    QueueLevel level;
    double weight = 1;
    double start = 0;   ///< tag of its next request
    double tokens = 0;  ///< that wait
    std::set<std::pair<Instant, Ticket>> waiting;
  };
  struct Level {
    double served = 0;                         ///< start tag that was served last
    std::set<std::pair<double, Flow>> starts;  ///< of the flows that wait
    std::set<std::pair<double, Flow>> loads;   ///< waiting tokens over weight, of the same flows
  };

  void unlink(Flow flow);
  void link(Flow flow);
  void take_out(Ticket ticket);

  std::map<QueueLevel, Level> levels_;
  std::vector<FlowState> flows_;
  std::map<std::pair<QueueLevel, std::string>, Flow, std::less<>> names_;
  std::unordered_map<Ticket, Request> requests_;
  std::set<Ticket> again_;
  Ticket last_ticket_ = 0;
};

}  // namespace orrery
