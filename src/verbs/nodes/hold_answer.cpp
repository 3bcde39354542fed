#include "verbs/nodes/hold_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <vector>

#include "api/views.hpp"
#include "base/text/terminal_text.hpp"
#include "base/text/text_table.hpp"

namespace orrery {
namespace {

std::string time_left(const v1::Hold& hold, const LiveText& text) {
  if (!hold.has_ends()) return "-";
  const Instant ends = instant_of(hold.ends());
  return ends <= text.now ? "0s" : short_duration(ends - text.now);
}

std::string escaped(const std::string& text) { return terminal_text(text, Newlines::kEscaped); }

std::string manager_text(const v1::ResourceManager& manager, const LiveText& text) {
  std::string line =
      manager.use().empty() || manager.use() == "lent"
          ? fmt::format("{}: lends {} of {} nodes, at most {}", escaped(manager.name()),
                        manager.lent(), manager.nodes(), manager.most())
          : fmt::format("{}: its {} nodes are {}", escaped(manager.name()), manager.nodes(),
                        escaped(manager.use()));
  if (manager.foreign() > 0) {
    line += fmt::format("; others use {}", manager.foreign());
    if (manager.has_foreign_until()) {
      line += ", the first until " + second_text(instant_of(manager.foreign_until()));
    }
  }
  if (manager.has_wait_p50_s()) {
    line += fmt::format("; a hold waits {} (median), {} (90 %)",
                        short_duration(Duration::from_seconds(manager.wait_p50_s())),
                        short_duration(Duration::from_seconds(manager.wait_p90_s())));
  }
  if (manager.time().used_node_s() > 0) {
    line += fmt::format("; each used hour of a node cost {:.2f} hours of loan",
                        manager.time().node_s() / manager.time().used_node_s());
  }
  if (!manager.out_of_service().empty()) {
    line += fmt::format("\n  out of service there: {}",
                        escaped(fmt::format("{}", fmt::join(manager.out_of_service(), ", "))));
  }
  if (!manager.unknown().empty()) {
    line += fmt::format("\n  not in the fleet: {} (`orrery fleet apply` adds nodes)",
                        escaped(fmt::format("{}", fmt::join(manager.unknown(), ", "))));
  }
  if (!manager.trouble().empty()) {
    line += fmt::format("\n  cannot be asked ({}): {}", text.ago(manager.trouble_since()),
                        escaped(manager.trouble()));
  }
  if (!manager.refused().empty()) {
    line += fmt::format("\n  refused ({}); asked again at {}", escaped(manager.refused()),
                        second_text(instant_of(manager.retry_at())));
  }
  if (!manager.newer().empty()) {
    line += fmt::format(
        "\n  {} is of a later controller: this log is an older copy, and nothing "
        "is asked for",
        escaped(manager.newer()));
  }
  return line + "\n";
}

Json json_of(const v1::Hold& hold) {
  Json json = {{"id", hold.id()},
               {"manager", hold.manager()},
               {"nodes", Json::array()},
               {"state", hold.state()},
               {"since", instant_of(hold.since()).text()},
               {"idle_s", hold.idle_s()},
               {"manager_id", hold.manager_id()},
               {"reason", hold.reason()},
               {"asked_nodes", hold.asked_nodes()},
               {"agents", hold.agents()}};
  for (const std::string& node : hold.nodes()) json["nodes"].push_back(node);
  if (hold.has_ends()) json["ends"] = instant_of(hold.ends()).text();
  if (hold.has_starts()) json["starts"] = instant_of(hold.starts()).text();
  return json;
}

}  // namespace

std::string holds_text(const v1::ListHoldsResponse& holds, const LiveText& text) {
  if (holds.managers().empty()) {
    return "no resource manager lends nodes to this cluster (DIR/managers.yaml names them)\n";
  }
  std::string out;
  if (holds.holds().empty()) {
    out = "no holds\n";
  } else {
    TextTable table({{"HOLD"},
                     {"MANAGER"},
                     {"ID"},
                     {"STATE"},
                     {"NODES"},
                     {"SINCE"},
                     {"IDLE", Align::kRight},
                     {"LEFT", Align::kRight},
                     {""}});
    for (const v1::Hold& hold : holds.holds()) {
      const bool granted = !hold.nodes().empty();
      std::string remark = hold.reason() == "None" ? std::string() : hold.reason();
      if (granted && hold.agents() < static_cast<std::uint32_t>(hold.nodes_size())) {
        remark = fmt::format("{} of {} agents", hold.agents(), hold.nodes_size());
      }
      table.add({hold.id(), hold.manager(), hold.manager_id(), hold.state(),
                 granted ? fmt::format("{}", fmt::join(hold.nodes(), " "))
                         : fmt::format("({})", hold.asked_nodes()),
                 text.ago(hold.since()),
                 granted ? short_duration(Duration::from_seconds(hold.idle_s())) : "-",
                 time_left(hold, text), remark});
    }
    out = table.text();
  }
  for (const v1::ResourceManager& manager : holds.managers()) out += manager_text(manager, text);
  return out;
}

Result<LiveAnswer> answer_holds(const LiveCall& call) {
  Result<v1::ListHoldsResponse> holds =
      call.session.client().call<v1::ListHoldsResponse>("ListHolds", v1::ListHoldsRequest());
  if (!holds) return forward_error(holds);
  Json list = Json::array();
  for (const v1::Hold& hold : holds->holds()) list.push_back(json_of(hold));
  std::string text = holds_text(*holds, call.text);
  LiveAnswer answer = live_answer(*std::move(holds), std::move(text));
  answer.json = std::move(list);
  return answer;
}

}  // namespace orrery
