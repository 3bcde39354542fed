// tests/fuzz/fuzz_web_request.cpp - any bytes as what a client sends to a WebServer. They are read
// whole and byte by byte: both ways see the same messages and the same fault.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "http/message_parser.hpp"

namespace orrery {
namespace {

constexpr MessageLimits kLimits{.header_bytes_max = 4096, .body_bytes_max = 4096};

/// What a connection sees of some bytes, as text.
std::string reading_of(std::string_view bytes, std::size_t step) {
  RequestParser parser(kLimits);
  std::string seen;
  std::string waiting;
  auto request = std::make_unique<WebRequest>();
  parser.begin(*request);
  std::size_t given = 0;
  while (given < bytes.size()) {
    const std::string_view next = bytes.substr(given, step);
    given += next.size();
    waiting.append(next);
    while (!waiting.empty()) {
      const std::size_t used = parser.read(waiting);
      ORRERY_ASSERT(used <= waiting.size(), "no more is consumed than there is");
      waiting.erase(0, used);
      if (parser.part() == MessagePart::kFault) return seen + "fault";
      if (parser.part() != MessagePart::kDone) break;
      ORRERY_ASSERT(request->body.size() <= kLimits.body_bytes_max, "the limit holds");
      seen += request->method + " " + request->target + " " + request->body + "\n";
      for (std::size_t i = 0; i < request->headers.size(); ++i) {
        const WebHeader header = request->headers.at(i);
        seen.append(header.name).append(":").append(header.value).append("\n");
      }
      request = std::make_unique<WebRequest>();
      parser.begin(*request);
    }
  }
  return seen;
}

}  // namespace
}  // namespace orrery

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace orrery;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string whole = reading_of(bytes, bytes.size() + 1);
  const std::string split = reading_of(bytes, 1);
  // Limits are noticed earlier or later; what came before them is the same.
  const std::string_view shorter = whole.size() < split.size() ? whole : split;
  const std::string_view messages = shorter.substr(0, shorter.rfind('\n') + 1);
  ORRERY_ASSERT(whole.starts_with(messages) && split.starts_with(messages),
                "pieces change no message");
  return 0;
}
