// orrery store
#include <memory>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/store_rescue_command.hpp"
#include "apps/orrery/store_transfer_command.hpp"
#include "base/text/terminal_text.hpp"
#include "verbs/store/store_answer.hpp"

namespace orrery {
namespace {

struct StoreRequest {
  std::string path;
  std::string to;
};

Status export_events(const StoreRequest& asked) {
  return export_store(asked.path, [](const Json& event) {
    // Evidence of a fault may be bytes of any kind.
    constexpr auto kReplace = Json::error_handler_t::replace;
    print_bytes(terminal_json(event.dump(-1, ' ', false, kReplace)) + "\n");
  });
}

CLI::App& add_store_verb(CLI::App& app, const std::string& name, const std::string& what,
                         const std::shared_ptr<StoreRequest>& asked) {
  CLI::App& verb = *app.add_subcommand(name, what);
  verb.add_option("store", asked->path,
                  "directory of a store, a backup file, or the URL of a log in etcd")
      ->type_name("DIR|FILE|URL")
      ->required();
  return verb;
}

}  // namespace

void add_store_commands(CLI::App& app, CommandOptions& options, Verb& chosen) {
  auto asked = std::make_shared<StoreRequest>();
  CLI::App& store = *app.add_subcommand(
      "store", "verify, export, back up and restore the durable log of a controller");
  store.require_subcommand(1);
  store.footer(
      "Examples:\n"
      "  orrery store verify /var/lib/orrery/store\n"
      "  orrery store export /var/lib/orrery/store | grep JobEnded\n"
      "  orrery store backup /var/lib/orrery/store /backup/orrery.db   (while the controller "
      "runs)\n"
      "  orrery store compact /var/lib/orrery/store\n"
      "  orrery store restore /backup/orrery.db --dir /var/lib/orrery  (while the controller is "
      "stopped)\n"
      "  orrery store salvage /var/lib/orrery/store --out /var/lib/orrery/salvaged\n"
      "  orrery store copy /var/lib/orrery/store etcd://E1:2379/prod --state /var/lib/orrery\n");
  add_store_verb(store, "verify",
                 "read every record and snapshot, and print the position of the first damage",
                 asked)
      .callback([&options, &chosen, asked] {
        chosen = [&options, asked] { return print_answer(options, verify_store(asked->path)); };
      });
  add_store_verb(store, "export", "print each event as one line of JSON", asked)
      .callback([&chosen, asked] { chosen = [asked] { return export_events(*asked); }; });
  CLI::App& backup = *store.add_subcommand(
      "backup", "copy the store to one file; works while the controller runs");
  backup.add_option("store", asked->path, "directory of a store, or a backup file")
      ->type_name("DIR|FILE")
      ->required();
  backup.add_option("to", asked->to, "backup file to create")->type_name("FILE")->required();
  backup.callback([&options, &chosen, asked] {
    chosen = [&options, asked] {
      return print_answer(options, back_up_store(asked->path, asked->to));
    };
  });
  CLI::App& compact_verb = *store.add_subcommand(
      "compact", "replace the log so far with a snapshot; a running controller does this itself");
  compact_verb
      .add_option("store", asked->path, "directory of a store, or etcd:// URL of the cluster's log")
      ->type_name("DIR|URL")
      ->required();
  compact_verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] {
      return print_answer(options, compact_store(options, asked->path));
    };
  });
  add_store_rescue_verbs(store, options, chosen);
  add_store_transfer_verbs(store, options, chosen);
}

}  // namespace orrery
