// executor/holds/hold_host.hpp - runs the link to resource managers beside the host of the core:
// its inputs go to the core at once, its orders leave when everything before them is durable.
//
// Built by the controller and by the twin, for one term; host and outlet outlive it. One thread.
// Invariant: no order leaves before the loans and starts that it rests on are durable, nor while
// the controller may not speak.
#pragma once

#include <functional>

#include "executor/control_host.hpp"
#include "executor/holds/hold_link.hpp"

namespace orrery {

class HoldHost {
 public:
  using Send = std::function<void(const ManagerOrder&)>;

  HoldHost(HoldSetup setup, ControlHost& host, Send send, Instant now);
  HoldHost(const HoldHost&) = delete;
  HoldHost& operator=(const HoldHost&) = delete;

  void deliver(const ManagerReport& report, Instant now);
  /// See HoldLink::admit().
  [[nodiscard]] Status admit(NodeId node, const AgentHold& agent, Instant now);
  /// See HoldLink::end().
  void end(NodeId node, const std::string& why, Instant now);
  /// See HoldLink::ask_again().
  void ask_again(Instant now) { link_.ask_again(now); }
  /// Looks at what is due. Precondition: next_due() <= now.
  void advance(Instant now);
  [[nodiscard]] Instant next_due() const;

  [[nodiscard]] const HoldLink& link() const { return link_; }

 private:
  void drain(Instant now);

  ControlHost& host_;
  Send send_;
  HoldLink link_;
};

}  // namespace orrery
