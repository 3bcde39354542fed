#include "node/keeper_wire.hpp"

#include <fmt/format.h>

#include "control/decoder.hpp"
#include "control/encoder.hpp"
#include "node/keeper_fields.hpp"

namespace orrery {
namespace {

constexpr std::uint8_t kWireVersion = 1;

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
    return environment_error(fmt::format("a message of version {}, expected {}",
                                         frame.empty() ? 0 : static_cast<std::uint8_t>(frame[0]),
                                         kWireVersion));
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

std::string encode(const KeeperInput& message) { return encoded(message); }

std::string encode(const KeeperOutput& message) { return encoded(message); }

Result<KeeperInput> decode_keeper_input(std::string_view frame) {
  return decoded<KeeperInput>(frame);
}

Result<KeeperOutput> decode_keeper_output(std::string_view frame) {
  return decoded<KeeperOutput>(frame);
}

}  // namespace orrery
