// orrery power
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/output.hpp"
#include "base/text/text_table.hpp"
#include "verbs/cluster/live_lists.hpp"
#include "verbs/option_text.hpp"

namespace orrery {
namespace {

struct PowerAsked {
  std::string name;
  std::string cap;
  bool all = false;
};

std::string kilowatts(double watts) { return fmt::format("{:.1f} kW", watts / 1000); }

std::string table_of(const v1::ListPowerDomainsResponse& domains, const PowerAsked& asked) {
  TextTable table({{"NAME"},
                   {"KIND"},
                   {"PLANNED", Align::kRight},
                   {"LIMIT", Align::kRight},
                   {"CAP", Align::kRight},
                   {"ALL BUSY", Align::kRight},
                   {"SUPPLY"}});
  std::size_t left_out = 0;
  for (const v1::PowerDomain& domain : domains.domains()) {
    if (!asked.all && domain.kind() == "rack" && !domain.has_cap_w()) {
      ++left_out;
      continue;
    }
    table.add({domain.name(), domain.kind(), kilowatts(domain.planned_w()),
               domain.has_limit_w() ? kilowatts(domain.limit_w()) : "-",
               domain.has_cap_w() ? kilowatts(domain.cap_w()) : "-", kilowatts(domain.most_w()),
               domain.supply()});
  }
  if (domains.domains().empty()) return "the fleet has no power limits\n";
  const std::string rest =
      left_out > 0
          ? fmt::format("(racks not shown: {}; `orrery power --all` includes them)\n", left_out)
          : "";
  return table.text() + rest;
}

Status print_power(const CommandOptions& options, LiveSession& session, const PowerAsked& asked) {
  const Result<v1::ListPowerDomainsResponse> domains = list_power(session);
  if (!domains) return tl::unexpected(domains.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*domains);
  } else {
    print_text(table_of(*domains, asked));
  }
  return {};
}

Status set_cap(const CommandOptions& options, LiveSession& session, const PowerAsked& asked) {
  v1::SetPowerCapRequest request;
  request.set_request_id(session.request_id());
  request.set_name(asked.name);
  if (asked.cap != "none") {
    const Result<Watts> cap = quantity_option<Watts>("power", asked.cap);
    if (!cap) return tl::unexpected(cap.error());
    request.set_cap_w(cap->value());
  }
  const auto set = session.client().call<v1::PowerDomain>("SetPowerCap", request);
  if (!set) return tl::unexpected(set.error());
  if (options.output == OutputFormat::kJson) {
    print_answer(*set);
    return {};
  }
  const std::string name = one_line(set->name());
  const std::string limit = set->has_limit_w() ? kilowatts(set->limit_w()) : "none";
  print_text(
      fmt::format("{}: {} planned, limit {}{}\n", name, kilowatts(set->planned_w()), limit,
                  set->has_limit_w() && set->planned_w() > set->limit_w()
                      ? "; jobs are slowed or stopped until the planned power is below the limit"
                      : ""));
  if (set->has_limit_w() && set->limit_w() < set->idle_w()) {
    print_message(fmt::format(
        "orrery: warning: {} cannot stay below {}: its idle nodes draw {}. No job starts there "
        "until the cap is raised or removed (`orrery power cap {} none`)\n",
        name, limit, kilowatts(set->idle_w()), name));
  }
  return {};
}

}  // namespace

void add_power_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<PowerAsked>();
  const auto run = [&](CLI::App& added, LiveVerb<PowerAsked> verb) {
    run_live<PowerAsked>(added, options, chosen, {asked, verb});
  };
  CLI::App& power =
      *app.add_subcommand("power", "list the power limits and the power planned under each");
  power.add_flag("--all,-a", asked->all, "include racks");
  power.footer(
      "Examples:\n  orrery power\n  orrery power cap site/power-cap \"400 kW\"\n"
      "  orrery power cap site/power-cap none\n"
      "\nA cap takes effect within seconds: jobs are clocked down if their hardware allows it, "
      "else stopped.\n"
      "It is durable and survives a restart. `orrery what-if --cap` shows its effect in advance.");
  CLI::App& cap = *power.add_subcommand("cap", "set or remove a cap on the power of a domain");
  cap.add_option("name", asked->name, "name of the power domain, as in `orrery power --all`")
      ->type_name("NAME")
      ->required();
  cap.add_option("power", asked->cap,
                 "maximum power, such as \"400 kW\", or none to remove the cap")
      ->type_name("POWER")
      ->required();
  run(cap, set_cap);
  run(power, print_power);
}

}  // namespace orrery
