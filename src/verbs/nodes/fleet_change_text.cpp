#include "verbs/nodes/fleet_change_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"

namespace orrery {
namespace {

constexpr int kNamesShown = 20;

/// Returns the first elements of any list, and how many more there are.
template <class List>
std::string first_of(const List& names) {
  const auto all = static_cast<int>(names.size());
  const int shown = std::min(all, kNamesShown);
  const std::string text =
      one_line(fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", ")));
  return all > shown ? fmt::format("{} and {} more", text, all - shown) : text;
}

std::string counted_nodes(int count) { return counted(static_cast<std::uint64_t>(count), "node"); }

std::string nodes_line(const NodeNames& names, std::string_view what) {
  if (names.empty()) return "";
  return fmt::format("{} {}: {}\n", counted_nodes(names.size()), what, first_of(names));
}

std::string busy_lines(const v1::FleetChange& change) {
  std::string text;
  for (int at = 0; at < std::min(change.busy_size(), kNamesShown); ++at) {
    const v1::BusyNode& busy = change.busy(at);
    text += fmt::format("{} is busy: {} {}\n", one_line(busy.node()),
                        busy.jobs_size() == 1 ? "job" : "jobs", first_of(busy.jobs()));
  }
  if (change.busy_size() > kNamesShown) {
    text += fmt::format("{} more are busy\n", counted_nodes(change.busy_size() - kNamesShown));
  }
  return text;
}

}  // namespace

std::string list_text(const NodeNames& names) { return first_of(names); }

std::string fleet_change_text(const v1::FleetChange& change) {
  std::string text = nodes_line(change.added(), "added") + nodes_line(change.retired(), "retired") +
                     nodes_line(change.moved(), "in a rack of another name") + busy_lines(change);
  for (const std::string& line : change.changed()) text += one_line(line) + "\n";
  return text;
}

std::string fleet_dry_run_text(const v1::FleetChange& change) {
  std::string end = "nothing was changed (--dry-run)\n";
  if (!change.busy().empty()) {
    end =
        "nothing was changed (--dry-run); nodes are busy, so the change is refused without --drain "
        "or --force\n";
  }
  if (change.changed().empty()) end = "the cluster has this fleet already\n";
  return fleet_change_text(change) + end;
}

std::string applied_fleet_text(const v1::FleetChange& change) {
  return change.changed().empty() ? "the cluster has this fleet already\n"
                                  : "the fleet is changed\n";
}

Error busy_fleet_error(const v1::FleetChange& change) {
  return {ErrorKind::kInfeasible,
          fmt::format(
              "the fleet is not changed: {} of those retired {} busy. --drain starts no new work "
              "there, waits until the jobs have ended and then changes the fleet; --force evicts "
              "the jobs as `orrery drain --now` does and changes it at once",
              counted_nodes(change.busy_size()), change.busy_size() == 1 ? "is" : "are"),
          {}};
}

std::string emptying_text(const v1::Node& node) {
  return fmt::format(
      "waiting until {} is empty: {} {} on it. Ctrl-C ends the wait and "
      "leaves the retired nodes draining\n",
      one_line(node.name()), node.jobs_size() == 1 ? "job" : "jobs", first_of(node.jobs()));
}

std::string join_text(const NodeNames& added, const FleetPlace& place) {
  if (added.empty()) return "";
  std::string text = fmt::format(
      "Each added node needs an agent. Make its token here, and start the agent on the node with "
      "the token\nand a copy of {}/tls/ca.pem, within an hour:\n",
      place.directory);
  for (int at = 0; at < std::min(added.size(), kNamesShown); ++at) {
    const std::string node = one_line(added[at]);
    text += fmt::format(
        "  orrery node token {0} > {0}.token\n"
        "  orrery-agent --node {0} --controller {1} --ca ca.pem --dir /var/lib/orrery/agent --join "
        "@{0}.token\n",
        node, place.controllers);
  }
  if (added.size() > kNamesShown) {
    text += fmt::format("  and so on for {}\n", counted_nodes(added.size() - kNamesShown));
  }
  return text;
}

}  // namespace orrery
