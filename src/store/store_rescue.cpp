#include "store/store_rescue.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/system/real_storage.hpp"
#include "store/sqlite/sqlite_store.hpp"

namespace orrery {
namespace {

namespace fs = std::filesystem;

/// Added to a term if the newest term that the cluster's agents have seen is unknown.
constexpr std::uint64_t kTermsPassedOver = 1'000'000;

bool exists(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}

/// Returns the mark beside a store; none if it is missing or damaged.
std::optional<HighWater> mark_of(const std::string& directory) {
  StorageResult<std::optional<HighWater>> mark = read_high_water(directory);
  return mark ? *mark : std::nullopt;
}

/// Returns the first of NAME, NAME.1, NAME.2 and so on that does not exist.
std::string free_name(const std::string& name) {
  std::string free = name;
  for (int i = 1; exists(free); ++i) free = fmt::format("{}.{}", name, i);
  return free;
}

/// Replaces `present` by `next` in one step; afterwards the old one is at `aside`.
StorageStatus exchange(const std::string& next, const std::string& present,
                       const std::string& aside) {
  RealStorage storage;
  if (!exists(present)) return storage.rename({.from = next, .to = present});
  if (::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, present.c_str(), RENAME_EXCHANGE) != 0) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: cannot put {} in its place: {}", present, next,
                                   std::generic_category().message(errno)));
  }
  return storage.rename({.from = next, .to = aside});
}

Result<StoreExtent> verified_extent(const std::string& from) {
  auto copy = SqliteStore::open_to_read(from);
  if (!copy) return forward_error(copy);
  HistoryResult<VerifiedHistory> verified = verify_history(**copy);
  if (!verified) return forward_error(verified);
  return verified->extent;
}

/// Error: the store of `directory` is closed, or it is whole and reaches `newest` or further.
Status check_replaceable(const std::string& directory, std::uint64_t newest) {
  if (StorageStatus unmoved = check_not_moved(directory); !unmoved) {
    unmoved.error().message += "; if that copy is lost for good, --force sets this store aside";
    return forward_error(unmoved);
  }
  auto present = SqliteStore::open_to_read(directory);
  if (!present) return {};
  StorageResult<StoreExtent> extent = (*present)->extent();
  if (!extent || extent->newest < newest) return {};
  return environment_error(fmt::format(
      "{}: is whole and reaches batch {}, what is to be restored batch {}; --force sets it aside "
      "all the same",
      directory, extent->newest, newest));
}

/// Raises the term of a store that was just copied, and gives it its mark.
Status adopt(const std::string& directory, const HighWater& reached) {
  auto store = SqliteStore::open(directory);
  if (!store) return forward_error(store);
  StorageStatus raised = (*store)->adopt(reached);
  if (!raised) return forward_error(raised);
  return {};
}

Status copy_store(const std::string& from, const std::string& to, const HighWater& reached) {
  RealStorage storage;
  if (StorageStatus made = storage.make_directories(to); !made) return forward_error(made);
  if (StorageStatus copied = SqliteStore::backup(from, to + "/store.db"); !copied) {
    return forward_error(copied);
  }
  // A backup consists of the database alone, so its mark is where the database ends.
  if (StorageStatus put = HighWaterFile::put(to, {}); !put) return forward_error(put);
  return adopt(to, reached);
}

/// Returns the mark from which an operator's copy must continue.
HighWater reached_by(const RestoreRequest& request, const std::optional<HighWater>& present) {
  const std::optional<HighWater> copied = mark_of(request.from);
  HighWater reached{.next_job = request.next_job};
  for (const std::optional<HighWater>& mark : {present, copied}) {
    if (!mark) continue;
    reached.term = std::max(reached.term, mark->term);
    reached.next_job = std::max(reached.next_job, mark->next_job);
  }
  return reached;
}

}  // namespace

Result<RestoredStore> restore_store(const RestoreRequest& request) {
  const std::string store = request.directory + "/store";
  if (StorageStatus unmoved = check_not_moved(request.from); !unmoved)
    return forward_error(unmoved);
  Result<StoreExtent> extent = verified_extent(request.from);
  if (!extent) return forward_error(extent);
  RestoredStore restored{.extent = *extent};
  StorageResult<FileDescriptor> lock = FileDescriptor();
  if (exists(store)) {
    lock = SqliteStore::lock(store);
    if (!lock) return forward_error(lock);
    if (!request.force) {
      if (Status may = check_replaceable(store, extent->newest); !may) return forward_error(may);
    }
    restored.kept = free_name(store + ".before-restore");
  }
  const std::optional<HighWater> present = mark_of(store);
  HighWater reached = reached_by(request, present);
  if (!present) reached.term += kTermsPassedOver;
  restored.next_job = reached.next_job;
  const std::string next = store + ".restored";
  std::error_code none;
  fs::remove_all(next, none);
  if (Status copied = copy_store(request.from, next, reached); !copied) {
    return forward_error(copied);
  }
  StorageStatus put = exchange(next, store, restored.kept);
  if (!put) return forward_error(put);
  return restored;
}

// --- Salvage ------------------------------------------------------------------------------------

namespace {

/// Copies the good parts of a store.
class Salvage {
 public:
  Salvage(StoreReader& from, SqliteStore& to) : from_(from), to_(to) {}

  [[nodiscard]] Status run();
  [[nodiscard]] SalvagedStore& result() { return result_; }

