#include "node/keeper/keeper_wire.hpp"

#include <fmt/format.h>

#include "control/codec/decoder.hpp"
#include "control/codec/encoder.hpp"
#include "node/keeper/keeper_fields.hpp"

namespace orrery {
namespace {

/// A keeper of an earlier release reads what an agent sends, so this stays.
constexpr std::uint8_t kInputVersion = 1;

template <class Message>
std::string encoded(std::uint8_t version, const Message& message) {
  Encoder encoder;
  encoder.choice(version);
  encoder(message);
  return std::string(encoder.bytes());
}

template <class Message>
Result<Message> decoded(std::string_view frame, std::uint8_t newest) {
  const std::uint8_t version = frame.empty() ? 0 : static_cast<std::uint8_t>(frame[0]);
  if (version == 0 || version > newest) {
    return environment_error(fmt::format("a message of version {}, expected {}", version,
                                         newest == 1 ? "1" : fmt::format("1 to {}", newest)));
  }
  Decoder decoder(frame.substr(1));
  decoder.read_as(version);
  Message message;
  decoder(message);
  if (const auto fault = decoder.finish()) {
    return environment_error(fmt::format("byte {}: {}", fault->offset + 1, fault->what));
  }
  return message;
}

}  // namespace

std::string encode(const KeeperInput& message) { return encoded(kInputVersion, message); }

std::string encode(const KeeperOutput& message) { return encoded(kKeeperForm, message); }

Result<KeeperInput> decode_keeper_input(std::string_view frame) {
  return decoded<KeeperInput>(frame, kInputVersion);
}

Result<KeeperOutput> decode_keeper_output(std::string_view frame) {
  return decoded<KeeperOutput>(frame, kKeeperForm);
}

}  // namespace orrery
