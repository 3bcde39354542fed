#include "base/test_hooks.hpp"

#ifdef ORRERY_TEST_HOOKS

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace orrery::test_hooks {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

std::vector<ReadStruct>& structs() {
  static std::vector<ReadStruct> all;
  return all;
}

void trace(std::string_view kind, std::string_view name) {
  static const std::string_view file = variable("ORRERY_KEY_TRACE");
  if (file.empty()) return;
  static const int out = ::open(file.data(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  const std::string line = fmt::format("\n@{} {}\n", kind, name);
  static_cast<void>(!::write(out, line.data(), line.size()));
}

}  // namespace

std::string_view type_in(std::string_view function) {
  const std::size_t mark = function.find("T = ");
  if (mark == function.npos) return function;
  std::string_view type = function.substr(mark + 4);
  type = type.substr(0, type.find_first_of(";]"));
  const std::size_t scope = type.rfind("::");
  return scope == type.npos ? type : type.substr(scope + 2);
}

bool add_struct(ReadStruct added) {
  structs().push_back(added);
  return true;
}

bool lists_keys() { return !variable("ORRERY_LIST_KEYS").empty(); }

std::vector<std::string> listed_keys() {
  std::vector<std::string> all;
  if (!lists_keys()) return all;
  for (const ReadStruct& each : structs()) {
    for (const std::string_view key : each.keys()) {
      all.push_back(fmt::format("{}.{}", each.type, key));
    }
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

bool ignores_key(std::string_view type, std::string_view key) {
  static const std::string_view ignored = variable("ORRERY_IGNORE_KEY");
  static const bool traced = !variable("ORRERY_KEY_TRACE").empty();
  if (traced) trace("key", fmt::format("{}.{}", type, key));
  return ignored.size() == type.size() + 1 + key.size() && ignored.starts_with(type) &&
         ignored[type.size()] == '.' && ignored.ends_with(key);
}

bool ignores_option(std::string_view option) {
  static const std::string_view ignored = variable("ORRERY_IGNORE_OPTION");
  return ignored == option;
}

void trace_option(std::string_view option) { trace("option", option); }

}  // namespace orrery::test_hooks

#endif
