// store/history.cpp - reads batches into events, and whole histories into a core.
#include "store/history.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "control/state/snapshot.hpp"
#include "store/setup_texts.hpp"

namespace orrery {
namespace {

/// How much is read at once; a batch is usually smaller.
constexpr std::size_t kPortionBytes = std::size_t{4} << 20;

tl::unexpected<HistoryDamage> damaged(Error error, const HistoryPlace& place) {
  error.kind = ErrorKind::kEnvironment;
  return tl::unexpected<HistoryDamage>(HistoryDamage{std::move(error), place});
}

template <class T>
tl::unexpected<HistoryDamage> failed(StorageResult<T>& result, const HistoryPlace& place) {
  return damaged(std::move(result.error()), place);
}

Error snapshot_error(StoreReader& store, std::uint64_t covers, const std::string& what) {
  return {ErrorKind::kEnvironment,
          fmt::format("{}: the snapshot up to batch {}: {}", store.name(), covers, what),
          {}};
}

/// The bytes of a snapshot and the history hash in them.
struct ReadSnapshot {
  std::string bytes;
  std::uint64_t history_hash = 0;
};

Result<ReadSnapshot> read_snapshot(StoreReader& store, std::uint64_t covers) {
  StorageResult<std::string> bytes = store.snapshot(covers);
  if (!bytes) return orrery::forward_error(bytes);
  const Result<OpenedSnapshot> opened = open_snapshot(*bytes);
  if (!opened) return tl::unexpected(snapshot_error(store, covers, opened.error().message));
  const std::uint64_t hash = opened->history_hash;
  return ReadSnapshot{*std::move(bytes), hash};
}

}  // namespace

HistoryResult<HistoryReader> HistoryReader::open(StoreReader& store, const HistoryStart& start,
                                                 const PlanSource* plans) {
  HistoryReader reader(store, start, plans);
  StorageResult<StoreExtent> extent = store.extent();
  if (!extent) return failed(extent, {});
  reader.newest_ = extent->newest;
  StorageResult<StoreTexts> texts = store.texts();
  if (!texts) return failed(texts, {});
  if (const Result<SetupTexts> setup = setup_texts(*texts)) reader.facts_ = setup_digest(*setup);
  return reader;
}

tl::unexpected<HistoryDamage> HistoryReader::damage(const HistoryPlace& place,
                                                    const std::string& what) const {
  const std::string where = place.segment == 0
                                ? fmt::format("batch {}", place.batch)
                                : fmt::format("segment {}, batch {}", place.segment, place.batch);
  return damaged({ErrorKind::kEnvironment,
                  fmt::format("{}: {}, byte {}: {}", store_->name(), where, place.offset, what),
                  {}},
                 place);
}

HistoryResult<const Batch*> HistoryReader::fetch() {
  const HistoryPlace next{place_.segment, place_.batch + 1, 0};
  if (place_.batch >= newest_) return nullptr;
  if (next_ == portion_.size()) {
    StorageResult<std::vector<Batch>> more = store_->read(place_.batch, kPortionBytes);
    if (!more) return damage(next, more.error().message);
    portion_ = *std::move(more);
    next_ = 0;
  }
  if (portion_.empty()) {
    return damage(next, fmt::format("is not there, nor is any up to {}", newest_));
  }
  return &portion_[next_++];
}

HistoryResult<void> HistoryReader::enter(const Batch& batch) {
  const std::string name = "this batch";
  if (!begins_journal(batch.bytes)) {
    if (!journal_) return damage(place_, "expected the head of a segment");
    journal_->go_on(batch.bytes, name);
    return {};
  }
  place_.segment = batch.number;
  ++counts_.segments;
  auto journal = JournalReader<TimedEvent>::open(batch.bytes, {.name = name, .plans = plans_});
  if (!journal) return damage(place_, journal.error().message);
  if (const std::uint64_t before = journal->head().before; before != hash_) {
    return damage(place_, fmt::format("continues history {:016x}, but the history before it is "
                                      "{:016x}",
                                      before, hash_));
  }
  if (const std::string& facts = journal->head().setup; !facts_.empty() && facts != facts_) {
    return damage(place_, fmt::format("rests on the facts \"{}\", but the texts of the store are "
                                      "\"{}\"",
                                      facts, facts_));
  }
  journal_.emplace(*std::move(journal));
  return {};
}

HistoryResult<bool> HistoryReader::next_batch(const EventVisitor& visit) {
  const HistoryResult<const Batch*> batch = fetch();
  if (!batch) return tl::unexpected(batch.error());
  if (*batch == nullptr) return false;
  if (HistoryResult<void> taken = take(**batch, visit); !taken) {
    return tl::unexpected(std::move(taken.error()));
  }
  return true;
}

HistoryResult<void> HistoryReader::take(const Batch& next, const EventVisitor& visit) {
  if (next.number != place_.batch + 1) {
    return damage({place_.segment, place_.batch + 1, 0},
                  fmt::format("is not there; the next one is batch {}", next.number));
  }
  place_ = {place_.segment, next.number, 0};
  if (HistoryResult<void> entered = enter(next); !entered) return entered;
  while (true) {
    const Result<std::optional<TimedEvent>> event = journal_->next();
    place_.offset = journal_->good_bytes();
    if (!event) return damage(place_, event.error().message);
    if (!*event) break;
    ++counts_.events;
    visit(**event);
  }
  if (journal_->torn()) return damage(place_, "the batch ends inside a record");
  ++counts_.batches;
  counts_.bytes += next.bytes.size();
  hash_ = journal_->history_hash();
  newest_ = std::max(newest_, next.number);
  return {};
}

class CoreTarget final : public HistoryTarget {
 public:
  CoreTarget(const ControlSetup& setup, FollowedCore::BeforeEvent before)
      : setup_(setup), before_(std::move(before)) {}
  void begin() override { core_ = std::make_unique<Core>(setup_); }
  Status restore(std::string_view snapshot) override { return core_->restore(snapshot); }
  Status apply(const TimedEvent& event) override {
    if (Status fits = check_replay(core_->state(), event.what); !fits) return fits;
    if (before_) before_(core_->state(), event);
    core_->replay(event.at, event.what);
    return {};
  }
  [[nodiscard]] const State& state() const { return core_->state(); }
  std::unique_ptr<Core> take() { return std::move(core_); }

