// tests/fuzz/fuzz_traceparent.cpp - any bytes as the header field traceparent of a client: what is
// read is written to a field that is read to the same.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "gateway/spans/trace_context.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const auto context = parse_traceparent({reinterpret_cast<const char*>(data), size});
  if (!context) return 0;
  ORRERY_ASSERT(context->trace.size() == 32 && context->span.size() == 16, "ids are whole");
  ORRERY_ASSERT(parse_traceparent(traceparent_text(*context)) == context, "it is read back");
  return 0;
}
