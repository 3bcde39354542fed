#include "store/transfer/log_copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {
namespace {

constexpr std::size_t kReadBytes = std::size_t{4} << 20;
constexpr std::size_t kTextsAtOnce = 32;
constexpr std::size_t kJobsAtOnce = 1'000;
constexpr int kTriesMax = 5;

/// Repeats a write to which the store gave no answer.
template <class Write>
StorageStatus write_again(Write&& write) {
  StorageStatus done = write();
  for (int tries = 1; tries < kTriesMax && !done; ++tries) {
    if (done.error().failure != StorageFailure::kUnavailable) break;
    done = write();
  }
  return done;
}

struct GoodSnapshot {
  std::uint64_t covers = 0;
  std::uint64_t history_hash = 0;
};

/// Returns the good snapshots, ascending, and notes why others are not.
Result<std::vector<GoodSnapshot>> good_snapshots(StoreReader& from, CopyPlan& plan) {
  StorageResult<std::vector<std::uint64_t>> there = from.snapshots();
  if (!there) return forward_error(there);
  std::vector<GoodSnapshot> good;
  good.reserve(there->size());
  for (auto covers = there->rbegin(); covers != there->rend(); ++covers) {
    StorageResult<std::string> bytes = from.snapshot(*covers);
    const Result<OpenedSnapshot> opened =
        bytes ? open_snapshot(*bytes) : tl::unexpected<Error>(bytes.error());
    if (opened) {
      good.push_back({*covers, opened->history_hash});
    } else {
      plan.passed_over.push_back(fmt::format("{}: the snapshot up to batch {}: {}", from.name(),
                                             *covers, opened.error().message));
    }
  }
  return good;
}

/// Drops the snapshots before the one that the copy begins with, and returns that.
Result<HistoryStart> choose_start(StoreReader& from, std::vector<GoodSnapshot>& good) {
  StorageResult<StoreExtent> extent = from.extent();
  if (!extent) return forward_error(extent);
  if (extent->oldest <= 1) return HistoryStart{};
  const auto first = std::find_if(good.begin(), good.end(), [&](const GoodSnapshot& each) {
    return each.covers + 1 >= extent->oldest;
  });
  if (first == good.end()) {
    return environment_error(fmt::format(
        "{}: cannot be copied: batches up to {} were dropped, and no snapshot of them is good",
        from.name(), extent->oldest - 1));
  }
  good.erase(good.begin(), first);
  return HistoryStart{good.front().covers, good.front().history_hash};
}

class LogCopy {
 public:
  LogCopy(CopySource& from, const CopyPlan& plan, CopyTarget& to)
      : from_(from), plan_(plan), to_(to) {}

  [[nodiscard]] Result<CopiedLog> run(const TextChoice& belongs);

 private:
  [[nodiscard]] Status copy_texts(const TextChoice& belongs);
  [[nodiscard]] Status begin();
  [[nodiscard]] Status copy_batches();
  [[nodiscard]] Status copy_snapshots();
  [[nodiscard]] Status copy_archive();
  [[nodiscard]] StorageResult<Batch> snapshot(std::uint64_t covers) const;

