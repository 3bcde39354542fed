// executor/holds/hold_table.hpp - the holds of a controller and what is known of their managers,
// with the steps in which they change.
//
// Owned by HoldLink, which decides; each step adds the effects that belong to it: inputs for
// control and orders for managers. One thread. Invariant: a node is lent by one hold at most.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/format/field_reader.hpp"
#include "control/state/state.hpp"
#include "executor/holds/hold.hpp"
#include "executor/holds/hold_demand.hpp"

namespace orrery {

/// Whose a resource manager's nodes are.
enum class PoolUse : std::uint8_t {
  kLent,    ///< the manager lends whole nodes for a time; else they are absent
  kOwned,   ///< the cluster's: own agents are always there, and work of others is a fault
  kShared,  ///< own agents are always there, and jobs leave the nodes that others use
};

inline std::array<EnumWord<PoolUse>, 3> enum_words(PoolUse) {
  return {{{"lent", PoolUse::kLent}, {"owned", PoolUse::kOwned}, {"shared", PoolUse::kShared}}};
}

/// What holds are asked for.
enum class HoldsFor : std::uint8_t {
  kAnyJob,  ///< pilots, which serve many jobs
  kOneJob,  ///< each serves one job, and ends with it
};

/// How a controller uses one resource manager.
struct HoldPool {
  std::string manager;  ///< its name
  PoolUse use = PoolUse::kLent;
  std::vector<NodeId> nodes;  ///< of the manager, ascending
  /// Nodes of the manager that the fleet does not have.
  std::vector<std::string> unknown;
  HoldNodes lent;  ///< those of the nodes that are lent
  HoldsFor holds_for = HoldsFor::kAnyJob;
  std::uint32_t pilot_nodes = 1;         ///< least nodes of a pilot
  std::uint32_t keep = 0;                ///< nodes held although nothing waits for them
  Duration idle = Duration::minutes(5);  ///< a pilot without ranks is released after it
  /// Waiting holds that were requested in an earlier term, or up to this number in this one, have
  /// outdated parameters and are given back. None: there are none.
  std::optional<std::uint64_t> outdated;
};

struct HoldTiming {
  Duration list = Duration::seconds(2);     ///< between the answer to a list and the next one
  Duration answer = Duration::seconds(60);  ///< a list without an answer is asked for again
  Duration look = Duration::seconds(1);     ///< between two looks at what the jobs need
  /// Between two lists that show the work of others on nodes that are lent; on other nodes each
  /// list shows it.
  Duration foreign = Duration::seconds(30);
  Duration blind = Duration::seconds(15);   ///< without a complete list, shared nodes take no jobs
  Duration absent = Duration::seconds(10);  ///< between two lists that prove that a hold is gone
  Duration repeat = Duration::seconds(10);  ///< between two orders to release a hold
  Duration join = Duration::minutes(5);     ///< in which an agent of each node of a hold must join
  Duration retry = Duration::seconds(30);   ///< after a refusal; doubles with each, up to retry_max
  Duration retry_max = Duration::minutes(10);
  Duration margin = Duration::minutes(1);  ///< jobs are off the nodes that long before a hold ends
};

struct HoldSetup {
  std::uint64_t term = 1;
  std::uint64_t asked = 0;      ///< holds asked for in this term, before the fleet changed
  std::vector<HoldPool> pools;  ///< by manager
  HoldTiming timing;
};

/// Whether a hold lends the node now, or jobs have devices there although its time is over.
[[nodiscard]] bool is_lent_now(const NodeRecord& record, Instant now);

/// The life of a hold.
enum class HoldState : std::uint8_t { kAsked, kWaiting, kGranted, kReleasing };

inline std::array<EnumWord<HoldState>, 4> enum_words(HoldState) {
  return {{{"asked", HoldState::kAsked},
           {"waiting", HoldState::kWaiting},
           {"granted", HoldState::kGranted},
           {"releasing", HoldState::kReleasing}}};
}

struct Hold {
  HoldKey key;
  std::uint32_t manager = 0;
  HoldState state = HoldState::kAsked;
  std::string id;             ///< the manager's; empty: not known
  std::string reason;         ///< the manager's own words
  std::uint32_t asked = 1;    ///< nodes
  std::vector<NodeId> nodes;  ///< lent, ascending
  Instant since;              ///< when it came into its state, or was found in it
  Instant busy;               ///< when a rank was last on its nodes, or it was granted
  /// When it starts, or has started, as the manager's newest list says.
  struct Start {
    std::optional<Duration> in;  ///< the manager's estimate
    std::optional<Instant> at;   ///< time of the day
  };
  Start start;
  std::optional<Instant> ends;
  /// What its manager was told, and what it has shown.
  struct Orders {
    Instant newest;
    /// When the newest list was asked for that shows that it runs, or an agent of it joined. Until
    /// then, of a hold in the log: the newest time there.
    Instant seen;
    /// When the first of the complete lists was asked for that do not have it.
    std::optional<Instant> missing;
    /// Orders in a row that its manager accepted with an id, none of which a list has shown.
    std::uint32_t unseen = 0;
    std::vector<std::string> avoid;   ///< nodes, as in the newest EnsureHold
    Duration time;                    ///< for which it is asked
    std::string tenant;               ///< of its job
    std::vector<FleetTypeId> types;   ///< of the nodes that a pilot may get; empty: all
    NodeId only;                      ///< the lost node that it is to have; not valid: any node
    std::vector<std::string> others;  ///< the manager's nodes but `only`
  };
  Orders orders;
};

/// What is known of a manager.
struct ManagerState {
  struct Lists {
    std::uint64_t count = 0;
    Instant newest;  ///< when the newest came; before the first: when this term began
  };
  Lists lists;  ///< complete lists in this term
  Instant next_list;
  Instant next_foreign;            ///< the work of others is listed then
  std::optional<Instant> listing;  ///< when the list was asked for that has no answer yet
  std::string trouble;             ///< why there is no complete list now; empty: there is
  Instant trouble_since;
  /// A hold that a later controller asked for: the log was restored from an older copy, and
  /// nothing is asked for. Empty: there is none.
  std::string newer;
  /// What it refused, and when it is asked again.
  struct Refused {
    struct Retry {
      Instant at;
      std::uint32_t refusals = 0;  ///< in a row
      std::string text;            ///< the newest, in the manager's words
    };
    /// The newest refusal, in the manager's words, with its kind in front unless it is kBusy; until
    /// a hold is granted.
    std::string text;
    bool is_of_job = false;               ///< whether it was of the hold of one job
    Instant retry_at;                     ///< nothing is asked for before
    std::uint32_t refusals = 0;           ///< in a row
    std::map<std::uint32_t, Retry> jobs;  ///< jobs whose own holds were refused
  };
  Refused refused;
  std::vector<std::string> out_of_service;  ///< its nodes that are so, or missing, there
  std::vector<std::string> avoid;           ///< nodes that are drained here, not there
  /// Other nodes that new holds exclude. A waiting hold is not changed with them.
  struct LeftOut {
    std::set<std::string> outside;           ///< not in `nodes`; set once it lent such a node
    std::map<std::string, Instant> useless;  ///< idle while a job waited; excluded until then
    std::vector<std::string> unfit;          ///< of types that no waiting job can use
    std::vector<FleetTypeId> types;          ///< that the waiting jobs can use; empty: all
  };
  LeftOut left_out;
  std::vector<Duration> waits;  ///< of the newest holds that were granted, up to kWaitsMax
};

/// What an agent says of the hold in which it runs.
struct AgentHold {
  HoldKey key;
  std::string id;  ///< the manager's
};

/// Returns the name of a hold in control's state: "MANAGER/KEY:ID".
[[nodiscard]] std::string loan_text(const HoldPool& pool, const HoldKey& key, std::string_view id);

/// InputKind: for control. ManagerOrder: for a manager, once everything before is durable.
using HoldEffect = std::variant<InputKind, ManagerOrder>;

/// Whether processes of a hold may be left on a node that it gives up.
enum class Leftover : std::uint8_t { kNone, kPossible };

class HoldTable {
 public:
  static constexpr std::size_t kWaitsMax = 100;

