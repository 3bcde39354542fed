// node/keeper_link.hpp - one keeper as its agent has it: started or found, spoken to, watched until
// nobody is left.
//
// Owned by the agent's process, used on its loop, never blocks it. Whether a keeper lives is the
// lock of its directory, which its guard and it hold until nobody is left; the end of the child,
// or of the connection, only says when to look. A connection that is lost while it lives is made
// again. Cost: a handful of system calls each start, connection and end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/real_env.hpp"
#include "node/keeper_launch.hpp"
#include "node/keeper_wire.hpp"

namespace orrery {

/// What a link tells its owner, never inside a call of the owner's own.
class KeeperEvents {
 public:
  virtual ~KeeperEvents() = default;
  virtual void on_status(const AttemptId& id, const KeeperStatus& status) = 0;
  virtual void on_paces(const AttemptId& id, const RankPaces& paces) = 0;
  virtual void on_wrong(const AttemptId& id, const WrongResults& wrong) = 0;
  virtual void on_tail(const AttemptId& id, const LogTail& tail) = 0;
  virtual void on_command_output(const ExecOutput& output) = 0;
  virtual void on_command_end(const ExecEnd& end) = 0;
  /// The connection was lost: what was asked is not answered.
  virtual void on_break(const AttemptId& id) = 0;
  /// Nobody is left; the last call. `failure`: why it never came to life; empty: it had.
  virtual void on_over(const AttemptId& id, const std::string& failure) = 0;
};

class KeeperLink final : public ConnectionEvents, public ReadyHandler {
 public:
  /// `real` and `events` are borrowed. Precondition: start() or adopt() follows, once.
  KeeperLink(RealEnv& real, KeeperEvents& events, const AttemptId& id, KeeperFiles files);
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;
  ~KeeperLink() override;

  /// Runs `program` in the directory, whose launch file is written. Errors: it could not be run;
  /// then nothing of the link is left to do, and on_over does not come.
  [[nodiscard]] Status start(const std::string& program);
  /// The keeper of the directory lives.
  void adopt();

  /// In order; waits until the keeper can be spoken to.
  void tell(const KeeperInput& message);
  /// Whether it has said that it runs commands beside its ranks, on the connection there is.
  [[nodiscard]] bool runs_commands() const { return runs_commands_; }

  void on_frame(ConnectionId connection, std::string_view frame) override;
  void on_close(ConnectionId connection, const Closed& closed) override;
  void on_ready(std::uint32_t events) override;

 private:
  [[nodiscard]] Status watch_child(FileDescriptor says);
  void hear_child();
  void reap_child();
  void end_child();
  void give_up();
  void connect();
  void look();
  void wait(Duration delay, void (KeeperLink::*then)());
  void stop_waiting();
  [[nodiscard]] std::string failure() const;

  RealEnv& real_;
  KeeperEvents& events_;
  AttemptId id_;
  KeeperFiles files_;
  pid_t child_ = 0;         ///< not yet reaped; 0: none, or an agent's before this one
  FileDescriptor says_;     ///< what the child writes until it is ready
  FileDescriptor process_;  ///< of the child
  WatchId says_watch_ = WatchId::kNone;
  WatchId process_watch_ = WatchId::kNone;
  std::string said_;
  bool came_to_life_ = false;
  bool runs_commands_ = false;
  ConnectionId connection_ = ConnectionId::kNone;
  std::vector<std::string> waiting_;  ///< to be said once it can be spoken to
  std::optional<TimerId> timer_;
  Duration patience_;  ///< until it is looked at again
};

}  // namespace orrery