  CopySource& from_;
  const CopyPlan& plan_;
  CopyTarget& to_;
  StoreTerm term_ = StoreTerm::kNone;
  CopiedLog copied_;
};

Result<CopiedLog> LogCopy::run(const TextChoice& belongs) {
  StorageResult<StoreTerm> term = to_.claim_above(from_.reached.term);
  if (!term) return forward_error(term);
  term_ = *term;
  Status done = copy_texts(belongs);
  if (done) done = begin();
  if (done) done = copy_batches();
  if (done) done = copy_snapshots();
  if (done) done = copy_archive();
  if (!done) return forward_error(done);
  copied_.term = static_cast<std::uint64_t>(term_);
  copied_.next_job = from_.reached.next_job;
  StorageStatus finished =
      to_.finish({.batch = plan_.newest, .term = copied_.term, .next_job = copied_.next_job});
  if (!finished) return forward_error(finished);
  return copied_;
}

Status LogCopy::copy_texts(const TextChoice& belongs) {
  StorageResult<StoreTexts> texts = from_.log->texts();
  if (!texts) return forward_error(texts);
  StoreTexts some;
  const auto put = [&] { return write_again([&] { return to_.store().put_texts(term_, some); }); };
  for (auto& [name, text] : *texts) {
    if (!belongs(name)) continue;
    some.emplace(name, std::move(text));
    if (some.size() < kTextsAtOnce) continue;
    if (StorageStatus done = put(); !done) return forward_error(done);
    some.clear();
  }
  if (StorageStatus done = put(); !done) return forward_error(done);
  if (from_.sealed.empty()) return {};
  some = from_.sealed;
  if (StorageStatus done = put(); !done) return forward_error(done);
  copied_.sealed = some.size();
  return {};
}

StorageResult<Batch> LogCopy::snapshot(std::uint64_t covers) const {
  StorageResult<std::string> bytes = from_.log->snapshot(covers);
  if (!bytes) return forward_failure(bytes);
  return Batch{covers, *std::move(bytes), covers == plan_.newest ? from_.reached.next_job : 0};
}

Status LogCopy::begin() {
  if (plan_.start.after == 0) return {};
  StorageResult<Batch> covers = snapshot(plan_.start.after);
  if (!covers) return forward_error(covers);
  StorageStatus begun = write_again([&] { return to_.begin_at(term_, *covers); });
  if (!begun) return forward_error(begun);
  return {};
}

Status LogCopy::copy_batches() {
  std::uint64_t after = plan_.start.after;
  while (after < plan_.newest) {
    StorageResult<std::vector<Batch>> some = from_.log->read(after, kReadBytes);
    if (!some) return forward_error(some);
    for (Batch& batch : *some) {
      if (batch.number == plan_.newest) {
        batch.next_job = std::max(batch.next_job, from_.reached.next_job);
      }
      StorageStatus put = write_again([&] { return to_.store().append(term_, batch); });
      if (!put) return forward_error(put);
      after = batch.number;
      ++copied_.batches;
    }
    if (some->empty()) {
      return environment_error(fmt::format("{}: batch {} is gone since the log was checked",
                                           from_.log->name(), after + 1));
    }
  }
  return {};
}

Status LogCopy::copy_snapshots() {
  for (const std::uint64_t each : plan_.snapshots) {
    if (each == plan_.start.after) continue;
    StorageResult<Batch> covers = snapshot(each);
    if (!covers) return forward_error(covers);
    StorageStatus put = write_again([&] { return to_.store().put_snapshot(term_, *covers); });
    if (!put) return forward_error(put);
  }
  return {};
}

Status LogCopy::copy_archive() {
  if (from_.archive == nullptr) return {};
  std::uint64_t before = std::numeric_limits<std::int64_t>::max();
  while (true) {
    StorageResult<std::vector<ArchivedJob>> jobs = from_.archive->archived(before, kJobsAtOnce);
    if (!jobs) return forward_error(jobs);
    if (jobs->empty()) return {};
    StorageStatus put = to_.store().put_archived(term_, *jobs);
    if (!put) return forward_error(put);
    copied_.archived += jobs->size();
    before = jobs->back().id;
  }
}

}  // namespace

Result<CopyPlan> plan_copy(StoreReader& from) {
  CopyPlan plan;
  Result<std::vector<GoodSnapshot>> good = good_snapshots(from, plan);
  if (!good) return forward_error(good);
  Result<HistoryStart> start = choose_start(from, *good);
  if (!start) return forward_error(start);
  plan.start = *start;
  plan.snapshots.reserve(good->size());
  for (const GoodSnapshot& each : *good) plan.snapshots.push_back(each.covers);
  HistoryResult<HistoryReader> reader = HistoryReader::open(from, plan.start, nullptr);
  if (!reader) return forward_error(reader);
  while (true) {
    HistoryResult<bool> more = reader->next_batch([](const TimedEvent&) {});
    if (!more) return forward_error(more);
    if (!*more) break;
  }
  plan.newest = reader->batch();
  plan.history_hash = reader->history_hash();
  return plan;
}

Result<CopiedLog> copy_log(CopySource& from, const CopyPlan& plan, CopyTarget& to,
                           const TextChoice& belongs) {
  return LogCopy(from, plan, to).run(belongs);
}

}  // namespace orrery
