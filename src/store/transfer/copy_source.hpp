// store/transfer/copy_source.hpp - a log that is copied: in a directory, or in etcd.
//
// Made for one copy; one thread. Holds the lock of a directory, and has seen that no controller
// writes a log in etcd. Only close_source() changes something.
#pragma once

#include <memory>
#include <string>

#include "base/system/file_descriptor.hpp"
#include "store/etcd_api/etcd_location.hpp"
#include "store/shared_store.hpp"
#include "store/sqlite/high_water.hpp"
#include "store/store.hpp"
#include "store/transfer/quiet_log.hpp"

namespace orrery {

struct CopySource {
  FileDescriptor lock;  ///< none: the log is in etcd
  std::unique_ptr<StoreReader> log;
  std::unique_ptr<StoreReader> archive;  ///< none: this machine has no archive of the log
  HighWater reached;                     ///< term and job numbers that the log may have given out
  WriterSeen seen = {};                  ///< what a log in etcd had before it was copied
  StoreTexts sealed = {};                ///< texts that the copy has besides those of the log
};

struct CopySourcePlace {
  std::string url;
  std::string state;  ///< directory of a controller, for the archive of a log in etcd
  Duration watch = kQuietWatch;
};

/// Errors: no log there, or the URL (kInput); a controller writes it (kInfeasible); it was copied
/// and closed; of the machine or etcd.
[[nodiscard]] Result<CopySource> open_copy_source(const CopySourcePlace& place);

/// Closes a log in etcd for every controller, in one step that fails if it was written since
/// `source` was opened. `moved_to`: the place of its copy, for the message of those who start on
/// it. Errors: it was written (kInfeasible); of etcd. The log stays open then, except that etcd may
/// have closed it without giving an answer.
[[nodiscard]] Status close_source(const EtcdLocation& location, const CopySource& source,
                                  const std::string& moved_to);

}  // namespace orrery
