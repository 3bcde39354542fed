#include "gateway/stream/stream_marks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace orrery {
namespace {

constexpr std::string_view kMark = ": continue ";

/// Whether a byte stands for itself in a JSON string.
bool is_plain(char c) { return c > ' ' && c <= '~' && c != '"' && c != '\\'; }

}  // namespace

std::string StreamMarks::take(std::string_view events) {
  std::string passed;
  passed.reserve(events.size());
  while (!events.empty()) {
    const std::size_t end = events.find('\n');
    const std::string_view line = events.substr(0, end == events.npos ? end : end + 1);
    if (line.starts_with(kMark)) {
      keep(line.substr(kMark.size(), end - kMark.size()));
    } else {
      passed.append(line);
    }
    events.remove_prefix(line.size());
  }
  return passed;
}

void StreamMarks::keep(std::string_view text) {
  if (phase_ == Phase::kGivenUp) return;
  if (texts_.size() + text.size() > kMarksMax || !std::ranges::all_of(text, is_plain)) {
    return give_up();
  }
  texts_.append(text);
}

void StreamMarks::give_up() {
  phase_ = Phase::kGivenUp;
  texts_ = {};
}

std::string StreamMarks::rest_of(std::string_view body) const {
  const std::size_t brace = body.rfind('}');
  return fmt::format("{},\"continue\":\"{}\"{}", body.substr(0, brace), texts_, body.substr(brace));
}

}  // namespace orrery
