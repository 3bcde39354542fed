// node/step_secret.hpp - how srun shows a node of its gang that it is of the same attempt, without
// saying what both know.
//
// The controller makes the secret of an attempt from a key of its own and tells it to the nodes
// beside the program; the job's processes have it in their environment. A node asks with a number
// that it never asks twice, the answer is HMAC-SHA-256 (RFC 2104) of it. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "agent/keeper.hpp"

namespace orrery {

/// Of one attempt; 64 hexadecimal digits.
[[nodiscard]] std::string step_secret(std::string_view key, const AttemptId& attempt);

/// The answer to a challenge; 32 bytes.
[[nodiscard]] std::string step_proof(std::string_view secret, std::string_view challenge);

/// In a time that depends on the lengths alone.
[[nodiscard]] bool is_same_proof(std::string_view a, std::string_view b);

}  // namespace orrery
