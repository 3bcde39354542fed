#include "store/group_commit.hpp"

#include <utility>

namespace orrery {

namespace {

/// The pause before a store that gave no answer is asked again.
constexpr auto kPause = std::chrono::milliseconds(50);

}  // namespace

GroupCommit::GroupCommit(CommitOptions options)
    : writer_(std::move(options)),
      queue_(writer_.traits().batch_bytes, writer_.options().newest),
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

template <class Add>
void GroupCommit::add(Add add_work) {
  {
    const std::scoped_lock lock(mutex_);
    add_work();
  }
  wake_.notify_one();
}

std::uint64_t GroupCommit::submit(std::string_view bytes, std::uint64_t next_job) {
  std::uint64_t number = 0;
  add([&] { number = queue_.submit(bytes, next_job); });
  return number;
}

void GroupCommit::put_texts(StoreTexts texts) {
  add([&] { queue_.put_texts(std::move(texts)); });
}

StorageStatus GroupCommit::put_texts_now(StoreTexts texts) {
  auto put = std::make_shared<std::promise<StorageStatus>>();
  std::future<StorageStatus> done = put->get_future();
  add([&] { queue_.put_texts(std::move(texts), std::move(put)); });
  if (done.wait_for(kTextsPatience) == std::future_status::ready) return done.get();
  return store_error(StorageFailure::kUnavailable,
                     fmt::format("{}: no answer for {} s", writer_.options().store.name(),
                                 kTextsPatience.count()));
}

void GroupCommit::put_archived(std::vector<ArchivedJob> jobs) {
  add([&] { queue_.put_archived(std::move(jobs)); });
}

void GroupCommit::put_snapshot(std::string bytes) {
  add([&] { queue_.put_snapshot(CommitWork::Kind::kSnapshot, std::move(bytes)); });
}

void GroupCommit::compact(std::string bytes, Compacted done) {
  add([&] {
    queue_.put_snapshot(CommitWork::Kind::kCompaction, std::move(bytes), std::move(done));
  });
}

std::size_t GroupCommit::waiting_bytes() const {
  const std::scoped_lock lock(mutex_);
  return queue_.waiting_bytes();
}

std::optional<CommitWork> GroupCommit::next(std::unique_lock<std::mutex>& lock) {
  const auto called = [this] { return phase_ != Phase::kRuns || !queue_.empty(); };
  const Duration beat_every = writer_.traits().beat_every;
  if (beat_every == Duration::max()) {
    wake_.wait(lock, called);
  } else if (!wake_.wait_for(lock, std::chrono::nanoseconds(beat_every.count_ns()), called)) {
    return CommitWork{.kind = CommitWork::Kind::kBeat};
  }
  if (queue_.empty()) return std::nullopt;
  return queue_.take();
}

void GroupCommit::run() {
  std::unique_lock lock(mutex_);
  while (std::optional<CommitWork> work = next(lock)) {
    lock.unlock();
    const bool beside = work->is_snapshot() && writer_.traits().snapshots_beside && !work->beside;
    if (beside && !puts_beside_) {
      put_beside(*std::move(work));
      lock.lock();
      continue;
    }
    if (work->beside) puts_beside_ = false;
    const StorageStatus status = write_until_answered(*work);
    lock.lock();
    queue_.finish(*work);
    if (writer_.finish(*work, status)) {
      phase_ = Phase::kFailed;
      return;
    }
  }
}

/// At the end, what comes back is dropped: the log is complete without it.
void GroupCommit::put_beside(CommitWork work) {
  puts_beside_ = true;
  if (snapshots_.joinable()) snapshots_.join();  // it has given its work back
  snapshots_ = std::thread([this, work = std::move(work)]() mutable {
    const CommitOptions& options = writer_.options();
    work.beside = options.store.put_snapshot(options.term, work.batch);
    add([&] { queue_.put_back(std::move(work)); });
  });
}

StorageStatus GroupCommit::write_until_answered(CommitWork& work) {
  const Instant began = writer_.options().clock.now_monotonic();
  for (bool again = false;; again = true) {
    StorageStatus status = writer_.write(work);
    const bool answered = writer_.note(work, began, status);
    std::unique_lock lock(mutex_);
    if (answered && again && status) queue_.put_beat();
    if (answered) return status;
    if (wake_.wait_for(lock, kPause, [this] { return phase_ != Phase::kRuns; })) return status;
  }
}

}  // namespace orrery
