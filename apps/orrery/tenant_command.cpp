// orrery tenants, usage
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "verbs/users/tenant_answer.hpp"

namespace orrery {
namespace {

struct NoOptions {};

Result<LiveAnswer> ask_tenants(const LiveCall& call, const NoOptions&) {
  return answer_tenants(call);
}

}  // namespace

void add_tenant_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App& tenants = *app.add_subcommand(
      "tenants", "list the tenants of a running cluster with their jobs and accelerators");
  ask_live<NoOptions>(tenants, options, chosen, {std::make_shared<NoOptions>(), ask_tenants});
  auto asked = std::make_shared<UsageQuestion>();
  CLI::App& usage = *app.add_subcommand("usage", "show resource usage and its cost by tenant");
  usage.add_flag("--jobs", asked->jobs, "show the usage of each job");
  usage.add_option("--tenant", asked->tenant, "show the usage of each job of this tenant only")
      ->type_name("PATH");
  ask_live<UsageQuestion>(usage, options, chosen, {asked, answer_usage});
}

}  // namespace orrery
