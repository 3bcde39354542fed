// store/etcd/etcd_keys.hpp - the keys of one log in etcd. All begin with "/orrery/CLUSTER/".
//
//   format              version of this layout, as text; of a log that was closed after it was
//                       copied: "moved to " and the place of the copy
//   term                newest claim (store/etcd/etcd_state.hpp)
//   beat                term of the writer, written at least every StoreTraits::beat_every
//   log/N               batch N; N has 16 hexadecimal digits
//   snap/N              snapshot of the state after batch N
//   text/NAME           text
//   part/KEY/ID/K       part K of what stands at KEY, if it is large; in KEY the name of a text is
//                       replaced by its XXH3
//
// A plain value; any thread. Invariant: a part counts only once the value at its KEY names ID.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/etcd_api/etcd_txn.hpp"

namespace orrery {

/// Where bytes stand: a small value at `head`, and what does not fit there under `parts`.
struct BlobPlace {
  std::string head;
  std::string parts;  ///< prefix of the keys of all parts

  /// Prefix of the keys of the parts that were written under an id.
  [[nodiscard]] std::string parts_of(std::uint64_t id) const;
  [[nodiscard]] std::string part(std::uint64_t id, std::size_t index) const;
};

class EtcdKeys {
 public:
  explicit EtcdKeys(std::string prefix) : prefix_(std::move(prefix)) {}

  [[nodiscard]] const std::string& prefix() const { return prefix_; }
  [[nodiscard]] std::string format() const { return prefix_ + "format"; }
  [[nodiscard]] std::string term() const { return prefix_ + "term"; }
  [[nodiscard]] std::string beat() const { return prefix_ + "beat"; }
  [[nodiscard]] BlobPlace batch(std::uint64_t number) const;
  [[nodiscard]] BlobPlace snapshot(std::uint64_t covers) const;
  [[nodiscard]] BlobPlace text(const std::string& name) const;

  // Prefixes of the keys of one kind, and of their parts.
  [[nodiscard]] std::string log() const { return prefix_ + "log/"; }
  [[nodiscard]] std::string log_parts() const { return prefix_ + "part/log/"; }
  [[nodiscard]] std::string snapshots() const { return prefix_ + "snap/"; }
  [[nodiscard]] std::string snapshot_parts() const { return prefix_ + "part/snap/"; }
  [[nodiscard]] std::string texts() const { return prefix_ + "text/"; }

  /// Returns the number at the end of a key of a batch or snapshot; none: it is no such key.
  [[nodiscard]] static std::optional<std::uint64_t> number_in(std::string_view key,
                                                              std::string_view prefix);

 private:
  std::string prefix_;
};

}  // namespace orrery
