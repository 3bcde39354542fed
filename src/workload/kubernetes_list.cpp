#include "workload/kubernetes_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/utf8.hpp"

namespace orrery {

void KubernetesList::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
    ++at_;
  }
}

bool KubernetesList::take(char wanted) {
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != wanted) return false;
  ++at_;
  return true;
}

tl::unexpected<Error> KubernetesList::expected(std::string_view what) const {
  std::string_view rest = text_.substr(std::min(at_, text_.size()), 20);
  rest = rest.substr(0, rest.find('\n'));
  const std::string found =
      rest.empty() ? "the text ends" : fmt::format("\"{}\" is no such JSON", printable(rest, 20));
  return input_error({file_, line_, 1}, fmt::format("{}, expected {}", found, what));
}

Result<std::string_view> KubernetesList::key() {
  if (!take('"')) return expected("a key in quotation marks");
  const std::size_t end = text_.find('"', at_);
  if (end == text_.npos) return expected("a key in quotation marks");
  const std::string_view name = text_.substr(at_, end - at_);
  at_ = end + 1;
  if (!take(':')) return expected("\":\" behind a key");
  return name;
}

// Reads to the end of the value that begins here, whatever it contains.
Status KubernetesList::skip_value() {
  skip_blanks();
  int depth = 0;
  bool quoted = false;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (quoted) {
      if (c == '\\') ++at_;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') ++depth;
    if (depth > kDepthMax) {
      return input_error(
          {file_, line_, 1},
          fmt::format("the value nests deeper than {}, expected at most that", kDepthMax));
    }
    const bool closes = c == '}' || c == ']';
    if (depth == 0 && (closes || c == ',')) return {};
    if (closes && --depth == 0) {
      ++at_;
      return {};
    }
  }
  return expected("the end of a value");
}

Status KubernetesList::find_items() {
  if (!take('{')) return expected("a List in JSON, as \"kubectl get ... -o json\" prints it");
  while (true) {
    const Result<std::string_view> name = key();
    if (!name) return tl::unexpected<Error>(name.error());
    if (*name == "items") break;
    if (Status skipped = skip_value(); !skipped) return skipped;
    if (!take(',')) return expected("a List with \"items\"");
  }
  if (!take('[')) return expected("a list of items");
  return {};
}

// Reads what follows the items.
Status KubernetesList::finish() {
  while (take(',')) {
    const Result<std::string_view> name = key();
    if (!name) return tl::unexpected<Error>(name.error());
    if (Status skipped = skip_value(); !skipped) return skipped;
  }
  if (!take('}')) return expected("the end of the List");
  skip_blanks();
  if (at_ < text_.size()) return expected("nothing behind the List");
  return {};
}

Result<std::optional<nlohmann::json>> KubernetesList::next() {
  if (stage_ == Stage::kEnd) return std::nullopt;
  const bool first = stage_ == Stage::kBegin;
  if (first) {
    if (Status found = find_items(); !found) return forward_error(found);
    stage_ = Stage::kItems;
  }
  if (take(']')) {
    stage_ = Stage::kEnd;
    if (Status fine = finish(); !fine) return forward_error(fine);
    return std::nullopt;
  }
  if (!first && !take(',')) return expected("\",\" between items");
  skip_blanks();
  item_line_ = line_;
  const std::size_t begin = at_;
  if (Status skipped = skip_value(); !skipped) return forward_error(skipped);
  const std::string_view item = text_.substr(begin, at_ - begin);
  if (item.size() > kItemMax) {
    return input_error(
        where(), fmt::format("the item has {} bytes, expected at most {}", item.size(), kItemMax));
  }
  nlohmann::json parsed =
      nlohmann::json::parse(item.begin(), item.end(), nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return input_error(where(), "the item is no JSON object");
  return parsed;
}

bool begins_kubernetes_list(std::string_view text) {
  constexpr std::size_t kLooked = 4096;
  text = without_byte_order_mark(text);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '{') return false;
  const std::string_view head = text.substr(begin, kLooked);
  return head.find("\"items\"") != head.npos && head.find("orrery/") == head.npos;
}

const nlohmann::json* json_member(const nlohmann::json* object, std::string_view name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

std::string_view json_text(const nlohmann::json* object, std::string_view name) {
  const nlohmann::json* member = json_member(object, name);
  if (member == nullptr || !member->is_string()) return {};
  return member->get_ref<const std::string&>();
}

}  // namespace orrery
