// store/etcd/etcd_state.hpp - what a store in etcd holds at one revision, without the bytes: the
// newest claim, the batches and the snapshots.
//
// A plain value; read by whatever opens, claims or follows a store. Blocks on etcd; any thread.
// Invariant: all of it was so at one moment during the call. Whoever writes on the ground of it
// compares the marks in the writing transaction, because others may have written since.
// Cost: one commit of etcd without a write; etcd counts the keys of the log.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "store/etcd/etcd_keys.hpp"
#include "store/etcd_api/etcd_client.hpp"
#include "store/shared_store.hpp"

namespace orrery {

/// The value at the key `term`.
struct EtcdClaim {
  std::uint64_t term = 0;
  std::string writer;
  std::uint64_t nonce = 0;  ///< distinguishes this claim from any other
  Duration speaks_for;      ///< StoreTraits::speaks_for of the writer; 0: it is older than this

  [[nodiscard]] std::string json() const;
};

/// Error kOther: the value is damaged.
[[nodiscard]] StorageResult<EtcdClaim> parse_claim(const std::string& store,
                                                   const etcd::KeyValue& found);

struct EtcdState {
  std::int64_t revision = 0;     ///< of etcd, when this was read
  std::int64_t format_mark = 0;  ///< revision of the key `format`; 0: the store was never claimed
  std::string moved_to;          ///< place of the copy that the log goes on in; empty: it is open
  WriterSeen seen;
  std::uint64_t nonce = 0;  ///< of the newest claim
  std::uint64_t oldest = 1;
  std::vector<std::uint64_t> snapshots;  ///< ascending

  [[nodiscard]] StoreExtent extent() const { return {.oldest = oldest, .newest = seen.newest}; }
};

/// Errors: kOther: a newer layout, or a damaged key.
[[nodiscard]] StorageResult<EtcdState> read_state(EtcdClient& client, const EtcdKeys& keys);

/// Error kOther: the log is closed; the text names the place of its copy, and how to reopen it.
[[nodiscard]] StorageStatus check_open(const EtcdClient& client, const EtcdState& state);

inline constexpr const char* kEtcdFormat = "1";
/// What the key `format` of a closed log begins with; the place of its copy follows.
inline constexpr const char* kEtcdMoved = "moved to ";

}  // namespace orrery
