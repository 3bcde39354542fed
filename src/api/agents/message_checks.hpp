// api/agents/message_checks.hpp - what makes a message between agent and controller senseless,
// though each of its numbers is within its type; and the words of errors about its fields.
//
// complaint() returns what is wrong with a struct, empty: nothing. Its parts were checked before.
// Pure. Cost: O(elements), and O(ranks log ranks) for a gang.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstdint>
#include <string>

#include "node/agent_wire.hpp"

namespace orrery {

[[nodiscard]] std::string complaint(const AgentWelcome& welcome);
[[nodiscard]] std::string complaint(const RankShare& share);
[[nodiscard]] std::string complaint(const GangLayout& layout);
/// Checks that the program of a launch can be started on the ranks of this node.
[[nodiscard]] std::string complaint(const NodeOrder& ordered);
[[nodiscard]] std::string complaint(const Progress& progress);
[[nodiscard]] std::string complaint(const AttemptReport& report);
[[nodiscard]] std::string complaint(const RankPace& pace);
[[nodiscard]] std::string complaint(const AcceleratorReading& reading);
[[nodiscard]] std::string complaint(const NodeReading& reading);

/// Returns the words of an error for a field: its name without a unit, or better ones.
[[nodiscard]] std::string spoken_name(const google::protobuf::FieldDescriptor& field);
/// Returns the highest number that a field may hold, where its type holds up to `type_max`.
[[nodiscard]] std::uint64_t highest_of(const google::protobuf::FieldDescriptor& field,
                                       std::uint64_t type_max);
/// Returns "a message that says nothing" in the words of the oneof's message.
[[nodiscard]] std::string no_content(const google::protobuf::OneofDescriptor& oneof);

}  // namespace orrery
