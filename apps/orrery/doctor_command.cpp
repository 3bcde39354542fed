// orrery doctor
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "base/format/field_writer.hpp"
#include "base/system/real_clock.hpp"
#include "base/system/real_storage.hpp"
#include "base/text/text_table.hpp"
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

Status report(const CommandOptions& options, const std::vector<CheckFinding>& findings) {
  const std::size_t problems = count_of(findings, CheckVerdict::kProblem);
  if (options.output == OutputFormat::kJson) {
    print_json({{"problems", problems},
                {"warnings", count_of(findings, CheckVerdict::kWarning)},
                {"findings", to_json(findings)}});
  } else {
    print_shown(findings_text(LiveText::of(options), findings));
  }
  if (problems == 0) return {};
  return environment_error(fmt::format("{} problem{}", problems, problems == 1 ? "" : "s"));
}

Status check_this_machine(const CommandOptions& options) {
  const Result<Catalog> catalog = load_catalog(options);
  if (!catalog) return tl::unexpected(catalog.error());
  RealStorage storage(Durability::kUntilBoot);
  const Discovery accelerators = discover_accelerators(*catalog, storage, {});
  return report(options, check_machine(look_at_machine(RealClock(), cluster_directory(options),
                                                       accelerators)));
}

Status check_running_fleet(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const auto cluster =
      (*session)->client().call<v1::Cluster>("GetCluster", v1::GetClusterRequest());
  if (!cluster) return tl::unexpected(cluster.error());
  const Result<v1::ListNodesResponse> nodes = list_nodes(**session);
  if (!nodes) return tl::unexpected(nodes.error());
  return report(options, check_fleet(*cluster, {nodes->nodes().begin(), nodes->nodes().end()}));
}

}  // namespace

void add_doctor_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto fleet = std::make_shared<bool>(false);
  CLI::App& doctor =
      *app.add_subcommand("doctor", "check this machine, or a running fleet, for problems");
  doctor.add_flag(
      "--fleet", *fleet,
      "check the nodes of a running cluster instead, and report those that differ from the rest");
  doctor.footer(
      "Each line is ok, a warning (Orrery works, but not optimally or not everywhere) or a "
      "problem.\nThe exit status is 1 if there is a problem.\n\nExamples:\n  orrery doctor\n  "
      "orrery doctor --fleet -o json");
  doctor.callback([&options, &chosen, fleet] {
    chosen = [&options, fleet] {
      return *fleet ? check_running_fleet(options) : check_this_machine(options);
    };
  });
}

}  // namespace orrery
