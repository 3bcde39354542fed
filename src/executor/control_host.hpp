// executor/control_host.hpp - runs the control core: inputs one at a time, events to the log, and
// orders and answers only after the events they depend on are durable.
//
// Built by the daemon, by the twin and what-if (twin/simulation.hpp), by the simulation of the
// protocol and by replays, around a core with its history restored; they differ in clock, log,
// network and executor. The loop goes on while the log is written: state and executor are ahead of
// what is durable, and nothing leaves.
// Time is the controller's own and never goes back. One thread; the outlet must not call the host
// from inside its calls, except through the answers that the host hands out.
// A halted host changes nothing and sends nothing new; ranks run on, as without a controller.
// Invariant: orders and answers leave in the order in which they were made, none before durable()
// has named the number of the events before it, none while the outlet may not speak; passes and
// searches beside the host, which send nothing outside, begin at once. Cost: that of core and
// executor.
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
#include "control/core/core.hpp"

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
  /// Whether orders and answers may leave now: another controller cannot have taken over. Where
  /// they may not, they wait for the next durable() or release().
  [[nodiscard]] virtual bool may_speak() { return true; }
  /// Sends an order to the agent of order.to.node; it may be lost.
  virtual void send(const Order& order) = 0;
  /// Starts a full pass on the core's state at `now`. Its Proposal is to be handled as an input at
  /// any later time, or never.
  virtual void run_full_pass(Core& core, Instant now) = 0;
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
  struct Parts {
    std::unique_ptr<Core> core;  ///< with its history restored, and resumed
    Executor& executor;          ///< for this state of the core
    HostOutlet& outlet;
    LostJobs lost_jobs = LostJobs::kEnd;
  };
  /// Called when the answer is durable.
  using Answered = std::function<void(const Answer&)>;

  /// Executor and outlet outlive the host.
  ControlHost(Parts parts, Instant now);
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
  /// Drops orders that wait for earlier events to become durable: the executor repeats them. For a
  /// change of the fleet, whose ids they do not have.
  void drop_orders();
  /// Everything up to `number` is durable: orders and answers that wait for it leave.
  void durable(std::uint64_t number);
  /// Lets leave what may: HostOutlet::may_speak() has become true.
  void release();

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] const State& state() const { return core_->state(); }
  /// Returns the state as a reader beside the loop needs it, see Core::hold().
  [[nodiscard]] std::unique_ptr<const HeldSituation> hold(Instant now) { return core_->hold(now); }
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

  HostOutlet& outlet_;
  Executor& executor_;
  std::unique_ptr<Core> core_;
  LostJobs lost_jobs_;
  std::vector<UnknownRanks> halted_by_;
  std::deque<Waiting> waiting_;
  std::uint64_t newest_ = 0;  ///< number of the last append
  std::uint64_t durable_ = 0;
};

struct LinkOwner {
  FleetLink owned;
};

/// A host whose executor is the link to agents: that of a controller, for one term.
class AgentHost final : private LinkOwner, public ControlHost {
 public:
  struct Setup {
    LinkSetup link;  ///< its boots are filled in
    LostJobs lost_jobs = LostJobs::kEnd;
  };
  /// `core` has its history restored, and was resumed. Precondition: no controller of an earlier
  /// term sends anything after `now`.
  AgentHost(std::unique_ptr<Core> core, const Setup& setup, HostOutlet& outlet, Instant now);

  [[nodiscard]] const FleetLink& link() const { return owned; }
  /// Makes the link anew after a change of the fleet: agents answer to the same term, and report
  /// what they run.
  void renew_link(Instant now);

 private:
  LinkSetup link_setup_;
};

}  // namespace orrery
