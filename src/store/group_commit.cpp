#include "store/group_commit.hpp"

#include <utility>

#include "base/assert.hpp"

namespace orrery {

GroupCommit::GroupCommit(GroupCommitOptions options)
    : options_(std::move(options)), newest_(options_.newest), thread_([this] { run(); }) {}

GroupCommit::~GroupCommit() {
  {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kRuns) phase_ = Phase::kEnding;
  }
  wake_.notify_one();
  thread_.join();
}

std::uint64_t GroupCommit::submit(std::string_view bytes, std::uint64_t next_job) {
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    const bool open = !queue_.empty() && queue_.back().kind == Kind::kBatch &&
                      queue_.back().batch.bytes.size() < kBatchBytes;
    if (!open) queue_.push_back({Kind::kBatch, {.number = ++newest_}, {}, {}});
    queue_.back().batch.bytes += bytes;
    queue_.back().batch.next_job = next_job;
    waiting_bytes_ += bytes.size();
    number = newest_;
  }
  wake_.notify_one();
  return number;
}

void GroupCommit::put_texts(StoreTexts texts) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({Kind::kTexts, {}, std::move(texts), {}});
  }
  wake_.notify_one();
}

void GroupCommit::put_archived(std::vector<ArchivedJob> jobs) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({Kind::kArchive, {}, {}, std::move(jobs)});
  }
  wake_.notify_one();
}

void GroupCommit::put_snapshot(std::string bytes) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_bytes_ += bytes.size();
    queue_.push_back({Kind::kSnapshot, {newest_, std::move(bytes)}, {}, {}});
  }
  wake_.notify_one();
}

void GroupCommit::compact(std::string bytes, Compacted done) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_bytes_ += bytes.size();
    queue_.push_back({Kind::kCompaction, {newest_, std::move(bytes)}, {}, {}, std::move(done)});
  }
  wake_.notify_one();
}

std::size_t GroupCommit::waiting_bytes() const {
  const std::scoped_lock lock(mutex_);
  return waiting_bytes_;
}

void GroupCommit::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return phase_ != Phase::kRuns || !queue_.empty(); });
    if (queue_.empty()) return;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const StorageStatus status = write(work);
    lock.lock();
    waiting_bytes_ -= work.batch.bytes.size();
    tell(work, status);
    if (is_final(work, status)) {
      phase_ = Phase::kFailed;
      return;
    }
  }
}

StorageStatus GroupCommit::commit(const Work& work) {
  if (work.kind == Kind::kTexts) return options_.store.put_texts(options_.term, work.texts);
  return options_.store.append(options_.term, work.batch);
}

StorageStatus GroupCommit::write(Work& work) {
  if (work.kind == Kind::kSnapshot) {
    return put_snapshot_and_drop(options_.store, options_.term, work.batch);
  }
  if (work.kind == Kind::kCompaction) {
    StorageResult<CompactedLog> log = compact_to(options_.store, options_.term, work.batch);
    if (!log) return tl::unexpected(log.error());
    work.log = *log;
    return {};
  }
  if (work.kind == Kind::kArchive) return options_.store.put_archived(options_.term, work.jobs);
  StorageStatus status = commit(work);
  if (status || status.error().failure != StorageFailure::kFull || !options_.make_room) {
    return status;
  }
  if (options_.make_room() == RoomMade::kNo) return status;
  return commit(work);
}

bool GroupCommit::is_final(const Work& work, const StorageStatus& status) {
  if (status) return false;
  const bool can_wait =
      work.kind == Kind::kSnapshot || work.kind == Kind::kArchive || work.kind == Kind::kCompaction;
  return !can_wait || status.error().failure != StorageFailure::kFull;
}

void GroupCommit::tell(const Work& work, const StorageStatus& status) const {
  if (is_final(work, status)) {
    options_.inbox.post([call = options_.failed, why = status.error()] { call(why); });
  } else if (work.kind == Kind::kBatch) {
    options_.inbox.post([call = options_.durable, number = work.batch.number] { call(number); });
  } else if (work.kind == Kind::kArchive && options_.archive_put) {
    options_.inbox.post([call = options_.archive_put, status] { call(status); });
  } else if (work.kind == Kind::kCompaction) {
    StorageResult<CompactedLog> log = work.log;
    if (!status) log = tl::unexpected(status.error());
    options_.inbox.post([call = work.compacted, log] { call(log); });
  } else if (work.kind == Kind::kSnapshot && options_.snapshot_put) {
    options_.inbox.post([call = options_.snapshot_put, status] { call(status); });
  }
}

}  // namespace orrery
