// store/memory/memory_shared_store_test.hpp - a shared store in memory, for tests of those who
// follow it: a service that may be away, or lose its answers.
//
// The service outlives its stores and followers. Any thread; followers are told through their
// inboxes.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "store/memory/memory_store.hpp"
#include "store/shared_store.hpp"

namespace orrery {

/// What etcd is to an EtcdStore.
class MemoryService {
 public:
  /// Nothing is answered and nothing changes while it is away.
  enum class Reach : std::uint8_t { kThere, kAway };
  void set(Reach reach) {
    const std::scoped_lock lock(mutex_);
    away_ = reach == Reach::kAway;
  }
  /// The next writes are done, but their answers are lost.
  void lose_answers(int count) {
    const std::scoped_lock lock(mutex_);
    lost_ = count;
  }
  /// Followers hear nothing from now on; what they miss comes when they may hear again.
  enum class Followers : std::uint8_t { kHear, kDeaf };
  void set(Followers followers) {
    const std::scoped_lock lock(mutex_);
    deaf_ = followers == Followers::kDeaf;
    if (!deaf_) tell();
  }
  [[nodiscard]] std::uint64_t newest() {
    const std::scoped_lock lock(mutex_);
    return disk_.newest;
  }
  Duration speaks_for;  ///< what a claim says; set before there are stores

 private:
  friend class MemorySharedStore;
  friend class MemoryFollower;

  struct Follower {
    FollowOptions options;
    std::shared_ptr<bool> lives = std::make_shared<bool>(true);  ///< used on the loop alone
    WriterSeen told;
    std::uint64_t texts = 0;
  };

  [[nodiscard]] StorageError no_answer() const {
    return StorageError{Error{ErrorKind::kEnvironment, "memory: no answer", {}},
                        StorageFailure::kUnavailable};
  }
  [[nodiscard]] WriterSeen seen() const {
    return {static_cast<std::uint64_t>(disk_.term),
            writer_,
            claimed_,
            beaten_,
            disk_.newest,
            speaks_for};
  }
  /// Precondition: the lock is held, as for the next two.
  void tell() {
    if (deaf_) return;
    for (Follower* each : followers_) tell(*each);
  }
  void tell(Follower& each) {
    const auto call = [&](auto then) {
      each.options.inbox.post([lives = each.lives, then = std::move(then)] {
        if (*lives) then();
      });
    };
    if (each.texts != texts_put_) call(each.options.texts_put);
    each.texts = texts_put_;
    std::uint64_t& after = each.options.after;
    for (auto at = disk_.batches.upper_bound(after); at != disk_.batches.end(); ++at) {
      after = at->first;
      call([batch = each.options.batch, next = Batch{at->first, at->second}] { batch(next); });
    }
    const WriterSeen now = seen();
    if (now == each.told) return;
    each.told = now;
    call([seen = each.options.seen, now] { seen(now); });
  }
  /// The answer to a write that was done.
  [[nodiscard]] StorageStatus answer(StorageStatus status) {
    ++revision_;
    if (status) tell();
    if (lost_ == 0) return status;
    --lost_;
    return tl::unexpected(no_answer());
  }

  std::mutex mutex_;
  MemoryDisk disk_;
  std::uint64_t revision_ = 1;
  std::uint64_t claimed_ = 0;
  std::uint64_t beaten_ = 0;
  std::uint64_t texts_put_ = 0;
  std::string writer_;
  std::vector<Follower*> followers_;
  bool away_ = false;
  bool deaf_ = false;
  int lost_ = 0;
};

class MemoryFollower final : public StoreFollower {
 public:
  MemoryFollower(MemoryService& service, FollowOptions options)
      : service_(service), follower_{std::move(options)} {
    const std::scoped_lock lock(service_.mutex_);
    service_.followers_.push_back(&follower_);
    follower_.told.term = ~std::uint64_t{0};  // told what there is in any case
    follower_.texts = service_.texts_put_;
    if (!service_.deaf_) service_.tell(follower_);
  }
  MemoryFollower(const MemoryFollower&) = delete;
  MemoryFollower& operator=(const MemoryFollower&) = delete;
  ~MemoryFollower() override {
    const std::scoped_lock lock(service_.mutex_);
    *follower_.lives = false;
    std::erase(service_.followers_, &follower_);
  }

 private:
  MemoryService& service_;
  MemoryService::Follower follower_;
};

class MemorySharedStore final : public SharedStore {
 public:
  explicit MemorySharedStore(MemoryService& service, StoreTraits traits = shared_traits())
      : service_(service), store_(service.disk_), traits_(traits) {}

  [[nodiscard]] static StoreTraits shared_traits() {
    return {.batch_bytes = std::size_t{128} << 10,
            .beat_every = Duration::milliseconds(20),
            .speaks_for = Duration::milliseconds(100)};
  }

  /// This store alone gets no answers from now on.
  void cut() {
    const std::scoped_lock lock(service_.mutex_);
    cut_ = true;
  }

