// base/text/nearest_name.hpp - the known name a mistyped one was probably meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orrery {

/// Edit distance (insert, delete, replace, swap of neighbours), without regard to ASCII case.
/// Cost O(|a| x |b|).
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least edit distance, ties by position; "" when none is closer than about
/// a third of the name's length. Names longer than 64 bytes match nothing.
[[nodiscard]] std::string nearest_name(std::string_view name,
                                       std::span<const std::string_view> candidates);

/// ", did you mean \"x\"?" or "".
[[nodiscard]] std::string did_you_mean(std::string_view name,
                                       std::span<const std::string_view> candidates);

/// ASCII lower case; other bytes are kept.
[[nodiscard]] std::string lower_case(std::string_view text);

}  // namespace orrery
