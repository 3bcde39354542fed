#include "base/text/name_check.hpp"

#include "base/text/utf8.hpp"

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

Status check_posix_user(std::string_view name, const SourcePosition& where) {
  constexpr std::size_t kLongest = 32;  // as useradd has it
  constexpr std::string_view kFirst = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view kRest =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  if (name == "root" || name == "0") {
    return input_error(where, fmt::format("\"{}\": expected a POSIX user other than root", name));
  }
  const bool formed = !name.empty() && name.size() <= kLongest &&
                      kFirst.find(name.front()) != kFirst.npos &&
                      name.find_first_not_of(kRest) == name.npos;
  if (formed) return {};
  return input_error(where,
                     fmt::format("\"{}\" is not the name of a POSIX user: expected a letter or "
                                 "'_', then letters, digits, '-', '_' or '.', {} in all at most",
                                 printable(name, 60), kLongest));
}

// Greedy: after a second star, what the first one took need not be looked at again.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t next = 0;
  std::size_t star = std::string_view::npos;  // in the pattern
  std::size_t taken = 0;                      // where in the name the star's bytes end
  while (at < name.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      star = next++;
      taken = at;
    } else if (next < pattern.size() && (pattern[next] == '?' || pattern[next] == name[at])) {
      ++next;
      ++at;
    } else if (star != std::string_view::npos) {
      next = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', next) == std::string_view::npos;
}

}  // namespace orrery
