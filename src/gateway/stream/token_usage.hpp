// gateway/stream/token_usage.hpp - tokens of a request, as the answer of an inference engine tells
// them.
//
// Plain values.
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery {

struct TokenUsage {
  enum class Known : std::uint8_t { kNo, kYes } known = Known::kNo;
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;
};

/// Reads "usage" of an answer or of an event: its last one with numbers. Text that holds none, or
/// is no JSON, has none.
[[nodiscard]] TokenUsage find_usage(std::string_view json);

/// Whether a text is a JSON object with an "error" that is not null.
[[nodiscard]] bool holds_error(std::string_view json);

}  // namespace orrery
