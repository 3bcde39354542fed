// store/etcd/etcd_blob.hpp - bytes of any size in etcd: a head, and parts of 512 KiB if they do not
// fit into it.
//
// Pure functions, except read_blob(), which blocks on etcd; any thread. Invariant: the head's XXH3
// covers its key, its fields and the bytes, so neither damage nor a value at the wrong key is taken
// for what was written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "orrery/etcd.pb.h"
#include "store/etcd/etcd_keys.hpp"
#include "store/etcd_api/etcd_client.hpp"

namespace orrery {

inline constexpr std::size_t kBlobPartBytes = std::size_t{512} << 10;
/// Bytes that one transaction writes within heads, at most.
inline constexpr std::size_t kBlobHeadBytes = std::size_t{1} << 20;

enum class BlobForm : std::uint8_t { kHeadOnly, kParts };

struct BlobFields {
  std::uint64_t id = 0;  ///< not used again for other bytes of the same key
  std::uint64_t next_job = 0;
  BlobForm form = BlobForm::kHeadOnly;
};

/// Returns the head of bytes that stand at `key`.
[[nodiscard]] etcd::BlobHead make_blob_head(const std::string& key, std::string_view bytes,
                                            const BlobFields& fields);
/// Returns the parts of bytes, in order.
[[nodiscard]] std::vector<std::string_view> blob_parts(std::string_view bytes);

/// Parses a head. Error kOther: it is damaged; names the key and what was expected.
[[nodiscard]] StorageResult<etcd::BlobHead> parse_blob_head(const std::string& store,
                                                            const etcd::KeyValue& found);
/// Whether `head` was made of these bytes, under this id.
[[nodiscard]] bool is_head_of(const etcd::BlobHead& head, const std::string& key,
                              std::string_view bytes);

struct BlobAt {
  const BlobPlace& place;
  std::int64_t revision = 0;  ///< revision at which the parts are read
};
/// Returns the bytes of a head, and checks them. Errors: kNotFound: the revision was compacted;
/// kOther: damage, with the key and what was expected.
[[nodiscard]] StorageResult<std::string> read_blob(EtcdClient& client, const BlobAt& at,
                                                   etcd::BlobHead head);

/// An error that names a damaged key.
[[nodiscard]] tl::unexpected<StorageError> damaged_key(const std::string& store,
                                                       std::string_view key,
                                                       std::string_view expected);

}  // namespace orrery
