#include "executor/log/live_store.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

namespace orrery {
namespace {

/// Error: the directory has what a controller of a shared log keeps on its machine, and no log.
Status check_own(const std::string& path) {
  std::error_code none;
  const bool shared = std::filesystem::exists(path + "/archive", none);
  if (!shared || std::filesystem::exists(path + "/store.db", none)) return {};
  return input_error({}, fmt::format("{}: this state belongs to a shared log: start with --store "
                                     "URL, or move the log here with `orrery store copy`",
                                     path));
}

}  // namespace

Result<ClaimedStore> ClaimedStore::open(const Env& env, const Log& log,
                                        const std::string& directory) {
  const std::string path = directory + "/store";
  std::error_code none;
  if (Status own = check_own(path); !own) return forward_error(own);
  if (!std::filesystem::exists(path, none)) {
    if (Status room = DiskReserve::check_new(directory); !room) return forward_error(room);
  } else if (DiskReserve::give_up_for_start(path) == RoomMade::kYes) {
    log.warning(env.clock.now_wall(), "reserve given up for the start", {{"store", path}});
  }
  const Instant began = env.clock.now_monotonic();
  StorageResult<std::unique_ptr<SqliteStore>> store = SqliteStore::open(path);
  if (!store) return forward_error(store);
  const StorageResult<StoreTerm> term = (*store)->claim();
  if (!term) return tl::unexpected<Error>(term.error());
  auto disk = std::make_unique<DiskWatch>(env, log, path);
  const OpenReader open = [path] { return SqliteStore::open_to_read(path); };
  StorageResult<std::unique_ptr<StoreReader>> archive = open();
  if (!archive) return forward_error(archive);
  return ClaimedStore{*std::move(store),   *term,          began, open, open,
                      *std::move(archive), std::move(disk)};
}

Status ClaimedStore::complete(const Env& env, const Log& log, const SharedLog& shared,
                              const std::string& directory) {
  StorageResult<std::unique_ptr<StoreReader>> reader = shared.open_archive();
  if (!reader) return forward_error(reader);
  archive = *std::move(reader);
  open_archive = shared.open_archive;
  open_log = shared.open_log;
  disk = std::make_unique<DiskWatch>(env, log, directory + "/store");
  return {};
}

LiveStore::LiveStore(const Env& env, const Log& log, ClaimedStore claimed, Options options)
    : disk_(std::move(claimed.disk)),
      store_(std::move(claimed.store)),
      open_log_(std::move(claimed.open_log)),
      room_(env, log, *store_),
      log_(env, log,
           {.claim = {*store_, claimed.term, claimed.claimed, std::move(claimed.make_commits)},
            .state = options.host.state(),
            .settings = options.settings,
            .commit_times = options.counts.commit,
            .history = options.history,
            .writer = std::move(options.writer),
            .record = std::move(options.record),
            .durable = std::move(options.durable),
            .may_speak = std::move(options.may_speak),
            .failed = std::move(options.failed),
            .archive_put = [this](const StorageStatus& put) { archive_.on_put(put); },
            .make_room = [this] { return disk_->make_room(); }}),
      archive_(log, {.host = options.host,
                     .log = log_,
                     .settings = options.settings,
                     .inbox = env.inbox,
                     .reader = std::move(claimed.archive),
                     .open = std::move(claimed.open_archive),
                     .form = std::move(options.archived_form)}) {}

void LiveStore::look() {
  disk_->look();
  room_.look();
}

Status LiveStore::admission() const {
  if (Status room = disk_->admission(); !room) return room;
  return room_.admission();
}

}  // namespace orrery
