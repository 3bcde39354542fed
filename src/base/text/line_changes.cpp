#include "base/text/line_changes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/utf8.hpp"

namespace orrery {
namespace {

constexpr std::size_t kShown = 120;
constexpr std::size_t kTextMax = std::size_t{8} << 20;

/// Without their line feeds.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

}  // namespace

std::vector<LineChange> line_changes(std::string_view before, std::string_view after) {
  if (before == after) return {};
  const std::vector<std::string_view> old_lines = lines_of(before);
  const std::vector<std::string_view> new_lines = lines_of(after);
  const std::size_t shorter = std::min(old_lines.size(), new_lines.size());
  std::size_t first = 0;
  while (first < shorter && old_lines[first] == new_lines[first]) ++first;
  std::size_t same_end = 0;
  while (same_end < shorter - first &&
         old_lines[old_lines.size() - 1 - same_end] == new_lines[new_lines.size() - 1 - same_end]) {
    ++same_end;
  }
  const std::size_t old_end = old_lines.size() - same_end;
  const std::size_t new_end = new_lines.size() - same_end;
  const std::size_t end = std::max(old_end, new_end);
  std::vector<LineChange> changes;
  for (std::size_t at = first; at < end && changes.size() < kLineChangesMax; ++at) {
    if (at < old_end && at < new_end && old_lines[at] == new_lines[at]) continue;
    LineChange& change = changes.emplace_back();
    change.line = at + 1;
    if (at < old_end) change.before = old_lines[at];
    if (at < new_end) change.after = new_lines[at];
  }
  // The last line feed alone is there or not.
  if (changes.empty()) changes.push_back({new_lines.size(), "", ""});
  return changes;
}

std::string change_text(std::string_view file, const LineChange& change) {
  const auto shown = [](const std::string& line) { return printable(line, kShown); };
  std::string text = fmt::format("{}:{}: ", file, change.line);
  if (!change.before) return text + fmt::format("\"{}\" is new", shown(*change.after));
  text += fmt::format("\"{}\" is ", shown(*change.before));
  return text + (change.after ? fmt::format("now \"{}\"", shown(*change.after)) : "gone");
}

std::vector<LineChange> changes_since_applied(Storage& storage, const std::string& path,
                                              const std::string& text) {
  const std::string copy = path + ".applied";
  const StorageResult<std::string> applied = storage.read_file(copy, kTextMax);
  if (applied && *applied == text) return {};
  (void)storage.write_file(copy, text);
  if (!applied) return {};
  return line_changes(*applied, text);
}

}  // namespace orrery
