// executor/control_host.hpp - what stands around the control core wherever it runs: inputs one at a
// time, events to the log, and everything that leaves only after what it rests on is durable.
//
// Built by the daemon and by the simulation of the protocol, around a core that has its history
// back, for one controller's term; they differ in clock, log and network alone. The loop goes on
// while the log is written: state and link are ahead of what is durable, and nobody is told.
// Time is the controller's own and never goes back. One thread; no call from inside a call of the
// outlet, but from the answers it hands out.
// A host that is halted changes nothing and sends nothing new; ranks run on, as without a
// controller. Invariant: orders and answers leave in the order in which they came to be, none
// before durable() has named the number of the events before it; passes and searches beside it,
// which tell nobody anything, begin at once. Cost: that of core and link.
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

/// Where what leaves a host goes. Calls of append come from within the host's calls.
class HostOutlet {
 public:
  virtual ~HostOutlet() = default;
  /// Every input, before it is handled.
  virtual void note(const Input& input) = 0;
  /// The events of one input, to be made durable after all before them. Returns the number that
  /// durable() will name when they are; it never falls. The state has them already.
  virtual std::uint64_t append(Instant at, std::span<const Event> events) = 0;
  /// To the agent of order.to.node; may be lost.
  virtual void send(const Order& order) = 0;
  /// A full pass is due; what full_pass(held) gives is to be handled as an input, soon or late, or
  /// never.
  virtual void pass_beside(std::unique_ptr<const HeldSituation> held) = 0;
  /// A plan is missing; found, it comes back as PlanReady.
  virtual void search_plan(const PlanKey& key) = 0;
};

/// Ranks that an agent reported, of an attempt that the log never had.
struct UnknownRanks {
  AttemptId attempt;
  NodeId node;

  friend bool operator==(const UnknownRanks&, const UnknownRanks&) = default;
};

class ControlHost {
 public:
  /// What follows when an agent reports ranks of an attempt that the log never had. Orders leave
  /// only after their events are durable, so a part of the log was lost.
  enum class LostJobs : std::uint8_t {
    kAsk,  ///< the host halts: it decides nothing, ends nothing and waits for an operator
    kEnd   ///< the ranks are ended
  };
  struct Setup {
    std::uint64_t cluster = 0;
    std::uint64_t term = 1;  ///< higher than that of any controller before
    HeartbeatRule heartbeats;
    LostJobs lost_jobs = LostJobs::kEnd;
  };
  /// Called when the answer is durable.
  using Answered = std::function<void(const Answer&)>;

  /// `core` has its history back and was resumed. What control wanted done and may not have been
  /// done is said again. Precondition: no controller of an earlier term sends anything after `now`.
  ControlHost(std::unique_ptr<Core> core, const Setup& setup, HostOutlet& outlet, Instant now);
  ControlHost(const ControlHost&) = delete;
  ControlHost& operator=(const ControlHost&) = delete;

  /// Precondition: time does not go back.
  void handle(const Input& input, Answered answered = {});
  /// Calls `then` once all is durable that the state has now: what a read saw.
  void after_durable(std::function<void()> then);
  void deliver(const Report& report, Instant now);
  /// One thing that is due. Precondition: next_due() <= now.
  void advance(Instant now);
  [[nodiscard]] Instant next_due() const;
  /// Everything up to `number` is durable: what rests on it leaves.
  void durable(std::uint64_t number);

  [[nodiscard]] const Core& core() const { return *core_; }
  [[nodiscard]] const State& state() const { return core_->state(); }
  [[nodiscard]] const FleetLink& link() const { return *link_; }
  /// Those of `report` whose attempts the log never had.
  [[nodiscard]] std::vector<UnknownRanks> unknown_in(const Report& report) const;
  /// Why nothing is decided any more, as far as it was reported; empty: the host is not halted.
  [[nodiscard]] const std::vector<UnknownRanks>& halted_by() const { return halted_by_; }
  /// Whether all that ever happened is durable.
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
  std::uint64_t newest_ = 0;  ///< number of what was appended last
  std::uint64_t durable_ = 0;
};

}  // namespace orrery
