#include "store/etcd/etcd_reader.hpp"

#include <algorithm>
#include <utility>

#include "store/etcd/etcd_blob.hpp"

namespace orrery {
namespace {

/// Heads of any size that fit into one answer, and the usual size of a full one.
constexpr std::uint64_t kHeadsAtOnce = 48;
constexpr std::size_t kHeadBytes = std::size_t{128} << 10;
/// Heads that are asked for where those before were small, and the size to which that applies.
constexpr std::uint64_t kSmallHeadsAtOnce = 1024;
constexpr std::size_t kSmallHeadsBytes = std::size_t{1} << 20;
constexpr std::int64_t kTextsAtOnce = 32;
constexpr std::size_t kTextsBytes = std::size_t{8} << 20;
constexpr int kTriesMax = 3;

std::uint64_t next_count(std::uint64_t count, std::size_t bytes) {
  return bytes < kSmallHeadsBytes ? std::min(4 * count, kSmallHeadsAtOnce) : kHeadsAtOnce;
}

/// Repeats a read whose revision was compacted meanwhile.
template <class Read>
auto read_again(Read&& read) {
  auto result = read();
  for (int tries = 1; tries < kTriesMax && !result; ++tries) {
    if (result.error().failure != StorageFailure::kNotFound) break;
    result = read();
  }
  return result;
}

}  // namespace

StorageResult<StoreExtent> EtcdReader::extent() {
  StorageResult<EtcdState> now = state();
  if (!now) return forward_failure(now);
  return now->extent();
}

StorageResult<etcd::RangeResponse> EtcdReader::heads(const Window& window) {
  etcd::RangeRequest request = range_request(
      {keys_.batch(window.first).head, keys_.batch(window.first + window.count).head});
  auto found = client_.range(request, 2 * kHeadBytes * std::min(window.count, kHeadsAtOnce));
  // Where larger batches follow small ones, the answer can exceed what a message may have.
  if (found || window.count <= kHeadsAtOnce || found.error().failure != StorageFailure::kOther) {
    return found;
  }
  return heads({window.first, kHeadsAtOnce});
}

StorageResult<std::uint64_t> EtcdReader::oldest_from(std::uint64_t first) {
  etcd::RangeRequest request =
      range_request({keys_.batch(first).head, keys_under(keys_.log()).end});
  request.set_limit(1);
  request.set_keys_only(true);
  auto found = client_.range(request);
  if (!found) return forward_failure(found);
  if (found->kvs().empty()) return std::uint64_t{0};
  const std::string& key = found->kvs(0).key();
  const std::optional<std::uint64_t> number = EtcdKeys::number_in(key, keys_.log());
  if (!number) return damaged_key(name(), key, "expected a number of 16 digits");
  return *number;
}

StorageResult<Batch> EtcdReader::batch_of(const etcd::KeyValue& found, std::int64_t revision) {
  const std::optional<std::uint64_t> number = EtcdKeys::number_in(found.key(), keys_.log());
  if (!number) return damaged_key(name(), found.key(), "expected a number of 16 digits");
  StorageResult<etcd::BlobHead> head = parse_blob_head(name(), found);
  if (!head) return forward_failure(head);
  const std::uint64_t next_job = head->next_job();
  const BlobPlace place = keys_.batch(*number);
  StorageResult<std::string> bytes = read_blob(client_, {place, revision}, *std::move(head));
  if (!bytes) return forward_failure(bytes);
  return Batch{*number, *std::move(bytes), next_job};
}

StorageResult<std::vector<Batch>> EtcdReader::read(std::uint64_t after, std::size_t bytes_max) {
  std::vector<Batch> found;
  std::size_t bytes = 0;
  Window window{after + 1, std::clamp<std::uint64_t>(bytes_max / kHeadBytes, 1, kHeadsAtOnce)};
  while (true) {
    StorageResult<etcd::RangeResponse> page = heads(window);
    if (!page && !found.empty()) return found;  // a read that continues here gets the error
    if (!page) return forward_failure(page);
    if (page->kvs().empty()) {
      if (!found.empty()) return found;
      StorageResult<std::uint64_t> oldest = oldest_from(window.first);
      if (!oldest) return forward_failure(oldest);
      if (*oldest == 0) return found;
      window.first = *oldest;
      continue;
    }
    std::size_t page_bytes = 0;
    for (const etcd::KeyValue& each : page->kvs()) {
      page_bytes += each.value().size();
      StorageResult<Batch> batch = batch_of(each, page->header().revision());
      if (!batch && !found.empty()) return found;
      if (!batch) return forward_failure(batch);
      bytes += batch->bytes.size();
      found.push_back(*std::move(batch));
      if (bytes >= bytes_max) return found;
    }
    if (static_cast<std::uint64_t>(page->kvs_size()) < window.count) return found;
    window = {found.back().number + 1, next_count(window.count, page_bytes)};
  }
}

StorageResult<std::vector<std::uint64_t>> EtcdReader::snapshots() {
  StorageResult<EtcdState> now = state();
  if (!now) return forward_failure(now);
  std::reverse(now->snapshots.begin(), now->snapshots.end());
  return std::move(now->snapshots);
}

StorageResult<std::string> EtcdReader::snapshot(std::uint64_t covers) {
  const BlobPlace place = keys_.snapshot(covers);
  return read_again([&]() -> StorageResult<std::string> {
    auto found = client_.range(range_request({place.head}), kBlobHeadBytes);
    if (!found) return forward_failure(found);
    if (found->kvs().empty()) return no_snapshot(name(), covers);
    StorageResult<etcd::BlobHead> head = parse_blob_head(name(), found->kvs(0));
    if (!head) return forward_failure(head);
    return read_blob(client_, {place, found->header().revision()}, *std::move(head));
  });
}

StorageResult<StoreTexts> EtcdReader::texts_now() {
  StoreTexts texts;
  EtcdKeyRange keys = keys_under(keys_.texts());
  std::int64_t revision = 0;
  while (true) {
    etcd::RangeRequest request = range_request(keys);
    request.set_limit(kTextsAtOnce);
    request.set_revision(revision);
    auto found = client_.range(request, kTextsBytes);
    if (!found) return forward_failure(found);
    if (revision == 0) revision = found->header().revision();
    for (const etcd::KeyValue& each : found->kvs()) {
      const std::string text = each.key().substr(keys_.texts().size());
      StorageResult<etcd::BlobHead> head = parse_blob_head(name(), each);
      if (!head) return forward_failure(head);
      StorageResult<std::string> bytes =
          read_blob(client_, {keys_.text(text), revision}, *std::move(head));
      if (!bytes) return forward_failure(bytes);
      texts[text] = *std::move(bytes);
    }
    if (!found->more() || found->kvs().empty()) return texts;
    // The next key in the order of bytes.
    keys.from = found->kvs(found->kvs_size() - 1).key() + '\0';
  }
}

StorageResult<StoreTexts> EtcdReader::texts() {
  return read_again([this] { return texts_now(); });
}

StorageResult<std::vector<ArchivedJob>> EtcdReader::archived(std::uint64_t /*before*/,
                                                             std::size_t /*count*/) {
  return std::vector<ArchivedJob>{};
}

StorageStatus EtcdReader::check_batches() {
  StorageResult<EtcdState> now = state();
  if (!now) return forward_failure(now);
  std::uint64_t after = now->oldest - 1;
  while (after < now->seen.newest) {
    StorageResult<std::vector<Batch>> some = read(after, kSmallHeadsBytes);
    if (!some) return forward_failure(some);
    for (const Batch& each : *some) {
      if (each.number == ++after) continue;
      return damaged_key(
          name(), keys_.batch(after).head,
          fmt::format("batch {} is missing, and batch {} is there", after, each.number));
    }
    if (some->empty()) {
      return damaged_key(name(), keys_.batch(after + 1).head,
                         fmt::format("batch {} is missing, and batch {} was counted", after + 1,
                                     now->seen.newest));
    }
  }
  return {};
}

StorageStatus EtcdReader::check() {
  if (StorageStatus batches = check_batches(); !batches) return batches;
  StorageResult<std::vector<std::uint64_t>> covers = snapshots();
  if (!covers) return forward_failure(covers);
  for (const std::uint64_t each : *covers) {
    const StorageResult<std::string> bytes = snapshot(each);
    const bool dropped = !bytes && bytes.error().failure == StorageFailure::kNotFound;
    if (!bytes && !dropped) return tl::unexpected(bytes.error());
  }
  StorageResult<StoreTexts> there = texts();
  if (!there) return forward_failure(there);
  return {};
}

}  // namespace orrery
