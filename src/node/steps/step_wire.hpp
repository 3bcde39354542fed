// node/steps/step_wire.hpp - the messages between srun and the nodes of its gang
// (node/steps/step_server.hpp).
//
// A message is a frame of base/env.hpp's Transport: a version byte, then the fields in the binary
// form of control/codec/encoder.hpp. Both ends are of one attempt, but not always of one release.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"

namespace orrery {

/// Bytes of output, or of input, that may be sent and not yet taken.
inline constexpr std::size_t kStepBytesAhead = std::size_t{1} << 20;

// --- To a node ----------------------------------------------------------------------------------

/// The answer to a node's challenge, and a challenge for the node.
struct StepProof {
  std::string proof;  ///< see step_secret.hpp
  std::string challenge;
};

/// Which tasks read srun's input.
enum class StepReaders : std::uint8_t { kNone, kOne, kAll };

/// Tasks to start on this node, from `first` on.
struct StepOrder {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> environment;
  std::string directory;
  std::uint32_t first = 0;
  std::uint32_t tasks = 0;
  std::uint32_t node = 0;     ///< this one's place in the step
  std::uint32_t devices = 0;  ///< of each task; 0: all of the node
  StepReaders readers = StepReaders::kNone;
  std::uint32_t reader = 0;  ///< the task, for kOne
};

struct StepInput {
  std::string bytes;  ///< empty: there is no more
};

struct StepSignal {
  std::uint32_t number = 0;
};

/// Reports output that was written out.
struct StepTaken {
  std::uint64_t bytes = 0;
};

/// Sent by another node of the gang instead of an order: it waits for the job's end.
struct StepAttend {
  std::uint32_t node = 0;
};

using StepRequest =
    std::variant<StepProof, StepOrder, StepInput, StepSignal, StepTaken, StepAttend>;

// --- From a node --------------------------------------------------------------------------------

/// The first message of a connection.
struct StepChallenge {
  std::string challenge;
};

/// The proof was right, and here is the node's own: orders may be sent.
struct StepWelcome {
  std::string proof;
};

struct StepOutput {
  std::uint32_t task = 0;
  std::uint32_t descriptor = 1;  ///< 1 or 2
  std::string bytes;
};

/// A task has ended, and all its output was sent.
struct StepTaskEnd {
  std::uint32_t task = 0;
  std::uint32_t status = 0;  ///< as a shell has it: 128 + a signal
};

/// The tasks have taken the input.
struct StepInputTaken {};

/// The script has ended.
struct StepJobEnd {};

using StepReply =
    std::variant<StepChallenge, StepWelcome, StepOutput, StepTaskEnd, StepInputTaken, StepJobEnd>;

// --- Bytes --------------------------------------------------------------------------------------

[[nodiscard]] std::string encode(const StepRequest& message);
[[nodiscard]] std::string encode(const StepReply& message);
/// Errors: another version, or bytes that no encode() produced.
[[nodiscard]] Result<StepRequest> decode_step_request(std::string_view frame);
[[nodiscard]] Result<StepReply> decode_step_reply(std::string_view frame);

}  // namespace orrery
