// api/agents/agent_messages.hpp - the messages between agent and controller (node/agent_wire.hpp)
// as protobuf (proto/orrery/v1/agent.proto), and back.
//
// Pure, so any thread may convert. Protobuf refuses a whole message for one text that is not UTF-8,
// and programs may write any bytes: in texts, invalid bytes become '?'. Logs are bytes and stay as
// they are. Cost: a copy.
#pragma once

#include "base/error.hpp"
#include "node/agent_wire.hpp"
#include "orrery/v1/agent.pb.h"

namespace orrery {

[[nodiscard]] v1::AgentMessage to_proto(const AgentMessage& message);
[[nodiscard]] v1::ControllerMessage to_proto(const ControllerMessage& message);
[[nodiscard]] v1::NodeReading to_proto(const NodeReading& reading);

/// Errors: a message without content, a number outside its range or enumeration, a share with
/// different numbers of devices and ranks, a launch without a program or with a gang that is not
/// whole. A valid message can be passed to an Agent or FleetLink: no precondition of theirs is
/// broken.
[[nodiscard]] Result<AgentMessage> from_proto(const v1::AgentMessage& message);
[[nodiscard]] Result<ControllerMessage> from_proto(const v1::ControllerMessage& message);

}  // namespace orrery
