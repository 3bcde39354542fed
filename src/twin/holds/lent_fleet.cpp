#include "twin/holds/lent_fleet.hpp"

#include <utility>

namespace orrery {
namespace {

constexpr const char* kManager = "slurm";
constexpr Duration kOnWire = Duration::milliseconds(5);
constexpr Duration kTick = Duration::seconds(1);
/// In the calm phase: for how long control may still be busy with what was before.
constexpr Duration kSettling = Duration::minutes(5);
constexpr std::uint32_t kPatience = 8;  ///< visits of an operator

}  // namespace

LentFleet::LentFleet(Parts parts, const ManagerRules& rules)
    : parts_(std::move(parts)),
      rules_(rules),
      manager_(parts_.context, parts_.topology, rules,
               {.begin = [this](NodeId node, const ManagerStep& step,
                                AgentComes comes) { agents_.begin(node, step, comes); },
                .warn = [this](NodeId node) { agents_.warn(node); },
                .end_agent = [this](NodeId node) { agents_.end_agent(node); },
                .end = [this](NodeId node) { agents_.end(node); },
                .freeze = [this](NodeId node, Frozen frozen) { agents_.freeze(node, frozen); },
                .wrong = [this](const std::string& what) { parts_.context.wrong(what); }}),
      agents_(parts_.context, parts_.nodes,
              static_cast<std::uint32_t>(parts_.topology.node_count()) - rules.nodes,
              {.term = parts_.term,
               .reachable = parts_.reachable,
               .admit = [this](NodeId node, const AgentHold& agent) { return admit(node, agent); },
               .ending = parts_.ending,
               .lost = [this](NodeId node) { manager_.fail_node(node); },
               .exited = [this](NodeId node) { manager_.exit_step(node); }}),
      commands_(parts_.context, manager_, rules.faults.answers,
                {.term = parts_.term, .report = parts_.report}),
      promises_({parts_.nodes, manager_, agents_, kManager}),
      lost_(parts_.topology.node_count()) {
  parts_.context.time().after(kTick, [this] { tick(); });
}

HoldSetup LentFleet::setup(std::uint64_t term) const {
  HoldPool pool{.manager = kManager,
                .use = PoolUse::kLent,
                .nodes = {},
                .unknown = {},
                .lent = {.nodes = {}, .most = rules_.nodes, .time = rules_.time},
                .holds_for = rules_.holds_for,
                .pilot_nodes = rules_.pilot_nodes,
                .keep = rules_.keep,
                .idle = rules_.idle};
  for (std::size_t n = 0; n < parts_.nodes.size(); ++n) {
    if (manager_.lends(NodeId::at(n))) pool.nodes.push_back(NodeId::at(n));
  }
  pool.lent.nodes = pool.nodes;
  return {.term = term, .pools = {std::move(pool)}, .timing = {}};
}

void LentFleet::tick() {
  agents_.look();
  const Instant now = parts_.context.now();
  const bool calm = calm_since_ < now && now - calm_since_ >= kSettling;
  if (calm) {
    if (const std::string broken = promises_.broken_times(now); !broken.empty()) {
      parts_.context.wrong(broken);
    }
  }
  manager_.tick();
  parts_.context.time().after(kTick, [this] { tick(); });
}

void LentFleet::carry_out(const ManagerOrder& order, const HoldLink& link) {
  if (const std::string broken = promises_.broken_by(order, link); !broken.empty()) {
    parts_.context.wrong(broken);
  }
  commands_.carry_out(order);
}

/// As in AgentSessions: the session of an agent ends when its node is not lent any more.
void LentFleet::note(std::span<const Event> events) {
  for (const Event& event : events) {
    if (const auto* bill = std::get_if<HoldBilled>(&event)) {
      if (std::string broken = promises_.broken_by(*bill); !broken.empty()) {
        parts_.context.wrong(std::move(broken));
      }
    }
    const auto* lent = std::get_if<NodeLent>(&event);
    if (lent == nullptr || !lent->hold.empty() || lent->health != NodeHealth::kAbsent) continue;
    parts_.context.time().after(kOnWire, [this, node = lent->node] { agents_.dismiss(node); });
  }
}

Status LentFleet::admit(NodeId node, const AgentHold& agent) {
  const bool second = HoldPromises::is_second(agent, *parts_.link());
  Status admitted = parts_.admit(node, agent);
  if (second && admitted) {
    parts_.context.wrong("an agent of a second hold of one key is let in: " + text_of(agent.key));
  }
  return admitted;
}

void LentFleet::note_step() {
  promises_.note_ends();
  if (!agents_.note_keepers()) {
    parts_.context.wrong("ranks begin on a node whose agent no controller let in");
  }
}

void LentFleet::check(const State& state, const HoldLink& link) {
  if (const std::string broken = promises_.broken(state, link); !broken.empty()) {
    parts_.context.wrong(broken);
  }
}

void LentFleet::make_calm() {
  manager_.make_calm();
  commands_.make_calm();
  calm_since_ = parts_.context.now();
}

void LentFleet::tend(const State& state) {
  for (std::size_t n = 0; n < lost_.size(); ++n) {
    const NodeId node = NodeId::at(n);
    if (!manager_.lends(node)) continue;
    const bool idle = manager_.step(node).run == 0;
    const bool lost = state.node(node).is_away() && HoldPromises::may_be_used(state, node);
    const bool left = !parts_.nodes.keepers_on(node).empty();
    lost_[n] = idle && (lost || left) ? lost_[n] + 1 : 0;
    if (lost_[n] < kPatience) continue;
    parts_.context.note("an operator looks after a node");
    if (left) {
      parts_.nodes.power_off(node);
      parts_.nodes.power_on(node);
    }
    if (lost && manager_.proven(node) > calm_since_) {
      parts_.context.wrong("a node is lost, though its manager has proved that it is empty");
    }
    if (lost) parts_.fence(node);
    lost_[n] = 0;
  }
}

}  // namespace orrery
