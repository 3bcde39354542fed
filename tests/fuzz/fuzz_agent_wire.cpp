// tests/fuzz/fuzz_agent_wire.cpp - any bytes as a message of an agent or of a controller: the first
// byte picks which. An accepted message is encoded and decoded again to the same message.
#include <cstdint>
#include <string_view>

#include "api/agents/agent_messages.hpp"
#include "base/assert.hpp"

namespace orrery {
namespace {

template <class Proto>
void check(std::string_view bytes) {
  Proto proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const auto message = from_proto(proto);
  if (!message) return;
  const Proto said = to_proto(*message);
  const auto again = from_proto(said);
  ORRERY_ASSERT(again, "what is said can be heard");
  ORRERY_ASSERT(to_proto(*again).SerializeAsString() == said.SerializeAsString(), "as it was");
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    check<v1::AgentMessage>(bytes);
  } else {
    check<v1::ControllerMessage>(bytes);
  }
  return 0;
}
