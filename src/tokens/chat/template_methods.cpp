#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "tokens/chat/template_call.hpp"
#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

TemplateValue texts_as_list(std::vector<std::string> texts) {
  std::vector<TemplateValue> items;
  items.reserve(texts.size());
  for (std::string& text : texts) items.push_back(TemplateValue::text(std::move(text)));
  return TemplateValue::list(std::move(items));
}

/// A text argument that may be absent or None.
std::optional<std::string> optional_text(const TemplateValue* value) {
  if (value == nullptr || value->is_none()) return std::nullopt;
  return text_argument(*value);
}

TemplateValue stripped(const std::string& text, const CallArguments& arguments, StripSide side) {
  arguments.require(1, {});
  const auto characters = optional_text(arguments.find(0, ""));
  return TemplateValue::text(std::string(python_stripped(text, characters, side)));
}

bool begins_or_ends(std::string_view name, const std::string& text, const TemplateValue& affix) {
  const auto one = [&](const TemplateValue& value) {
    const std::string part = text_argument(value);
    return name == "startswith" ? text.starts_with(part) : text.ends_with(part);
  };
  if (const ListValue* list = affix.as_list(); list != nullptr && list->is_tuple) {
    return std::ranges::any_of(list->items, one);
  }
  return one(affix);
}

TemplateValue split(const TemplateCall& call, TemplateBudget& budget) {
  const std::string& text = *call.input.as_text();
  call.arguments.require(2, {"sep", "maxsplit"});
  const auto separator = optional_text(call.arguments.find(0, "sep"));
  const TemplateValue* times = call.arguments.find(1, "maxsplit");
  if (separator && separator->empty()) template_fault("empty separator");
  budget.charge_steps(text.size());
  const std::int64_t most = times == nullptr ? -1 : whole_argument(*times);
  return texts_as_list(call.name == "split" ? python_split(text, separator, most)
                                            : python_rsplit(text, separator, most));
}

TemplateValue find_text(const TemplateCall& call) {
  const std::string& text = *call.input.as_text();
  call.arguments.require(1, {});
  if (call.arguments.positional.empty()) template_fault("expected a text to find");
  const std::string part = text_argument(call.arguments.positional[0]);
  const std::size_t at = call.name == "rfind" ? text.rfind(part) : text.find(part);
  if (at == std::string::npos) {
    if (call.name == "index") template_fault("substring not found");
    return std::int64_t{-1};
  }
  return static_cast<std::int64_t>(python_length(std::string_view(text).substr(0, at)));
}

TemplateValue count_text(const std::string& text, const std::string& part) {
  if (part.empty()) return static_cast<std::int64_t>(python_length(text)) + 1;
  std::int64_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + part.size())) {
    ++count;
  }
  return count;
}

bool is_kind(std::string_view name, char32_t value) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(value));
  const std::uint8_t bits = UnicodeClasses::table().of(value);
  const bool decimal = category == UTF8PROC_CATEGORY_ND;
  if (name == "isspace") return is_python_space(value);
  if (name == "isdigit" || name == "isnumeric") {
    return decimal || (name == "isnumeric" && (bits & kNumber) != 0);
  }
  if (name == "isalpha") return (bits & kLetter) != 0;
  return (bits & (kLetter | kNumber)) != 0;
}

bool all_are(std::string_view name, const std::string& text) {
  if (text.empty()) return false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (!is_kind(name, point.value)) return false;
    at += point.size;
  }
  return true;
}

TemplateValue replaced(const std::string& text, const CallArguments& arguments,
                       TemplateBudget& budget) {
  arguments.require(3, {});
  if (arguments.positional.size() < 2) template_fault("replace expected at least 2 arguments");
  const std::string from = text_argument(arguments.positional[0]);
  const std::string to = text_argument(arguments.positional[1]);
  const std::int64_t times =
      arguments.positional.size() > 2 ? whole_argument(arguments.positional[2]) : -1;
  budget.charge_bytes(text.size() +
                      (text.size() / std::max<std::size_t>(from.size(), 1) + 1) * to.size());
  return TemplateValue::text(python_replaced(text, from, to, times));
}

TemplateValue join_text(const std::string& between, const CallArguments& arguments,
                        TemplateBudget& budget) {
  arguments.require(1, {});
  if (arguments.positional.empty()) template_fault("join expected 1 argument");
  std::string text;
  bool first = true;
  for (const TemplateValue& item : items_of(arguments.positional[0], budget)) {
    if (!first) text += between;
    first = false;
    text += text_argument(item);
    budget.charge_bytes(between.size() + item.as_text()->size());
  }
  return TemplateValue::text(std::move(text));
}

