// store/etcd_api/etcd_txn.hpp - builds one transaction of etcd: comparisons, what is done where all
// hold, and what is read where one does not.
//
// A plain value; any thread. etcd limits a transaction to 128 comparisons, 128 steps and 1.5 MiB.
#pragma once

#include <cstdint>
#include <string>

#include "orrery/etcd.pb.h"

namespace orrery {

/// The keys from `from` on, before `end`; an empty `end`: the one key.
struct EtcdKeyRange {
  std::string from;
  std::string end = {};
};

/// All keys with this prefix. Precondition: its last byte is not 0xff.
[[nodiscard]] EtcdKeyRange keys_under(std::string prefix);
[[nodiscard]] etcd::RangeRequest range_request(const EtcdKeyRange& keys);

class EtcdTxn {
 public:
  /// The key was last written at this revision; 0: it does not exist.
  EtcdTxn& if_written_at(const std::string& key, std::int64_t revision);
  EtcdTxn& if_exists(const std::string& key);
  EtcdTxn& if_value(const std::string& key, std::string value);
  EtcdTxn& put(const std::string& key, std::string value);
  EtcdTxn& erase(const EtcdKeyRange& keys);
  EtcdTxn& get(etcd::RangeRequest keys);
  EtcdTxn& else_get(const std::string& key);
  /// Makes etcd put a transaction that only reads into its log, so that it sees all that was
  /// written before: etcd 3.4 and early releases of 3.6 can answer other reads with an old state
  /// around a change of the leader. Precondition: there is no comparison. `key` is not used
  /// otherwise.
  EtcdTxn& in_order(const std::string& key);

  /// A transaction that reads what this one reads where a comparison does not hold. `key` as above.
  [[nodiscard]] EtcdTxn else_branch(const std::string& key) const;

  [[nodiscard]] const etcd::TxnRequest& request() const { return request_; }

 private:
  etcd::TxnRequest request_;
};

}  // namespace orrery
