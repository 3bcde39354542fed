#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "tokens/chat/template_call.hpp"
#include "tokens/chat/template_names.hpp"
#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 35> kFilters = {
    "trim",       "tojson",     "length",     "count",    "join",   "default", "d",
    "first",      "last",       "list",       "string",   "int",    "float",   "upper",
    "lower",      "title",      "capitalize", "replace",  "map",    "select",  "reject",
    "selectattr", "rejectattr", "items",      "dictsort", "safe",   "indent",  "abs",
    "round",      "sum",        "min",        "max",      "unique", "reverse", "sort"};

TemplateValue length_of(const TemplateValue& value) {
  if (value.is_undefined()) return std::int64_t{0};
  if (const std::string* text = value.as_text()) {
    return static_cast<std::int64_t>(python_length(*text));
  }
  if (const ListValue* list = value.as_list(); list != nullptr && list->view != "generator") {
    return static_cast<std::int64_t>(list->items.size());
  }
  if (const MappingValue* mapping = value.as_mapping()) {
    return static_cast<std::int64_t>(mapping->entries.size());
  }
  template_fault(fmt::format("object of type '{}' has no len()", type_of(value)));
}

TemplateValue default_of(const TemplateCall& call) {
  call.arguments.require(2, {"default_value", "boolean"});
  const TemplateValue* other = call.arguments.find(0, "default_value");
  const TemplateValue* boolean = call.arguments.find(1, "boolean");
  const bool also_false = boolean != nullptr && is_true(*boolean);
  if (!call.input.is_undefined() && !(also_false && !is_true(call.input))) return call.input;
  return other == nullptr ? TemplateValue::text("") : *other;
}

/// Reads Python's int(text) or float(text); false if it is none.
bool parse_whole(std::string_view text, std::int64_t& to) {
  text = python_stripped(text, {}, StripSide::kBoth);
  if (text.starts_with('+')) text.remove_prefix(1);
  const char* end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data(), end, to);
  return failed == std::errc() && at == end && !text.empty();
}

bool parse_real(std::string_view text, double& to) {
  const std::string plain(python_stripped(text, {}, StripSide::kBoth));
  const bool known = plain.find_first_not_of("0123456789+-.eE") == std::string::npos;
  char* end = nullptr;
  to = std::strtod(plain.c_str(), &end);
  return known && !plain.empty() && end == plain.c_str() + plain.size();
}

TemplateValue to_whole(const TemplateCall& call) {
  call.arguments.require(1, {"default"});
  const TemplateValue* other = call.arguments.find(0, "default");
  const TemplateValue absent = other == nullptr ? TemplateValue(std::int64_t{0}) : *other;
  require_defined(call.input);
  double real = 0;
  if (const std::string* text = call.input.as_text()) {
    std::int64_t whole = 0;
    if (parse_whole(*text, whole)) return whole;
    if (!parse_real(*text, real)) return absent;
  } else {
    TemplateNumber number;
    if (!read_number(call.input, number)) return absent;
    if (number.is_whole) return number.whole;
    real = number.real;
  }
  if (!(std::abs(real) < 9e18)) template_fault("a whole number is too large");
  return static_cast<std::int64_t>(real);
}

TemplateValue to_real(const TemplateCall& call) {
  call.arguments.require(1, {"default"});
  const TemplateValue* other = call.arguments.find(0, "default");
  require_defined(call.input);
  TemplateNumber number;
  double real = 0;
  if (read_number(call.input, number)) return number.real;
  if (call.input.as_text() != nullptr && parse_real(*call.input.as_text(), real)) return real;
  return other == nullptr ? TemplateValue(0.0) : *other;
}

TemplateValue rounded(const TemplateCall& call) {
  call.arguments.require(2, {"precision", "method"});
  const TemplateValue* digits = call.arguments.find(0, "precision");
  const TemplateValue* method = call.arguments.find(1, "method");
  const std::int64_t precision = digits == nullptr ? 0 : whole_argument(*digits);
  const std::string how = method == nullptr ? "common" : text_argument(*method);
  TemplateNumber number;
  require_defined(call.input);
  if (!read_number(call.input, number) || precision < 0 || precision > 15) {
    template_fault("round expects a number and a precision from 0 to 15");
  }
  if (how == "common") {
    if (number.is_whole) return number.whole;
    return std::strtod(fmt::format("{:.{}f}", number.real, precision).c_str(), nullptr);
  }
  double scale = 1;
  for (std::int64_t i = 0; i < precision; ++i) scale *= 10;
  if (how == "ceil") return std::ceil(number.real * scale) / scale;
  if (how == "floor") return std::floor(number.real * scale) / scale;
  template_fault("method must be common, ceil or floor");
}

TemplateValue indented(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(3, {"width", "first", "blank"});
  const TemplateValue* width = call.arguments.find(0, "width");
  const TemplateValue* first = call.arguments.find(1, "first");
  const TemplateValue* blank = call.arguments.find(2, "blank");
  std::string space = "    ";
  if (width != nullptr && width->as_text() != nullptr) {
    space = *width->as_text();
  } else if (width != nullptr) {
    const std::int64_t size = std::max<std::int64_t>(whole_argument(*width), 0);
    budget.charge_bytes(static_cast<std::size_t>(size));
    space.assign(static_cast<std::size_t>(size), ' ');
  }
  const std::vector<std::string> lines = python_lines(text_argument(call.input) + "\n");
  std::string text = first != nullptr && is_true(*first) ? space : "";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) text += "\n";
    const bool indents = i > 0 && (!lines[i].empty() || (blank != nullptr && is_true(*blank)));
    budget.charge_bytes(lines[i].size() + (indents ? space.size() : 0));
    if (indents) text += space;
    text += lines[i];
  }
  return TemplateValue::text(std::move(text));
}