 private:
  const ControlSetup& setup_;
  FollowedCore::BeforeEvent before_;
  std::unique_ptr<Core> core_;
};

namespace {

/// Takes the next batch of a reader into a target: with `given` that one, else the one that the
/// reader finds. Returns whether there was one.
HistoryResult<bool> take_next(HistoryReader& reader, const Batch* given, HistoryTarget& target) {
  Status applied;
  const EventVisitor apply = [&](const TimedEvent& event) {
    if (applied) applied = target.apply(event);
  };
  bool more = true;
  if (given != nullptr) {
    if (HistoryResult<void> taken = reader.take(*given, apply); !taken) {
      return tl::unexpected(std::move(taken.error()));
    }
  } else {
    const HistoryResult<bool> read = reader.next_batch(apply);
    if (!read) return read;
    more = *read;
  }
  if (!applied) return damaged(std::move(applied.error()), {.batch = reader.batch()});
  return more;
}

/// Replays into a target that is in the state of `start`; returns the reader, at the end.
HistoryResult<HistoryReader> replay(StoreReader& store, const HistoryStart& start,
                                    const PlanSource* plans, HistoryTarget& target) {
  HistoryResult<HistoryReader> reader = HistoryReader::open(store, start, plans);
  if (!reader) return reader;
  while (true) {
    const HistoryResult<bool> more = take_next(*reader, nullptr, target);
    if (!more) return tl::unexpected(more.error());
    if (!*more) return reader;
  }
}

struct ReplayedHistory {
  HistoryReader reader;  ///< at the end
  RecoveredHistory history;
};

}  // namespace

void StateTarget::begin() { state_ = std::make_unique<State>(setup_); }

Status StateTarget::restore(std::string_view snapshot) {
  return orrery::restore(*state_, snapshot);
}

Status StateTarget::apply(const TimedEvent& event) {
  if (Status fits = check_replay(*state_, event.what); !fits) return fits;
  state_->apply(event.at, event.what);
  return {};
}

namespace {

/// Adds to a recovered history what a reader has read since.
void add_read(const HistoryReader& reader, RecoveredHistory& history) {
  history.read = reader.counts();
  history.newest = reader.batch();
  history.history_hash = reader.history_hash();
}

/// See recover_history().
HistoryResult<ReplayedHistory> recover_and_stay(StoreReader& store, const PlanSource* plans,
                                                HistoryTarget& target) {
  StorageResult<std::vector<std::uint64_t>> snapshots = store.snapshots();
  if (!snapshots) return failed(snapshots, {});
  RecoveredHistory recovered;
  HistoryStart start;
  for (const std::uint64_t covers : *snapshots) {
    Result<ReadSnapshot> read = read_snapshot(store, covers);
    Status restored;
    if (read) {
      target.begin();
      restored = target.restore(open_snapshot(read->bytes)->state);
    }
    if (read && restored) {
      recovered.snapshot = covers;
      start = {covers, read->history_hash};
      break;
    }
    recovered.passed_over.push_back(
        read ? snapshot_error(store, covers, restored.error().message).message
             : read.error().message);
  }
  if (!recovered.snapshot) {
    StorageResult<StoreExtent> extent = store.extent();
    if (!extent) return failed(extent, {});
    if (extent->oldest > 1) {
      Error error{
          ErrorKind::kEnvironment,
          fmt::format("{}: the batches up to {} were dropped, and no snapshot of them is good",
                      store.name(), extent->oldest - 1),
          {}};
      for (const std::string& why : recovered.passed_over) error.message += "; " + why;
      return damaged(std::move(error), {.batch = extent->oldest - 1});
    }
    target.begin();
  }
  HistoryResult<HistoryReader> reader = replay(store, start, plans, target);
  if (!reader) return tl::unexpected(reader.error());
  add_read(*reader, recovered);
  return ReplayedHistory{*std::move(reader), std::move(recovered)};
}

}  // namespace

HistoryResult<RecoveredHistory> recover_history(StoreReader& store, const PlanSource* plans,
                                                HistoryTarget& target) {
  HistoryResult<ReplayedHistory> replayed = recover_and_stay(store, plans, target);
  if (!replayed) return tl::unexpected(replayed.error());
  return std::move(replayed->history);
}

// The plans of an event are those of the fleet at its time.
FollowedCore::FollowedCore(const ControlSetup& setup, BeforeEvent before)
    : target_(std::make_unique<CoreTarget>(setup, std::move(before))),
      plans_([this](const PlanKey& key) { return state().setup().plans(key); }) {}

FollowedCore::~FollowedCore() = default;

HistoryResult<std::unique_ptr<FollowedCore>> FollowedCore::recover(StoreReader& store,
                                                                   const ControlSetup& setup,
                                                                   BeforeEvent before) {
  auto core = std::make_unique<FollowedCore>(setup, std::move(before));
  HistoryResult<ReplayedHistory> replayed = recover_and_stay(store, &core->plans_, *core->target_);
  if (!replayed) return tl::unexpected(replayed.error());
  core->reader_.emplace(std::move(replayed->reader));
  core->recovered_ = std::move(replayed->history);
  return core;
}

const State& FollowedCore::state() const { return target_->state(); }

HistoryResult<void> FollowedCore::take(const Batch& next) {
  const HistoryResult<bool> taken = take_next(*reader_, &next, *target_);
  if (!taken) return tl::unexpected(taken.error());
  return {};
}

RecoveredCore FollowedCore::lead() {
  add_read(*reader_, recovered_);
  RecoveredCore recovered{target_->take(), std::move(recovered_)};
  recovered.core->resume();
  return recovered;
}

HistoryResult<RecoveredCore> recover_core(StoreReader& store, const ControlSetup& setup) {
  HistoryResult<std::unique_ptr<FollowedCore>> core = FollowedCore::recover(store, setup);
  if (!core) return tl::unexpected(core.error());
  return (*core)->lead();
}

HistoryResult<HistoryStart> oldest_start(StoreReader& store) {
  StorageResult<StoreExtent> extent = store.extent();
  if (!extent) return failed(extent, {});
  HistoryStart start{.after = extent->oldest - 1};
  if (start.after == 0) return start;
  Result<ReadSnapshot> before = read_snapshot(store, start.after);
  if (!before) return damaged(std::move(before.error()), {.batch = start.after});
  start.history_hash = before->history_hash;
  return start;
}

HistoryResult<VerifiedHistory> verify_history(StoreReader& store) {
  VerifiedHistory verified;
  StorageResult<StoreExtent> extent = store.extent();
  if (!extent) return failed(extent, {});
  verified.extent = *extent;
  const HistoryResult<HistoryStart> start = oldest_start(store);
  if (!start) return tl::unexpected(start.error());
  HistoryResult<HistoryReader> reader = HistoryReader::open(store, *start, nullptr);
  if (!reader) return tl::unexpected(reader.error());
  StorageResult<std::vector<std::uint64_t>> snapshots = store.snapshots();
  if (!snapshots) return failed(snapshots, {});
  verified.snapshots = *snapshots;
  std::map<std::uint64_t, std::uint64_t> hashes{{start->after, start->history_hash}};
  while (true) {
    const HistoryResult<bool> more = reader->next_batch([](const TimedEvent&) {});
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    hashes[reader->batch()] = reader->history_hash();
  }
  for (const std::uint64_t covers : *snapshots) {
    const HistoryPlace place{.batch = covers};
    Result<ReadSnapshot> read = read_snapshot(store, covers);
    if (!read) return damaged(std::move(read.error()), place);
    const auto hash = hashes.find(covers);
    if (hash != hashes.end() && hash->second != read->history_hash) {
      return damaged(snapshot_error(store, covers, "it is of another history"), place);
    }
  }
  if (StorageStatus sound = store.check(); !sound) return failed(sound, {});
  verified.read = reader->counts();
  verified.history_hash = reader->history_hash();
  return verified;
}

}  // namespace orrery
