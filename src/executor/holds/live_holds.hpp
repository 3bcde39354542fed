// executor/holds/live_holds.hpp - the resource managers of a running controller: which holds it
// has, and which agents of lent nodes it lets in.
//
// Owned by the controller, on its loop. The daemon names the managers once its doors are open, as
// pilots must know its addresses; until then agents of nodes that managers lend wait. An agent
// whose node is lent by a manager that is not known any more waits, too: it keeps its ranks. Soft
// state. Cost: that of HoldLink.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "executor/agents/lent_nodes.hpp"
#include "executor/holds/hold_host.hpp"
#include "executor/live/live_host.hpp"
#include "executor/managers/manager_spec.hpp"
#include "executor/managers/resource_manager.hpp"

namespace orrery {

class LiveHolds {
 public:
  struct Options {
    LiveHost& host;
    std::uint64_t cluster = 0;  ///< number of the cluster, in the names of its holds
    std::uint64_t term = 1;
    std::string key;  ///< for the tokens of holds
  };
  /// Makes the manager of a spec, for the cluster of that number.
  using MakeManager = std::function<std::unique_ptr<ResourceManager>(
      const ManagerSpec& spec, std::uint64_t cluster, ResourceManager::Reported reported)>;

  LiveHolds(const Log& log, Options options) : log_(log), options_(std::move(options)) {}
  LiveHolds(const LiveHolds&) = delete;
  LiveHolds& operator=(const LiveHolds&) = delete;

  /// Begins to hold nodes, or goes on with other managers or other keys of them: waiting holds are
  /// given back if their parameters have changed, or if the new spec lacks their manager.
  /// Not to be called within a report of a manager. Nodes that the fleet does not have are named in
  /// the log.
  void begin(ManagersSpec spec, const MakeManager& make);
  /// Whether the managers may be changed to these now, or be these at a start. Error (kInput): a
  /// hold of the state lends a node that they do not lend.
  [[nodiscard]] Status may_change_to(const ManagersSpec& spec) const;
  /// See HoldLink::ask_again().
  void ask_again();
  /// Takes over a changed fleet.
  void take_up_fleet();

  /// For the sessions with agents. It is used as long as this object lives.
  [[nodiscard]] LentNodes lent_nodes();
  /// Whether a token admits an agent of the node to its first certificate; none: the token is of no
  /// hold. Error: kInput: it is of a hold, which may not have the node.
  [[nodiscard]] std::optional<Status> may_join(std::string_view token, NodeId node) const;

  /// Looks at what is due.
  void advance(Instant now);
  [[nodiscard]] Instant next_due() const;

  /// None before begin().
  [[nodiscard]] const HoldLink* link() const { return holds_ ? &holds_->link() : nullptr; }

 private:
  /// Lets an agent open its session, or not, see HoldLink::admit().
  [[nodiscard]] Status admit(NodeId node, const AgentOpening& opening);
  void send(const ManagerOrder& order);
  void deliver(std::uint32_t manager, ManagerReport report);
  void make_host();
  void leave(const ManagersSpec& next);
  /// Returns the pool of a manager without the nodes that another one lends now.
  [[nodiscard]] HoldPool free_pool(const ManagerSpec& spec) const;

  Log log_;
  Options options_;
  ManagersSpec spec_;
  std::vector<std::unique_ptr<ResourceManager>> managers_;
  /// Managers that the newest spec lacks: each still releases the holds that wait there.
  std::vector<std::unique_ptr<ResourceManager>> leaving_;
  /// By manager: see HoldPool::outdated.
  std::map<std::string, std::uint64_t> outdated_;
  std::uint64_t begun_ = 0;  ///< how often it has begun: orders of before are not carried out
  std::unique_ptr<HoldHost> holds_;
};

}  // namespace orrery
