// executor/log/shared_log.hpp - the log that several controllers share, as a controller is told of
// it.
//
// Made by main() of orreryd; values.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/time.hpp"
#include "store/shared_store.hpp"

namespace orrery {

/// Opens a store to read, for a thread of its own.
using OpenReader = std::function<StorageResult<std::unique_ptr<StoreReader>>()>;

struct SharedLog {
  std::function<StorageResult<std::unique_ptr<SharedStore>>()> open;
  OpenReader open_log;      ///< to read past events
  OpenReader open_archive;  ///< to read this machine's archive
  /// Text that the other controllers, and through them clients, know this one by when it leads.
  std::string writer;
  /// Silence of the writer after which it is replaced. The difference to the store's
  /// StoreTraits::speaks_for is how long the former writer has sent nothing by then; a writer that
  /// speaks longer than this controller would is given that time, too.
  Duration claims_after = Duration::milliseconds(2200);
};

}  // namespace orrery
