#include "store/etcd/etcd_writer.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/system/real_clock.hpp"

namespace orrery {
namespace {

/// Heads that one transaction may put: each takes two comparisons or steps of etcd's 128, and more.
constexpr std::size_t kHeadsMax = 40;
constexpr int kTriesMax = 4;
/// Beats after which etcd's history before as many of them is compacted, so that an idle log does
/// not grow.
constexpr std::uint64_t kBeatsKept = 1024;
/// Batches that one transaction drops; etcd answers nothing else while it drops them.
constexpr std::uint64_t kDroppedAtOnce = 2048;

std::uint64_t number_of(StoreTerm term) { return static_cast<std::uint64_t>(term); }

/// Waits until `bytes` have taken their time since `begun`.
void keep_pace(Instant begun, std::uint64_t bytes, std::uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return;
  const auto due =
      Duration::from_seconds(static_cast<double>(bytes) / static_cast<double>(bytes_per_second));
  const Duration left = begun + due - RealClock().now_monotonic();
  const std::int64_t left_ms = left.count_ns() / 1'000'000;
  if (left_ms > 0) ::poll(nullptr, 0, static_cast<int>(left_ms));
}

const etcd::KeyValue* first_found(const etcd::TxnResponse& answer, int index) {
  if (index >= answer.responses_size()) return nullptr;
  const etcd::RangeResponse& range = answer.responses(index).response_range();
  return range.kvs().empty() ? nullptr : &range.kvs(0);
}

}  // namespace

StorageResult<EtcdWriter::Fence> EtcdWriter::fence_of(StoreTerm term) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  StorageStatus held = check_term(client_.name(), {held_.term, term});
  if (!held) return forward_failure(held);
  return held_;
}

StorageStatus EtcdWriter::check(StoreTerm term) const {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  return {};
}

std::uint64_t EtcdWriter::newest() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.newest;
}

StoreTerm EtcdWriter::take(const EtcdClaimRequest& request, const EtcdClaim& claim,
                           std::int64_t mark) {
  const auto term = static_cast<StoreTerm>(claim.term);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    held_ = {term, mark, claim.nonce, request.seen.newest, {}};
  }
  open_claim_.reset();
  collect_garbage();
  return term;
}

StorageResult<StoreTerm> EtcdWriter::claim(const EtcdClaimRequest& request) {
  const WriterSeen& seen = request.seen;
  const bool again = open_claim_ && open_claim_->request.seen == seen &&
                     open_claim_->request.writer == request.writer &&
                     open_claim_->request.passed == request.passed;
  if (!again) open_claim_ = OpenClaim{request, entropy_.draw()};
  const EtcdClaim claim{std::max(seen.term, request.passed) + 1, request.writer, open_claim_->nonce,
                        request.speaks_for};
  EtcdTxn txn;
  txn.if_written_at(keys_.term(), static_cast<std::int64_t>(seen.claim_mark));
  txn.if_written_at(keys_.batch(seen.newest + 1).head, 0);
  txn.put(keys_.term(), claim.json()).else_get(keys_.term());
  if (seen.term == 0) {
    txn.if_written_at(keys_.format(), 0).put(keys_.format(), kEtcdFormat);
  } else {
    txn.if_value(keys_.format(), kEtcdFormat);
  }
  if (request.rule == ClaimRule::kUnlessWritten) {
    txn.if_written_at(keys_.beat(), static_cast<std::int64_t>(seen.beat_mark));
  }
  auto answer = client_.txn(txn.request());
  if (!answer) return forward_failure(answer);
  if (answer->succeeded()) return take(request, claim, answer->header().revision());
  const etcd::KeyValue* term = first_found(*answer, 0);
  if (term != nullptr) {
    StorageResult<EtcdClaim> there = parse_claim(client_.name(), *term);
    if (!there) return forward_failure(there);
    if (there->nonce == claim.nonce) return take(request, claim, term->mod_revision());
  }
  open_claim_.reset();
  return store_error(StorageFailure::kSuperseded,
                     fmt::format("{}: term {} is not claimed: a writer has written since batch {} "
                                 "of term {} was seen",
                                 client_.name(), claim.term, seen.newest, seen.term));
}

