#include "executor/holds/live_holds.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/format/field_writer.hpp"
#include "executor/managers/hold_token.hpp"

namespace orrery {
namespace {

/// Returns the parameters of requests for holds, as a text to be compared.
std::string order_text(ManagerSpec spec) {
  if (spec.pilots) spec.pilots = PilotSpec{.nodes = spec.pilots->nodes, .time = spec.pilots->time};
  if (spec.jobs) spec.jobs->most.reset();
  spec.nodes.clear();
  return to_json(spec).dump();
}

}  // namespace

void LiveHolds::begin(ManagersSpec spec, const MakeManager& make) {
  ++begun_;
  leaving_.clear();
  leave(spec);
  spec_ = std::move(spec);
  managers_.clear();
  for (const ManagerSpec& each : spec_.managers) {
    const auto number = static_cast<std::uint32_t>(managers_.size());
    managers_.push_back(
        make(each, options_.cluster, [this, number, begun = begun_](ManagerReport report) {
          if (begun == begun_) deliver(number, std::move(report));
        }));
  }
  make_host();
}

/// Marks waiting holds as outdated if their manager's parameters have changed. A manager that the
/// new spec lacks is kept until it has released its waiting holds.
void LiveHolds::leave(const ManagersSpec& next) {
  if (!holds_) return;
  for (std::uint32_t number = 0; number < managers_.size(); ++number) {
    const ManagerSpec& old = spec_.managers[number];
    const auto same = std::find_if(next.managers.begin(), next.managers.end(),
                                   [&](const ManagerSpec& each) { return each.name == old.name; });
    if (same != next.managers.end()) {
      if (order_text(*same) != order_text(old)) outdated_[old.name] = holds_->link().asked();
      continue;
    }
    for (const Hold& hold : holds_->link().holds()) {
      if (hold.manager != number || hold.id.empty() || !hold.nodes.empty()) continue;
      send({number, ReleaseHold{hold.key, hold.id}});
    }
    leaving_.push_back(std::move(managers_[number]));
  }
}

Status LiveHolds::may_change_to(const ManagersSpec& spec) const {
  const State& state = options_.host.state();
  std::map<std::string, std::string> lenders;  // by node
  for (const ManagerSpec& each : spec.managers) {
    if (each.use != PoolUse::kLent) continue;
    for (const std::string& name : nodes_of(each)) lenders[name] = each.name;
  }
  for (std::uint32_t n = 0; n < state.setup().topology->node_count(); ++n) {
    const NodeRecord& record = state.node(NodeId(n));
    if (!is_lent_now(record, options_.host.now())) continue;
    const std::string& hold = record.loan.hold;
    const std::string name = state.setup().topology->node_name(NodeId(n));
    const auto lender = lenders.find(name);
    if (lender != lenders.end() && lender->second == manager_of(hold)) continue;
    return input_error({}, fmt::format("{} lends {} now, so the manager \"{}\" must lend it here, "
                                       "too: put it back, or drain the node before it is left out",
                                       hold, name, manager_of(hold)));
  }
  return {};
}

void LiveHolds::ask_again() {
  if (holds_) holds_->ask_again(options_.host.now());
}

void LiveHolds::take_up_fleet() {
  if (holds_) make_host();
}

void LiveHolds::make_host() {
  std::vector<HoldPool> pools;
  for (const ManagerSpec& each : spec_.managers) {
    HoldPool& pool = pools.emplace_back(free_pool(each));
    const auto outdated = outdated_.find(each.name);
    if (outdated != outdated_.end()) pool.outdated = outdated->second;
    if (pool.unknown.empty()) continue;
    log_.warning(
        options_.host.clock().wall(), "the fleet does not have all nodes of a manager",
        {{"manager", pool.manager}, {"nodes", fmt::format("{}", fmt::join(pool.unknown, ","))}});
  }
  // Keys are never used twice.
  const std::uint64_t asked = holds_ ? holds_->link().asked() : 0;
  holds_ = std::make_unique<HoldHost>(
      HoldSetup{.term = options_.term, .asked = asked, .pools = std::move(pools)},
      options_.host.control(),
      [this, begun = begun_](const ManagerOrder& order) {
        if (begun == begun_) send(order);
      },
      options_.host.now());
  options_.host.changed();
}

HoldPool LiveHolds::free_pool(const ManagerSpec& spec) const {
  const State& state = options_.host.state();
  HoldPool pool = pool_of(spec, *state.setup().topology);
  const auto lent_by_another = [&](NodeId node) {
    const NodeRecord& record = state.node(node);
    return is_lent_now(record, options_.host.now()) && manager_of(record.loan.hold) != spec.name;
  };
  std::erase_if(pool.nodes, lent_by_another);
  std::erase_if(pool.lent.nodes, lent_by_another);
  return pool;
}

Status LiveHolds::admit(NodeId node, const AgentOpening& opening) {
  const NodeRecord& record = options_.host.state().node(node);
  if (!holds_) {
    if (!record.loan.managed && opening.hold.key.empty()) return {};
    return environment_error("the resource managers are not known yet");
  }
  const std::optional<HoldKey> key = hold_key_of(opening.hold.key);
  if (!holds_->link().manages(node)) {
    if (is_lent_now(record, options_.host.now())) {
      return environment_error(
          fmt::format("{} lends the node, and managers.yaml lacks it", record.loan.hold));
    }
    if (opening.hold.key.empty()) return {};
    return input_error({}, "no resource manager lends the node, according to managers.yaml");
  }
  if (!key) {
    return input_error({}, "a resource manager lends the node: its agent runs within a hold only");
  }
  Status admitted = holds_->admit(node, {*key, opening.hold.id}, options_.host.now());
  options_.host.changed();
  return admitted;
}

LentNodes LiveHolds::lent_nodes() {
  return {
      .admit = [this](NodeId node, const AgentOpening& opening) { return admit(node, opening); },
      .ends =
          [this](NodeId node, const HoldEnding& ending) {
            if (holds_) holds_->end(node, ending.why, options_.host.now());
          }};
}

std::optional<Status> LiveHolds::may_join(std::string_view token, NodeId node) const {
  const std::optional<HoldKey> key = hold_of_token(options_.key, token);
  if (!key) return std::nullopt;
  if (!holds_) return environment_error("the resource managers are not known yet");
  const std::span<const Hold> holds = holds_->link().holds();
  const auto hold = std::find_if(holds.begin(), holds.end(), [&](const Hold& each) {
    return each.key == *key && each.state != HoldState::kReleasing;
  });
  if (hold == holds.end()) {
    return environment_error(text_of(*key) + " is not known, or is being released");
  }
  const std::vector<NodeId>& nodes = holds_->link().pools()[hold->manager].lent.nodes;
  if (std::binary_search(nodes.begin(), nodes.end(), node)) return Status();
  return input_error({}, fmt::format("{} lends no such node, according to managers.yaml",
                                     holds_->link().pools()[hold->manager].manager));
}

void LiveHolds::send(const ManagerOrder& order) {
  ManagerOrder whole = order;
  if (auto* ensure = std::get_if<EnsureHold>(&whole.what)) {
    ensure->join_token = hold_token(options_.key, ensure->key);
    log_.info(options_.host.clock().wall(), "hold is asked for",
              {{"manager", spec_.managers[order.manager].name},
               {"hold", text_of(ensure->key)},
               {"nodes", ensure->nodes}});
  } else if (const auto* release = std::get_if<ReleaseHold>(&whole.what)) {
    log_.info(options_.host.clock().wall(), "hold is released",
              {{"manager", spec_.managers[order.manager].name},
               {"hold", text_of(release->key)},
               {"id", release->id}});
  }
  managers_[order.manager]->carry_out(whole);
}

void LiveHolds::deliver(std::uint32_t manager, ManagerReport report) {
  report.manager = manager;
  const auto* answer = std::get_if<HoldAnswer>(&report.what);
  if (answer != nullptr && answer->refused) {
    log_.warning(options_.host.clock().wall(), "hold is refused",
                 {{"manager", spec_.managers[manager].name},
                  {"hold", text_of(answer->key)},
                  {"why", answer->text}});
  }
  holds_->deliver(report, options_.host.now());
  options_.host.changed();
}

void LiveHolds::advance(Instant now) {
  while (holds_ && holds_->next_due() <= now) holds_->advance(now);
}

Instant LiveHolds::next_due() const { return holds_ ? holds_->next_due() : Instant::max(); }

}  // namespace orrery
