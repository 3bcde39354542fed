// tests/fuzz/fuzz_kv_events.cpp - any bytes as what an engine tells of its KV cache: what is read
// is written to a message that is read to the same.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "kv_events/kv_event_wire.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto batch = read_kv_events({reinterpret_cast<const char*>(data), size});
  if (!batch || std::isnan(batch->time_s)) return 0;
  const auto again = read_kv_events(write_kv_events(*batch));
  ORRERY_ASSERT(again && *again == *batch, "it is read as it was written");
  return 0;
}
