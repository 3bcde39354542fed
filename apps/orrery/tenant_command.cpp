// orrery tenants, usage
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/cluster/live_text.hpp"

namespace orrery {
namespace {

struct UsageAsked {
  bool jobs = false;
  std::string tenant;
};

Result<v1::ListTenantsResponse> list_tenants(LiveSession& session) {
  return session.client().call<v1::ListTenantsResponse>("ListTenants", v1::ListTenantsRequest());
}

Status print_tenants(const CommandOptions& options) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  const Result<v1::ListTenantsResponse> tenants = list_tenants(**session);
  if (!tenants) return tl::unexpected(tenants.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*tenants);
  } else {
    print_shown(LiveText::of(options).tenants(*tenants));
  }
  return {};
}

Status print_usage(const CommandOptions& options, const UsageAsked& asked) {
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(options);
  if (!session) return forward_error(session);
  if (asked.jobs || !asked.tenant.empty()) {
    v1::ListJobsRequest request;
    request.set_all(true);
    request.set_tenant(asked.tenant);
    const Result<v1::ListJobsResponse> jobs = list_jobs(**session, std::move(request));
    if (!jobs) return tl::unexpected(jobs.error());
    if (options.output == OutputFormat::kJson) {
      print_answer(*jobs);
    } else {
      print_shown(LiveText::of(options).job_bills({jobs->jobs().begin(), jobs->jobs().end()}));
    }
    return {};
  }
  const Result<v1::ListTenantsResponse> tenants = list_tenants(**session);
  if (!tenants) return tl::unexpected(tenants.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*tenants);
  } else {
    print_shown(LiveText::of(options).tenant_bills(*tenants));
  }
  return {};
}

}  // namespace

void add_tenant_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  CLI::App& tenants = *app.add_subcommand(
      "tenants", "list the tenants of a running cluster with their jobs and accelerators");
  tenants.callback([&options, &chosen] { chosen = [&options] { return print_tenants(options); }; });
  auto asked = std::make_shared<UsageAsked>();
  CLI::App& usage = *app.add_subcommand("usage", "show resource usage and its cost by tenant");
  usage.add_flag("--jobs", asked->jobs, "show the usage of each job");
  usage.add_option("--tenant", asked->tenant, "show the usage of each job of this tenant only")
      ->type_name("PATH");
  usage.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_usage(options, *asked); };
  });
}

}  // namespace orrery
