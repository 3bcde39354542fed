#include "store/group_commit.hpp"

#include <utility>

#include "base/assert.hpp"

namespace orrery {

namespace {

/// The pause before a store that gave no answer is asked again.
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

GroupCommit::GroupCommit(GroupCommitOptions options)
    : options_(std::move(options)),
      traits_(options_.store.traits()),
      newest_(options_.newest),
      thread_([this] { run(); }) {}

GroupCommit::~GroupCommit() {
  {
    const std::scoped_lock lock(mutex_);
    if (phase_ == Phase::kRuns) phase_ = Phase::kEnding;
  }
  wake_.notify_one();
  thread_.join();
  if (snapshots_.joinable()) snapshots_.join();
}

std::uint64_t GroupCommit::submit(std::string_view bytes, std::uint64_t next_job) {
  std::uint64_t number = 0;
  {
    const std::scoped_lock lock(mutex_);
    const bool open = !queue_.empty() && queue_.back().kind == Kind::kBatch &&
                      queue_.back().batch.bytes.size() < traits_.batch_bytes;
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

StorageStatus GroupCommit::put_texts_now(StoreTexts texts) {
  auto put = std::make_shared<std::promise<StorageStatus>>();
  std::future<StorageStatus> done = put->get_future();
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_back({.kind = Kind::kTexts, .texts = std::move(texts), .put = std::move(put)});
  }
  wake_.notify_one();
  if (done.wait_for(kTextsPatience) == std::future_status::ready) return done.get();
  return store_error(
      StorageFailure::kUnavailable,
      fmt::format("{}: no answer for {} s", options_.store.name(), kTextsPatience.count()));
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

std::optional<GroupCommit::Work> GroupCommit::next(std::unique_lock<std::mutex>& lock) {
  const auto called = [this] { return phase_ != Phase::kRuns || !queue_.empty(); };
  if (traits_.beat_every == Duration::max()) {
    wake_.wait(lock, called);
  } else if (!wake_.wait_for(lock, std::chrono::nanoseconds(traits_.beat_every.count_ns()),
                             called)) {
    return Work{.kind = Kind::kBeat};
  }
  if (queue_.empty()) return std::nullopt;
  Work work = std::move(queue_.front());
  queue_.pop_front();
  return work;
}

void GroupCommit::run() {
  std::unique_lock lock(mutex_);
  while (std::optional<Work> work = next(lock)) {
    lock.unlock();
    const bool snapshot = work->kind == Kind::kSnapshot || work->kind == Kind::kCompaction;
    if (snapshot && traits_.snapshots_beside && !work->beside && !puts_beside_) {
      put_beside(*std::move(work));
      lock.lock();
      continue;
    }
    const StorageStatus status = write_until_answered(*work);
    lock.lock();
    waiting_bytes_ -= work->batch.bytes.size();
    tell(*work, status);
    if (is_final(*work, status)) {
      phase_ = Phase::kFailed;
      return;
    }
  }
}

/// At the end, what comes back is dropped: the log is complete without it.
void GroupCommit::put_beside(Work work) {
  puts_beside_ = true;
  if (snapshots_.joinable()) snapshots_.join();  // it has given its work back
  snapshots_ = std::thread([this, work = std::move(work)]() mutable {
    work.beside = options_.store.put_snapshot(options_.term, work.batch);
    {
      const std::scoped_lock lock(mutex_);
      queue_.push_back(std::move(work));
    }
    wake_.notify_one();
  });
}

/// Whether the store is asked again. One that is full and that others follow can be given room by
/// its operator, and the writer loses nothing by waiting.
bool GroupCommit::waits_for(const Work& work, const StorageError& error) const {
  if (error.failure == StorageFailure::kUnavailable) return true;
  const bool log =
      work.kind == Kind::kBatch || work.kind == Kind::kBeat || work.kind == Kind::kTexts;
  return error.failure == StorageFailure::kFull && log && traits_.speaks_for != Duration::max();
}

StorageStatus GroupCommit::write_until_answered(Work& work) {
  bool silent = false;
  while (true) {
    const Instant began = options_.clock.now_monotonic();
    StorageStatus status = write(work);
    // A snapshot that the second thread could not put is not put again.
    const bool over = work.beside && !*work.beside;
    const bool answered = status || over || !waits_for(work, status.error());
    if (options_.answers && answered == silent) {
      options_.inbox.post([call = options_.answers, status] { call(status); });
    }
    if (status && options_.spoke && traits_.speaks_for != Duration::max()) {
      options_.inbox.post([call = options_.spoke, began] { call(began); });
    }
    if (answered) return status;
    silent = true;
    std::unique_lock lock(mutex_);
    if (wake_.wait_for(lock, kPause, [this] { return phase_ != Phase::kRuns; })) return status;
  }
}

StorageStatus GroupCommit::commit(const Work& work) {
  if (work.kind == Kind::kTexts) return options_.store.put_texts(options_.term, work.texts);
  if (work.kind == Kind::kBeat) return options_.store.beat(options_.term);
  return options_.store.append(options_.term, work.batch);
}

StorageStatus GroupCommit::write(Work& work) {
  if (work.kind == Kind::kSnapshot || work.kind == Kind::kCompaction) return write_snapshot(work);
  if (work.kind == Kind::kArchive) return options_.store.put_archived(options_.term, work.jobs);
  StorageStatus status = commit(work);
  if (status || status.error().failure != StorageFailure::kFull || !options_.make_room) {
    return status;
  }
  if (options_.make_room() == RoomMade::kNo) return status;
  return commit(work);
}

StorageStatus GroupCommit::write_snapshot(Work& work) {
  Store& store = options_.store;
  if (traits_.snapshots_beside && !work.beside) {
    return store_error(StorageFailure::kExists, store.name() + ": a snapshot is being put already");
  }
  puts_beside_ = false;
  StorageStatus status = work.beside ? *work.beside : store.put_snapshot(options_.term, work.batch);
  if (!status) return status;
  if (work.kind == Kind::kSnapshot) return drop_before_previous(store, options_.term);
  StorageResult<CompactedLog> log = drop_to(store, options_.term, work.batch);
  if (!log) return tl::unexpected(log.error());
  work.log = *log;
  return {};
}

bool GroupCommit::is_final(const Work& work, const StorageStatus& status) {
  if (status) return false;
  const StorageFailure failure = status.error().failure;
  const bool snapshot = work.kind == Kind::kSnapshot || work.kind == Kind::kCompaction;
  // The log is complete without a snapshot, and the next one is put in its time.
  if (snapshot && (failure == StorageFailure::kExists || work.beside)) {
    return failure != StorageFailure::kExists && failure != StorageFailure::kFull &&
           failure != StorageFailure::kUnavailable;
  }
  const bool can_wait = snapshot || work.kind == Kind::kArchive;
  return !can_wait || failure != StorageFailure::kFull;
}

void GroupCommit::tell(const Work& work, const StorageStatus& status) const {
  if (work.put) work.put->set_value(status);
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
