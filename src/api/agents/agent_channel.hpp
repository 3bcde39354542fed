// api/agents/agent_channel.hpp - an agent's stream to its controller over gRPC:
// AgentService.Connect of proto/orrery/v1/agent.proto, the client's side.
//
// Built by main() of orrery-agent over the loop's Inbox, which outlives it and the last thread of
// gRPC. Threads of gRPC only decode and post; everything else is on the loop. One message is
// written and one read at a time; the queue of messages to write is bounded. A silent network is
// noticed within 20 s. Each stream has a connection of its own, so that the agent alone decides how
// long to wait between two.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "api/agents/certificates.hpp"
#include "base/env.hpp"
#include "node/controller_channel.hpp"

namespace orrery {

struct AgentChannelOptions {
  std::string controller;  ///< HOST:PORT
  AgentTls tls;            ///< its certificate, and the authority that it trusts
};

class AgentChannel final : public ControllerChannel {
 public:
  AgentChannel(Inbox& inbox, AgentChannelOptions options);
  AgentChannel(const AgentChannel&) = delete;
  AgentChannel& operator=(const AgentChannel&) = delete;
  /// Waits until no thread of gRPC is in the last stream.
  ~AgentChannel() override;

  void open(const AgentOpening& opening, ChannelEvents& events) override;
  void send(AgentMessage message) override;
  void close() override;

  /// Sets the certificate for streams that are opened from now on; an open stream stays as it is.
  void show(AgentTls tls) { options_.tls = std::move(tls); }

 private:
  class Stream;

  Inbox& inbox_;
  AgentChannelOptions options_;
  std::shared_ptr<Stream> stream_;  ///< none: closed
};

}  // namespace orrery
