#include "base/format/yaml_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

namespace orrery {
namespace {

// In double quotes; what YAML takes for a control character or a line break is escaped.
std::string in_quotes(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned>(static_cast<unsigned char>(text[at])) : 0u;
  };
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned three = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    if (text[i] == '"' || text[i] == '\\') {
      out += {'\\', text[i]};
    } else if (byte(i) < 0x20 || byte(i) == 0x7F) {
      out += fmt::format("\\x{:02x}", byte(i));
    } else if (byte(i) == 0xC2 && byte(i + 1) < 0xA0) {
      out += fmt::format("\\u{:04x}", byte(++i));
    } else if (three == 0xE280A8 || three == 0xE280A9 || three == 0xEFBBBF || three == 0xEFBFBE ||
               three == 0xEFBFBF) {
      const unsigned point = (three >> 16 & 0xF) << 12 | (three >> 8 & 0x3F) << 6 | (three & 0x3F);
      out += fmt::format("\\u{:04x}", point);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out + "\"";
}

std::string plain_or_quoted(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+";
  const bool plain = !text.empty() && text.find_first_not_of(kPlain) == text.npos &&
                     std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                     text != "null" && text != "Null" && text != "true" && text != "false";
  return plain ? std::string(text) : in_quotes(text);
}

bool fits_a_line(const Json& value) {
  if (value.is_object()) return value.empty();
  return !value.is_array() || std::all_of(value.begin(), value.end(), fits_a_line);
}

std::string one_line(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object()) return "{}";
  std::string text = "[";
  for (const Json& item : value) {
    text += text.size() == 1 ? "" : ", ";
    text += one_line(item);
  }
  return text + "]";
}

void print_fields(const Json& mapping, std::size_t indent, std::string& out);

void print_items(const Json& list, std::size_t indent, std::string& out) {
  for (const Json& item : list) {
    const std::size_t dash = out.size() + indent;
    if (fits_a_line(item)) {
      out += std::string(indent + 2, ' ') + one_line(item) + "\n";
    } else if (item.is_object()) {
      print_fields(item, indent + 2, out);
    } else {
      print_items(item, indent + 2, out);
    }
    out[dash] = '-';
  }
}

void print_fields(const Json& mapping, std::size_t indent, std::string& out) {
  for (const auto& [key, value] : mapping.items()) {
    out += std::string(indent, ' ') + plain_or_quoted(key) + ":";
    if (fits_a_line(value)) {
      out += " " + one_line(value) + "\n";
      continue;
    }
    out += "\n";
    if (value.is_object()) {
      print_fields(value, indent + 2, out);
    } else {
      print_items(value, indent, out);
    }
  }
}

}  // namespace

void YamlSink::open(Open::Kind kind, Json value) {
  open_.push_back({kind, std::move(value), "", ""});
}

YamlSink::Open YamlSink::pop() {
  Open top = std::move(open_.back());
  open_.pop_back();
  return top;
}

void YamlSink::put(Json value) {
  if (open_.empty()) {
    done_ = std::move(value);
  } else if (open_.back().kind == Open::Kind::kList) {
    open_.back().value.push_back(std::move(value));
  } else {
    open_.back().value[open_.back().key] = std::move(value);
  }
}

void YamlSink::open_mapping() { open(Open::Kind::kMapping, Json::object()); }

bool YamlSink::open_defaults() {
  open(Open::Kind::kDefaults, Json::object());
  return true;
}

void YamlSink::field(std::string_view key) { open_.back().key = key; }

void YamlSink::sole_field(std::string_view key) {
  field(key);
  open_.back().sole = key;
}

void YamlSink::close_mapping() {
  Open top = pop();
  const Json defaults = top.kind == Open::Kind::kDefaults ? std::move(top.value) : Json::object();
  if (top.kind == Open::Kind::kDefaults) top = pop();
  for (const auto& [key, value] : defaults.items()) {
    if (top.value[key] == value) top.value.erase(key);
  }
  const bool alone = top.value.size() == 1 && top.value.contains(top.sole);
  put(alone ? std::move(top.value[top.sole]) : std::move(top.value));
}

void YamlSink::open_list() { open(Open::Kind::kList, Json::array()); }

void YamlSink::close_list() { put(pop().value); }

void YamlSink::absent() { put("null"); }

void YamlSink::integer(std::int64_t value) { put(fmt::format("{}", value)); }

void YamlSink::number(double value) { put(fmt::format("{}", value)); }

void YamlSink::text(std::string_view value) { put(plain_or_quoted(value)); }

// A comma would part the items of a list.
void YamlSink::quantity(double value, const QuantityKind& kind, double) {
  std::string shown = print_exact(value, kind);
  put(shown.find(',') == shown.npos ? std::move(shown) : in_quotes(shown));
}

std::string YamlSink::take() {
  std::string out;
  if (fits_a_line(done_)) {
    out = one_line(done_) + "\n";
  } else if (done_.is_object()) {
    print_fields(done_, 0, out);
  } else {
    print_items(done_, 0, out);
  }
  return out;
}

}  // namespace orrery
