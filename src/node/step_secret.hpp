// node/step_secret.hpp - how srun and a node of its gang show each other that they are of the same
// attempt, without saying what both know.
//
// The controller makes the secret of an attempt from a key of its own and tells it to the nodes
// beside the program; the keeper puts it into a file of the job's user. Each end asks with a number
// that it never asks twice, the caller answers first: HMAC-SHA-256 (RFC 2104) of the number, of
// which node is meant and of which end answers, so that no answer will do anywhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper.hpp"
#include "base/env.hpp"

namespace orrery {

/// Where the controller says it to the keeper.
inline constexpr const char* kStepSecretVariable = "ORRERY_STEP_SECRET";
/// Where the job's processes find the path of the file that has it.
inline constexpr const char* kStepSecretFileVariable = "ORRERY_STEP_SECRET_FILE";

/// Of one attempt; 64 hexadecimal digits.
[[nodiscard]] std::string step_secret(std::string_view key, const AttemptId& attempt);

/// The end of a connection that answers.
enum class StepEnd : std::uint8_t { kCaller, kNode };

struct StepQuestion {
  StepEnd answers = StepEnd::kCaller;
  std::uint32_t node = 0;  ///< of the gang: the one that is called
  std::string challenge;
};

/// A number that nobody can guess; 64 hexadecimal digits.
[[nodiscard]] std::string step_challenge(Entropy& entropy);

/// The answer to a question; 32 bytes. Pure.
[[nodiscard]] std::string step_proof(std::string_view secret, const StepQuestion& question);

/// In a time that depends on the lengths alone.
[[nodiscard]] bool is_same_proof(std::string_view a, std::string_view b);

}  // namespace orrery
