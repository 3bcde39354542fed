// orrery schedule
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/schedule/schedule_answer.hpp"

namespace orrery {

void add_schedule_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<ScheduleOptions>();
  CLI::App* verb = app.add_subcommand(
      "schedule",
      "show which jobs of a queue would start now on an idle fleet, where, and at what price");
  verb->add_option("--fleet", asked->fleet, "fleet spec")->type_name("FILE")->required();
  verb->add_option("--tenants", asked->tenants, "Tenants file of the fleet")->type_name("FILE");
  verb->add_option("--policy", asked->policy, "policy: NAME[:key=value,..], or a Policy file")
      ->capture_default_str();
  verb->add_option("--failures", asked->failures,
                   "failure profile used for prices: llama3, rsc1, rsc2, all-causes, measured, "
                   "infinitehbd, none, or a file")
      ->capture_default_str();
  verb->add_option("--explain", asked->explain,
                   "explain why this job waits and what would start it")
      ->type_name("JOB");
  verb->add_option("--by", asked->by, "deadline of each job, in UTC: \"2026-11-27 18:00\"")
      ->type_name("TIME");
  verb->add_option("--under", asked->under, "budget of each job: '$5000'")->type_name("AMOUNT");
  verb->add_option("jobs", asked->jobs, "job specs, or directories of job specs, in queue order")
      ->type_name("FILE..")
      ->required();
  verb->callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return print_answer(options, schedule(options, *asked)); };
  });
}

}  // namespace orrery
