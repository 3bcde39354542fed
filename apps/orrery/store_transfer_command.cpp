// orrery store adopt, orrery store copy
#include "apps/orrery/store_transfer_command.hpp"

#include <memory>

#include "apps/orrery/output.hpp"
#include "verbs/store/store_transfer_answer.hpp"

namespace orrery {

void add_store_transfer_verbs(CLI::App& store, CommandOptions& options, Verb& chosen) {
  auto adopted = std::make_shared<AdoptStoreRequest>();
  CLI::App& adopt_verb = *store.add_subcommand(
      "adopt",
      "go on with a log in etcd that was restored from a backup, without what it lacks; on each "
      "controller's machine, while no controller runs");
  adopt_verb.add_option("store", adopted->url, "the log")->type_name("URL")->required();
  adopt_verb.add_option("--state", adopted->state, "directory of this machine's controller")
      ->type_name("STATE")
      ->required();
  adopt_verb.callback([&options, &chosen, adopted] {
    chosen = [&options, adopted] { return print_answer(options, adopt_store(options, *adopted)); };
  });
  auto copied = std::make_shared<CopyStoreRequest>();
  CLI::App& copy_verb = *store.add_subcommand(
      "copy", "copy a log from a directory into etcd, or back, while no controller runs");
  copy_verb.add_option("from", copied->from, "the log")->type_name("DIR|URL")->required();
  copy_verb.add_option("to", copied->to, "where it is copied to; nothing may be there")
      ->type_name("DIR|URL")
      ->required();
  copy_verb
      .add_option("--state", copied->state,
                  "directory of a controller: a log in etcd has its archive in STATE/store "
                  "(default: the one of --dir)")
      ->type_name("STATE");
  copy_verb.callback([&options, &chosen, copied] {
    chosen = [&options, copied] { return print_answer(options, copy_store(options, *copied)); };
  });
}

}  // namespace orrery