/// Removes parts that no head names, as a writer leaves them that ends before it puts the head. A
/// failure does no harm: the next claim removes them.
void EtcdWriter::collect_garbage() {
  Fence fence;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    fence = held_;
  }
  const StorageResult<EtcdState> state = read_state(client_, keys_);
  if (!state) return;
  note_last(fence, *state);
  EtcdTxn txn = fenced(fence);
  txn.erase({keys_.batch(state->seen.newest + 1).parts, keys_under(keys_.log_parts()).end});
  std::string from = keys_.snapshot_parts();
  for (const std::uint64_t covers : state->snapshots) {
    EtcdKeyRange kept = keys_under(keys_.snapshot(covers).parts);
    txn.erase({from, kept.from});
    from = std::move(kept.end);
  }
  txn.erase({from, keys_under(keys_.snapshot_parts()).end});
  static_cast<void>(client_.txn(txn.request()));
}

void EtcdWriter::note_last(const Fence& fence, const EtcdState& state) {
  if (state.seen.newest != fence.newest || fence.newest == 0) return;
  const bool there = state.oldest <= fence.newest;
  if (!there && state.snapshots.empty()) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_.mark != fence.mark || held_.newest != fence.newest) return;
  held_.last = there ? keys_.batch(fence.newest).head : keys_.snapshot(state.snapshots.back()).head;
}

EtcdTxn EtcdWriter::fenced(const Fence& fence) const {
  EtcdTxn txn;
  txn.if_written_at(keys_.term(), fence.mark).else_get(keys_.term());
  if (!fence.last.empty()) txn.if_exists(fence.last);
  txn.else_get(fence.last.empty() ? keys_.term() : fence.last);
  return txn;
}

StorageResult<etcd::TxnResponse> EtcdWriter::commit(const Fence& fence, const EtcdTxn& txn) {
  auto answer = client_.txn(txn.request());
  if (!answer || answer->succeeded()) return answer;
  const etcd::KeyValue* term = first_found(*answer, 0);
  if (term != nullptr && term->mod_revision() == fence.mark) {
    if (first_found(*answer, 1) != nullptr) return answer;
    return store_error(
        StorageFailure::kOther,
        fmt::format("{}: was restored from a backup: the key {} is missing, which this controller "
                    "has written or read; restore a newer backup, or see `orrery store adopt`",
                    client_.name(), fence.last));
  }
  StoreTerm held = StoreTerm::kNone;
  if (term != nullptr) {
    StorageResult<EtcdClaim> claim = parse_claim(client_.name(), *term);
    if (!claim) return forward_failure(claim);
    held = static_cast<StoreTerm>(claim->term);
  }
  StorageStatus superseded = check_term(client_.name(), {held, fence.term});
  if (!superseded) return forward_failure(superseded);
  return store_error(StorageFailure::kSuperseded,
                     fmt::format("{}: the writer of term {} may write no more: the key {} was "
                                 "written by another program",
                                 client_.name(), number_of(fence.term), keys_.term()));
}

StorageStatus EtcdWriter::beat(StoreTerm term) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  EtcdTxn txn = fenced(*fence);
  txn.put(keys_.beat(), std::to_string(number_of(term)));
  auto done = commit(*fence, txn);
  if (!done) return forward_failure(done);
  if (++beats_ % kBeatsKept == 0) {
    // Nothing depends on it: the next one drops more.
    static_cast<void>(client_.compact(std::exchange(kept_from_, done->header().revision())));
  }
  return {};
}

StorageStatus EtcdWriter::close(StoreTerm term, const std::string& moved_to) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  EtcdTxn txn = fenced(*fence);
  txn.put(keys_.format(), kEtcdMoved + moved_to);
  txn.put(keys_.beat(), std::to_string(number_of(term)));
  const auto done = commit(*fence, txn);
  if (!done) return tl::unexpected(done.error());
  return {};
}

