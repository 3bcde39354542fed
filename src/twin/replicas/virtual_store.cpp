#include "twin/replicas/virtual_store.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "twin/replicas/virtual_follower.hpp"

namespace orrery {
namespace {

constexpr std::size_t kBatchBytes = std::size_t{16} << 10;

tl::unexpected<StorageError> no_answer() {
  return store_error(StorageFailure::kUnavailable, "virtual etcd: no answer");
}

/// Whether a request to read gets an answer.
bool answers(const ReplicaProcess& process) {
  return process.etcd.draw_fate(process.machine.number, EtcdRequest::kRead) != EtcdFate::kRefused;
}

/// The answer to a claim takes its time, and nothing follows it for a while.
void answer_slowly(ReplicaProcess& process) {
  Rng& rng = process.etcd.context().rng();
  const auto draw_ms = [&rng](std::uint64_t most) {
    return Duration::milliseconds(static_cast<std::int64_t>(1 + rng.below(most)));
  };
  constexpr std::uint64_t kAnswersWithin = 2'000;
  constexpr std::uint64_t kCutOffFor = 5'000;
  process.env.spend(draw_ms(kAnswersWithin));
  process.etcd.cut_for(process.machine.number, draw_ms(kCutOffFor));
}

using Change = std::function<StorageStatus(EtcdContent&)>;

StorageResult<VirtualEtcd::Write> fenced(const EtcdFence& held, StoreTerm term, Change change) {
  StorageStatus given = check_term("virtual etcd", {held.term, term});
  if (!given) return forward_failure(given);
  return VirtualEtcd::Write{.fence = held, .change = std::move(change)};
}

std::string text_key(const std::string& name) { return "text/" + name; }
std::string snapshot_key(std::uint64_t covers) { return fmt::format("snap/{}", covers); }

}  // namespace

StorageResult<std::unique_ptr<VirtualStore>> VirtualStore::open(ReplicaProcess& process) {
  auto store = std::make_unique<VirtualStore>(process);
  StorageResult<WriterSeen> seen = store->look();
  if (!seen) return forward_failure(seen);
  StorageStatus good = store->mark_.check(seen->newest, seen->term);
  if (!good) return forward_failure(good);
  return store;
}

VirtualStore::VirtualStore(ReplicaProcess& process)
    : process_(process), etcd_(process.etcd), mark_(process.machine) {}

VirtualStore::~VirtualStore() {
  if (!process_.killed) mark_.end();
}

StoreTraits VirtualStore::traits() const {
  return {.batch_bytes = kBatchBytes, .beat_every = kBeatEvery, .speaks_for = kSpeaksFor};
}

// --- The machine --------------------------------------------------------------------------------

StorageStatus VirtualStore::note_seen(const WriterSeen& seen, std::uint64_t next_job) {
  note({seen.newest, seen.term, next_job}, ReplicaMarkKeeper::Raise::kWhenDue);
  return {};
}

StorageStatus VirtualStore::keep_archived(const std::vector<ArchivedJob>& jobs) {
  for (const ArchivedJob& job : jobs) process_.machine.archive.archive[job.id] = job.bytes;
  return {};
}

StorageResult<std::vector<ArchivedJob>> VirtualStore::archived(std::uint64_t before,
                                                               std::size_t count) {
  return MemoryStore(process_.machine.archive).archived(before, count);
}

// --- Reads --------------------------------------------------------------------------------------

StorageResult<StoreExtent> VirtualStore::extent() {
  if (!answers(process_)) return no_answer();
  return StoreExtent{etcd_.content().oldest(), etcd_.content().disk.newest};
}

StorageResult<std::vector<Batch>> VirtualStore::read(std::uint64_t after, std::size_t bytes_max) {
  if (!answers(process_)) return no_answer();
  return etcd_.reader().read(after, bytes_max);
}

StorageResult<std::vector<std::uint64_t>> VirtualStore::snapshots() {
  if (!answers(process_)) return no_answer();
  return etcd_.reader().snapshots();
}

StorageResult<std::string> VirtualStore::snapshot(std::uint64_t covers) {
  if (!answers(process_)) return no_answer();
  return etcd_.reader().snapshot(covers);
}

StorageResult<StoreTexts> VirtualStore::texts() {
  if (!answers(process_)) return no_answer();
  return etcd_.content().disk.texts;
}

StorageResult<WriterSeen> VirtualStore::look() {
  if (!answers(process_)) return no_answer();
  return etcd_.content().seen();
}

std::unique_ptr<StoreFollower> VirtualStore::follow(FollowOptions options) {
  return std::make_unique<VirtualFollower>(etcd_, process_.machine.number, std::move(options));
}

// --- Claims -------------------------------------------------------------------------------------

StorageResult<StoreTerm> VirtualStore::claim() {
  const StorageResult<WriterSeen> seen = look();
  if (!seen) return tl::unexpected(seen.error());
  return claim_after(*seen, "");
}

StorageResult<StoreTerm> VirtualStore::claim_after(const WriterSeen& seen,
                                                   const std::string& writer) {
  if (StorageStatus good = mark_.check(seen.newest, seen.term); !good) {
    return forward_failure(good);
  }
  if (!open_claim_ || !(open_claim_->seen == seen)) {
    constexpr std::uint64_t kClaimsMax = 1'000'000;
    open_claim_ = {seen, writer, process_.number * kClaimsMax + ++claims_, process_.number};
  }
  const VirtualEtcd::Claim claim = *open_claim_;
  const EtcdFate fate = etcd_.draw_fate(process_.machine.number, EtcdRequest::kWrite);
  const bool slow = etcd_.context().chance(etcd_.rules().slow_claims);
  if (fate == EtcdFate::kRefused) return no_answer();
  if (fate == EtcdFate::kLate) {
    etcd_.later([&etcd = etcd_, claim] { static_cast<void>(etcd.commit(claim)); });
    return no_answer();
  }
  const StorageResult<EtcdFence> fence = etcd_.commit(claim);
  if (slow) answer_slowly(process_);
  if (fate == EtcdFate::kLost) return no_answer();
  open_claim_.reset();
  if (!fence) return tl::unexpected(fence.error());
  held_ = *fence;
  const auto next_job = etcd_.content().next_jobs.find(held_.newest);
  const std::uint64_t known = next_job == etcd_.content().next_jobs.end() ? 0 : next_job->second;
  const ReplicaMark reached{held_.newest, static_cast<std::uint64_t>(held_.term), known};
  note(reached, ReplicaMarkKeeper::Raise::kNow);
  return held_.term;
}

// --- Writes -------------------------------------------------------------------------------------

StorageStatus VirtualStore::write(VirtualEtcd::Write write) {
  const EtcdFate fate = etcd_.draw_fate(process_.machine.number, EtcdRequest::kWrite);
  if (fate == EtcdFate::kRefused) return no_answer();
  if (fate == EtcdFate::kLate) {
    etcd_.later(
        [&etcd = etcd_, write = std::move(write)] { static_cast<void>(etcd.commit(write)); });
    return no_answer();
  }
  StorageStatus done = etcd_.commit(write);
  if (fate == EtcdFate::kLost) return no_answer();
  return done;
}

StorageStatus VirtualStore::beat(StoreTerm term) {
  auto beat = fenced(held_, term, [](EtcdContent& content) -> StorageStatus {
    content.beat_mark = content.revision;
    return {};
  });
  if (!beat) return forward_failure(beat);
  if (StorageStatus done = write(*std::move(beat)); !done) return done;
  note({}, ReplicaMarkKeeper::Raise::kWhenDue);
  return {};
}

StorageStatus VirtualStore::append(StoreTerm term, const Batch& batch) {
  auto append = fenced(
      held_, term,
      [this_etcd = &etcd_, fence = held_, batch](EtcdContent& content) -> StorageStatus {
        const auto there = content.disk.batches.find(batch.number);
        if (there != content.disk.batches.end()) {
          if (there->second == batch.bytes) return {};
          return store_error(StorageFailure::kOther, "a batch is there already, with other bytes");
        }
        MemoryStore store(content.disk);
        StorageStatus appended = store.append(fence.term, batch);
        if (!appended) return appended;
        content.next_jobs[batch.number] = batch.next_job;
        this_etcd->outside().appended(fence.term, batch);
        return {};
      });
  if (!append) return forward_failure(append);
  StorageStatus next = check_next(name_, {held_.newest, batch.number});
  if (!next) return next;
  if (StorageStatus done = write(*std::move(append)); !done) return done;
  held_.newest = batch.number;
  note({.batch = batch.number, .next_job = batch.next_job}, ReplicaMarkKeeper::Raise::kWhenDue);
  return {};
}

StorageStatus VirtualStore::put_snapshot(StoreTerm term, const Batch& covers) {
  const std::string key = snapshot_key(covers.number);
  const auto mark = etcd_.content().marks.find(key);
  const std::uint64_t before = mark == etcd_.content().marks.end() ? 0 : mark->second;
  auto put = fenced(held_, term,
                    [key, before, covers, own = held_.term](EtcdContent& content) -> StorageStatus {
                      const auto now = content.marks.find(key);
                      if ((now == content.marks.end() ? 0 : now->second) != before) return {};
                      content.marks[key] = content.revision;
                      content.beat_mark = content.revision;
                      return MemoryStore(content.disk).put_snapshot(own, covers);
                    });
  if (!put) return forward_failure(put);
  if (StorageStatus done = write(*std::move(put)); !done) return done;
  note({.batch = covers.number}, ReplicaMarkKeeper::Raise::kNow);
  return {};
}

StorageStatus VirtualStore::drop_covered(StoreTerm term, std::uint64_t covers) {
  auto drop =
      fenced(held_, term, [covers, own = held_.term](EtcdContent& content) -> StorageStatus {
        for (const auto& [number, bytes] : content.disk.snapshots) {
          if (number < covers) content.marks.erase(snapshot_key(number));
        }
        return MemoryStore(content.disk).drop_covered(own, covers);
      });
  if (!drop) return forward_failure(drop);
  drop->space = VirtualEtcd::Write::Space::kGives;
  return write(*std::move(drop));
}

StorageStatus VirtualStore::put_texts(StoreTerm term, const StoreTexts& texts) {
  std::map<std::string, std::uint64_t> before;
  for (const auto& [text, bytes] : texts) {
    const auto mark = etcd_.content().marks.find(text_key(text));
    before[text] = mark == etcd_.content().marks.end() ? 0 : mark->second;
  }
  auto put = fenced(
      held_, term,
      [&etcd = etcd_, before, texts, own = held_.term](EtcdContent& content) -> StorageStatus {
        for (const auto& [text, mark] : before) {
          const auto now = content.marks.find(text_key(text));
          if ((now == content.marks.end() ? 0 : now->second) != mark) return {};
        }
        for (const auto& [text, bytes] : texts) content.marks[text_key(text)] = content.revision;
        content.texts_mark = content.revision;
        content.beat_mark = content.revision;
        StorageStatus done = MemoryStore(content.disk).put_texts(own, texts);
        if (done) etcd.outside().texts_put();
        return done;
      });
  if (!put) return forward_failure(put);
  return write(*std::move(put));
}

StorageStatus VirtualStore::put_archived(StoreTerm term, const std::vector<ArchivedJob>& jobs) {
  if (StorageStatus held = check_term(name_, {held_.term, term}); !held) return held;
  return keep_archived(jobs);
}

}  // namespace orrery
