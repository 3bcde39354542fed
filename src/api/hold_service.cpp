#include "api/hold_service.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/views.hpp"
#include "base/format/field_writer.hpp"
#include "executor/holds/hold_wait.hpp"
#include "executor/managers/foreign_work.hpp"

namespace orrery {
namespace {

std::uint32_t agents_of(const Controller& controller, const Hold& hold) {
  return static_cast<std::uint32_t>(
      std::count_if(hold.nodes.begin(), hold.nodes.end(),
                    [&](NodeId node) { return controller.agents().of(node).session != nullptr; }));
}

void fill(const Controller& controller, const Hold& hold, v1::Hold& view) {
  const Topology& topology = *controller.state().setup().topology;
  const Instant now = controller.now();
  view.set_id(text_of(hold.key));
  view.set_manager(controller.holds().link()->pools()[hold.manager].manager);
  for (const NodeId node : hold.nodes) view.add_nodes(topology.node_name(node));
  view.set_state(std::string(word_of(hold.state)));
  *view.mutable_since() = timestamp_of(hold.since);
  const bool granted = hold.state == HoldState::kGranted;
  view.set_idle_s(granted ? (now - hold.busy).count_seconds() : 0);
  view.set_manager_id(hold.id);
  view.set_reason(hold.reason);
  view.set_asked_nodes(hold.asked);
  if (hold.ends) *view.mutable_ends() = timestamp_of(*hold.ends);
  if (!granted && hold.start.in) *view.mutable_starts() = timestamp_of(now + *hold.start.in);
  view.set_agents(agents_of(controller, hold));
}

std::uint32_t lent_by(const HoldLink& link, std::uint32_t manager) {
  std::size_t lent = 0;
  for (const Hold& hold : link.holds()) lent += hold.manager == manager ? hold.nodes.size() : 0;
  return static_cast<std::uint32_t>(lent);
}

void fill(const Controller& controller, std::uint32_t manager, v1::ResourceManager& view) {
  const HoldLink& link = *controller.holds().link();
  const HoldPool& pool = link.pools()[manager];
  const ManagerState& state = link.manager(manager);
  view.set_name(pool.manager);
  view.set_use(std::string(word_of(pool.use)));
  view.set_nodes(static_cast<std::uint32_t>(pool.nodes.size()));
  const ForeignNodes foreign = foreign_nodes(pool, controller.state());
  view.set_foreign(foreign.count);
  if (foreign.first_free != Instant::max()) {
    *view.mutable_foreign_until() = timestamp_of(foreign.first_free);
  }
  *view.mutable_time() = lent_time(controller, pool.manager);
  view.set_lent(lent_by(link, manager));
  view.mutable_out_of_service()->Add(state.out_of_service.begin(), state.out_of_service.end());
  view.mutable_unknown()->Add(pool.unknown.begin(), pool.unknown.end());
  view.set_most(pool.lent.most);
  view.set_trouble(state.trouble);
  if (!state.trouble.empty()) *view.mutable_trouble_since() = timestamp_of(state.trouble_since);
  view.set_refused(state.refused.text);
  if (!state.refused.text.empty()) {
    Instant retry_at = state.refused.retry_at;
    for (const auto& [job, retry] : state.refused.jobs) retry_at = std::max(retry_at, retry.at);
    *view.mutable_retry_at() = timestamp_of(retry_at);
  }
  view.set_newer(state.newer);
  const std::optional<LikelyStart> wait = usual_wait(state);
  if (!wait) return;
  view.set_wait_p50_s(wait->median.count_seconds());
  view.set_wait_p90_s(wait->late.count_seconds());
}

/// Returns what the use of loans adds to the price of a job's time; empty: it is not known yet.
std::string price_text(const Controller& controller, std::uint32_t manager) {
  const v1::LentTime time =
      lent_time(controller, controller.holds().link()->pools()[manager].manager);
  const ManagerState& state = controller.holds().link()->manager(manager);
  std::string text;
  if (const std::optional<LikelyStart> wait = usual_wait(state)) {
    text =
        fmt::format("a hold waits {} (median), {} (90 %)", wait->median.text(), wait->late.text());
  }
  if (time.used_node_s() <= 0) return text;
  return fmt::format("{}{}each used hour of a node cost {:.2f} hours of loan", text,
                     text.empty() ? "" : "; ", time.node_s() / time.used_node_s());
}

}  // namespace

v1::LentTime lent_time(const Controller& controller, const std::string& manager) {
  v1::LentTime view;
  view.set_manager(manager);
  const std::map<std::string, LentTotal>& totals = controller.state().bills().totals();
  if (const auto total = totals.find(manager); total != totals.end()) {
    view.set_holds(total->second.holds);
    view.set_node_s(static_cast<double>(total->second.held) / 1e9);
    view.set_used_node_s(static_cast<double>(total->second.used) / 1e9);
  }
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return view;
  for (const Hold& hold : link->holds()) {
    if (link->pools()[hold.manager].manager != manager || hold.nodes.empty()) continue;
    view.set_running(view.running() + 1);
    if (!hold.start.at) continue;
    const Duration ran = std::max(controller.host().clock().wall() - *hold.start.at, Duration());
    view.set_running_node_s(view.running_node_s() +
                            ran.count_seconds() * static_cast<double>(hold.nodes.size()));
  }
  return view;
}

std::vector<v1::LentTime> lent_times(const Controller& controller) {
  std::set<std::string> managers;
  for (const auto& [manager, total] : controller.state().bills().totals()) managers.insert(manager);
  if (const HoldLink* link = controller.holds().link()) {
    for (const HoldPool& pool : link->pools()) {
      if (pool.use == PoolUse::kLent) managers.insert(pool.manager);
    }
  }
  std::vector<v1::LentTime> times;
  times.reserve(managers.size());
  for (const std::string& manager : managers) times.push_back(lent_time(controller, manager));
  return times;
}

v1::ListHoldsResponse holds_view(const Controller& controller) {
  v1::ListHoldsResponse view;
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return view;
  for (const Hold& hold : link->holds()) fill(controller, hold, *view.add_holds());
  for (std::uint32_t manager = 0; manager < link->pools().size(); ++manager) {
    fill(controller, manager, *view.add_managers());
  }
  return view;
}

std::string waiting_holds_text(const Controller& controller, JobId job) {
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return {};
  std::vector<std::string> parts;
  for (std::uint32_t manager = 0; manager < link->pools().size(); ++manager) {
    const HoldPool& pool = link->pools()[manager];
    const ManagerState& state = link->manager(manager);
    if (pool.use == PoolUse::kLent) {
      parts.push_back(fmt::format("{} lends {} of {} nodes", pool.manager, lent_by(*link, manager),
                                  pool.nodes.size()));
    }
    if (const ForeignNodes foreign = foreign_nodes(pool, controller.state()); foreign.count > 0) {
      const bool ends = foreign.first_free != Instant::max();
      parts.push_back(
          fmt::format("others use {} of the nodes of {}{}", foreign.count, pool.manager,
                      ends ? ", the first until " + second_text(foreign.first_free) : ""));
    }
    if (std::string price = price_text(controller, manager); !price.empty()) {
      parts.push_back(std::move(price));
    }
    for (std::string& note :
         hold_notes(*link, manager, {controller.state(), job, controller.now()})) {
      parts.push_back(std::move(note));
    }
    if (!state.trouble.empty()) {
      parts.push_back(fmt::format("{} cannot be asked since {}: {}", pool.manager,
                                  second_text(state.trouble_since), state.trouble));
    }
    if (!state.newer.empty()) {
      parts.push_back(
          fmt::format("nothing is asked of {}: a hold there is of a later controller, so this "
                      "log is an older copy",
                      pool.manager));
    }
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add_hold_methods(MethodTable& table, Controller& controller) {
  table.add<v1::ListHoldsRequest>(
      "ListHolds", {Role::kViewer, Effect::kRead, Scope::kCluster},
      [&controller](const v1::ListHoldsRequest&, const std::shared_ptr<Call>& call) {
        controller.after_durable([call, view = holds_view(controller)] { call->reply(view); });
      });
}

}  // namespace orrery
