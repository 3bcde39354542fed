#include "node/agent/controller_session.hpp"

#include <fmt/format.h>

#include <utility>

namespace orrery {

Status ControllerSession::accept(const AgentWelcome& welcome) {
  if (!first_) first_ = welcome;
  if (welcome.cluster != first_->cluster || welcome.node != first_->node) {
    return environment_error(
        fmt::format("the controller takes this agent for node {} of cluster {:016x}; it is node {} "
                    "of cluster {:016x}",
                    welcome.node.value(), welcome.cluster, first_->node.value(), first_->cluster));
  }
  welcomed_ = true;
  return {};
}

void ControllerSession::leave() {
  welcomed_ = false;
  channel_.close();
}

void ControllerSession::send(AgentMessage message) {
  if (welcomed_) channel_.send(std::move(message));
}

}  // namespace orrery
