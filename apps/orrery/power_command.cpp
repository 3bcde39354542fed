// orrery power
#include <fmt/format.h>

#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_lists.hpp"
#include "apps/orrery/live_verb.hpp"
#include "apps/orrery/option_text.hpp"
#include "base/text_table.hpp"

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
                   {"ALL AT WORK", Align::kRight},
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
  if (domains.domains().empty()) return "the fleet has no limits of power\n";
  const std::string rest =
      left_out > 0 ? fmt::format("(and racks, {}: `orrery power --all`)\n", left_out) : "";
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
  const std::string limit = set->has_limit_w() ? kilowatts(set->limit_w()) : "nothing limits it";
  print_text(fmt::format("{}: {} planned, limit {}{}\n", name, kilowatts(set->planned_w()), limit,
                         set->has_limit_w() && set->planned_w() > set->limit_w()
                             ? "; work is slowed or stopped until it holds"
                             : ""));
  if (set->has_limit_w() && set->limit_w() < set->idle_w()) {
    print_message(fmt::format(
        "orrery: warning: {} can never hold {}: its nodes draw {} without any work. Nothing starts "
        "there until the cap is raised or taken back (`orrery power cap {} none`)\n",
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
      *app.add_subcommand("power", "where power is limited, and what is planned there");
  power.add_flag("--all,-a", asked->all, "racks, too");
  power.footer(
      "Examples:\n  orrery power\n  orrery power cap site/power-cap \"400 kW\"\n"
      "  orrery power cap site/power-cap none\n"
      "\nA cap holds within seconds: work is clocked down where its hardware can be, else "
      "stopped.\n"
      "It is in the log, and holds after a restart. `orrery what-if --cap` says what it would "
      "cost.");
  CLI::App& cap = *power.add_subcommand("cap", "lower what a place may draw, or take that back");
  cap.add_option("name", asked->name, "of the place, as `orrery power --all` has it")
      ->type_name("NAME")
      ->required();
  cap.add_option("power", asked->cap, "such as \"400 kW\", or none")
      ->type_name("POWER")
      ->required();
  run(cap, set_cap);
  run(power, print_power);
}

}  // namespace orrery
