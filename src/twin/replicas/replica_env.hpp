// twin/replicas/replica_env.hpp - the environment of one controller process in virtual time. The
// process can be paused: then its clocks go on, and its callbacks wait.
//
// Made for each process by its Replica, which ends it before it destroys it. Its clocks have their
// own epochs. A call that takes time, such as a claim, moves the clock of its process ahead; the
// process does nothing else until the world has caught up. There is no network: the world carries
// messages. One thread. Cost: O(log timers) a timer.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "base/env.hpp"
#include "twin/protocol/protocol_context.hpp"

namespace orrery {

class ReplicaEnv final : Clock, Timers, Entropy, Transport, Inbox {
 public:
  /// Context and files outlive it. `random` decides about its epochs and its entropy.
  ReplicaEnv(ProtocolContext& context, Storage& files, Rng random);
  ReplicaEnv(const ReplicaEnv&) = delete;
  ReplicaEnv& operator=(const ReplicaEnv&) = delete;
  ~ReplicaEnv() override { end(); }

  [[nodiscard]] Env env() { return {*this, *this, *this, files_, *this, *this}; }

  void pause() { paused_ = true; }
  void resume();
  [[nodiscard]] bool is_paused() const { return paused_; }
  /// The call that is under way takes this long.
  void spend(Duration time);
  /// The world's time, as far as the process has come.
  [[nodiscard]] Instant world_now() const;
  /// No callback runs from now on.
  void end() { *lives_ = false; }
  /// A callback of the process, as of one of its threads, that is due now.
  void arrive(Callback callback);

 private:
  [[nodiscard]] Instant now_wall() const override { return world_now() + wall_; }
  [[nodiscard]] Instant now_monotonic() const override { return world_now() + monotonic_; }
  TimerId call_at(Instant monotonic, Callback callback) override;
  TimerId call_after(Duration delay, Callback callback) override;
  bool cancel(const TimerId& timer) override { return timers_.erase(timer) > 0; }
  std::uint64_t draw() override { return random_.next_u64(); }
  Result<Listening> listen(std::string_view address, ListenerEvents& events) override;
  Result<ConnectionId> connect(std::string_view address, ConnectionEvents& events) override;
  SendOutcome send(ConnectionId, std::string_view) override { return SendOutcome::kClosed; }
  void close(ConnectionId) override {}
  void close(ListenerId) override {}
  void post(Callback callback) override;

  void later(Duration delay, Callback callback);
  void fire(const TimerId& timer);
  void run_arrived();

  ProtocolContext& context_;
  Storage& files_;
  Rng random_;
  Duration wall_;       ///< its epoch, less that of the world
  Duration monotonic_;  ///< likewise
  Instant busy_until_;
  bool paused_ = false;
  bool runs_ = false;  ///< a callback is under way
  std::map<TimerId, Callback> timers_;
  std::uint64_t next_ = 0;
  std::deque<Callback> arrived_;
  std::shared_ptr<bool> lives_ = std::make_shared<bool>(true);
};

}  // namespace orrery
