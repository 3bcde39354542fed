#include "api/event_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <vector>

#include "api/access/authorization.hpp"
#include "base/text/nearest_name.hpp"
#include "control/codec/codec.hpp"
#include "orrery/v1/orrery.pb.h"
#include "store/event_json.hpp"

namespace orrery {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

bool on_node(std::span<const PlacedGang> gangs, NodeId node) {
  return std::any_of(gangs.begin(), gangs.end(), [node](const PlacedGang& gang) {
    const auto& ranks = gang.allocation.ranks;
    return std::any_of(ranks.begin(), ranks.end(),
                       [node](const NodeDevices& at) { return at.node == node; });
  });
}

bool is_of_node(const Event& event, NodeId node) {
  return std::visit(
      [node](const auto& what) {
        if constexpr (requires { what.node; }) {
          return what.node == node;
        } else if constexpr (requires { what.nodes.begin(); }) {
          return std::find(what.nodes.begin(), what.nodes.end(), node) != what.nodes.end();
        } else if constexpr (requires { what.gangs; }) {
          return on_node(what.gangs, node);
        } else if constexpr (requires { what.blame; }) {
          return what.blame.node == node;
        } else {
          return false;
        }
      },
      event);
}

bool is_of_job(const Event& event, JobId job) {
  if (const auto* archived = std::get_if<JobsArchived>(&event)) {
    return std::find(archived->jobs.begin(), archived->jobs.end(), job) != archived->jobs.end();
  }
  return job_of_event(event) == job;
}

/// Replaces values under known keys by names, at any depth.
class Namer {
 public:
  /// Names nodes, types and power domains only in events since the fleet last changed: before, the
  /// numbers were those of another fleet.
  Namer(const State& state, Instant at)
      : state_(state),
        topology_(*state.setup().topology),
        of_this_fleet_(at >= state.fleet_since()) {}

  void name(Json& json) const {
    if (json.is_array()) {
      for (Json& each : json) name(each);
      return;
    }
    if (!json.is_object()) return;
    for (auto& [key, value] : json.items()) {
      if (key == "nodes" && value.is_array()) {
        for (Json& each : value) replace("node", each);
      }
      replace(key, value);
      name(value);
    }
    price(json);
  }

 private:
  void replace(const std::string& key, Json& value) const {
    if (!value.is_number_unsigned()) return;
    const auto number = value.get<std::uint64_t>();
    if (key == "node" && of_this_fleet_ && number < topology_.node_count()) {
      value = topology_.node_name(NodeId::at(number));
    } else if (key == "type" && of_this_fleet_ && number < topology_.type_count()) {
      value = topology_.accelerator(FleetTypeId::at(number)).id;
    } else if (key == "domain" && of_this_fleet_ && number < topology_.power_domains().size()) {
      value = topology_.power_name(PowerDomainId::at(number));
    } else if (key == "tenant" && number < state_.tenants().size()) {
      value = state_.tenants().path(TenantId::at(number));
    } else if (key == "epoch" && number == kEveryEpoch) {
      value = nullptr;
    }
  }

  /// Converts a price to dollars; a value without a price gets none.
  static void price(Json& object) {
    constexpr double kMicro = 1e6;
    const auto found = object.find("microdollars");
    if (found == object.end()) return;
    const double micro = found->get<double>();
    object.erase(found);
    if (micro > 0) object["usd"] = micro / kMicro;
  }

  const State& state_;
  const Topology& topology_;
  bool of_this_fleet_;
};

}  // namespace

std::optional<JobId> job_of_event(const Event& event) {
  return std::visit(
      [](const auto& what) -> std::optional<JobId> {
        if constexpr (requires { what.job; }) return what.job;
        return std::nullopt;
      },
      event);
}

bool EventSelection::matches(const TimedEvent& event) const {
  if (event.at < since) return false;
  if (kind && event.what.index() != *kind) return false;
  if (job && !is_of_job(event.what, *job)) return false;
  if (!node) return true;
  return node->id.valid() && event.at >= node->since && is_of_node(event.what, node->id);
}

void EventSelection::follow_fleet(const Controller& controller) {
  const Instant changed = controller.state().fleet_since();
  if (!node || node->since == changed) return;
  node->id = controller.agents().node_named(node->name).value_or(NodeId());
  node->since = changed;
}

Result<EventSelection> event_selection(const Controller& controller, const Visibility& sees,
                                       const EventSelectionText& text) {
  EventSelection filter{.tenant = text.tenant, .since = text.since};
  if (text.job) {
    const bool submitted = *text.job < controller.state().jobs();
    if (!submitted || !sees.job(JobId::at(*text.job))) {
      return input_error({}, no_such_job(*text.job).message);
    }
    filter.job = JobId::at(*text.job);
  }
  if (!text.node.empty()) {
    const std::optional<NodeId> node = controller.agents().node_named(text.node);
    if (!node) return input_error({}, fmt::format("the fleet has no node \"{}\"", text.node));
    filter.node = EventSelection::OfNode{text.node, *node, controller.state().fleet_since()};
  }
  const bool known =
      sees.tenant(text.tenant) && controller.state().tenants().find(text.tenant).has_value();
  if (!text.tenant.empty() && !known) {
    return input_error({}, fmt::format("there is no tenant \"{}\"", text.tenant));
  }
  if (text.kind.empty()) return filter;
  std::vector<std::string_view> kinds;
  for (std::size_t at = 0; !event_name(at).empty(); ++at) {
    kinds.push_back(event_name(at));
    if (same_word(kinds.back(), text.kind)) filter.kind = at;
  }
  if (filter.kind) return filter;
  return input_error({}, fmt::format("there is no kind of event \"{}\"{}", text.kind,
                                     did_you_mean(text.kind, kinds)));
}

bool of_tenant(const Controller& controller, const TimedEvent& event, const std::string& tenant) {
  if (tenant.empty()) return true;
  const std::optional<JobId> job = job_of_event(event.what);
  const std::optional<std::string> its =
      job && job->valid() ? tenant_of_job(controller, job->value()) : std::nullopt;
  return its && is_within(*its, tenant);
}

Json named_fields(const Controller& controller, const TimedEvent& event) {
  Json fields = event_json(event);
  Namer(controller.state(), event.at).name(fields);
  // Values that nearly every event has are left out.
  if (fields.value("source", "") == "unsaid") fields.erase("source");
  if (const auto window = fields.find("window"); window != fields.end() && *window == false) {
    fields.erase(window);
  }
  if (const auto* limit = std::get_if<PowerLimitSet>(&event.what)) {
    fields["what"] = limit->what == PowerLimitSet::What::kCap ? "cap" : "supply";
  }
  if (const auto* pass = std::get_if<PassDone>(&event.what)) {
    fields["kind"] = pass->kind == PassKind::kFull ? "full" : "incremental";
  }
  return fields;
}

}  // namespace orrery
