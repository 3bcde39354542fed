// gateway/stream/token_usage.hpp - tokens of a request, as the answer of an inference engine tells
// them.
//
// Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery {

struct TokenUsage {
  enum class Known : std::uint8_t { kNo, kYes } known = Known::kNo;
  std::uint64_t prompt = 0;
  std::uint64_t output = 0;
  std::optional<std::uint64_t> cached;  ///< of the prompt's, those that the engine had in its cache
};

/// Reads "usage" of an answer or of an event: its last one with numbers. Text that holds none, or
/// is no JSON, has none.
[[nodiscard]] TokenUsage find_usage(std::string_view json);

/// Whether a text is a JSON object with an "error" that is not null.
[[nodiscard]] bool holds_error(std::string_view json);

}  // namespace orrery
