#include "http/web_headers.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace orrery {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

}  // namespace

bool same_token(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

bool lists_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (same_token(without_blanks(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

void WebHeaders::add(std::string_view name, std::string_view value) {
  fields_.push_back({.begin = static_cast<std::uint32_t>(text_.size()),
                     .name_size = static_cast<std::uint32_t>(name.size()),
                     .value_size = static_cast<std::uint32_t>(value.size())});
  text_.append(name).append(value);
}

void WebHeaders::clear() {
  text_.clear();
  fields_.clear();
}

WebHeader WebHeaders::at(std::size_t index) const {
  ORRERY_ASSERT(index < fields_.size(), "a field of the message is asked for");
  const Field& field = fields_[index];
  const std::string_view text = std::string_view(text_).substr(field.begin);
  return {text.substr(0, field.name_size), text.substr(field.name_size, field.value_size)};
}

std::optional<std::string_view> WebHeaders::find(std::string_view name) const {
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].name_size != name.size()) continue;
    const WebHeader each = at(i);
    if (same_token(each.name, name)) return each.value;
  }
  return std::nullopt;
}

}  // namespace orrery
