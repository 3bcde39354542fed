#include "store/etcd/etcd_blob.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/format/xxh3.hpp"
#include "store/store.hpp"

namespace orrery {
namespace {

constexpr std::size_t kPartsAtOnce = 32;
constexpr std::uint64_t kReservedMax = std::uint64_t{64} << 20;

std::size_t part_count(std::size_t length) {
  return (length + kBlobPartBytes - 1) / kBlobPartBytes;
}

std::uint64_t hash_of(const etcd::BlobHead& head, std::string_view key, std::string_view bytes) {
  const std::string fields =
      fmt::format("{} {} {} {} {}", key, head.id(), head.length(), head.parts(), head.next_job());
  return xxh3(bytes, xxh3(fields));
}

/// Adds the parts from `first` on to `bytes`.
StorageStatus add_parts(EtcdClient& client, const BlobAt& at, const etcd::BlobHead& head,
                        std::string& bytes) {
  const std::size_t first = bytes.size() / kBlobPartBytes;
  const std::size_t end = std::min<std::size_t>(first + kPartsAtOnce, head.parts());
  etcd::RangeRequest request =
      range_request({at.place.part(head.id(), first), at.place.part(head.id(), end)});
  request.set_revision(at.revision);
  auto found = client.range(request, kPartsAtOnce * kBlobPartBytes);
  if (!found) return forward_failure(found);
  for (std::size_t index = first; index < end; ++index) {
    const std::string key = at.place.part(head.id(), index);
    const std::size_t size = std::min<std::size_t>(kBlobPartBytes, head.length() - bytes.size());
    const int found_at = static_cast<int>(index - first);
    if (found_at >= found->kvs_size() || found->kvs(found_at).key() != key) {
      return damaged_key(client.name(), key, fmt::format("is missing, expected {} bytes", size));
    }
    const std::string& part = found->kvs(found_at).value();
    if (part.size() != size) {
      return damaged_key(client.name(), key,
                         fmt::format("has {} bytes, expected {}", part.size(), size));
    }
    bytes += part;
  }
  return {};
}

}  // namespace

tl::unexpected<StorageError> damaged_key(const std::string& store, std::string_view key,
                                         std::string_view expected) {
  return store_error(StorageFailure::kOther,
                     fmt::format("{}: the key {} is damaged: {}", store, key, expected));
}

etcd::BlobHead make_blob_head(const std::string& key, std::string_view bytes,
                              const BlobFields& fields) {
  const bool parts = fields.form == BlobForm::kParts;
  etcd::BlobHead head;
  head.set_id(fields.id);
  head.set_length(bytes.size());
  head.set_parts(parts ? static_cast<std::uint32_t>(part_count(bytes.size())) : 0);
  head.set_next_job(fields.next_job);
  head.set_xxh3(hash_of(head, key, bytes));
  if (!parts) head.set_bytes(bytes.data(), bytes.size());
  return head;
}

std::vector<std::string_view> blob_parts(std::string_view bytes) {
  std::vector<std::string_view> parts;
  parts.reserve(part_count(bytes.size()));
  for (std::size_t at = 0; at < bytes.size(); at += kBlobPartBytes) {
    parts.push_back(bytes.substr(at, kBlobPartBytes));
  }
  return parts;
}

StorageResult<etcd::BlobHead> parse_blob_head(const std::string& store,
                                              const etcd::KeyValue& found) {
  etcd::BlobHead head;
  if (!head.ParseFromString(found.value())) {
    return damaged_key(store, found.key(),
                       fmt::format("its {} bytes are no head of Orrery", found.value().size()));
  }
  const std::size_t parts = head.parts() == 0 ? 0 : part_count(head.length());
  const std::uint64_t here = head.parts() == 0 ? head.length() : 0;
  if (head.parts() != parts || head.bytes().size() != here) {
    return damaged_key(
        store, found.key(),
        fmt::format("it names {} bytes in {} parts and has {} bytes, expected {} parts and {} "
                    "bytes",
                    head.length(), head.parts(), head.bytes().size(), parts, here));
  }
  return head;
}

bool is_head_of(const etcd::BlobHead& head, const std::string& key, std::string_view bytes) {
  return head.length() == bytes.size() && head.xxh3() == hash_of(head, key, bytes);
}

StorageResult<std::string> read_blob(EtcdClient& client, const BlobAt& at, etcd::BlobHead head) {
  std::string bytes = std::move(*head.mutable_bytes());
  // A head that was not written by Orrery may name any length.
  if (head.parts() > 0) bytes.reserve(std::min<std::uint64_t>(head.length(), kReservedMax));
  while (bytes.size() < head.length()) {
    if (StorageStatus added = add_parts(client, at, head, bytes); !added) {
      return forward_failure(added);
    }
  }
  if (is_head_of(head, at.place.head, bytes)) return bytes;
  return damaged_key(client.name(), at.place.head,
                     fmt::format("the XXH3 of its {} bytes is {:016x}, expected {:016x}",
                                 bytes.size(), hash_of(head, at.place.head, bytes), head.xxh3()));
}

}  // namespace orrery
