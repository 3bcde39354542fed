#include "gateway/stream/token_usage.hpp"

#include <charconv>
#include <cstring>
#include <optional>

namespace orrery {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

/// What follows "name" and its colon, or nothing. A text inside another is escaped, so that it
/// never looks like a name.
std::optional<std::string_view> value_behind(std::string_view json, std::size_t name_end) {
  const std::size_t colon = json.find_first_not_of(kBlanks, name_end);
  if (colon == json.npos || json[colon] != ':') return std::nullopt;
  const std::size_t value = json.find_first_not_of(kBlanks, colon + 1);
  if (value == json.npos) return std::nullopt;
  return json.substr(value);
}

std::optional<std::uint64_t> count_named(std::string_view object, std::string_view quoted_name) {
  const std::size_t at = object.find(quoted_name);
  if (at == object.npos) return std::nullopt;
  const auto value = value_behind(object, at + quoted_name.size());
  if (!value) return std::nullopt;
  std::uint64_t count = 0;
  const auto [end, failed] = std::from_chars(value->data(), value->data() + value->size(), count);
  if (failed != std::errc()) return std::nullopt;
  return count;
}

bool is_escaped(std::string_view json, std::size_t at) { return at > 0 && json[at - 1] == '\\'; }

}  // namespace

TokenUsage find_usage(std::string_view json) {
  constexpr std::string_view kUsage = "\"usage\"";
  std::optional<std::string_view> last;
  std::string_view rest = json;
  // memmem(3) skips bytes, where rfind() would compare at each of them.
  while (const void* found = ::memmem(rest.data(), rest.size(), kUsage.data(), kUsage.size())) {
    const auto at = static_cast<std::size_t>(static_cast<const char*>(found) - json.data());
    const auto value = value_behind(json, at + kUsage.size());
    if (!is_escaped(json, at) && value && value->starts_with('{')) last = value;
    rest = json.substr(at + 1);
  }
  if (!last) return {};
  const auto prompt = count_named(*last, "\"prompt_tokens\"");
  const auto output = count_named(*last, "\"completion_tokens\"");
  if (!prompt && !output) return {};
  return {TokenUsage::Known::kYes, prompt.value_or(0), output.value_or(0),
          count_named(*last, "\"cached_tokens\"")};
}

bool holds_error(std::string_view json) {
  constexpr std::string_view kError = "\"error\"";
  const std::size_t brace = json.find_first_not_of(kBlanks);
  if (brace == json.npos || json[brace] != '{') return false;
  const std::size_t name = json.find_first_not_of(kBlanks, brace + 1);
  if (name == json.npos) return false;
  if (!json.substr(name).starts_with(kError)) return false;
  const auto value = value_behind(json, name + kError.size());
  return value && !value->starts_with("null");
}

}  // namespace orrery
