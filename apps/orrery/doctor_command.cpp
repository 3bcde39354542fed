// orrery doctor
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/catalog/doctor_answer.hpp"

namespace orrery {
namespace {

Status check_running_fleet(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  return print_answer(options, report_live_fleet(options, **session));
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
      return *fleet ? check_running_fleet(options) : print_answer(options, report_machine(options));
    };
  });
}

}  // namespace orrery