StorageStatus EtcdWriter::put_parts(const Fence& fence, const Blob& blob, Pace pace) {
  const Instant begun = RealClock().now_monotonic();
  std::uint64_t bytes = 0;
  std::size_t index = 0;
  for (const std::string_view part : blob_parts(blob.bytes)) {
    EtcdTxn txn = fenced(fence);
    txn.put(blob.place.part(blob.fields.id, index++), std::string(part));
    txn.put(keys_.beat(), std::to_string(number_of(fence.term)));
    const auto done = commit(fence, txn);
    if (!done) return tl::unexpected(done.error());
    bytes += part.size();
    keep_pace(begun, bytes, pace.bytes_per_second);
  }
  return {};
}

StorageStatus EtcdWriter::append(StoreTerm term, const Batch& batch) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  StorageStatus next = check_next(client_.name(), {fence->newest, batch.number});
  if (!next) return next;
  const BlobForm form =
      batch.bytes.size() > kBlobHeadBytes ? BlobForm::kParts : BlobForm::kHeadOnly;
  const Blob blob{keys_.batch(batch.number), batch.bytes, {fence->nonce, batch.next_job, form}};
  if (form == BlobForm::kParts) {
    if (StorageStatus parts = put_parts(*fence, blob, {}); !parts) return parts;
  }
  EtcdTxn txn = fenced(*fence);
  txn.if_written_at(blob.place.head, 0).else_get(blob.place.head);
  txn.put(blob.place.head,
          make_blob_head(blob.place.head, batch.bytes, blob.fields).SerializeAsString());
  auto answer = commit(*fence, txn);
  std::vector<Blob> own{blob};
  const bool there = answer ? answer->succeeded() || found_own(*answer, own)
                            : full_after_putting(answer.error(), txn, own);
  if (!answer && !there) return forward_failure(answer);
  if (!there) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: batch {} is there already, with other bytes than those of "
                                   "the writer of term {}",
                                   client_.name(), batch.number, number_of(term)));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_.term == term) {
    held_.newest = batch.number;
    held_.last = blob.place.head;
  }
  return {};
}

bool EtcdWriter::found_own(const etcd::TxnResponse& answer, std::vector<Blob>& blobs) const {
  bool all = true;
  int index = 2;  // behind those of fenced()
  for (Blob& blob : blobs) {
    const etcd::KeyValue* found = first_found(answer, index++);
    blob.head_mark = found == nullptr ? 0 : found->mod_revision();
    if (found == nullptr) {
      all = false;
      continue;
    }
    const StorageResult<etcd::BlobHead> head = parse_blob_head(client_.name(), *found);
    all = all && head && head->id() == blob.fields.id &&
          is_head_of(*head, blob.place.head, blob.bytes);
  }
  return all;
}

bool EtcdWriter::full_after_putting(const StorageError& error, const EtcdTxn& txn,
                                    std::vector<Blob>& blobs) {
  if (error.failure != StorageFailure::kFull) return false;
  const auto found = client_.txn(txn.else_branch(keys_.prefix()).request());
  return found && found_own(*found, blobs);
}

StorageStatus EtcdWriter::find_marks(std::vector<Blob>& blobs) {
  EtcdTxn txn;
  for (const Blob& blob : blobs) {
    etcd::RangeRequest head = range_request({blob.place.head});
    head.set_keys_only(true);
    txn.get(std::move(head));
  }
  auto answer = client_.txn(txn.request());
  if (!answer) return forward_failure(answer);
  int index = 0;
  for (Blob& blob : blobs) {
    const etcd::KeyValue* found = first_found(*answer, index++);
    blob.head_mark = found == nullptr ? 0 : found->mod_revision();
  }
  return {};
}

StorageStatus EtcdWriter::put_heads(const Fence& fence, std::vector<Blob>& blobs) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    EtcdTxn txn = fenced(fence);
    for (const Blob& blob : blobs) {
      const EtcdKeyRange own = keys_under(blob.place.parts_of(blob.fields.id));
      txn.if_written_at(blob.place.head, blob.head_mark).else_get(blob.place.head);
      txn.put(blob.place.head,
              make_blob_head(blob.place.head, blob.bytes, blob.fields).SerializeAsString());
      txn.erase({blob.place.parts, own.from});
      txn.erase({own.end, keys_under(blob.place.parts).end});
    }
    txn.put(keys_.beat(), std::to_string(number_of(fence.term)));
    auto answer = commit(fence, txn);
    if (!answer && full_after_putting(answer.error(), txn, blobs)) return {};
    if (!answer) return forward_failure(answer);
    if (answer->succeeded() || found_own(*answer, blobs)) return {};
  }
  return store_error(StorageFailure::kUnavailable,
                     fmt::format("{}: the key {} was written again and again by earlier tries",
                                 client_.name(), blobs.front().place.head));
}

