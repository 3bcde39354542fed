#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "tokens/chat/template_call.hpp"
#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 27> kTextMethods = {
    "strip",        "lstrip",       "rstrip",  "split",   "rsplit",    "splitlines", "startswith",
    "endswith",     "replace",      "upper",   "lower",   "title",     "capitalize", "find",
    "rfind",        "count",        "join",    "isdigit", "isalpha",   "isspace",    "isupper",
    "removeprefix", "removesuffix", "isalnum", "islower", "isnumeric", "index"};
/// Methods of texts that are not here.
constexpr std::array<std::string_view, 22> kOtherTextMethods = {
    "format",    "format_map", "zfill",    "center",       "ljust",    "rjust",
    "partition", "rpartition", "casefold", "expandtabs",   "encode",   "translate",
    "isascii",   "isdecimal",  "istitle",  "isidentifier", "swapcase", "isprintable",
    "rindex",    "maketrans",  "__len__",  "__add__"};
constexpr std::array<std::string_view, 5> kMappingMethods = {"items", "keys", "values", "get",
                                                             "copy"};
constexpr std::array<std::string_view, 2> kListMethods = {"index", "count"};
/// Methods that change a value, which the sandbox of the reference refuses.
constexpr std::array<std::string_view, 12> kUnsafe = {
    "append",  "clear", "extend",  "insert", "pop",        "remove",
    "reverse", "sort",  "popitem", "update", "setdefault", "__class__"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

bool has_method(const TemplateValue& object, std::string_view name) {
  if (object.as_text() != nullptr) return is_one_of(name, kTextMethods);
  if (object.as_mapping() != nullptr) return is_one_of(name, kMappingMethods);
  if (const ListValue* list = object.as_list()) {
    return list->view.empty() && is_one_of(name, kListMethods);
  }
  return object.get<TemplateValue::Loop>() != nullptr && name == "cycle";
}

TemplateValue method(const TemplateValue& object, std::string name) {
  return TemplateValue::Function(
      std::make_shared<const FunctionValue>(FunctionValue{std::move(name), object, true}));
}

TemplateValue missing(const TemplateValue& object, const std::string& name) {
  const std::string type = object.is_none() ? "None" : fmt::format("{} object", type_of(object));
  return TemplateValue::undefined(fmt::format("'{}' has no attribute {}", type, python_repr(name)));
}

TemplateValue loop_attribute(const LoopValue& loop, std::string_view name) {
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto length = static_cast<std::int64_t>(loop.items->items.size());
  if (name == "index") return index + 1;
  if (name == "index0") return index;
  if (name == "revindex") return length - index;
  if (name == "revindex0") return length - index - 1;
  if (name == "first") return index == 0;
  if (name == "last") return index + 1 == length;
  if (name == "length") return length;
  if (name == "depth") return std::int64_t{1};
  if (name == "depth0") return std::int64_t{0};
  if (name == "previtem") {
    if (index == 0) return TemplateValue::undefined("there is no previous item");
    return loop.items->items[loop.index - 1];
  }
  if (name == "nextitem") {
    if (index + 1 == length) return TemplateValue::undefined("there is no next item");
    return loop.items->items[loop.index + 1];
  }
  return TemplateValue::undefined(fmt::format("'LoopContext object' has no attribute '{}'", name));
}

/// The item at an index from the end if it is negative; nothing outside.
const TemplateValue* item_at(const ListValue& list, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(list.items.size());
  if (index < 0) index += size;
  return index < 0 || index >= size ? nullptr : &list.items[static_cast<std::size_t>(index)];
}

TemplateValue numbered(const TemplateValue& object, std::int64_t index, TemplateBudget& budget) {
  if (const ListValue* list = object.as_list()) {
    const TemplateValue* found = list->view.empty() ? item_at(*list, index) : nullptr;
    if (found != nullptr) return *found;
  } else if (const std::string* text = object.as_text()) {
    budget.charge_steps(text->size() / 16);
    const auto size = static_cast<std::int64_t>(python_length(*text));
    const std::int64_t place = index < 0 ? index + size : index;
    if (place >= 0 && place < size) {
      const std::size_t at = byte_of_character(*text, static_cast<std::size_t>(place));
      return TemplateValue::text(text->substr(at, code_point_at(*text, at).size));
    }
  }
  const std::string type = object.is_none() ? "None" : fmt::format("{} object", type_of(object));
  return TemplateValue::undefined(fmt::format("{} has no element {}", type, index));
}

/// Python's slice.indices: the first place, and how many of which distance.
struct SlicePlaces {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t step = 1;
};

SlicePlaces slice_places(const SliceBounds& bounds, std::int64_t size) {
  SlicePlaces places;
  if (!bounds.step.is_none()) places.step = whole_argument(bounds.step);
  if (places.step == 0) template_fault("slice step cannot be zero");
  const bool back = places.step < 0;
  const std::int64_t low = back ? -1 : 0;
  const std::int64_t high = back ? size - 1 : size;
  const auto bound = [&](const TemplateValue& value, std::int64_t absent) {
    if (value.is_none()) return absent;
    std::int64_t place = std::clamp(whole_argument(value), -size - 1, size);
    if (place < 0) place += size;
    return std::clamp(place, low, high);
  };
  places.first = bound(bounds.start, back ? high : low);
  const std::int64_t stop = bound(bounds.stop, back ? low : high);
  const std::int64_t distance = back ? places.first - stop : stop - places.first;
  const auto step = static_cast<std::uint64_t>(back ? -(places.step + 1) : places.step - 1);
  if (distance > 0) {
    places.count =
        1 + static_cast<std::int64_t>(static_cast<std::uint64_t>(distance - 1) / (step + 1));
  }
  return places;
}

}  // namespace

