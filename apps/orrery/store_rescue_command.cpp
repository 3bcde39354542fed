// orrery store restore, orrery store salvage
#include "apps/orrery/store_rescue_command.hpp"

#include <memory>

#include "apps/orrery/output.hpp"
#include "verbs/store/store_rescue_answer.hpp"

namespace orrery {

void add_store_rescue_verbs(CLI::App& store, CommandOptions& options, Verb& chosen) {
  auto restored = std::make_shared<RestoreRequest>();
  CLI::App& restore_verb = *store.add_subcommand(
      "restore", "replace DIR/store with a backup or a salvaged store; the previous store is kept");
  restore_verb.add_option("from", restored->from, "backup file, or directory of a store")
      ->type_name("FILE|DIR")
      ->required();
  restore_verb.add_flag("--force", restored->force,
                        "also replace an intact store that is as new or newer");
  restore_verb
      .add_option("--next-job", restored->next_job,
                  "first unused job number, needed if the previous store is gone")
      ->type_name("N");
  restore_verb.callback([&options, &chosen, restored] {
    chosen = [&options, restored] {
      return print_answer(options, restore_backup(options, *restored));
    };
  });
  auto salvaged = std::make_shared<SalvageRequest>();
  CLI::App& salvage_verb = *store.add_subcommand(
      "salvage",
      "copy the intact part of a damaged store to a new store, and list the lost batches and jobs");
  salvage_verb.add_option("store", salvaged->from, "directory of the damaged store")
      ->type_name("DIR")
      ->required();
  salvage_verb.add_option("--out", salvaged->to, "directory to create")
      ->type_name("NEW")
      ->required();
  salvage_verb.callback([&options, &chosen, salvaged] {
    chosen = [&options, salvaged] {
      return print_answer(options, salvage_damaged(options, *salvaged));
    };
  });
}

}  // namespace orrery