  /// The loans in `state` are taken over.
  HoldTable(HoldSetup setup, const State& state, Instant now);

  [[nodiscard]] const HoldSetup& setup() const { return setup_; }
  [[nodiscard]] const HoldPool& pool(std::uint32_t manager) const { return setup_.pools[manager]; }
  /// For how long a job may run in a hold of the manager.
  [[nodiscard]] Duration usable(std::uint32_t manager) const {
    return pool(manager).lent.time - setup_.timing.margin - setup_.timing.join;
  }
  [[nodiscard]] std::vector<ManagerState>& managers() { return managers_; }
  [[nodiscard]] const std::vector<ManagerState>& managers() const { return managers_; }
  /// In the order in which they were asked for or found.
  [[nodiscard]] std::vector<Hold>& holds() { return holds_; }
  [[nodiscard]] const std::vector<Hold>& holds() const { return holds_; }
  /// The manager that may lend a node; none: it is the cluster's own.
  [[nodiscard]] std::optional<std::uint32_t> manager_of(NodeId node) const;
  [[nodiscard]] Hold* find(std::uint32_t manager, const HoldKey& key);
  [[nodiscard]] bool is_lent(NodeId node) const;
  [[nodiscard]] std::vector<HoldEffect> take() { return std::exchange(effects_, {}); }

  /// Adds a hold that is known but for its times. Valid until a hold is added or forgotten.
  Hold& add(Hold hold, HoldState state, Instant now);
  void set_state(Hold& hold, HoldState state, Instant now);
  void forget(const Hold& hold);

  void lend(Hold& hold, NodeId node, const State& state, Instant now);
  void take_back(Hold& hold, NodeId node, const std::string& why);
  void take_back(Hold& hold, Leftover leftover, const std::string& why);
  /// Takes back the nodes of a hold that its manager has forgotten. When it ended is not known: its
  /// loans end when it was last seen, for the bill.
  void give_up(Hold& hold, const State& state);
  /// The hold ends by the will of others: ranks leave its nodes at once. It keeps its nodes until
  /// its manager says how it ended, which may be the only proof that nothing is left there.
  void expire(Hold& hold, const std::string& why, Instant now);
  /// Tells control of a node that no hold lends.
  void leave_out(NodeId node);
  void tell(std::vector<InputKind> inputs);

  void order_list(std::uint32_t manager, Instant now);
  void order_hold(Hold& hold, Instant now);
  void order_release(std::uint32_t manager, const HoldKey& key, const std::string& id);
  /// A hold whose id is not known is released once it is.
  void order_release(Hold& hold, Instant now);
  struct Refusal {
    HoldRefusal why = HoldRefusal::kBusy;
    std::string text;
    std::optional<std::uint32_t> job;  ///< that alone has to wait; none: all holds
  };
  void refuse(std::uint32_t manager, const Refusal& refusal, Instant now);
  /// Ends the pauses that follow refusals.
  void forgive(Instant now);

 private:
  HoldSetup setup_;
  std::vector<ManagerState> managers_;
  std::vector<Hold> holds_;
  std::vector<HoldEffect> effects_;
};

}  // namespace orrery