TemplateValue get_attribute(const TemplateValue& object, const std::string& name,
                            TemplateBudget& budget) {
  require_defined(object);
  if (const auto* loop = object.get<TemplateValue::Loop>(); loop != nullptr && name != "cycle") {
    return loop_attribute(**loop, name);
  }
  if (const auto* space = object.get<NamespaceValue*>()) {
    for (const auto& [key, value] : (*space)->entries) {
      if (key == name) return value;
    }
    return missing(object, name);
  }
  if (has_method(object, name)) return method(object, name);
  if (object.as_text() != nullptr && is_one_of(name, kOtherTextMethods)) {
    template_fault(fmt::format("the method '{}' is not supported", name));
  }
  const bool changeable = object.as_list() != nullptr || object.as_mapping() != nullptr;
  if (name.starts_with("__") || (changeable && is_one_of(name, kUnsafe))) {
    if (const MappingValue* mapping = object.as_mapping()) {
      if (const TemplateValue* found = find_key(*mapping, name); name.starts_with("__") && found) {
        return *found;
      }
    }
    return TemplateValue::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_of(object)));
  }
  if (const MappingValue* mapping = object.as_mapping()) {
    budget.charge_steps(mapping->entries.size() / 16);
    if (const TemplateValue* found = find_key(*mapping, name)) return *found;
  }
  return missing(object, name);
}

TemplateValue get_item(const TemplateValue& object, const TemplateValue& key,
                       TemplateBudget& budget) {
  require_defined(object);
  if (const MappingValue* mapping = object.as_mapping()) {
    if (const TemplateValue* found = find_key(*mapping, key, budget)) return *found;
  }
  if (const std::string* name = key.as_text()) {
    if (has_method(object, *name) || object.get<NamespaceValue*>() != nullptr ||
        object.get<TemplateValue::Loop>() != nullptr) {
      return get_attribute(object, *name, budget);
    }
    return missing(object, *name);
  }
  TemplateNumber number;
  if (!read_number(key, number) || !number.is_whole) {
    return TemplateValue::undefined(
        fmt::format("{} object has no element {}", type_of(object), repr_of(key, budget)));
  }
  return numbered(object, number.whole, budget);
}

TemplateValue get_path(const TemplateValue& object, const TemplateValue& path,
                       TemplateBudget& budget) {
  if (path.as_text() == nullptr) return get_item(object, path, budget);
  TemplateValue value = object;
  for (const std::string& part : python_split(*path.as_text(), ".", -1)) {
    std::int64_t number = 0;
    const char* end = part.data() + part.size();
    const bool digits =
        !part.empty() && std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    if (digits && std::from_chars(part.data(), end, number).ec == std::errc()) {
      value = get_item(value, number, budget);
    } else {
      value = get_item(value, TemplateValue::text(part), budget);
    }
  }
  return value;
}

TemplateValue get_slice(const TemplateValue& object, const SliceBounds& bounds,
                        TemplateBudget& budget) {
  require_defined(object);
  std::vector<TemplateValue> items;
  const ListValue* list = object.as_list();
  if ((list == nullptr || !list->view.empty()) && object.as_text() == nullptr) {
    return TemplateValue::undefined(fmt::format("{} object has no slice", type_of(object)));
  }
  items = items_of(object, budget);
  const SlicePlaces places = slice_places(bounds, static_cast<std::int64_t>(items.size()));
  std::vector<TemplateValue> taken;
  for (std::int64_t i = 0; i < places.count; ++i) {
    taken.push_back(items[static_cast<std::size_t>(places.first + i * places.step)]);
  }
  if (list != nullptr) {
    return list->is_tuple ? TemplateValue::tuple(std::move(taken))
                          : TemplateValue::list(std::move(taken));
  }
  std::string text;
  for (const TemplateValue& each : taken) text += *each.as_text();
  return TemplateValue::text(std::move(text));
}

bool contains(const TemplateValue& where, const TemplateValue& item, TemplateBudget& budget) {
  if (where.is_undefined()) return false;
  if (const std::string* text = where.as_text()) {
    require_defined(item);
    if (item.as_text() == nullptr) {
      template_fault(
          fmt::format("'in <string>' requires string as left operand, not {}", type_of(item)));
    }
    budget.charge_steps(text->size() / 16);
    return text->find(*item.as_text()) != std::string::npos;
  }
  if (const MappingValue* mapping = where.as_mapping()) {
    return find_key(*mapping, item, budget) != nullptr;
  }
  if (where.as_list() == nullptr) {
    template_fault(fmt::format("argument of type '{}' is not iterable", type_of(where)));
  }
  return std::ranges::any_of(where.as_list()->items,
                             [&](const TemplateValue& each) { return equals(each, item, budget); });
}

}  // namespace orrery
