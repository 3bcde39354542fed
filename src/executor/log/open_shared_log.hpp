// executor/log/open_shared_log.hpp - the log that several controllers share, by its URL.
#pragma once

#include <string>

#include "executor/log/shared_log.hpp"

namespace orrery {

struct SharedLogPlace {
  std::string url;                                       ///< etcd://..
  std::string directory;                                 ///< for what is local to this machine
  std::string writer;                                    ///< see SharedLog
  Duration speaks_for = Duration::milliseconds(1200);    ///< see StoreTraits
  Duration claims_after = Duration::milliseconds(2200);  ///< see SharedLog
};
/// Opens nothing yet. Errors (kInput): the URL, with what was expected.
[[nodiscard]] Result<SharedLog> open_shared_log(const SharedLogPlace& place);

}  // namespace orrery
