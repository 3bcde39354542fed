#include "node/steps/step_wire.hpp"

#include <fmt/format.h>

#include "control/codec/decoder.hpp"
#include "control/codec/encoder.hpp"

namespace orrery {

[[nodiscard]] constexpr StepReaders last_of(StepReaders) { return StepReaders::kAll; }

template <class Codec, SameStruct<StepProof> S>
void code(Codec& codec, S& value) {
  auto& [proof, challenge] = value;
  codec(proof, challenge);
}

template <class Codec, SameStruct<StepOrder> S>
void code(Codec& codec, S& value) {
  auto& [command, environment, directory, first, tasks, node, devices, readers, reader] = value;
  codec(command, environment, directory, first, tasks, node, devices, readers, reader);
}

template <class Codec, SameStruct<StepInput> S>
void code(Codec& codec, S& value) {
  auto& [bytes] = value;
  codec(bytes);
}

template <class Codec, SameStruct<StepSignal> S>
void code(Codec& codec, S& value) {
  auto& [number] = value;
  codec(number);
}

template <class Codec, SameStruct<StepTaken> S>
void code(Codec& codec, S& value) {
  auto& [bytes] = value;
  codec(bytes);
}

template <class Codec, SameStruct<StepAttend> S>
void code(Codec& codec, S& value) {
  auto& [node] = value;
  codec(node);
}

template <class Codec, SameStruct<StepChallenge> S>
void code(Codec& codec, S& value) {
  auto& [challenge] = value;
  codec(challenge);
}

template <class Codec, SameStruct<StepWelcome> S>
void code(Codec& codec, S& value) {
  auto& [proof] = value;
  codec(proof);
}

template <class Codec, SameStruct<StepOutput> S>
void code(Codec& codec, S& value) {
  auto& [task, descriptor, bytes] = value;
  codec(task, descriptor, bytes);
}

template <class Codec, SameStruct<StepTaskEnd> S>
void code(Codec& codec, S& value) {
  auto& [task, status] = value;
  codec(task, status);
}

template <class Codec, SameStruct<StepInputTaken> S>
void code(Codec&, S&) {}

template <class Codec, SameStruct<StepJobEnd> S>
void code(Codec&, S&) {}

namespace {

constexpr std::uint8_t kWireVersion = 2;

template <class Message>
std::string encoded(const Message& message) {
  Encoder encoder;
  encoder.choice(kWireVersion);
  encoder(message);
  return std::string(encoder.bytes());
}

template <class Message>
Result<Message> decoded(std::string_view frame) {
  if (frame.empty() || static_cast<std::uint8_t>(frame[0]) != kWireVersion) {
    return environment_error("a message of another version");
  }
  Decoder decoder(frame.substr(1));
  Message message;
  decoder(message);
  if (const auto fault = decoder.finish()) {
    return environment_error(fmt::format("byte {}: {}", fault->offset + 1, fault->what));
  }
  return message;
}

}  // namespace

std::string encode(const StepRequest& message) { return encoded(message); }

std::string encode(const StepReply& message) { return encoded(message); }

Result<StepRequest> decode_step_request(std::string_view frame) {
  return decoded<StepRequest>(frame);
}

Result<StepReply> decode_step_reply(std::string_view frame) { return decoded<StepReply>(frame); }

}  // namespace orrery