  [[nodiscard]] StoreTraits traits() const override { return traits_; }
  [[nodiscard]] std::uint64_t held_bytes() const override { return held; }
  [[nodiscard]] const std::string& name() const override { return store_.name(); }
  [[nodiscard]] StorageResult<StoreExtent> extent() override {
    return read_with([&] { return store_.extent(); });
  }
  [[nodiscard]] StorageResult<std::vector<Batch>> read(std::uint64_t after,
                                                       std::size_t bytes_max) override {
    return read_with([&] { return store_.read(after, bytes_max); });
  }
  [[nodiscard]] StorageResult<std::vector<std::uint64_t>> snapshots() override {
    return read_with([&] { return store_.snapshots(); });
  }
  [[nodiscard]] StorageResult<std::string> snapshot(std::uint64_t covers) override {
    return read_with([&] { return store_.snapshot(covers); });
  }
  [[nodiscard]] StorageResult<StoreTexts> texts() override {
    return read_with([&] { return store_.texts(); });
  }
  [[nodiscard]] StorageResult<std::vector<ArchivedJob>> archived(std::uint64_t before,
                                                                 std::size_t count) override {
    return read_with([&] { return store_.archived(before, count); });
  }
  [[nodiscard]] StorageStatus check() override { return store_.check(); }

  [[nodiscard]] StorageResult<StoreTerm> claim() override {
    const StorageResult<WriterSeen> seen = look();
    if (!seen) return tl::unexpected(seen.error());
    return claim_after(*seen, "");
  }
  [[nodiscard]] StorageResult<StoreTerm> claim_after(const WriterSeen& seen,
                                                     const std::string& writer) override {
    const std::scoped_lock lock(service_.mutex_);
    if (service_.away_ || cut_) return tl::unexpected(service_.no_answer());
    const WriterSeen now = service_.seen();
    if (now.claim_mark != seen.claim_mark || now.beat_mark != seen.beat_mark ||
        now.newest != seen.newest) {
      return store_error(StorageFailure::kSuperseded, "memory: the writer has written since");
    }
    service_.writer_ = writer;
    service_.claimed_ = ++service_.revision_;
    StorageResult<StoreTerm> term = store_.claim();
    service_.tell();
    return term;
  }
  [[nodiscard]] StorageResult<WriterSeen> look() override {
    return read_with([&]() -> StorageResult<WriterSeen> { return service_.seen(); });
  }
  [[nodiscard]] std::unique_ptr<StoreFollower> follow(FollowOptions options) override {
    return std::make_unique<MemoryFollower>(service_, std::move(options));
  }

  [[nodiscard]] StorageStatus note_seen(const WriterSeen& seen, std::uint64_t next_job) override {
    noted = {seen.newest, next_job};
    return {};
  }
  [[nodiscard]] StorageStatus keep_archived(const std::vector<ArchivedJob>& jobs) override {
    kept.insert(kept.end(), jobs.begin(), jobs.end());
    return {};
  }

  [[nodiscard]] StorageStatus beat(StoreTerm term) override {
    return write_with([&] {
      StorageStatus status = check_term(name(), {service_.disk_.term, term});
      if (status) service_.beaten_ = service_.revision_ + 1;
      return status;
    });
  }
  [[nodiscard]] StorageStatus append(StoreTerm term, const Batch& batch) override {
    return write_with([&]() -> StorageStatus {
      const auto there = service_.disk_.batches.find(batch.number);
      const bool repeated = service_.disk_.term == term && there != service_.disk_.batches.end() &&
                            there->second == batch.bytes;
      if (repeated) return {};
      return store_.append(term, batch);
    });
  }
  [[nodiscard]] StorageStatus put_snapshot(StoreTerm term, const Batch& covers) override {
    return write_with([&] { return store_.put_snapshot(term, covers); });
  }
  [[nodiscard]] StorageStatus drop_covered(StoreTerm term, std::uint64_t covers) override {
    return write_with([&] { return store_.drop_covered(term, covers); });
  }
  [[nodiscard]] StorageStatus shrink() override { return store_.shrink(); }
  [[nodiscard]] StorageStatus put_texts(StoreTerm term, const StoreTexts& texts) override {
    return write_with([&] {
      StorageStatus status = store_.put_texts(term, texts);
      if (status) ++service_.texts_put_;
      if (status) service_.beaten_ = service_.revision_ + 1;
      return status;
    });
  }
  [[nodiscard]] StorageStatus put_archived(StoreTerm term,
                                           const std::vector<ArchivedJob>& jobs) override {
    return write_with([&] { return store_.put_archived(term, jobs); });
  }

  std::atomic<std::uint64_t> held = 0;                 ///< what held_bytes() answers
  std::vector<ArchivedJob> kept;                       ///< by keep_archived()
  std::pair<std::uint64_t, std::uint64_t> noted = {};  ///< by note_seen(): batch, job number

 private:
  template <class Read>
  auto read_with(Read read) -> decltype(read()) {
    const std::scoped_lock lock(service_.mutex_);
    if (service_.away_ || cut_) return tl::unexpected(service_.no_answer());
    return read();
  }
  template <class Write>
  StorageStatus write_with(Write write) {
    const std::scoped_lock lock(service_.mutex_);
    if (service_.away_ || cut_) return tl::unexpected(service_.no_answer());
    return service_.answer(write());
  }

  MemoryService& service_;
  MemoryStore store_;
  StoreTraits traits_;
  bool cut_ = false;  ///< guarded by the service's mutex
};

}  // namespace orrery
