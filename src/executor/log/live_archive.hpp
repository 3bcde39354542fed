// executor/log/live_archive.hpp - moves jobs that have ended from the state of a running
// controller to the archive on the disk, and reads them back.
//
// Owned by the controller, on its loop. Jobs are written to the archive first, then leave the
// state: after a crash in between they are in both, and are archived again. One move is on its way
// at a time. Invariant: a job leaves the state only after its row is durable. Cost of a move:
// making the rows of its jobs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/threads/side_thread.hpp"
#include "executor/controller_settings.hpp"
#include "executor/jobs/job_archive.hpp"
#include "executor/live/live_host.hpp"
#include "executor/log/live_log.hpp"
#include "executor/log/shared_log.hpp"
#include "store/store.hpp"

namespace orrery {

class LiveArchive {
 public:
  struct Options {
    LiveHost& host;
    LiveLog& log;                        ///< its `archive_put` calls on_put()
    const ControllerSettings& settings;  ///< outlives the archive; its changes take effect
    Inbox& inbox;
    std::unique_ptr<StoreReader> reader;
    OpenReader open;  ///< opens another reader, for a thread of its own
    /// Returns the archive's form of a job that has ended; none: all jobs stay in the state.
    std::function<std::string(JobId)> form;
  };
  LiveArchive(const Log& log, Options options);

  void on_end(Instant at, JobId job) { queue_.on_end(at, job); }
  /// Returns when move_due() has something to do; max: nothing, as things are.
  [[nodiscard]] Instant next_due() const;
  /// Begins to move the jobs that ended long enough ago.
  void move_due();
  /// The rows of the move are durable, or there is no space for them: the jobs stay then.
  void on_put(const StorageStatus& put);

  using Rows = StorageResult<std::vector<ArchivedJob>>;
  /// Reads archived jobs with an id below `before`, descending, beside the loop; `then` is called
  /// on the loop.
  void read(std::uint64_t before, std::size_t count, std::function<void(Rows)> then) const;
  /// Returns archived jobs with an id below `before`, descending. Reads the disk on the loop: for a
  /// single row.
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) const {
    return options_.reader->archived(before, count);
  }

 private:
  [[nodiscard]] Duration retain() const;

  Log log_;
  Options options_;
  JobArchive queue_;
  std::vector<JobId> moving_;  ///< jobs on their way to the disk
  /// The reader of the side thread, which alone uses it; none: not opened yet.
  std::shared_ptr<std::unique_ptr<StoreReader>> beside_reader_ =
      std::make_shared<std::unique_ptr<StoreReader>>();
  mutable SideThread beside_;
};

}  // namespace orrery
