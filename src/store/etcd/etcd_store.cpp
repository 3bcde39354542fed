#include "store/etcd/etcd_store.hpp"

#include <utility>

#include "base/system/real_storage.hpp"
#include "store/etcd/etcd_follower.hpp"

namespace orrery {
namespace {

/// The size at which etcd commits most bytes in a second without long delays.
constexpr std::size_t kBatchBytes = std::size_t{128} << 10;
constexpr Duration kBeatEvery = Duration::milliseconds(500);
constexpr int kClaimsMax = 8;

}  // namespace

EtcdStore::EtcdStore(std::unique_ptr<EtcdClient> client, EtcdStoreSettings settings)
    : client_(std::move(client)),
      reader_(*client_),
      writer_(*client_, settings.snapshot_bytes_per_second),
      speaks_for_(settings.speaks_for) {}

StorageResult<std::unique_ptr<EtcdStore>> EtcdStore::open(const EtcdLocation& location,
                                                          const std::string& local,
                                                          EtcdStoreSettings settings) {
  auto client = EtcdClient::make(location);
  if (!client) return forward_failure(client);
  auto store = std::make_unique<EtcdStore>(*std::move(client), settings);
  RealStorage storage;
  if (StorageStatus made = storage.make_directories(local); !made) return forward_failure(made);
  StorageResult<std::unique_ptr<SqliteStore>> archive = SqliteStore::open(local + "/archive");
  if (!archive) return forward_failure(archive);
  store->archive_ = *std::move(archive);
  StorageResult<StoreTerm> term = store->archive_->claim();
  if (!term) return forward_failure(term);
  store->archive_term_ = *term;
  StorageResult<std::unique_ptr<LocalMark>> mark = LocalMark::open(local);
  if (!mark) return forward_failure(mark);
  store->mark_ = *std::move(mark);
  StorageResult<EtcdState> state = store->reader_.state();
  if (!state) return forward_failure(state);
  StorageStatus good = check_open(*store->client_, *state);
  if (good) good = store->mark_->check(location, state->seen);
  if (!good) return forward_failure(good);
  return store;
}

StorageResult<std::unique_ptr<StoreReader>> EtcdStore::open_to_read(const EtcdLocation& location) {
  auto client = EtcdClient::make(location);
  if (!client) return forward_failure(client);
  auto reader = std::make_unique<EtcdReader>(*std::move(client));
  StorageResult<EtcdState> state = reader->state();
  if (!state) return forward_failure(state);
  if (state->format_mark == 0) {
    return store_error(StorageFailure::kNotFound,
                       fmt::format("{}: no log here; the key {} is missing", reader->name(),
                                   reader->keys().format()));
  }
  return reader;
}

StorageResult<StoreTerm> EtcdStore::claimed(StoreTerm term) {
  HighWater reached{.batch = writer_.newest(), .term = static_cast<std::uint64_t>(term)};
  // The claim holds without it: the mark gets the number with the next batch.
  if (reached.batch > 0) {
    const StorageResult<std::vector<Batch>> newest = reader_.read(reached.batch - 1, 1);
    if (newest && !newest->empty()) reached.next_job = newest->front().next_job;
  }
  StorageStatus noted = mark_->note(reached, LocalMark::Raise::kNow);
  if (!noted) return forward_failure(noted);
  survey_.reset();
  sizes_.clear();
  survey_ = std::make_unique<LogSurvey>(client_->location(), sizes_);
  return term;
}

StorageResult<StoreTerm> EtcdStore::claim_above(StoreTerm passed) {
  StorageResult<StoreTerm> term = store_error(StorageFailure::kUnavailable, "");
  for (int tries = 0; tries < kClaimsMax; ++tries) {
    StorageResult<EtcdState> state = reader_.state();
    if (!state) return forward_failure(state);
    StorageStatus good = check_open(*client_, *state);
    if (good) good = mark_->check(client_->location(), state->seen);
    if (!good) return forward_failure(good);
    term = writer_.claim({.seen = state->seen,
                          .writer = "",
                          .rule = ClaimRule::kTakeOver,
                          .passed = static_cast<std::uint64_t>(passed),
                          .speaks_for = speaks_for_});
    if (term) return claimed(*term);
    // Another writer was faster, or the read was late.
    if (term.error().failure != StorageFailure::kSuperseded) return term;
  }
  return term;
}

StorageResult<StoreTerm> EtcdStore::claim_after(const WriterSeen& seen, const std::string& writer) {
  if (StorageStatus good = mark_->check(client_->location(), seen); !good) {
    return forward_failure(good);
  }
  StorageResult<StoreTerm> term = writer_.claim({.seen = seen,
                                                 .writer = writer,
                                                 .rule = ClaimRule::kUnlessWritten,
                                                 .speaks_for = speaks_for_});
  if (!term) return term;
  return claimed(*term);
}

StorageResult<WriterSeen> EtcdStore::look() {
  StorageResult<EtcdState> state = reader_.state();
  if (!state) return forward_failure(state);
  return std::move(state->seen);
}

std::unique_ptr<StoreFollower> EtcdStore::follow(FollowOptions options) {
  return std::make_unique<EtcdFollower>(client_->location(), std::move(options));
}

StorageResult<std::vector<Batch>> EtcdStore::read(std::uint64_t after, std::size_t bytes_max) {
  return reader_.read(after, bytes_max);
}

StorageResult<std::vector<std::uint64_t>> EtcdStore::snapshots() { return reader_.snapshots(); }

StorageResult<std::string> EtcdStore::snapshot(std::uint64_t covers) {
  return reader_.snapshot(covers);
}

StorageResult<std::vector<ArchivedJob>> EtcdStore::archived(std::uint64_t before,
                                                            std::size_t count) {
  return archive_->archived(before, count);
}

StorageStatus EtcdStore::check() {
  if (StorageStatus log = reader_.check(); !log) return log;
  return archive_->check();
}

StoreTraits EtcdStore::traits() const {
  return {.batch_bytes = kBatchBytes,
          .beat_every = kBeatEvery,
          .speaks_for = speaks_for_,
          .snapshots_beside = true};
}

std::uint64_t EtcdStore::marked_next_job() const { return mark_->next_job(); }

StorageStatus EtcdStore::beat(StoreTerm term) {
  if (StorageStatus done = writer_.beat(term); !done) return done;
  return mark_->note({}, LocalMark::Raise::kWhenDue);
}

StorageStatus EtcdStore::append(StoreTerm term, const Batch& batch) {
  if (StorageStatus done = writer_.append(term, batch); !done) return done;
  sizes_.put_batch(batch.number, batch.bytes.size());
  return mark_->note({.batch = batch.number, .next_job = batch.next_job},
                     LocalMark::Raise::kWhenDue);
}

StorageStatus EtcdStore::put_snapshot(StoreTerm term, const Batch& covers) {
  if (StorageStatus done = writer_.put_snapshot(term, covers); !done) return done;
  sizes_.put_snapshot(covers.number, covers.bytes.size());
  return mark_->note({.batch = covers.number}, LocalMark::Raise::kNow);
}

StorageStatus EtcdStore::begin_at(StoreTerm term, const Batch& covers) {
  if (StorageStatus done = writer_.begin_at(term, covers); !done) return done;
  sizes_.put_snapshot(covers.number, covers.bytes.size());
  return mark_->note({.batch = covers.number, .next_job = covers.next_job}, LocalMark::Raise::kNow);
}

StorageStatus EtcdStore::drop_covered(StoreTerm term, std::uint64_t covers) {
  if (StorageStatus done = writer_.drop_covered(term, covers); !done) return done;
  sizes_.drop(covers);
  return {};
}

StorageStatus EtcdStore::shrink() {
  StorageResult<EtcdState> state = reader_.state();
  if (!state) return forward_failure(state);
  return client_->compact(state->revision);
}

StorageStatus EtcdStore::put_texts(StoreTerm term, const StoreTexts& texts) {
  if (StorageStatus done = writer_.put_texts(term, texts); !done) return done;
  for (const auto& [name, text] : texts) sizes_.put_text(name, text.size());
  return {};
}

StorageStatus EtcdStore::put_archived(StoreTerm term, const std::vector<ArchivedJob>& jobs) {
  if (StorageStatus held = writer_.check(term); !held) return held;
  return keep_archived(jobs);
}

}  // namespace orrery
