// node/attempts/attempt_logs.hpp - the output of an attempt's ranks for the controller: the newest
// part comes from the keeper, which has it whatever the disk does; older parts, and all output of
// an attempt that is over, come from the files.
//
// Owned by the attempt, used on the loop. A keeper answers in order.
// Invariant: each question of the controller gets one answer, if its stream lives: from the keeper,
// or from the files once the keeper cannot answer any more.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "node/agent/controller_session.hpp"
#include "node/keeper/keeper_link.hpp"

namespace orrery {

/// A question for output, asked by the controller or, without an id, by the agent itself so that
/// the controller keeps the end of a log.
struct AskedLog {
  std::optional<std::uint64_t> id;
  LogQuestion log;  ///< from kFromTail: its end
  std::optional<Instant> since = std::nullopt;
};

/// Where the output of one attempt is, and where the answers go.
struct LogPlace {
  Storage& storage;
  ControllerSession& session;
  AttemptId id;
  KeeperFiles files;
};

/// Answers from the files of an attempt, whether it runs or not.
void answer_from_files(const LogPlace& place, const AskedLog& asked);

class AttemptLogs {
 public:
  /// `keeper` is borrowed.
  AttemptLogs(LogPlace place, KeeperHandle& keeper) : place_(std::move(place)), keeper_(keeper) {}
  AttemptLogs(const AttemptLogs&) = delete;
  AttemptLogs& operator=(const AttemptLogs&) = delete;

  /// Asks the keeper or, once it has gone, the files.
  void ask(const AskedLog& asked);
  void on_tail(const LogTail& tail);
  /// Notes that the keeper answers no pending question.
  void on_break();
  /// Notes that the keeper answers no question any more, or never came to life.
  void on_keeper_gone();
  /// Releases the keeper, once it has answered with the ends of its logs for the controller.
  /// Precondition: the controller knows of the attempt's end.
  void keep_then_release();
  /// Notes that the attempt is over. The ends of its logs are sent from the files, unless they were
  /// asked for before.
  void on_over();

 private:
  void answer_pending();
  void release_if_kept();

  LogPlace place_;
  KeeperHandle& keeper_;
  std::deque<AskedLog> asked_;  ///< pending questions to the keeper
  bool released_ = false;       ///< the keeper may go once the ends of its logs are here
  bool keeper_gone_ = false;
};

}  // namespace orrery
