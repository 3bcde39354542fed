#include "api/hold_service.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/views.hpp"
#include "base/format/field_writer.hpp"

namespace orrery {
namespace {

/// Returns the value that `share` of the values do not exceed. Precondition: there are some.
double quantile(std::vector<Duration> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5);
  return values[rank].count_seconds();
}

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
  if (!granted && hold.starts_in) *view.mutable_starts() = timestamp_of(now + *hold.starts_in);
  view.set_agents(agents_of(controller, hold));
}

std::uint32_t lent_by(const HoldLink& link, std::uint32_t manager) {
  std::size_t lent = 0;
  for (const Hold& hold : link.holds()) lent += hold.manager == manager ? hold.nodes.size() : 0;
  return static_cast<std::uint32_t>(lent);
}

void fill(const HoldLink& link, std::uint32_t manager, v1::ResourceManager& view) {
  const HoldPool& pool = link.pools()[manager];
  const ManagerState& state = link.manager(manager);
  view.set_name(pool.manager);
  view.set_nodes(static_cast<std::uint32_t>(pool.lent.nodes.size()));
  view.set_lent(lent_by(link, manager));
  view.mutable_out_of_service()->Add(state.out_of_service.begin(), state.out_of_service.end());
  view.mutable_unknown()->Add(pool.unknown.begin(), pool.unknown.end());
  view.set_most(pool.lent.most);
  view.set_trouble(state.trouble);
  if (!state.trouble.empty()) *view.mutable_trouble_since() = timestamp_of(state.trouble_since);
  view.set_refused(state.refused);
  if (!state.refused.empty()) *view.mutable_retry_at() = timestamp_of(state.retry_at);
  view.set_newer(state.newer);
  if (state.waits.empty()) return;
  view.set_wait_p50_s(quantile(state.waits, 0.5));
  view.set_wait_p90_s(quantile(state.waits, 0.9));
}

}  // namespace

v1::ListHoldsResponse holds_view(const Controller& controller) {
  v1::ListHoldsResponse view;
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return view;
  for (const Hold& hold : link->holds()) fill(controller, hold, *view.add_holds());
  for (std::uint32_t manager = 0; manager < link->pools().size(); ++manager) {
    fill(*link, manager, *view.add_managers());
  }
  return view;
}

std::string waiting_holds_text(const Controller& controller) {
  const HoldLink* link = controller.holds().link();
  if (link == nullptr) return {};
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> parts;
  for (std::uint32_t manager = 0; manager < link->pools().size(); ++manager) {
    const HoldPool& pool = link->pools()[manager];
    const ManagerState& state = link->manager(manager);
    parts.push_back(fmt::format("{} lends {} of {} nodes", pool.manager, lent_by(*link, manager),
                                pool.lent.nodes.size()));
    std::size_t waiting = 0;
    for (const Hold& hold : link->holds()) {
      const bool waits = hold.state == HoldState::kAsked || hold.state == HoldState::kWaiting;
      if (hold.manager != manager || !waits || ++waiting > kNamed) continue;
      const std::string start =
          hold.starts_in ? fmt::format(", expected to start in {}", hold.starts_in->text()) : "";
      parts.push_back(fmt::format("{} {}{}{}", text_of(hold.key), word_of(hold.state),
                                  hold.reason.empty() ? "" : fmt::format(" ({})", hold.reason),
                                  start));
    }
    if (waiting > kNamed) parts.push_back(fmt::format("{} more wait", waiting - kNamed));
    if (!state.trouble.empty()) {
      parts.push_back(fmt::format("{} cannot be asked since {}: {}", pool.manager,
                                  state.trouble_since.text(), state.trouble));
    }
    if (!state.refused.empty()) {
      parts.push_back(fmt::format("{} refused a hold: {}", pool.manager, state.refused));
    }
    if (!state.newer.empty()) {
      parts.push_back(
          fmt::format("nothing is asked of {}: {} is of a later controller, so this "
                      "log is an older copy",
                      pool.manager, state.newer));
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
