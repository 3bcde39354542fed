// base/text/count_text.hpp - numbers of things in sentences: "1 job", "1,064 jobs".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

/// The number, digits in groups of three, and its noun, which gets an "s" for any number but 1.
[[nodiscard]] std::string counted(std::uint64_t number, std::string_view noun);

}  // namespace orrery
