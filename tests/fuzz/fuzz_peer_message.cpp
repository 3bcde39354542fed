// tests/fuzz/fuzz_peer_message.cpp - any bytes as what a gateway tells of its charges: what is read
// is written to a message that is read to the same, and adds up with others.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "serving/peers/peer_message.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const Instant now = Instant() + Duration::seconds(1000);
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto message = read_peer_message(bytes, now);
  if (!message) return 0;
  ORRERY_ASSERT(write_peer_message(*message, now) == bytes, "it is written as it was read");
  PeerLoads loads;
  (void)loads.take(*message, now);
  const std::size_t replicas = message->sent_us == 0 ? 0 : message->charges.size();
  ORRERY_ASSERT(loads.sums().size() == replicas, "each replica has a sum");
  return 0;
}
