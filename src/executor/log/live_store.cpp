#include "executor/log/live_store.hpp"

#include <filesystem>
#include <utility>

namespace orrery {

Result<ClaimedStore> ClaimedStore::open(const Env& env, const Log& log,
                                        const std::string& directory) {
  const std::string path = directory + "/store";
  std::error_code none;
  if (!std::filesystem::exists(path, none)) {
    if (Status room = DiskReserve::check_new(directory); !room) return forward_error(room);
  } else if (DiskReserve::give_up_for_start(path) == RoomMade::kYes) {
    log.warning(env.clock.now_wall(), "reserve given up for the start", {{"store", path}});
  }
  StorageResult<std::unique_ptr<SqliteStore>> store = SqliteStore::open(path);
  if (!store) return forward_error(store);
  const StorageResult<StoreTerm> term = (*store)->claim();
  if (!term) return tl::unexpected<Error>(term.error());
  auto disk = std::make_unique<DiskWatch>(env, log, path);
  StorageResult<std::unique_ptr<StoreReader>> reader = SqliteStore::open_to_read(path);
  if (!reader) return forward_error(reader);
  return ClaimedStore{*std::move(store), *term, *std::move(reader), std::move(disk)};
}

LiveStore::LiveStore(const Env& env, const Log& log, ClaimedStore claimed, Options options)
    : disk_(std::move(claimed.disk)),
      store_(std::move(claimed.store)),
      log_(env, log,
           {.store = *store_,
            .term = claimed.term,
            .state = options.host.state(),
            .settings = options.settings,
            .commit_times = options.counts.commit,
            .history = options.history,
            .writer = std::move(options.writer),
            .record = std::move(options.record),
            .durable = std::move(options.durable),
            .failed = std::move(options.failed),
            .archive_put = [this](const StorageStatus& put) { archive_.on_put(put); },
            .make_room = [this] { return disk_->make_room(); }}),
      archive_(log, {.host = options.host,
                     .log = log_,
                     .settings = options.settings,
                     .reader = std::move(claimed.reader),
                     .form = std::move(options.archived_form)}) {}

}  // namespace orrery
