#include "executor/log/live_archive.hpp"

#include <utility>

namespace orrery {

LiveArchive::LiveArchive(const Log& log, Options options)
    : log_(log), options_(std::move(options)) {
  queue_.take_up(options_.host.state());
}

void LiveArchive::read(std::uint64_t before, std::size_t count,
                       std::function<void(Rows)> then) const {
  beside_.run([reader = beside_reader_, open = options_.open, &inbox = options_.inbox, before,
               count, then = std::move(then)]() mutable {
    auto rows = std::make_shared<Rows>();
    if (*reader == nullptr) {
      StorageResult<std::unique_ptr<StoreReader>> opened = open();
      if (opened) *reader = *std::move(opened);
      if (!opened) *rows = forward_failure(opened);
    }
    if (*reader != nullptr) *rows = (*reader)->archived(before, count);
    inbox.post([rows, then = std::move(then)] { then(std::move(*rows)); });
  });
}

Duration LiveArchive::retain() const {
  return Duration::from_seconds(options_.settings.retain.value());
}

Instant LiveArchive::next_due() const {
  const bool moves = options_.form && moving_.empty() && !options_.host.is_halted();
  return moves ? queue_.next_due(retain()) : Instant::max();
}

void LiveArchive::move_due() {
  LiveHost& host = options_.host;
  if (host.is_halted() || !options_.form || !moving_.empty()) return;
  moving_ = queue_.take_due(host.state(), host.now(), retain());
  if (moving_.empty()) return;
  std::vector<ArchivedJob> rows;
  rows.reserve(moving_.size());
  for (const JobId job : moving_) rows.push_back({job.value(), options_.form(job)});
  options_.log.put_archived(std::move(rows));
}

void LiveArchive::on_put(const StorageStatus& put) {
  LiveHost& host = options_.host;
  const std::vector<JobId> jobs = std::exchange(moving_, {});
  if (put) {
    host.handle(ArchiveJobs{jobs});
  } else {
    log_.warning(host.clock().wall(), "jobs not archived", {{"why", put.error().message}});
  }
  for (const JobId job : jobs) {
    if (host.state().has(job)) queue_.on_stayed(host.now(), job);
  }
  host.changed();
}

}  // namespace orrery
