#include "store/transfer/quiet_log.hpp"

#include <poll.h>

namespace orrery {

Status watch_quiet(EtcdReader& log, const WriterSeen& seen, Duration watch) {
  ::poll(nullptr, 0, static_cast<int>(watch.count_ns() / 1'000'000));
  StorageResult<EtcdState> now = log.state();
  if (!now) return forward_error(now);
  if (now->seen == seen) return {};
  const std::string by = now->seen.writer.empty()
                             ? ""
                             : fmt::format(", which the controller at {} holds", now->seen.writer);
  return infeasible(
      fmt::format("{}: is written, in term {}{}; stop every controller of this log first",
                  log.name(), now->seen.term, by));
}

}  // namespace orrery
