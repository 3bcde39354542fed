// api/agents/controller_streams.hpp - an agent's streams over gRPC to all controllers of its
// cluster, as one channel.
//
// Built by main() of orrery-agent; what the Env refers to outlives it. On the loop. The rules are
// those of node/controllers/controller_channels.hpp and api/agents/agent_channel.hpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/agents/agent_channel.hpp"
#include "base/env.hpp"
#include "base/log.hpp"
#include "node/controllers/controller_channels.hpp"

namespace orrery {

class ControllerStreams {
 public:
  /// `addresses`: HOST:PORT of each controller, at least one, none twice.
  ControllerStreams(const Env& env, const Log& log, const std::vector<std::string>& addresses,
                    const AgentTls& tls);

  [[nodiscard]] ControllerChannel& channel() { return *presented_; }
  /// Sets the certificate for streams that are opened from now on.
  void show(const AgentTls& tls);

 private:
  std::vector<std::unique_ptr<AgentChannel>> channels_;
  std::unique_ptr<ControllerChannels> presented_;
};

}  // namespace orrery
