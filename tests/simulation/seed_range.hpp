// tests/simulation/seed_range.hpp - the seeds that a campaign is asked for.
//
// Read from an argument by the simulation programs. Plain values.
#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace orrery {

struct SeedRange {
  std::uint64_t first = 1;
  std::uint64_t last = 200;
};

/// Reads "A..B" or "A"; none: it is neither.
inline std::optional<SeedRange> seeds_in(std::string_view text) {
  const auto number = [](std::string_view digits) -> std::optional<std::uint64_t> {
    std::uint64_t value = 0;
    const auto read =
        std::from_chars(std::to_address(digits.begin()), std::to_address(digits.end()), value);
    if (read.ec != std::errc() || read.ptr != std::to_address(digits.end())) return std::nullopt;
    return value;
  };
  const std::size_t dots = text.find("..");
  const auto first = number(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first : number(text.substr(dots + 2));
  if (!first || !last) return std::nullopt;
  return SeedRange{*first, *last};
}

}  // namespace orrery
