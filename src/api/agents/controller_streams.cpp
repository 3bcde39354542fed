#include "api/agents/controller_streams.hpp"

namespace orrery {

ControllerStreams::ControllerStreams(const Env& env, const Log& log,
                                     const std::vector<std::string>& addresses,
                                     const AgentTls& tls) {
  std::vector<ControllerChannels::Controller> controllers;
  controllers.reserve(addresses.size());
  channels_.reserve(addresses.size());
  for (const std::string& address : addresses) {
    channels_.push_back(std::make_unique<AgentChannel>(
        env.inbox, AgentChannelOptions{.controller = address, .tls = tls}));
    controllers.push_back({address, *channels_.back()});
  }
  presented_ = std::make_unique<ControllerChannels>(env, log, controllers);
}

void ControllerStreams::show(const AgentTls& tls) {
  for (const std::unique_ptr<AgentChannel>& channel : channels_) channel->show(tls);
}

}  // namespace orrery