/// Jinja's own title: a capital behind spaces, hyphens and opening brackets.
TemplateValue titled(const std::string& text) {
  std::string made;
  std::string word;
  const auto end_word = [&] {
    if (word.empty()) return;
    const std::size_t size = code_point_at(word, 0).size;
    made += python_upper(word.substr(0, size)) + python_lower(word.substr(size));
    word.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    const bool splits =
        is_python_space(point.value) ||
        (point.value < 128 &&
         std::string_view("-({[<").find(static_cast<char>(point.value)) != std::string_view::npos);
    if (splits) {
      end_word();
      made.append(text, at, point.size);
    } else {
      word.append(text, at, point.size);
    }
    at += point.size;
  }
  end_word();
  return TemplateValue::text(std::move(made));
}

TemplateValue replaced(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(3, {"old", "new", "count"});
  const TemplateValue* from = call.arguments.find(0, "old");
  const TemplateValue* to = call.arguments.find(1, "new");
  const TemplateValue* times = call.arguments.find(2, "count");
  if (from == nullptr || to == nullptr) template_fault("replace expects two texts");
  const std::string text = text_of(call.input, budget);
  const std::string old = text_of(*from, budget);
  const std::string fresh = text_of(*to, budget);
  const bool all = times == nullptr || times->is_none();
  budget.charge_bytes((text.size() / std::max<std::size_t>(old.size(), 1) + 1) * fresh.size());
  return TemplateValue::text(python_replaced(text, old, fresh, all ? -1 : whole_argument(*times)));
}

TemplateValue trimmed(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(1, {"chars"});
  const TemplateValue* characters = call.arguments.find(0, "chars");
  std::optional<std::string> set;
  if (characters != nullptr && !characters->is_none()) set = text_argument(*characters);
  const std::string text = text_of(call.input, budget);
  return TemplateValue::text(std::string(python_stripped(text, set, StripSide::kBoth)));
}

bool apply_text_filter(const TemplateCall& call, TemplateBudget& budget, TemplateValue& result) {
  const auto text = [&] { return text_of(call.input, budget); };
  if (call.name == "string") {
    result = TemplateValue::text(text());
  } else if (call.name == "safe") {
    result = TemplateValue::text(text());
  } else if (call.name == "upper") {
    result = TemplateValue::text(python_upper(text()));
  } else if (call.name == "lower") {
    result = TemplateValue::text(python_lower(text()));
  } else if (call.name == "capitalize") {
    result = TemplateValue::text(python_capitalize(text()));
  } else if (call.name == "title") {
    result = titled(text());
  } else {
    return false;
  }
  call.arguments.require(0, {});
  return true;
}

}  // namespace

bool is_template_filter(std::string_view name) {
  return std::ranges::find(kFilters, name) != kFilters.end();
}

const TemplateValue* CallArguments::find(std::size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

void CallArguments::require(std::size_t positional_max,
                            std::initializer_list<std::string_view> names) const {
  if (positional.size() > positional_max) {
    template_fault(
        fmt::format("{} arguments given, expected at most {}", positional.size(), positional_max));
  }
  for (const auto& entry : named) {
    if (std::ranges::find(names, entry.first) == names.end()) {
      template_fault(fmt::format("got an unexpected keyword argument '{}'", entry.first));
    }
  }
}

CallArguments CallArguments::behind(std::size_t count) const {
  CallArguments rest{positional, named};
  const std::size_t taken = std::min(count, rest.positional.size());
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(taken));
  return rest;
}

std::string text_argument(const TemplateValue& value) {
  require_defined(value);
  if (value.as_text() == nullptr) {
    template_fault(fmt::format("expected a string, got '{}'", type_of(value)));
  }
  return *value.as_text();
}

std::int64_t whole_argument(const TemplateValue& value) {
  require_defined(value);
  TemplateNumber number;
  if (!read_number(value, number) || !number.is_whole) {
    template_fault(fmt::format("expected a whole number, got '{}'", type_of(value)));
  }
  return number.whole;
}

TemplateValue apply_filter(const TemplateCall& call, TemplateBudget& budget) {
  budget.step();
  TemplateValue result;
  if (apply_text_filter(call, budget, result) || apply_item_filter(call, budget, result)) {
    return result;
  }
  if (call.name == "trim") return trimmed(call, budget);
  if (call.name == "tojson") {
    return TemplateValue::text(json_of(call.input, call.arguments, budget));
  }
  if (call.name == "default" || call.name == "d") return default_of(call);
  if (call.name == "int") return to_whole(call);
  if (call.name == "float") return to_real(call);
  if (call.name == "round") return rounded(call);
  if (call.name == "indent") return indented(call, budget);
  if (call.name == "replace") return replaced(call, budget);
  call.arguments.require(0, {});
  if (call.name == "length" || call.name == "count") return length_of(call.input);
  if (call.name == "abs") {
    TemplateNumber number;
    require_defined(call.input);
    if (!read_number(call.input, number)) template_fault("abs expects a number");
    if (number.is_whole) return number.whole < 0 ? apply_unary("-", number.whole) : number.whole;
    return std::abs(number.real);
  }
  template_fault(fmt::format("the filter '{}' is not supported here", call.name));
}

}  // namespace orrery
