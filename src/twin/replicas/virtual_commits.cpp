#include "twin/replicas/virtual_commits.hpp"

#include <utility>

namespace orrery {
namespace {

/// The pause before a store that gave no answer is asked again.
constexpr Duration kPause = Duration::milliseconds(50);

}  // namespace

VirtualCommits::VirtualCommits(ReplicaProcess& process, CommitOptions options)
    : process_(process),
      env_(process.env.env()),
      writer_(std::move(options)),
      queue_(writer_.traits().batch_bytes, writer_.options().newest) {
  go_on();
}

VirtualCommits::~VirtualCommits() {
  *lives_ = false;
  if (timer_) env_.timers.cancel(*timer_);
  constexpr double kArrives = 0.5;
  if (under_way_ && process_.etcd.context().chance(kArrives)) {
    static_cast<void>(writer_.write(*work_));
  }
}

std::uint64_t VirtualCommits::submit(std::string_view bytes, std::uint64_t next_job) {
  const std::uint64_t number = queue_.submit(bytes, next_job);
  go_on();
  return number;
}

void VirtualCommits::put_texts(StoreTexts texts) {
  queue_.put_texts(std::move(texts));
  go_on();
}

StorageStatus VirtualCommits::put_texts_now(StoreTexts) {
  return store_error(StorageFailure::kUnavailable, "nothing waits in virtual time");
}

void VirtualCommits::put_archived(std::vector<ArchivedJob> jobs) {
  queue_.put_archived(std::move(jobs));
  go_on();
}

void VirtualCommits::put_snapshot(std::string bytes) {
  queue_.put_snapshot(CommitWork::Kind::kSnapshot, std::move(bytes));
  go_on();
}

void VirtualCommits::compact(std::string bytes, Compacted done) {
  queue_.put_snapshot(CommitWork::Kind::kCompaction, std::move(bytes), std::move(done));
  go_on();
}

void VirtualCommits::after(Duration delay, void (VirtualCommits::*then)()) {
  if (timer_) env_.timers.cancel(*timer_);
  timer_ = env_.timers.call_after(delay, [this, then] {
    timer_.reset();
    (this->*then)();
  });
}

void VirtualCommits::go_on() {
  if (work_ || failed_) return;
  if (queue_.empty()) {
    // The beat that waits already is the one that counts.
    if (timer_) return;
    return after(writer_.traits().beat_every, &VirtualCommits::begin_write);
  }
  after(Duration(), &VirtualCommits::begin_write);
}

Duration VirtualCommits::draw_time() {
  ProtocolContext& context = process_.etcd.context();
  const auto most = static_cast<std::uint64_t>(process_.etcd.rules().write_max.count_ns() / 1'000);
  return Duration::nanoseconds(1'000 * static_cast<std::int64_t>(1 + context.rng().below(most)));
}

void VirtualCommits::begin_write() {
  again_ = work_.has_value();
  if (!again_) {
    began_ = env_.clock.now_monotonic();
    work_ = queue_.empty() ? CommitWork{.kind = CommitWork::Kind::kBeat} : queue_.take();
  }
  under_way_ = true;
  VirtualTime& time = process_.etcd.context().time();
  time.after(draw_time(), [this, lives = lives_, &time] {
    if (!*lives) return;
    under_way_ = false;
    const StorageStatus status = writer_.write(*work_);
    time.after(draw_time(), [this, status, lives] {
      if (!*lives) return;
      process_.env.arrive([this, status, lives] {
        if (*lives) answer(status);
      });
    });
  });
}

void VirtualCommits::answer(const StorageStatus& status) {
  if (!writer_.note(*work_, began_, status)) return after(kPause, &VirtualCommits::begin_write);
  const CommitWork work = *std::exchange(work_, std::nullopt);
  queue_.finish(work);
  if (again_ && status) queue_.put_beat();
  failed_ = writer_.finish(work, status);
  go_on();
}

}  // namespace orrery
