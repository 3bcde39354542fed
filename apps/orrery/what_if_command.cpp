// orrery what-if
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/fork/what_if.hpp"

namespace orrery {
namespace {

void add_service_options(CLI::App& verb, ServiceChange& service) {
  CLI::Option& name =
      *verb.add_option("--service", service.service,
                       "service to simulate instead of the cluster, its replicas as they run now")
           ->type_name("NAME|ID");
  for (const char* of_cluster : {"--copies", "--now", "--span"}) {
    verb.get_option(of_cluster)->excludes(&name);
  }
  verb.add_option("--requests", service.requests, "requests that come to the service")
      ->type_name("FILE[:FORMAT]");
  verb.add_option("--half", service.half, "only the first or second half of the requests")
      ->type_name("first|second");
  verb.add_option("--replicas", service.replicas, "number of replicas of the service")
      ->type_name("N");
  verb.add_option("--router", service.router, "policy of the service's gateway")->type_name("NAME");
}

}  // namespace

void add_what_if_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<WhatIfOptions>();
  CLI::App& verb = *app.add_subcommand(
      "what-if", "simulate a running cluster from its current state, unchanged and with a change");
  verb.add_option("--submit", asked->files, "job spec to submit; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--copies", asked->copies, "number of copies of each submitted job")
      ->type_name("N")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb.add_option("--drain", asked->drain, "nodes to drain")
      ->type_name("NODE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_flag("--now", asked->at_once,
                "also stop the jobs on drained nodes; they restart on other nodes");
  verb.add_option("--add", asked->add, "nodes of the fleet that are away, to simulate as present")
      ->type_name("NODE,..")
      ->delimiter(',')
      ->allow_extra_args(false);
  verb.add_option("--policy", asked->policy, "name of a policy, or a Policy file")
      ->type_name("NAME|FILE");
  verb.add_option("--tenants", asked->tenants, "Tenants file with quotas, weights and guarantees")
      ->type_name("FILE");
  verb.add_option(
          "--cap", asked->caps,
          "cap on the power of a site, feed, row, rack or loop, or \"none\"; may be repeated")
      ->type_name("NAME=POWER")
      ->allow_extra_args(false);
  verb.add_option("--span", asked->span, "simulated time")
      ->type_name("TIME")
      ->capture_default_str();
  verb.add_option("--store", asked->store,
                  "log of the controller, or a backup of it (default: store in --dir)")
      ->type_name("DIR|FILE");
  add_service_options(verb, asked->service);
  verb.footer(
      "`orrery what-if` reads the cluster and changes nothing. The simulation assumes that each "
      "job\n"
      "runs as long as its plan, estimate or time limit states, that nothing fails, and that "
      "nodes\n"
      "which are lost or in repair stay away, except those named by --add.\n\n"
      "Examples:\n  orrery what-if --submit big.yaml --copies 2\n"
      "  orrery what-if --drain node-3,node-4 --now\n  orrery what-if --policy easy -o json\n"
      "  orrery what-if --add rack-9-node-0,rack-9-node-1\n"
      "  orrery what-if --service chat --requests day.jsonl --replicas 4\n"
      "  orrery what-if --tenants new-quotas.yaml --cap \"site/power-cap=400 kW\"");
  verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_answer(options, what_if(options, *asked)); };
  });
}

}  // namespace orrery