 private:
  [[nodiscard]] Status copy_texts();
  [[nodiscard]] Result<HistoryStart> begin();
  [[nodiscard]] Status copy_batches(const HistoryStart& start);
  [[nodiscard]] Status copy_archive();
  void note(const std::string& damage) {
    if (result_.damage.empty()) result_.damage = damage;
  }

  StoreReader& from_;
  SqliteStore& to_;
  StoreTerm term_ = StoreTerm::kNone;
  SalvagedStore result_;
};

Status Salvage::run() {
  StorageResult<StoreTerm> term = to_.claim();
  if (!term) return forward_error(term);
  term_ = *term;
  if (Status copied = copy_texts(); !copied) return copied;
  Result<HistoryStart> start = begin();
  if (!start) return forward_error(start);
  if (Status copied = copy_batches(*start); !copied) return copied;
  return copy_archive();
}

/// Copies the texts, without which the log has no meaning.
Status Salvage::copy_texts() {
  StorageResult<StoreTexts> texts = from_.texts();
  if (!texts) return forward_error(texts);
  StorageStatus put = to_.put_texts(term_, *texts);
  if (!put) return forward_error(put);
  return {};
}

/// Returns the end of the newest good snapshot, or the begin of the first batch.
Result<HistoryStart> Salvage::begin() {
  StorageResult<std::vector<std::uint64_t>> snapshots = from_.snapshots();
  if (!snapshots) note(snapshots.error().message);
  for (const std::uint64_t covers : snapshots.value_or(std::vector<std::uint64_t>{})) {
    StorageResult<std::string> bytes = from_.snapshot(covers);
    const Result<OpenedSnapshot> opened =
        bytes ? open_snapshot(*bytes) : tl::unexpected<Error>(bytes.error());
    if (!opened) {
      note(fmt::format("{}: the snapshot up to batch {}: {}", from_.name(), covers,
                       opened.error().message));
      continue;
    }
    const HistoryStart start{covers, opened->history_hash};
    StorageStatus put = to_.begin_at(term_, {.number = covers, .bytes = *std::move(bytes)});
    if (!put) return forward_error(put);
    result_.snapshot = covers;
    return start;
  }
  StorageResult<StoreExtent> extent = from_.extent();
  if (!extent) return forward_error(extent);
  if (extent->oldest <= 1) return HistoryStart{};
  return environment_error(
      fmt::format("{}: nothing can be salvaged: batches up to {} were dropped "
                  "and no snapshot of them is good",
                  from_.name(), extent->oldest - 1));
}

Status Salvage::copy_batches(const HistoryStart& start) {
  HistoryResult<HistoryReader> reader = HistoryReader::open(from_, start, nullptr);
  if (!reader) return forward_error(reader);
  result_.history_hash = start.history_hash;
  while (true) {
    const HistoryResult<bool> more = reader->next_batch([](const TimedEvent&) {});
    if (!more) {
      note(more.error().message);
      return {};
    }
    if (!*more) return {};
    StorageResult<std::vector<Batch>> batch = from_.read(reader->batch() - 1, 1);
    if (!batch) return forward_error(batch);
    if (StorageStatus put = to_.append(term_, batch->front()); !put) return forward_error(put);
    ++result_.batches;
    result_.history_hash = reader->history_hash();
  }
}

Status Salvage::copy_archive() {
  constexpr std::size_t kAtOnce = 1'000;
  std::uint64_t before = std::uint64_t{1} << 62;
  while (true) {
    StorageResult<std::vector<ArchivedJob>> jobs = from_.archived(before, kAtOnce);
    if (!jobs) {
      note(jobs.error().message);
      return {};
    }
    if (jobs->empty()) return {};
    if (StorageStatus put = to_.put_archived(term_, *jobs); !put) return forward_error(put);
    result_.archived += jobs->size();
    before = jobs->back().id;
  }
}

}  // namespace

Result<SalvagedStore> salvage_store(const std::string& from, const std::string& to) {
  if (to.empty()) return input_error({}, "no directory to salvage into: expected one to make");
  if (exists(to)) {
    return environment_error(fmt::format("{}: is there already; salvage replaces nothing", to));
  }
  StorageResult<FileDescriptor> lock = SqliteStore::lock(from);
  if (!lock) return forward_error(lock);
  if (StorageStatus unmoved = check_not_moved(from); !unmoved) return forward_error(unmoved);
  const auto whole = SqliteStore::open_to_read(from);
  auto source = SqliteStore::open_as_it_is(from);
  if (!source) return forward_error(source);
  StorageResult<StoreExtent> there = (*source)->extent();
  if (!there) return forward_error(there);
  auto target = SqliteStore::open(to);
  if (!target) return forward_error(target);
  Salvage salvage(**source, **target);
  if (Status done = salvage.run(); !done) return forward_error(done);
  SalvagedStore result = std::move(salvage.result());
  if (!whole) result.damage = whole.error().message.substr(0, whole.error().message.find('\n'));
  result.mark = mark_of(from);
  const HighWater reached = result.mark.value_or(HighWater{.term = kTermsPassedOver});
  StorageStatus adopted = (*target)->adopt({.term = reached.term, .next_job = reached.next_job});
  if (!adopted) return forward_error(adopted);
  StorageResult<StoreExtent> extent = (*target)->extent();
  if (!extent) return forward_error(extent);
  result.extent = *extent;
  const std::uint64_t known = std::max(there->newest, reached.batch);
  if (known > extent->newest) {
    result.lost_from = extent->newest + 1;
    result.lost_to = known;
  }
  return result;
}

}  // namespace orrery
