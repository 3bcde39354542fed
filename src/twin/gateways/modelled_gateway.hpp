// twin/gateways/modelled_gateway.hpp - the gateway of a service in virtual time: the router
// and the queue that a live one has, around requests that are numbers.
//
// Owned by a service run; borrows the trace. choose(), the charges and credits, the order of those
// that wait and the one that is refused are the code of the live gateway (serving/routing,
// serving/admission). Invariant: a request is charged to at most one replica, and does not wait
// while it is. Cost: that of choose() for each request, and O(log waiting).
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/numbers/rng.hpp"
#include "serving/admission/fair_queue.hpp"
#include "serving/routing/router.hpp"
#include "twin/serving/service_setup.hpp"
#include "workload/requests/request_trace.hpp"

namespace orrery {

/// A replica that takes requests.
struct ReadyReplica {
  std::uint32_t number = 0;   ///< the run's
  std::uint32_t attempt = 0;  ///< another one after each crash
  const ReplicaGroup* group = nullptr;
};

/// What the warm-up of a replica of a group would measure.
[[nodiscard]] ReplicaPace pace_of(const ReplicaGroup& group);

/// Where a request is computed.
struct ModelledWay {
  std::uint32_t replica = 0;            ///< the one that answers
  std::optional<std::uint32_t> prompt;  ///< the one that computes its prompt; none: the same
  double transfer_s = 0;                ///< from one to the other
};

class ModelledGateway {
 public:
  /// `number`: among the gateways of the service, from 0.
  ModelledGateway(const RequestTrace& trace, const ServiceSetup& setup, std::uint32_t number);

  /// The replicas that take requests from now on, by number.
  void set_replicas(const std::vector<ReadyReplica>& ready);

  enum class Answer : std::uint8_t {
    kSent,     ///< by `way`
    kWaits,    ///< until next() tells it, or expire() takes it out
    kRefused,  ///< the queue is full
  };
  struct Dispatch {
    Answer answer = Answer::kWaits;
    ModelledWay way;
    std::optional<std::uint32_t> displaced;  ///< a request that waited and is refused for this one
  };
  /// A new request. Those that come back after a crash go before all others.
  enum class Coming : std::uint8_t { kNew, kAgain };
  [[nodiscard]] Dispatch offer(std::uint32_t request, Coming coming, Instant now);

  struct Sent {
    std::uint32_t request = 0;
    ModelledWay way;
  };
  /// The waiting request whose turn it is, if a replica can take it now.
  [[nodiscard]] std::optional<Sent> next(Instant now);
  /// Takes a request out that has waited too long; false: it does not wait.
  [[nodiscard]] bool expire(std::uint32_t request);

  /// The replica that computes the prompt alone has done so, and tells the same as at begin().
  void send_on(std::uint32_t request, std::uint32_t cached_tokens, Instant now);
  /// That replica cannot: the one that is to answer computes the prompt, too.
  void keep_together(std::uint32_t request, Instant now);
  /// The first token comes; the engine tells what its cache had of the prompt.
  void begin(std::uint32_t request, std::uint32_t cached_tokens, Instant now);
  /// The last token comes. `tpot_s`: seconds between tokens; 0: there was one token.
  struct Ended {
    std::uint32_t request = 0;
    std::uint32_t output_tokens = 0;
    double tpot_s = 0;
  };
  void end(const Ended& ended, Instant now);
  /// A crash of its replica, before or after its answer began.
  void lose(std::uint32_t request, Instant now);

  /// What it has charged to replicas, and what the other gateways tell that they have.
  [[nodiscard]] std::vector<ReplicaCharges> charges() const { return router_.own_charges(); }
  void hear(std::span<const ReplicaCharges> sums, std::uint32_t gateways) {
    router_.set_others(sums, gateways);
  }
  /// Counts the changes of charges().
  [[nodiscard]] std::uint64_t changes() const { return router_.changes(); }

  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }
  [[nodiscard]] std::size_t in_flight() const { return charges_.size(); }

 private:
  struct Call {
    std::uint64_t tokens = 0;
    FairQueue::Ticket ticket = 0;  ///< 0: it does not wait
    FairQueue::Flow flow = 0;
    /// What comes back is computed at one replica.
    PromptPlaces prompt_places = PromptPlaces::kAny;
  };
  /// What a request is charged for.
  struct Charges {
    RouteCharge answer;
    std::optional<RouteCharge> prompt;  ///< elsewhere, until it is computed
    RouteLoad otherwise;                ///< RemotePrompt::otherwise
  };

  [[nodiscard]] RouteDecision decide(std::uint32_t request, std::size_t waiting, Instant now);
  ModelledWay charge(std::uint32_t request, const RouteDecision& decision, Instant now);
  [[nodiscard]] FairQueue::Flow flow_of(const TraceRequest& request);
  /// The full blocks of a prompt, as the router knows them; valid until the next call.
  [[nodiscard]] std::span<const std::uint64_t> blocks_of(const TraceRequest& request);

  const RequestTrace& trace_;
  const ServiceSetup& setup_;
  RouterState router_;
  FairQueue queue_;
  std::unordered_map<FairQueue::Ticket, std::uint32_t> waiting_;
  std::vector<Call> calls_;                             ///< by request
  std::unordered_map<std::uint32_t, Charges> charges_;  ///< by request
  std::vector<std::uint64_t> blocks_;
  Rng draws_;
  std::uint64_t epoch_ = 0;
  double output_mean_ = 64;  ///< of the requests so far, newer ones weigh more
};

}  // namespace orrery