TemplateValue change_case(std::string_view name, const std::string& text) {
  if (name == "upper") return TemplateValue::text(python_upper(text));
  if (name == "lower") return TemplateValue::text(python_lower(text));
  if (name == "title") return TemplateValue::text(python_title(text));
  if (name == "capitalize") return TemplateValue::text(python_capitalize(text));
  const bool same = text == (name == "isupper" ? python_upper(text) : python_lower(text));
  return same && text != (name == "isupper" ? python_lower(text) : python_upper(text));
}

TemplateValue without_affix(std::string_view name, const std::string& text,
                            const std::string& affix) {
  std::string_view rest = text;
  if (name == "removeprefix" && rest.starts_with(affix)) rest.remove_prefix(affix.size());
  if (name == "removesuffix" && rest.ends_with(affix)) rest.remove_suffix(affix.size());
  return TemplateValue::text(std::string(rest));
}

TemplateValue text_method(const TemplateCall& call, TemplateBudget& budget) {
  const std::string& text = *call.input.as_text();
  const std::string_view name = call.name;
  const CallArguments& arguments = call.arguments;
  budget.charge_bytes(text.size());
  if (name == "strip") return stripped(text, arguments, StripSide::kBoth);
  if (name == "lstrip") return stripped(text, arguments, StripSide::kLeft);
  if (name == "rstrip") return stripped(text, arguments, StripSide::kRight);
  if (name == "split" || name == "rsplit") return split(call, budget);
  if (name == "find" || name == "rfind" || name == "index") return find_text(call);
  if (name == "replace") return replaced(text, arguments, budget);
  if (name == "join") return join_text(text, arguments, budget);
  if (name == "startswith" || name == "endswith" || name == "count" || name.starts_with("remove")) {
    arguments.require(1, {});
    if (arguments.positional.empty()) template_fault(fmt::format("{} expected 1 argument", name));
    const TemplateValue& affix = arguments.positional[0];
    if (name.starts_with("remove")) return without_affix(name, text, text_argument(affix));
    if (name == "count") return count_text(text, text_argument(affix));
    return begins_or_ends(name, text, affix);
  }
  arguments.require(0, {});
  if (name == "splitlines") return texts_as_list(python_lines(text));
  if (name == "isdigit" || name == "isalpha" || name == "isspace" || name == "isalnum" ||
      name == "isnumeric") {
    return all_are(name, text);
  }
  return change_case(name, text);
}

TemplateValue mapping_method(const TemplateCall& call, TemplateBudget& budget) {
  const MappingValue& mapping = *call.input.as_mapping();
  if (call.name == "get") {
    call.arguments.require(2, {});
    if (call.arguments.positional.empty()) template_fault("get expected at least 1 argument");
    const TemplateValue* found = find_key(mapping, call.arguments.positional[0], budget);
    if (found != nullptr) return *found;
    return call.arguments.positional.size() > 1 ? call.arguments.positional[1] : TemplateValue();
  }
  call.arguments.require(0, {});
  if (call.name == "copy") return call.input;
  budget.charge_steps(mapping.entries.size());
  std::vector<TemplateValue> items;
  for (const auto& [key, value] : mapping.entries) {
    if (call.name == "items") {
      items.push_back(TemplateValue::tuple({key, value}));
    } else {
      items.push_back(call.name == "keys" ? key : value);
    }
  }
  const std::string_view type = call.name == "items"  ? "dict_items"
                                : call.name == "keys" ? "dict_keys"
                                                      : "dict_values";
  return TemplateValue::view(std::move(items), type);
}

TemplateValue list_method(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(1, {});
  if (call.arguments.positional.empty()) template_fault("expected 1 argument");
  std::int64_t count = 0;
  std::int64_t place = 0;
  for (const TemplateValue& item : call.input.as_list()->items) {
    const bool found = equals(item, call.arguments.positional[0], budget);
    if (found && call.name == "index") return place;
    count += found ? 1 : 0;
    ++place;
  }
  if (call.name == "index") template_fault("the value is not in the list");
  return count;
}

}  // namespace

TemplateValue call_method(const TemplateCall& call, TemplateBudget& budget) {
  if (call.input.as_text() != nullptr) return text_method(call, budget);
  if (call.input.as_mapping() != nullptr) return mapping_method(call, budget);
  if (call.input.as_list() != nullptr) return list_method(call, budget);
  const auto* loop = call.input.get<TemplateValue::Loop>();
  if (loop == nullptr || call.arguments.positional.empty()) {
    template_fault("no items for cycling given");
  }
  return call.arguments.positional[(*loop)->index % call.arguments.positional.size()];
}

}  // namespace orrery
