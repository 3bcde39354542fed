// orrery store restore, orrery store salvage
#include <fmt/format.h>

#include "apps/orrery/output.hpp"
#include "apps/orrery/store_rescue_command.hpp"
#include "base/format/field_writer.hpp"

#include "control/state/snapshot.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "store/store_rescue.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/store_setup.hpp"

namespace orrery {
namespace {

Status restore_backup(const CommandOptions& options, RestoreRequest asked) {
  asked.directory = cluster_directory(options);
  const Result<RestoredStore> restored = restore_store(asked);
  if (!restored) return tl::unexpected(restored.error());
  if (options.output == OutputFormat::kJson) {
    print_json({{"store", asked.directory + "/store"},
                {"newest_batch", restored->extent.newest},
                {"next_job", restored->next_job},
                {"kept", restored->kept}});
    return {};
  }
  print_text(
      fmt::format("{}/store: restored up to batch {}\n", asked.directory, restored->extent.newest));
  if (!restored->kept.empty())
    print_text(fmt::format("previous store kept as: {}\n", restored->kept));
  if (restored->next_job > 0) {
    print_text(fmt::format("job numbers below {} will not be reused\n", restored->next_job));
  }
  return {};
}

/// The first job number that the salvaged log has not given out; read as a controller will read it,
/// so that a store that could not be started is told here.
Result<std::uint64_t> next_job_of(const CommandOptions& options, const std::string& from,
                                  const std::string& to) {
  auto store = SqliteStore::open_to_read(to);
  if (!store) return forward_error(store);
  Result<std::unique_ptr<StoredSetup>> setup =
      StoredSetup::load(with_catalog_of(options, from), **store);
  if (!setup) return forward_error(setup);
  StateTarget target((*setup)->control());
  HistoryResult<RecoveredHistory> history = recover_history(**store, nullptr, target);
  if (!history) return forward_error(history);
  return (*setup)->control().next_job(target.state().jobs());
}

std::string print_lost(const SalvagedStore& salvaged, std::uint64_t next_job) {
  if (salvaged.damage.empty() && salvaged.lost_to == 0) return "nothing is lost\n";
  std::string text;
  if (!salvaged.damage.empty()) text += fmt::format("damage: {}\n", salvaged.damage);
  if (salvaged.lost_to > 0) {
    text += fmt::format("lost: batches {} to {}\n", salvaged.lost_from, salvaged.lost_to);
  }
  if (salvaged.mark && salvaged.mark->next_job > next_job) {
    text += fmt::format("lost: jobs {} to {}\n", next_job, salvaged.mark->next_job - 1);
  }
  if (!salvaged.mark)
    text += "the last acknowledged batch is unknown: the high_water file is lost\n";
  return text;
}

Status salvage(const CommandOptions& options, const std::string& from, const std::string& to) {
  const Result<SalvagedStore> salvaged = salvage_store(from, to);
  if (!salvaged) return tl::unexpected(salvaged.error());
  Result<std::uint64_t> next_job = next_job_of(options, from, to);
  if (!next_job) return forward_error(next_job);
  if (options.output == OutputFormat::kJson) {
    Json out{{"store", to},
             {"newest_batch", salvaged->extent.newest},
             {"batches", salvaged->batches},
             {"archived_jobs", salvaged->archived},
             {"history_hash", fmt::format("{:016x}", salvaged->history_hash)},
             {"next_job", *next_job},
             {"damage", salvaged->damage},
             {"lost_batches", Json::array()},
             {"lost_jobs", Json::array()}};
    if (salvaged->lost_to > 0) out["lost_batches"] = {salvaged->lost_from, salvaged->lost_to};
    if (salvaged->mark && salvaged->mark->next_job > *next_job) {
      out["lost_jobs"] = {*next_job, salvaged->mark->next_job - 1};
    }
    print_json(out);
    return {};
  }
  print_text(fmt::format(
      "{}: {} batches up to batch {} and {} archived jobs are good, history "
      "{:016x}\n",
      to, salvaged->batches, salvaged->extent.newest, salvaged->archived, salvaged->history_hash));
  print_text(print_lost(*salvaged, *next_job));
  print_text(fmt::format("to use the salvaged store: orrery store restore {} --dir DIR\n", to));
  return {};
}

}  // namespace

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
    chosen = [&options, restored] { return restore_backup(options, *restored); };
  });
  struct SalvageAsked {
    std::string from;
    std::string to;
  };
  auto salvaged = std::make_shared<SalvageAsked>();
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
    chosen = [&options, salvaged] { return salvage(options, salvaged->from, salvaged->to); };
  });
}

}  // namespace orrery
