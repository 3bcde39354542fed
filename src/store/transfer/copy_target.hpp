// store/transfer/copy_target.hpp - a new log that becomes the copy of another one: in a directory,
// or in etcd.
//
// Made for one copy; one thread. Nothing of another log is replaced: the place must be empty.
// What a copy needs beyond a Store is here and not there: only a log that begins may take a term
// and a snapshot from elsewhere.
#pragma once

#include <memory>
#include <string>

#include "store/sqlite/high_water.hpp"
#include "store/store.hpp"

namespace orrery {

class CopyTarget {
 public:
  virtual ~CopyTarget() = default;

  [[nodiscard]] virtual Store& store() = 0;
  /// Claims the log with a term above `passed`.
  [[nodiscard]] virtual StorageResult<StoreTerm> claim_above(std::uint64_t passed) = 0;
  /// Puts a snapshot into the log without batches; later batches follow it.
  [[nodiscard]] virtual StorageStatus begin_at(StoreTerm term, const Batch& covers) = 0;
  /// Closes the copy, and puts what is local to this machine where a controller looks for it.
  /// `reached`: the newest batch, the claimed term, the next job number.
  [[nodiscard]] virtual StorageStatus finish(const HighWater& reached) = 0;
};

/// `state`: directory of a controller; a log in etcd has its archive and mark in STATE/store.
/// Errors: the place has a log already, or a file (kExists); of the machine or etcd.
[[nodiscard]] StorageResult<std::unique_ptr<CopyTarget>> open_copy_target(const std::string& url,
                                                                          const std::string& state);

}  // namespace orrery
