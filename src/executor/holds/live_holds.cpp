#include "executor/holds/live_holds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "executor/holds/hold_token.hpp"

namespace orrery {

Status LiveHolds::begin(ManagersSpec spec, const MakeManager& make) {
  const Topology& topology = *options_.host.state().setup().topology;
  std::vector<HoldPool> pools;
  for (const ManagerSpec& each : spec.managers) {
    Result<HoldPool> pool = pool_of(each, topology);
    if (!pool) return forward_error(pool);
    const auto number = static_cast<std::uint32_t>(pools.size());
    Result<std::unique_ptr<ResourceManager>> manager =
        make(each, options_.cluster,
             [this, number](ManagerReport report) { deliver(number, std::move(report)); });
    if (!manager) return forward_error(manager);
    pool->traits = (*manager)->traits();
    managers_.push_back(*std::move(manager));
    pools.push_back(*std::move(pool));
  }
  if (Status apart = check_pools(pools, topology); !apart) return apart;
  spec_ = std::move(spec);
  make_host(std::move(pools));
  return {};
}

void LiveHolds::make_host(std::vector<HoldPool> pools) {
  holds_ = std::make_unique<HoldHost>(
      HoldSetup{.term = options_.term, .pools = std::move(pools)}, options_.host.control(),
      [this](const ManagerOrder& order) { send(order); }, options_.host.now());
  options_.host.changed();
}

void LiveHolds::take_up_fleet() {
  if (!holds_) return;
  const Topology& topology = *options_.host.state().setup().topology;
  std::vector<HoldPool> pools;
  for (std::size_t at = 0; at < spec_.managers.size(); ++at) {
    Result<HoldPool> pool = pool_of(spec_.managers[at], topology);
    if (!pool) {
      log_.warning(options_.host.clock().wall(), "managers.yaml does not fit the changed fleet",
                   {{"why", pool.error().text()}});
      pool = HoldPool{.manager = spec_.managers[at].name};
    }
    pool->traits = managers_[at]->traits();
    pools.push_back(*std::move(pool));
  }
  make_host(std::move(pools));
}

Status LiveHolds::admit(NodeId node, const AgentOpening& opening) {
  if (!holds_) return {};
  const std::optional<HoldKey> key = hold_key_of(opening.hold.key);
  if (!holds_->link().manages(node)) {
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
  const bool known = std::any_of(holds.begin(), holds.end(), [&](const Hold& hold) {
    return hold.key == *key && hold.state != HoldState::kReleasing;
  });
  if (!known) return environment_error(text_of(*key) + " is not known, or is being released");
  if (node.valid() && holds_->link().manages(node)) return Status();
  return input_error({}, "no resource manager lends the node, according to managers.yaml");
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
