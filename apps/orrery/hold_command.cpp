// orrery holds: the nodes that resource managers lend.
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "verbs/nodes/hold_answer.hpp"

namespace orrery {
namespace {

struct HoldVerbOptions {};

Result<LiveAnswer> ask_holds(const LiveCall& call, const HoldVerbOptions&) {
  return answer_holds(call);
}

}  // namespace

void add_hold_command(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App& holds = *app.add_subcommand("holds", "list the nodes that a resource manager lends");
  holds.footer(
      "Examples:\n  orrery holds\n  orrery holds -o json\n"
      "\nDIR/managers.yaml names the resource managers (docs/slurm.md). A hold is asked for when "
      "jobs wait for nodes,\nand released when it was idle for `pilots.idle`.");
  ask_live<HoldVerbOptions>(holds, options, chosen,
                            {std::make_shared<HoldVerbOptions>(), ask_holds});
}

}  // namespace orrery
