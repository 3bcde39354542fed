#include "verbs/catalog/doctor_answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "base/text/text_table.hpp"
#include "verbs/catalog/controllers_check.hpp"
#include "verbs/catalog/fleet_check.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

std::size_t count_of(const std::vector<CheckFinding>& findings, CheckVerdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(findings, verdict, &CheckFinding::verdict));
}

/// Returns "node-0, node-1, 6 more".
std::string names_text(std::vector<std::string> names) {
  constexpr std::size_t kShown = 8;
  const std::size_t more = names.size() > kShown ? names.size() - kShown : 0;
  names.resize(names.size() - more);
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(", {} more", more) : "");
}

std::string findings_text(const LiveText& text, const std::vector<CheckFinding>& findings) {
  constexpr std::size_t kWidth = 72;
  TextTable table({{""}, {""}, {""}});
  for (const CheckFinding& finding : findings) {
    table.add({std::string(word_of(finding.verdict)), finding.check, finding.found});
    table.colour(0, text.colour_code(word_of(finding.verdict)));
    if (!finding.nodes.empty()) table.add({"", "", "  " + names_text(finding.nodes)});
    if (finding.advice.empty()) continue;
    for (const std::string& line : wrapped(finding.advice, kWidth)) {
      table.add({"", "", "  " + line});
    }
  }
  return table.text();
}

}  // namespace

JudgedAnswer doctor_report(const std::vector<CheckFinding>& findings, Colour colour) {
  const std::size_t problems = count_of(findings, CheckVerdict::kProblem);
  JudgedAnswer report{.shown = {findings_text({.colour = colour, .now = {}}, findings),
                                {{"problems", problems},
                                 {"warnings", count_of(findings, CheckVerdict::kWarning)},
                                 {"findings", to_json(findings)}},
                                TextKind::kShown},
                      .verdict = {}};
  if (problems > 0) {
    report.verdict =
        environment_error(fmt::format("{} problem{}", problems, problems == 1 ? "" : "s"));
  }
  return report;
}

Result<JudgedAnswer> report_machine(const CommandOptions& options) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  RealStorage storage(Durability::kUntilBoot);
  const Discovery accelerators = discover_accelerators(*catalog, storage, {});
  const MachineFacts facts = look_at_machine(RealClock(), cluster_directory(options), accelerators);
  return doctor_report(check_machine(facts), options.colour);
}

Result<JudgedAnswer> report_live_fleet(const CommandOptions& options, LiveSession& session) {
  const auto cluster = session.client().call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!cluster) return tl::unexpected(cluster.error());
  const Result<v1::ListNodesResponse> nodes = list_nodes(session);
  if (!nodes) return tl::unexpected(nodes.error());
  std::vector<CheckFinding> findings =
      check_fleet(*cluster, {nodes->nodes().begin(), nodes->nodes().end()});
  const std::vector<CheckFinding> controllers = check_controllers(ask_controllers(session));
  findings.insert(findings.begin() + 1, controllers.begin(), controllers.end());
  return doctor_report(findings, options.colour);
}

}  // namespace orrery
