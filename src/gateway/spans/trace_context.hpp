// gateway/spans/trace_context.hpp - the trace that a request belongs to, as the header field
// traceparent tells it (W3C Trace Context, version 00).
//
// Plain values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery {

struct TraceContext {
  std::string trace;  ///< 32 lower-case hexadecimal digits, not all 0
  std::string span;   ///< 16 of them: the caller's span
  bool sampled = true;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

/// Reads "00-TRACE-SPAN-FLAGS", and what later versions append to it; none: it is malformed.
[[nodiscard]] std::optional<TraceContext> parse_traceparent(std::string_view text);
[[nodiscard]] std::string traceparent_text(const TraceContext& context);

/// 16 lower-case hexadecimal digits.
[[nodiscard]] std::string hex_text(std::uint64_t number);

}  // namespace orrery
