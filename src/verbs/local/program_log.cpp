#include "verbs/local/program_log.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/format/document.hpp"

namespace orrery {

std::string log_since(const std::string& path, std::uint64_t size) {
  constexpr std::size_t kShown = 2'000;
  const Result<std::string> text = read_file(path, 64 << 20);
  if (!text || text->size() <= size) return " its log is empty";
  std::string_view rest = std::string_view(*text).substr(static_cast<std::size_t>(size));
  rest = rest.substr(0, rest.find_last_not_of('\n') + 1);
  const std::size_t last = rest.rfind("\norrery");
  const std::size_t why =
      last == rest.npos ? (rest.starts_with("orrery") ? 0 : rest.npos) : last + 1;
  if (why == rest.npos) {
    return "\n" + std::string(rest.substr(rest.size() - std::min(rest.size(), kShown)));
  }
  const std::string_view before = rest.substr(0, why);
  return " " + std::string(rest.substr(why)) + (before.empty() ? "" : "\nIts log before that:\n") +
         std::string(before.substr(before.size() - std::min(before.size(), kShown)));
}

std::uint64_t file_size(const std::string& path) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(path, failed);
  return failed ? 0 : size;
}

}  // namespace orrery
