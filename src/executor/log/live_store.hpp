// executor/log/live_store.hpp - the store of a running controller: the log it writes, the archive
// beside it, and the space on their disk.
//
// Owned by the controller, on its loop; built once the history has been read into the host.
// Invariant: the thread that commits ends before the store is closed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "executor/log/disk_watch.hpp"
#include "executor/log/live_archive.hpp"
#include "executor/log/live_log.hpp"
#include "executor/log/log_room.hpp"
#include "executor/log/shared_log.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {

/// A store that one controller has claimed.
struct ClaimedStore {
  /// Opens DIR/store, which is created if it is missing, and claims it. Errors: of the store
  /// (another process has it); no space for a new one; it belongs to a controller of a shared log.
  [[nodiscard]] static Result<ClaimedStore> open(const Env& env, const Log& log,
                                                 const std::string& directory);
  /// Adds to a shared store that was claimed what it has on this machine, in DIR/store.
  [[nodiscard]] Status complete(const Env& env, const Log& log, const SharedLog& shared,
                                const std::string& directory);

  std::unique_ptr<Store> store;
  StoreTerm term = StoreTerm::kNone;
  Instant claimed;      ///< when the claim began, by the monotonic clock
  OpenReader open_log;  ///< for reads of past events
  OpenReader open_archive;
  std::unique_ptr<StoreReader> archive;  ///< for reads beside the thread that commits
  std::unique_ptr<DiskWatch> disk;
  MakeCommits make_commits = {};  ///< see LiveLog
};

class LiveStore {
 public:
  struct Options {
    LiveHost& host;
    const ControllerSettings& settings;  ///< outlives the store; its changes take effect
    LiveCounts& counts;
    const RecoveredHistory& history;  ///< what was read from the store
    std::unique_ptr<HistoryWriter> writer;
    std::unique_ptr<LiveRecord> record;               ///< none: no recording
    std::function<std::string(JobId)> archived_form;  ///< see LiveArchive
    std::function<void(std::uint64_t)> durable;       ///< see LiveLog
    std::function<void()> may_speak;                  ///< see LiveLog
    std::function<void(const Error&)> failed;         ///< see LiveLog
  };
  LiveStore(const Env& env, const Log& log, ClaimedStore claimed, Options options);
  LiveStore(const LiveStore&) = delete;
  LiveStore& operator=(const LiveStore&) = delete;

  [[nodiscard]] LiveLog& log() { return log_; }
  [[nodiscard]] const LiveLog& log() const { return log_; }
  [[nodiscard]] LiveArchive& archive() { return archive_; }
  [[nodiscard]] const LiveArchive& archive() const { return archive_; }
  [[nodiscard]] const OpenReader& open_log() const { return open_log_; }
  [[nodiscard]] DiskWatch& disk() { return *disk_; }
  [[nodiscard]] const DiskWatch& disk() const { return *disk_; }
  [[nodiscard]] const LogRoom& room() const { return room_; }
  /// Looks at the space of the log now, and every few seconds from now on.
  void look();
  /// Error: new work is refused for want of space, on the disk or in a shared log.
  [[nodiscard]] Status admission() const;

 private:
  std::unique_ptr<DiskWatch> disk_;
  std::unique_ptr<Store> store_;
  OpenReader open_log_;
  LogRoom room_;
  LiveLog log_;
  LiveArchive archive_;
};

}  // namespace orrery