StorageStatus EtcdWriter::put_snapshot(StoreTerm term, const Batch& covers) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  StorageStatus known = check_covered(client_.name(), {fence->newest, covers.number});
  return known ? put_covering(*fence, covers) : known;
}

StorageStatus EtcdWriter::begin_at(StoreTerm term, const Batch& covers) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  StorageStatus begun = check_next(client_.name(), {fence->newest, 1});
  if (begun) begun = put_covering(*fence, covers);
  if (!begun) return begun;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (held_.term == term) {
    held_.newest = covers.number;
    held_.last = keys_.snapshot(covers.number).head;
  }
  return {};
}

StorageStatus EtcdWriter::put_covering(const Fence& fence, const Batch& covers) {
  const BlobForm form =
      covers.bytes.size() > kBlobHeadBytes ? BlobForm::kParts : BlobForm::kHeadOnly;
  std::vector<Blob> blobs{
      {keys_.snapshot(covers.number), covers.bytes, {entropy_.draw(), covers.next_job, form}}};
  StorageStatus done = find_marks(blobs);
  if (done && form == BlobForm::kParts) {
    done = put_parts(fence, blobs.front(), {snapshot_bytes_per_second_});
  }
  return done ? put_heads(fence, blobs) : done;
}

StorageStatus EtcdWriter::put_texts(StoreTerm term, const StoreTexts& texts) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  if (texts.size() > kHeadsMax) {
    return store_error(StorageFailure::kOther,
                       fmt::format("{}: {} texts at once, expected at most {}", client_.name(),
                                   texts.size(), kHeadsMax));
  }
  std::vector<Blob> blobs;
  blobs.reserve(texts.size());
  std::size_t left = kBlobHeadBytes;
  for (const auto& [name, text] : texts) {
    const BlobForm form = text.size() > left ? BlobForm::kParts : BlobForm::kHeadOnly;
    if (form == BlobForm::kHeadOnly) left -= text.size();
    blobs.push_back({keys_.text(name), text, {entropy_.draw(), 0, form}});
  }
  if (blobs.empty()) return {};
  StorageStatus done = find_marks(blobs);
  for (const Blob& blob : blobs) {
    if (done && blob.fields.form == BlobForm::kParts) done = put_parts(*fence, blob, {});
  }
  return done ? put_heads(*fence, blobs) : done;
}

StorageStatus EtcdWriter::drop_covered(StoreTerm term, std::uint64_t covers) {
  StorageResult<Fence> fence = fence_of(term);
  if (!fence) return forward_failure(fence);
  StorageResult<EtcdState> state = read_state(client_, keys_);
  if (!state) return forward_failure(state);
  const std::string kept = keys_.snapshot(covers).head;
  std::int64_t revision = 0;
  std::uint64_t from = std::min(state->oldest, covers + 1);
  do {
    const std::uint64_t end = std::min(from + kDroppedAtOnce, covers + 1);
    EtcdTxn txn = fenced(*fence);
    txn.if_exists(kept);
    if (from < end) {
      txn.erase({keys_.batch(from).head, keys_.batch(end).head});
      txn.erase({keys_.batch(from).parts, keys_.batch(end).parts});
    }
    txn.erase({keys_.snapshots(), kept});
    txn.erase({keys_.snapshot_parts(), keys_.snapshot(covers).parts});
    auto answer = commit(*fence, txn);
    if (!answer) return forward_failure(answer);
    if (!answer->succeeded()) return no_snapshot(client_.name(), covers);
    revision = answer->header().revision();
    from = end;
    if (covers >= fence->newest) fence->last = kept;
  } while (from <= covers);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (held_.term == term && covers >= held_.newest) held_.last = kept;
  }
  return client_.compact(revision - 1);
}

}  // namespace orrery
