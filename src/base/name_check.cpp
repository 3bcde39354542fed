#include "base/name_check.hpp"

#include "base/utf8.hpp"

namespace orrery {

Status check_name(std::string_view name, const SourcePosition& where) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  const bool allowed = name.find_first_not_of(kAllowed) == name.npos;
  if (!name.empty() && name.size() <= kLongest && allowed) return {};
  return input_error(where, fmt::format("\"{}\" is not a name: expected 1 to {} letters, digits, "
                                        "'-', '_' or '.'",
                                        printable(name, 60), kLongest));
}

}  // namespace orrery
