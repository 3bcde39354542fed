// executor/holds/hold_link.hpp - the controller's side of the resource managers: which holds it
// asks for, what it knows of them, and which nodes they lend.
//
// One for each term of a controller, made by HoldHost after control's state exists; the twin runs
// it against managers that lie. A state machine: reports and time go in, effects wait in take().
// Time is the controller's, and never goes back. Soft state: it is rebuilt from the loans in
// control's state, the managers' lists and the agents' words.
// What a manager acknowledges is a hint: a hold that two complete lists, ten seconds apart, do not
// have is asked for again under its key, or given up if its nodes were lent and no agent of it
// speaks. A hold that was accepted three times and never listed counts as refused, so that a
// manager that does not show the controller its holds gets no endless series of requests. Two holds
// of one key are the result of a lost answer: the first that runs counts, and agents of the other
// are refused. Invariants: nothing is asked of a manager before its first complete list in this
// term; a node is lent by one hold at most; a hold is released only when no rank is on its nodes,
// or when its manager ended it. Cost of advance(): O(waiting jobs + nodes of the managers).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/core/core.hpp"
#include "executor/holds/hold.hpp"
#include "executor/holds/hold_keeper.hpp"
#include "executor/holds/hold_table.hpp"

namespace orrery {

class HoldLink {
 public:
  /// The loans in `state` are taken over.
  HoldLink(HoldSetup setup, const State& state, Instant now)
      : table_(std::move(setup), state, now), keeper_(table_), next_look_(now) {}
  HoldLink(const HoldLink&) = delete;
  HoldLink& operator=(const HoldLink&) = delete;

  void deliver(const ManagerReport& report, const State& state, Instant now);
  /// Looks at what is due. Precondition: next_due() <= now.
  void advance(const Core& core, Instant now);
  [[nodiscard]] Instant next_due() const;

  /// Whether a manager may lend the node, so that its agents run in holds only.
  [[nodiscard]] bool manages(NodeId node) const { return table_.manager_of(node).has_value(); }
  /// Lets an agent in, if its hold lends the node or may; this is proof that the hold runs. Errors:
  /// kEnvironment: it may be let in later; kInput: never.
  [[nodiscard]] Status admit(NodeId node, const AgentHold& agent, const State& state, Instant now);

  /// The agent of a node says that the manager ends its hold: the jobs leave its nodes, then it is
  /// released, or after a minute with what is left of them.
  void end(NodeId node, const std::string& why, Instant now);

  /// Asks again at once for what was refused, instead of after a pause.
  void ask_again(Instant now) { table_.forgive(now); }

  [[nodiscard]] std::vector<HoldEffect> take() { return table_.take(); }

  [[nodiscard]] std::span<const HoldPool> pools() const { return table_.setup().pools; }
  [[nodiscard]] const ManagerState& manager(std::size_t pool) const {
    return table_.managers()[pool];
  }
  /// For how long a job may run in a hold of the manager.
  [[nodiscard]] Duration usable(std::uint32_t manager) const { return table_.usable(manager); }
  [[nodiscard]] std::span<const Hold> holds() const { return table_.holds(); }
  /// Returns how many holds were asked for in this term.
  [[nodiscard]] std::uint64_t asked() const { return keeper_.asked(); }

 private:
  /// A list of a manager, with what it is compared with.
  struct Heard {
    const ManagerListing& listing;
    const State& state;
    Instant now;
  };

  // What managers say.
  void hear(std::uint32_t manager, const HoldAnswer& answer, Instant now);
  void hear(std::uint32_t manager, const Heard& heard);
  void adopt(std::uint32_t manager, const HoldSeen& seen, const Heard& heard);
  void see(Hold& hold, const HoldSeen& seen, const Heard& heard);
  [[nodiscard]] bool is_counted(Hold& hold, const HoldSeen& seen, const Heard& heard);
  void see_running(Hold& hold, const HoldSeen& seen, const Heard& heard);
  void leave_out_others(std::uint32_t manager, const HoldSeen& seen, const Heard& heard);
  void give_back(Hold& hold, const std::string& why, Instant now);
  void see_ended(Hold& hold, const HoldSeen& seen, Instant now);
  void release_again(Hold& hold, const State& state, Instant now);
  void miss(Hold& hold, const Heard& heard);
  void request_again(Hold& hold, const Heard& heard);
  void sweep(std::uint32_t manager, const State& state);

  HoldTable table_;
  HoldKeeper keeper_;
  Instant next_look_;
};

}  // namespace orrery
