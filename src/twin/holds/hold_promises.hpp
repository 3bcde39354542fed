// twin/holds/hold_promises.hpp - the promises that the link to a resource manager must keep.
//
// Owned by the LentFleet, which asks after every step of the world. One thread.
// Cost: O(lent nodes x holds + running jobs) a check.
// It checks that:
//  1. one hold at most lends a node, and control says that it is that one, or none yet;
//  2. a node that no hold lends is absent, or lost while ranks may be there;
//  3. no job runs on a node that no hold lends, or that is lent for another job (HoldAgents checks
//  that no keeper begins there);
//  4. of the holds of one key, agents of one only are let in;
//  5. no hold is released while ranks that control wants are on its nodes;
//     no hold that its manager has is given up or asked for again, and none is released without its
//     key, as its id may be that of another's work by now;
//  6. the time of a hold is not over while ranks run there, if nothing disturbs control;
//  7. nothing is asked for before a complete list (LentFleet looks at the orders);
//  8. a hold is billed with what its manager recorded, unless that was forgotten;
//  9. in the end the manager and the link know the same holds, and none that is not kept.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/holds/hold_link.hpp"
#include "twin/holds/hold_agents.hpp"
#include "twin/holds/virtual_manager.hpp"
#include "twin/nodes/protocol_nodes.hpp"

namespace orrery {

class HoldPromises {
 public:
  struct Parts {
    ProtocolNodes& nodes;
    const VirtualManager& manager;
    const HoldAgents& agents;
    std::string pool;  ///< the manager's name
  };
  /// The parts must outlive it.
  explicit HoldPromises(Parts parts) : parts_(std::move(parts)) {}

  /// Another controller begins.
  void begin() { before_.clear(); }
  /// Notes what the manager has ended. Must be called after every step.
  void note_ends();
  /// Returns the promise that is broken now; empty: none. `link`: of the living controller, after
  /// all that it told control was handled.
  [[nodiscard]] std::string broken(const State& state, const HoldLink& link);
  /// Returns the promise that a bill breaks; empty: none.
  [[nodiscard]] std::string broken_by(const HoldBilled& bill) const;
  /// Returns the promise that an order breaks which leaves now; empty: none.
  [[nodiscard]] std::string broken_by(const ManagerOrder& order, const HoldLink& link);
  /// Whether the agent is of another hold of its key than that which the link counts.
  [[nodiscard]] static bool is_second(const AgentHold& agent, const HoldLink& link);
  /// Returns the promise that is broken if the time of holds is kept; empty: none.
  [[nodiscard]] std::string broken_times(Instant now) const;
  /// Whether control does not know that no rank is left on the node.
  [[nodiscard]] static bool may_be_used(const State& state, NodeId node);
  /// Returns what is not yet as it has to be in the end; empty: nothing.
  [[nodiscard]] std::string unsettled(const State& state, const HoldLink& link,
                                      std::uint32_t keep) const;

 private:
  [[nodiscard]] std::string broken_node(NodeId node, const State& state,
                                        const HoldLink& link) const;
  [[nodiscard]] std::string broken_jobs(const State& state) const;
  [[nodiscard]] std::string broken_keys(const State& state, const HoldLink& link) const;
  [[nodiscard]] std::string broken_ends(const HoldLink& link) const;
  [[nodiscard]] bool is_live(const HoldKey& key, const std::string& id) const;
  /// Whether a process is there that control wants to go on.
  [[nodiscard]] bool has_wanted_rank(NodeId node, const State& state) const;

  /// A hold that lent nodes when it was looked at last.
  struct Granted {
    HoldKey key;
    std::string id;
    bool wanted = false;  ///< ranks that control wanted were on its nodes
  };

  Parts parts_;
  std::vector<Granted> before_;
  std::vector<HoldKey> asked_;  ///< holds that were asked for
  /// Holds that the manager once ended, by key and id: it may have forgotten that since.
  std::set<std::pair<HoldKey, std::uint64_t>> ended_;
  /// What the manager has recorded, by the name of the hold: each record that it had at some time.
  std::map<std::string, std::vector<ManagerJob::Record>> records_;
};

}  // namespace orrery
