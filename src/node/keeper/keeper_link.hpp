// node/keeper/keeper_link.hpp - an agent's link to one keeper: starts or finds it, communicates
// with it, watches it until no process is left.
//
// Owned by the attempt (node/attempts/node_attempt.hpp), used on its loop, never blocks it. A
// keeper lives as long as the lock of its directory is held, by its guard or by the keeper itself,
// until no process is left; the end of the child, or of the connection, only triggers a check of
// the lock. A connection that is lost while the keeper lives is made again. Cost: a handful of
// system calls each start, connection and end.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/system/real_env.hpp"
#include "node/keeper/keeper_launch.hpp"
#include "node/keeper/keeper_wire.hpp"

namespace orrery {

/// The events of a link, never called inside a call of the owner's own.
class KeeperEvents {
 public:
  virtual ~KeeperEvents() = default;
  virtual void on_status(const AttemptId& id, const KeeperStatus& status) = 0;
  virtual void on_paces(const AttemptId& id, const RankPaces& paces) = 0;
  virtual void on_wrong(const AttemptId& id, const WrongResults& wrong) = 0;
  virtual void on_tail(const AttemptId& id, const LogTail& tail) = 0;
  virtual void on_command_output(const ExecOutput& output) = 0;
  virtual void on_command_end(const ExecEnd& end) = 0;
  /// The connection was lost: pending questions are not answered.
  virtual void on_break(const AttemptId& id) = 0;
  /// No process is left; the last call. `failure`: why the keeper never came to life; empty: it
  /// did.
  virtual void on_over(const AttemptId& id, const std::string& failure) = 0;
};

/// A keeper as its attempt uses it.
class KeeperHandle {
 public:
  virtual ~KeeperHandle() = default;
  /// Runs the keeper in the directory, whose launch file is written. Errors: it could not be run;
  /// then the handle has nothing left to do, and on_over does not come.
  [[nodiscard]] virtual Status start() = 0;
  /// Adopts the living keeper of the directory.
  virtual void adopt() = 0;
  /// Sends in order, once the keeper is connected.
  virtual void tell(const KeeperInput& message) = 0;
  /// Whether the keeper has reported, on the present connection, that it runs commands beside its
  /// ranks.
  [[nodiscard]] virtual bool runs_commands() const = 0;
};

/// What a link needs to find or start its keeper.
struct KeeperPlace {
  std::string program;  ///< path of orrery-keeper
  AttemptId id;
  KeeperFiles files;
};

class KeeperLink final : public KeeperHandle, public ConnectionEvents, public ReadyHandler {
 public:
  /// `real` and `events` are borrowed. Precondition: start() or adopt() is called at most once.
  KeeperLink(RealEnv& real, KeeperEvents& events, KeeperPlace place);
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;
  ~KeeperLink() override;

  [[nodiscard]] Status start() override;
  void adopt() override;
  void tell(const KeeperInput& message) override;
  [[nodiscard]] bool runs_commands() const override { return runs_commands_ && !stalled(); }

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
  [[nodiscard]] bool send(const KeeperInput& message);
  void end_connection();
  void look();
  void wait(Duration delay, void (KeeperLink::*then)());
  void stop_waiting();
  [[nodiscard]] std::string failure() const;
  /// Whether the keeper does not read what it is sent, so that a new connection has to be made.
  [[nodiscard]] bool stalled() const {
    return connection_ != ConnectionId::kNone && !waiting_.empty();
  }

  RealEnv& real_;
  KeeperEvents& events_;
  KeeperPlace place_;
  pid_t child_ = 0;         ///< not yet reaped; 0: none, or started by an earlier agent
  FileDescriptor says_;     ///< what the child writes until it is ready
  FileDescriptor process_;  ///< of the child
  WatchId says_watch_ = WatchId::kNone;
  WatchId process_watch_ = WatchId::kNone;
  std::string said_;
  bool came_to_life_ = false;
  bool runs_commands_ = false;
  ConnectionId connection_ = ConnectionId::kNone;
  std::vector<KeeperInput> waiting_;  ///< to be sent on the next connection
  std::optional<TimerId> timer_;
  Duration patience_;  ///< delay until the next look at it
};

}  // namespace orrery
