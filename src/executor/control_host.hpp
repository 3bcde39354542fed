// executor/control_host.hpp - runs the control core: inputs one at a time, events to the log, and
// orders and answers only after the events they depend on are durable.
//
// Built by the daemon and by the simulation of the protocol, around a core with its history
// restored, for one term of a controller; they differ only in clock, log and network. The loop goes
// on while the log is written: state and link are ahead of what is durable, and nothing leaves.
// Time is the controller's own and never goes back. One thread; the outlet must not call the host
// from inside its calls, except through the answers that the host hands out.
// A halted host changes nothing and sends nothing new; ranks run on, as without a controller.
// Invariant: orders and answers leave in the order in which they were made, none before durable()
// has named the number of the events before it; passes and searches beside the host, which send
// nothing outside, begin at once. Cost: that of core and link.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "agent/fleet_link.hpp"
#include "control/core.hpp"
#include "control/held_situation.hpp"

namespace orrery {

/// Receives what leaves a host. append() is called from inside the host's calls.
class HostOutlet {
 public:
  virtual ~HostOutlet() = default;
  /// Called with every input, before it is handled.
  virtual void note(const Input& input) = 0;
  /// Makes the events of one input durable, after all before them. Returns the number with which
  /// durable() will confirm them; it never falls. The state has applied them already.
  virtual std::uint64_t append(Instant at, std::span<const Event> events) = 0;
  /// Sends an order to the agent of order.to.node; it may be lost.
  virtual void send(const Order& order) = 0;
  /// Starts a full pass. The result of full_pass(held) is to be handled as an input at any later
  /// time, or never.
  virtual void pass_beside(std::unique_ptr<const HeldSituation> held) = 0;
  /// Starts the search of a missing plan; the result comes back as PlanReady.
  virtual void search_plan(const PlanKey& key) = 0;
};

/// Ranks that an agent reported, of an attempt that is not in the log.
struct UnknownRanks {
  AttemptId attempt;
  NodeId node;

  friend bool operator==(const UnknownRanks&, const UnknownRanks&) = default;
};

class ControlHost {
 public:
  /// What to do when an agent reports ranks of an attempt that is not in the log. Orders leave only
  /// after their events are durable, so a part of the log was lost.
  enum class LostJobs : std::uint8_t {
    kAsk,  ///< the host halts: it decides nothing, ends nothing and waits for an operator
    kEnd   ///< the ranks are ended
  };
  struct Setup {
    std::uint64_t cluster = 0;
    std::uint64_t term = 1;  ///< higher than that of any earlier controller
    HeartbeatRule heartbeats;
    LostJobs lost_jobs = LostJobs::kEnd;
  };
  /// Called when the answer is durable.
  using Answered = std::function<void(const Answer&)>;

  /// `core` has its history restored and was resumed. Actions that may not have been carried out
  /// are sent again. Precondition: no controller of an earlier term sends anything after `now`.
  ControlHost(std::unique_ptr<Core> core, const Setup& setup, HostOutlet& outlet, Instant now);
  ControlHost(const ControlHost&) = delete;
  ControlHost& operator=(const ControlHost&) = delete;

  /// Precondition: time does not go back.
  void handle(const Input& input, Answered answered = {});
  /// Calls `then` once everything in the present state is durable, for replies to reads.
  void after_durable(std::function<void()> then);
  void deliver(const Report& report, Instant now);
  /// Handles one thing that is due. Precondition: next_due() <= now.
  void advance(Instant now);
  [[nodiscard]] Instant next_due() const;
  /// Everything up to `number` is durable: orders and answers that wait for it leave.
  void durable(std::uint64_t number);

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] const State& state() const { return core_->state(); }
  [[nodiscard]] const FleetLink& link() const { return *link_; }
  /// Returns the ranks in `report` whose attempts are not in the log.
  [[nodiscard]] std::vector<UnknownRanks> unknown_in(const Report& report) const;
  /// The reported ranks because of which the host is halted; empty: it is not halted.
  [[nodiscard]] const std::vector<UnknownRanks>& halted_by() const { return halted_by_; }
  /// Whether everything appended is durable.
  [[nodiscard]] bool settled() const { return durable_ == newest_; }

 private:
  using Leave = std::function<void()>;
  struct Waiting {
    std::uint64_t number = 0;
    std::variant<Order, Leave> what;
  };

  void decide(const Input& input, Answered answered);
  void carry_out(const Action& action, Instant now);
  void drain(Instant now);
  void release();

  HostOutlet& outlet_;
  std::unique_ptr<Core> core_;
  std::optional<FleetLink> link_;
  LostJobs lost_jobs_;
  std::vector<UnknownRanks> halted_by_;
  std::deque<Waiting> waiting_;
  std::uint64_t newest_ = 0;  ///< number of the last append
  std::uint64_t durable_ = 0;
};

}  // namespace orrery
