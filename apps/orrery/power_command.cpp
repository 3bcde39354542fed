// orrery power
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/live_verb.hpp"
#include "verbs/nodes/power_answer.hpp"

namespace orrery {
namespace {

struct PowerVerbOptions {
  PowerCap cap;
  bool all = false;
};

Result<LiveAnswer> ask_power(const LiveCall& call, const PowerVerbOptions& asked) {
  return answer_power(call, asked.all ? Racks::kAll : Racks::kCapped);
}

Result<LiveAnswer> ask_for_cap(const LiveCall& call, const PowerVerbOptions& asked) {
  return set_power_cap(call, asked.cap);
}

}  // namespace

void add_power_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<PowerVerbOptions>();
  const auto ask = [&](CLI::App& added, LiveQuestion<PowerVerbOptions> question) {
    ask_live<PowerVerbOptions>(added, options, chosen, {asked, question});
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
  cap.add_option("name", asked->cap.name, "name of the power domain, as in `orrery power --all`")
      ->type_name("NAME")
      ->required();
  cap.add_option("power", asked->cap.power,
                 "maximum power, such as \"400 kW\", or none to remove the cap")
      ->type_name("POWER")
      ->required();
  ask(cap, ask_for_cap);
  ask(power, ask_power);
}

}  // namespace orrery
