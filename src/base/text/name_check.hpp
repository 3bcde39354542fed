// base/text/name_check.hpp - names in user files: their form, and that none is given twice.
//
// Names are joined to paths with '/', and stand in file names and host lists, so they are 1 to 64
// letters, digits, '-', '_' or '.'.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace orrery {

[[nodiscard]] Status check_name(std::string_view name, const SourcePosition& where);

/// Checks the form of the name of a POSIX user that programs may run as. It does not look whether
/// this machine has such a user. Errors: the name is not well formed, is a number, or is root.
[[nodiscard]] Status check_posix_user(std::string_view name, const SourcePosition& where);

/// Whether a name is of a pattern: `*` stands for any bytes, `?` for one. O(name x pattern).
[[nodiscard]] bool matches(std::string_view name, std::string_view pattern);

/// Every item's `name(item)` is a name, and no two are the same; `what` is what an item is called.
/// Items have a `where`. O(n log n).
template <class T, class Name>
[[nodiscard]] Status check_unique(const std::vector<T>& items, Name&& name, std::string_view what) {
  std::map<std::string_view, const T*> seen;
  for (const T& item : items) {
    if (Status named = check_name(name(item), item.where); !named) return named;
    const auto [first, added] = seen.emplace(name(item), &item);
    if (!added) {
      return input_error(item.where, fmt::format("a second {} named \"{}\", the first is at {}",
                                                 what, name(item), first->second->where.text()));
    }
  }
  return {};
}

}  // namespace orrery
