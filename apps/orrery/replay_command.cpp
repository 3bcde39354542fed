// orrery replay
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "verbs/record/replay.hpp"

namespace orrery {

void add_replay_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto directory = std::make_shared<std::string>();
  CLI::App& verb = *app.add_subcommand(
      "replay", "feed the inputs of a record to the core again and compare event by event");
  verb.add_option("record", *directory,
                  "what --record wrote: of `simulate` for one policy, of `orreryd` for one start")
      ->type_name("DIR")
      ->required();
  verb.callback([&options, &chosen, directory] {
    chosen = [&options, directory] { return print_answer(options, replay(options, *directory)); };
  });
}

}  // namespace orrery
