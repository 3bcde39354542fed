// tests/fuzz/fuzz_etcd_log.cpp - any bytes as what a controller finds in etcd, or as the URL of a
// log there; the first byte picks it. What is taken is written again as the same.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "api/access/shared_files.hpp"
#include "base/assert.hpp"
#include "base/numbers/rng.hpp"
#include "store/etcd/etcd_blob.hpp"
#include "store/etcd/etcd_state.hpp"
#include "store/etcd_api/etcd_location.hpp"
#include "tests/fuzz/first_byte.hpp"

namespace orrery {
namespace {

etcd::KeyValue found(std::string_view bytes) {
  etcd::KeyValue found;
  found.set_key("/orrery/fuzz/key");
  found.set_value(std::string(bytes));
  return found;
}

void read_url(std::string_view text) {
  const Result<EtcdLocation> location = parse_etcd_location("etcd://" + std::string(text));
  if (!location) return;
  const Result<EtcdLocation> again = parse_etcd_location(location->url());
  ORRERY_ASSERT(again && *again == *location, "a URL is written as it was read");
}

void read_head(std::string_view bytes) {
  const etcd::KeyValue at = found(bytes);
  const StorageResult<etcd::BlobHead> head = parse_blob_head("fuzz", at);
  if (!head || head->parts() > 0) return;
  ORRERY_ASSERT(head->bytes().size() == head->length(), "a head without parts has all bytes");
  static_cast<void>(is_head_of(*head, at.key(), head->bytes()));
}

/// The bytes as the content of a blob, which a head in its place names, and at no other key.
void write_head(std::string_view bytes) {
  etcd::KeyValue at = found({});
  at.set_value(make_blob_head(at.key(), bytes, {.id = bytes.size()}).SerializeAsString());
  const StorageResult<etcd::BlobHead> head = parse_blob_head("fuzz", at);
  ORRERY_ASSERT(head && is_head_of(*head, at.key(), bytes), "a head is read as it was written");
  ORRERY_ASSERT(!is_head_of(*head, at.key() + "2", bytes), "a head belongs to its key");
}

void read_claim(std::string_view bytes) {
  const StorageResult<EtcdClaim> claim = parse_claim("fuzz", found(bytes));
  if (!claim) return;
  const StorageResult<EtcdClaim> again = parse_claim("fuzz", found(claim->json()));
  ORRERY_ASSERT(again && again->term == claim->term && again->nonce == claim->nonce &&
                    again->writer == claim->writer,
                "a claim is written as it was read");
}

class FuzzEntropy final : public Entropy {
 public:
  std::uint64_t draw() override { return rng_.next_u64(); }

 private:
  Rng rng_{7};
};

void open_sealed(std::string_view bytes) {
  const std::string key(32, 'k');
  ORRERY_ASSERT(!unseal(key, "name", bytes), "no key of ours sealed these bytes");
  FuzzEntropy entropy;
  std::string sealed = seal(key, "name", bytes, entropy);
  const Result<std::string> opened = unseal(key, "name", sealed);
  ORRERY_ASSERT(opened && *opened == bytes, "what was sealed is opened");
  ORRERY_ASSERT(!unseal(key, "other", sealed), "a text is sealed for its name");
  sealed[bytes.size() % sealed.size()] ^= 1;
  ORRERY_ASSERT(!unseal(key, "name", sealed), "a changed text is not opened");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  static constexpr std::array<TaggedReader, 5> kReaders{{{'u', read_url},
                                                         {'h', read_head},
                                                         {'w', write_head},
                                                         {'c', read_claim},
                                                         {'s', open_sealed}}};
  return read_by_first_byte(data, size, kReaders);
}
