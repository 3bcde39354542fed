#include "base/text/count_text.hpp"

#include <fmt/format.h>

#include "base/text/quantity_text.hpp"

namespace orrery {

std::string counted(std::uint64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", print_count(static_cast<double>(number)), noun,
                     number == 1 ? "" : "s");
}

}  // namespace orrery
