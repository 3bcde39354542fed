#include "executor/holds/hold_host.hpp"

#include <utility>

namespace orrery {

HoldHost::HoldHost(HoldSetup setup, ControlHost& host, Send send, Instant now)
    : host_(host), send_(std::move(send)), link_(std::move(setup), host.state(), now) {
  drain(now);
}

void HoldHost::deliver(const ManagerReport& report, Instant now) {
  link_.deliver(report, host_.state(), now);
  drain(now);
}

Status HoldHost::admit(NodeId node, const AgentHold& agent, Instant now) {
  Status admitted = link_.admit(node, agent, host_.state(), now);
  drain(now);
  return admitted;
}

void HoldHost::end(NodeId node, const std::string& why, Instant now) {
  link_.end(node, why, now);
  drain(now);
}

void HoldHost::advance(Instant now) {
  link_.advance(host_.core(), now);
  drain(now);
}

/// A halted controller lends and asks for nothing.
Instant HoldHost::next_due() const {
  return host_.halted_by().empty() ? link_.next_due() : Instant::max();
}

void HoldHost::drain(Instant now) {
  for (HoldEffect& effect : link_.take()) {
    if (auto* input = std::get_if<InputKind>(&effect)) {
      host_.handle({now, std::move(*input), {}});
    } else {
      host_.after_durable(
          [send = send_, order = std::get<ManagerOrder>(std::move(effect))] { send(order); });
    }
  }
}

}  // namespace orrery
