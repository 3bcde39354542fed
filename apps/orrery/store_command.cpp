// orrery store
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "apps/orrery/command.hpp"
#include "apps/orrery/output.hpp"
#include "apps/orrery/store_rescue_command.hpp"
#include "base/format/field_writer.hpp"
#include "base/text/count_text.hpp"
#include "base/text/terminal_text.hpp"
#include "control/state/snapshot.hpp"
#include "orrery/v1/orrery.pb.h"
#include "store/event_json.hpp"
#include "store/history.hpp"
#include "store/sqlite/sqlite_store.hpp"
#include "verbs/cluster/live_session.hpp"
#include "verbs/cluster/store_setup.hpp"

namespace orrery {
namespace {

struct StoreRequest {
  std::string path;
  std::string to;
};

/// That there is no store, or that a file is there already, is for the user to mend.
tl::unexpected<Error> store_failed(const StorageError& error) {
  Error out = error;
  const bool input = error.failure == StorageFailure::kNotFound;
  out.kind = input ? ErrorKind::kInput : ErrorKind::kEnvironment;
  return tl::unexpected(std::move(out));
}

std::string print_batches(const StoreExtent& extent) {
  if (extent.newest == 0) return "no batches yet";
  if (extent.oldest > extent.newest)
    return fmt::format("all batches up to {} dropped", extent.newest);
  return fmt::format("batches {} to {}", extent.oldest, extent.newest);
}

std::string print_hash(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

Status verify(const CommandOptions& options, const StoreRequest& asked) {
  auto store = SqliteStore::open_to_read(asked.path);
  if (!store && store.error().failure == StorageFailure::kOther &&
      options.output == OutputFormat::kJson) {
    print_json({{"good", false}, {"why", store.error().message}});
  }
  if (!store) return store_failed(store.error());
  HistoryResult<VerifiedHistory> verified = verify_history(**store);
  if (!verified) {
    const HistoryPlace& place = verified.error().place;
    if (options.output == OutputFormat::kJson) {
      print_json({{"good", false},
                  {"segment", place.segment},
                  {"batch", place.batch},
                  {"offset", place.offset},
                  {"why", verified.error().message}});
    }
    verified.error().message += repair_commands(asked.path);
    return forward_error(verified);
  }
  const HistoryReader::Counts& read = verified->read;
  if (options.output == OutputFormat::kJson) {
    print_json({{"good", true},
                {"oldest_batch", verified->extent.oldest},
                {"newest_batch", verified->extent.newest},
                {"segments", read.segments},
                {"events", read.events},
                {"snapshots", verified->snapshots},
                {"history_hash", print_hash(verified->history_hash)}});
    return {};
  }
  print_text(fmt::format("{}: good: {} with {} in {}, history hash {}\n", (*store)->name(),
                         print_batches(verified->extent), counted(read.events, "event"),
                         counted(read.segments, "segment"), print_hash(verified->history_hash)));
  if (!verified->snapshots.empty()) {
    print_text(fmt::format("snapshots up to batch {}\n", fmt::join(verified->snapshots, ", ")));
  }
  return {};
}

Status export_events(const StoreRequest& asked) {
  auto store = SqliteStore::open_to_read(asked.path);
  if (!store) return store_failed(store.error());
  HistoryResult<HistoryStart> start = oldest_start(**store);
  if (!start) return forward_error(start);
  HistoryResult<HistoryReader> reader = HistoryReader::open(**store, *start, nullptr);
  if (!reader) return forward_error(reader);
  const EventVisitor print = [](const TimedEvent& event) {
    // Evidence of a fault may be bytes of any kind.
    constexpr auto kReplace = Json::error_handler_t::replace;
    print_bytes(terminal_json(event_json(event).dump(-1, ' ', false, kReplace)) + "\n");
  };
  while (true) {
    HistoryResult<bool> more = reader->next_batch(print);
    if (!more) return forward_error(more);
    if (!*more) return {};
  }
}

Status back_up(const CommandOptions& options, const StoreRequest& asked) {
  if (StorageStatus copied = SqliteStore::backup(asked.path, asked.to); !copied) {
    return store_failed(copied.error());
  }
  auto copy = SqliteStore::open_to_read(asked.to);
  if (!copy) return store_failed(copy.error());
  StorageResult<StoreExtent> extent = (*copy)->extent();
  if (!extent) return store_failed(extent.error());
  if (options.output == OutputFormat::kJson) {
    print_json(
        {{"backup", asked.to}, {"oldest_batch", extent->oldest}, {"newest_batch", extent->newest}});
  } else {
    print_text(fmt::format("{}: {}\n", asked.to, print_batches(*extent)));
  }
  return {};
}

/// The bytes of a snapshot of all there is, after it was restored and found to be the same state.
Result<Batch> checked_snapshot(SqliteStore& store, const ControlSetup& setup) {
  StateTarget target(setup);
  HistoryResult<RecoveredHistory> history = recover_history(store, nullptr, target);
  if (!history) return forward_error(history);
  const std::string state = snapshot_of(target.state());
  State again(setup);
  if (Status restored = restore(again, state); !restored) return forward_error(restored);
  if (digest_of(again) != digest_of(target.state())) {
    return environment_error(
        fmt::format("{}: the snapshot differs from the state it was made from; nothing was changed",
                    store.name()));
  }
  return Batch{history->newest, seal_snapshot(history->history_hash, state)};
}

void print_compacted(const CommandOptions& options, const std::string& name,
                     const CompactedLog& log) {
  if (options.output == OutputFormat::kJson) {
    return print_json({{"snapshot", log.covers},
                       {"snapshot_bytes", log.snapshot_bytes},
                       {"dropped_batches", log.dropped}});
  }
  print_text(fmt::format("{}: wrote a snapshot of {} up to batch {}, dropped {}\n", name,
                         counted(log.snapshot_bytes, "byte"), log.covers,
                         log.dropped == 1 ? "1 batch" : fmt::format("{} batches", log.dropped)));
}

/// The controller that writes the store does it.
Status compact_online(const CommandOptions& options, const std::string& directory) {
  CommandOptions own = options;
  own.cluster_directory = directory;
  constexpr Duration kPatience = Duration::minutes(10);
  Result<std::unique_ptr<LiveSession>> session = LiveSession::open(own, kPatience);
  if (!session) return forward_error(session);
  Result<v1::CompactStoreResponse> done = (*session)->client().call<v1::CompactStoreResponse>(
      "CompactStore", v1::CompactStoreRequest());
  if (!done) return forward_error(done);
  print_compacted(options, directory + "/store, by the running controller",
                  {done->snapshot(), done->snapshot_bytes(), done->dropped_batches()});
  return {};
}

/// The directory of the cluster whose controller writes the store now; empty: none does.
std::string served_by(const std::string& store) {
  if (SqliteStore::lock(store)) return {};
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::canonical(store, failed);
  const std::string directory = path.parent_path().string();
  const bool ours = !failed && path.filename() == "store" &&
                    std::filesystem::exists(directory + "/cluster.json", failed);
  return ours ? directory : std::string();
}

Status compact(const CommandOptions& options, const StoreRequest& asked) {
  // To read first: opening to write would make a store where there is none.
  auto there = SqliteStore::open_to_read(asked.path);
  if (!there) return store_failed(there.error());
  there->reset();
  if (const std::string cluster = served_by(asked.path); !cluster.empty()) {
    return compact_online(options, cluster);
  }
  auto store = SqliteStore::open(asked.path);
  if (!store) return store_failed(store.error());
  StorageResult<StoreExtent> before = (*store)->extent();
  if (!before) return store_failed(before.error());
  if (before->newest == 0)
    return infeasible((*store)->name() + ": no batches yet, nothing to compact");
  Result<std::unique_ptr<StoredSetup>> setup =
      StoredSetup::load(with_catalog_of(options, asked.path), **store);
  if (!setup) return forward_error(setup);
  Result<Batch> snapshot = checked_snapshot(**store, (*setup)->control());
  if (!snapshot) return forward_error(snapshot);
  StorageResult<StoreTerm> term = (*store)->claim();
  if (!term) return store_failed(term.error());
  StorageResult<CompactedLog> done = compact_to(**store, *term, *snapshot);
  if (!done) return store_failed(done.error());
  print_compacted(options, (*store)->name(), *done);
  return {};
}

CLI::App& add_store_verb(CLI::App& app, const std::string& name, const std::string& what,
                         const std::shared_ptr<StoreRequest>& asked) {
  CLI::App& verb = *app.add_subcommand(name, what);
  verb.add_option("store", asked->path, "directory of a store, or a backup file")
      ->type_name("DIR|FILE")
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
      "  orrery store salvage /var/lib/orrery/store --out /var/lib/orrery/salvaged\n");
  add_store_verb(store, "verify",
                 "read every record and snapshot, and print the position of the first damage",
                 asked)
      .callback([&options, &chosen, asked] {
        chosen = [&options, asked] { return verify(options, *asked); };
      });
  add_store_verb(store, "export", "print each event as one line of JSON", asked)
      .callback([&chosen, asked] { chosen = [asked] { return export_events(*asked); }; });
  CLI::App& backup = add_store_verb(
      store, "backup", "copy the store to one file; works while the controller runs", asked);
  backup.add_option("to", asked->to, "backup file to create")->type_name("FILE")->required();
  backup.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return back_up(options, *asked); };
  });
  CLI::App& compact_verb = *store.add_subcommand(
      "compact", "replace the log so far with a snapshot; a running controller does this itself");
  compact_verb.add_option("store", asked->path, "directory of a store")
      ->type_name("DIR")
      ->required();
  compact_verb.callback([&options, &chosen, asked] {
    chosen = [&options, asked] { return compact(options, *asked); };
  });
  add_store_rescue_verbs(store, options, chosen);
}

}  // namespace orrery
