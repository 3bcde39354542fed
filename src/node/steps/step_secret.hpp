// node/steps/step_secret.hpp - how srun and a node of its gang prove to each other that they are of
// the same attempt, without sending the secret that both know.
//
// The controller makes the secret of an attempt from a key of its own and sends it to the nodes
// with the program; the keeper puts it into a file of the job's user. Each end asks with a number
// that it never uses twice, the caller answers first: HMAC-SHA-256 (RFC 2104) of the number, of the
// node that is called and of the end that answers, so that no answer is valid anywhere else.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/keeper.hpp"
#include "base/env.hpp"

namespace orrery {

/// The variable by which the controller sends the secret to the keeper.
inline constexpr const char* kStepSecretVariable = "ORRERY_STEP_SECRET";
/// The variable that gives the job's processes the path of the secret's file.
inline constexpr const char* kStepSecretFileVariable = "ORRERY_STEP_SECRET_FILE";

/// Returns the secret that a key has for something of this name; 64 hexadecimal digits.
[[nodiscard]] std::string named_secret(std::string_view key, std::string_view name);

/// Returns the secret of an attempt; 64 hexadecimal digits.
[[nodiscard]] std::string step_secret(std::string_view key, const AttemptId& attempt);

/// The end of a connection that answers.
enum class StepEnd : std::uint8_t { kCaller, kNode };

struct StepQuestion {
  StepEnd answers = StepEnd::kCaller;
  std::uint32_t node = 0;  ///< of the gang: the one that is called
  std::string challenge;
};

/// Returns a number that cannot be guessed; 64 hexadecimal digits.
[[nodiscard]] std::string step_challenge(Entropy& entropy);

/// Returns the answer to a question; 32 bytes. Pure.
[[nodiscard]] std::string step_proof(std::string_view secret, const StepQuestion& question);

/// Compares in a time that depends on the lengths alone.
[[nodiscard]] bool is_same_proof(std::string_view a, std::string_view b);

}  // namespace orrery
