// node/controllers/controller_channels.hpp - an agent's streams to all controllers of its cluster,
// presented as one.
//
// Built by main() of orrery-agent over one channel for each controller; all are borrowed. All on
// the loop. A standby accepts a stream and stays silent until it leads, then it welcomes the agent:
// a change of the leader needs no new connection.
// Invariants:
// 1. The presented stream is the one that was welcomed last, among the open ones.
// 2. Only messages of the presented stream reach the user, and only it carries the user's messages.
// 3. Between the welcomes of two streams the user gets on_lost.
// 4. Each stream that was lost is opened again by itself, after a random delay that doubles from
//    kBackoffFirst to kBackoffMax until the stream is welcomed or lasts for kLasting: agents that
//    lost a controller together must not return together.
// Cost: an idle connection for each standby.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/log.hpp"
#include "node/controller_channel.hpp"

namespace orrery {

class ControllerChannels final : public ControllerChannel {
 public:
  static constexpr Duration kBackoffFirst = Duration::milliseconds(100);
  static constexpr Duration kBackoffMax = Duration::seconds(5);
  static constexpr Duration kLasting = Duration::seconds(10);  ///< longer than it takes to connect

  struct Controller {
    std::string address;  ///< for messages
    ControllerChannel& channel;
  };

  /// Precondition: at least one controller.
  ControllerChannels(const Env& env, const Log& log, const std::vector<Controller>& controllers);
  ControllerChannels(const ControllerChannels&) = delete;
  ControllerChannels& operator=(const ControllerChannels&) = delete;
  ~ControllerChannels() override;

  /// Opens a stream to each controller, and each again after a loss, with the same opening.
  /// on_lost reports the loss of the presented stream, and:
  /// 1. kInput, when each controller has refused this agent and none was presented since;
  /// 2. kInfeasible, when the presented stream ends so, or another one while none is presented;
  ///    then all streams are closed.
  void open(const AgentOpening& opening, ChannelEvents& events) override;
  void send(AgentMessage message) override;
  void close() override;

 private:
  class Stream;

  void welcome(Stream& stream);
  void lose(Stream& stream, const Error& why);
  /// Returns the refusal of this agent by every controller.
  [[nodiscard]] std::optional<Error> refusal_by_all() const;
  /// Returns the stream that was welcomed last, among the open ones; nullptr: there is none.
  [[nodiscard]] Stream* newest_welcomed() const;

  Env env_;
  Log log_;
  std::vector<std::unique_ptr<Stream>> streams_;
  AgentOpening opening_;
  ChannelEvents* events_ = nullptr;  ///< nullptr: closed
  Stream* presented_ = nullptr;
  std::uint64_t welcomes_ = 0;  ///< of all streams
};

}  // namespace orrery
