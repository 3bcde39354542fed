#include "tokens/chat/template_value.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tokens/text/python_text.hpp"
#include "tokens/text/unicode_class.hpp"

namespace orrery {
namespace {

int checked_depth(int depth) {
  if (depth > TemplateValue::kDepthMax) template_fault("values are nested too deep");
  return depth;
}

enum class ListKind : std::uint8_t { kList, kTuple };

TemplateValue make_list(std::vector<TemplateValue> items, ListKind kind) {
  int depth = 1;
  for (const TemplateValue& item : items) depth = std::max(depth, item.depth() + 1);
  return TemplateValue::List(std::make_shared<const ListValue>(
      ListValue{std::move(items), kind == ListKind::kTuple, checked_depth(depth)}));
}

std::string joined_reprs(const std::vector<TemplateValue>& items, TemplateBudget& budget) {
  std::string text;
  for (const TemplateValue& item : items) {
    if (!text.empty()) text += ", ";
    text += repr_of(item, budget);
  }
  return text;
}

std::string list_repr(const ListValue& list, TemplateBudget& budget) {
  const std::string items = joined_reprs(list.items, budget);
  if (list.view == "generator") template_fault("the text of a generator is not supported");
  if (!list.view.empty()) return fmt::format("{}([{}])", list.view, items);
  if (!list.is_tuple) return "[" + items + "]";
  return "(" + items + (list.items.size() == 1 ? ",)" : ")");
}

std::string mapping_repr(const MappingValue& mapping, TemplateBudget& budget) {
  std::string text;
  for (const auto& [key, value] : mapping.entries) {
    if (!text.empty()) text += ", ";
    text += repr_of(key, budget) + ": " + repr_of(value, budget);
  }
  return "{" + text + "}";
}

bool lists_equal(const ListValue& a, const ListValue& b, TemplateBudget& budget) {
  return a.is_tuple == b.is_tuple && a.view == b.view &&
         std::ranges::equal(a.items, b.items,
                            [&](auto& x, auto& y) { return equals(x, y, budget); });
}

bool mappings_equal(const MappingValue& a, const MappingValue& b, TemplateBudget& budget) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const TemplateValue* other = find_key(b, entry.first, budget);
    return other != nullptr && equals(entry.second, *other, budget);
  });
}

}  // namespace

void TemplateBudget::charge_steps(std::size_t steps) {
  left_.steps -= static_cast<std::int64_t>(steps);
  if (left_.steps < 0) template_fault("the template takes too many steps");
}

void TemplateBudget::charge_bytes(std::size_t bytes) {
  left_.bytes -= static_cast<std::int64_t>(bytes);
  if (left_.bytes < 0) template_fault("the template makes too much text");
}

TemplateValue TemplateValue::text(std::string text) {
  return Text(std::make_shared<const std::string>(std::move(text)));
}

TemplateValue TemplateValue::undefined(std::string why) {
  return TemplateValue(UndefinedValue{std::make_shared<const std::string>(std::move(why))});
}

TemplateValue TemplateValue::list(std::vector<TemplateValue> items) {
  return make_list(std::move(items), ListKind::kList);
}

TemplateValue TemplateValue::tuple(std::vector<TemplateValue> items) {
  return make_list(std::move(items), ListKind::kTuple);
}

TemplateValue TemplateValue::view(std::vector<TemplateValue> items, std::string_view type) {
  const TemplateValue list = make_list(std::move(items), ListKind::kList);
  ListValue view = *list.as_list();
  view.view = type;
  return List(std::make_shared<const ListValue>(std::move(view)));
}

TemplateValue TemplateValue::mapping(
    const std::vector<std::pair<TemplateValue, TemplateValue>>& entries) {
  MappingValue mapping;
  TemplateBudget budget({.steps = std::int64_t{1} << 24});
  for (const auto& [key, value] : entries) {
    if (key.as_list() != nullptr || key.as_mapping() != nullptr) {
      template_fault(fmt::format("unhashable type: '{}'", type_of(key)));
    }
    mapping.depth = std::max(mapping.depth, value.depth() + 1);
    const auto known = std::ranges::find_if(
        mapping.entries, [&](const auto& entry) { return equals(entry.first, key, budget); });
    if (known != mapping.entries.end()) {
      known->second = value;
    } else {
      mapping.entries.emplace_back(key, value);
    }
  }
  checked_depth(mapping.depth);
  return Mapping(std::make_shared<const MappingValue>(std::move(mapping)));
}

const std::string* TemplateValue::as_text() const {
  const Text* text = get<Text>();
  return text == nullptr ? nullptr : text->get();
}

const ListValue* TemplateValue::as_list() const {
  const List* list = get<List>();
  return list == nullptr ? nullptr : list->get();
}

const MappingValue* TemplateValue::as_mapping() const {
  const Mapping* mapping = get<Mapping>();
  return mapping == nullptr ? nullptr : mapping->get();
}

int TemplateValue::depth() const {
  if (const ListValue* list = as_list()) return list->depth;
  if (const MappingValue* mapping = as_mapping()) return mapping->depth;
  if (const Function* function = get<Function>()) return (*function)->receiver.depth() + 1;
  if (const Loop* loop = get<Loop>()) return (*loop)->items->depth + 1;
  return 0;
}

bool read_number(const TemplateValue& value, TemplateNumber& number) {
  if (const bool* truth = value.get<bool>()) {
    number = {true, *truth ? 1 : 0, *truth ? 1.0 : 0.0};
  } else if (const auto* whole = value.get<std::int64_t>()) {
    number = {true, *whole, static_cast<double>(*whole)};
  } else if (const double* real = value.get<double>()) {
    number = {false, 0, *real};
  } else {
    return false;
  }
  return true;
}

bool is_true(const TemplateValue& value) {
  TemplateNumber number;
  if (read_number(value, number)) return number.is_whole ? number.whole != 0 : number.real != 0;
  if (const std::string* text = value.as_text()) return !text->empty();
  if (const ListValue* list = value.as_list()) {
    return !list->items.empty() || list->view == "generator";
  }
  if (const MappingValue* mapping = value.as_mapping()) return !mapping->entries.empty();
  return !value.is_none() && !value.is_undefined();
}

std::string text_of(const TemplateValue& value, TemplateBudget& budget) {
  if (value.is_undefined()) return {};
  if (const std::string* text = value.as_text()) {
    budget.charge_bytes(text->size());
    return *text;
  }
  return repr_of(value, budget);
}

std::string repr_of(const TemplateValue& value, TemplateBudget& budget) {
  budget.step();
  std::string text;
  if (value.is_undefined()) {
    text = "Undefined";
  } else if (value.is_none()) {
    text = "None";
  } else if (const bool* truth = value.get<bool>()) {
    text = *truth ? "True" : "False";
  } else if (const auto* whole = value.get<std::int64_t>()) {
    text = fmt::format("{}", *whole);
  } else if (const double* real = value.get<double>()) {
    text = python_repr(*real);
  } else if (const std::string* string = value.as_text()) {
    text = python_repr(*string);
  } else if (const ListValue* list = value.as_list()) {
    text = list_repr(*list, budget);
  } else if (const MappingValue* mapping = value.as_mapping()) {
    text = mapping_repr(*mapping, budget);
  } else {
    template_fault(fmt::format("the text of a '{}' is not supported", type_of(value)));
  }
  budget.charge_bytes(text.size());
  return text;
}

std::string type_of(const TemplateValue& value) {
  if (value.is_undefined()) return "Undefined";
  if (value.is_none()) return "NoneType";
  if (value.get<bool>() != nullptr) return "bool";
  if (value.get<std::int64_t>() != nullptr) return "int";
  if (value.get<double>() != nullptr) return "float";
  if (value.as_text() != nullptr) return "str";
  if (const ListValue* list = value.as_list()) {
    return list->is_tuple ? "tuple" : list->view.empty() ? "list" : std::string(list->view);
  }
  if (value.as_mapping() != nullptr) return "dict";
  if (value.get<NamespaceValue*>() != nullptr) return "Namespace";
  if (value.get<TemplateValue::Loop>() != nullptr) return "LoopContext";
  return value.get<MacroValue>() != nullptr ? "Macro" : "function";
}

bool equals(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget) {
  budget.step();
  TemplateNumber x;
  TemplateNumber y;
  if (read_number(a, x) && read_number(b, y)) {
    return x.is_whole && y.is_whole ? x.whole == y.whole : x.real == y.real;
  }
  if (a.as_text() != nullptr && b.as_text() != nullptr) {
    return *a.as_text() == *b.as_text();
  }
  if (a.as_list() != nullptr && b.as_list() != nullptr) {
    return a.as_list() == b.as_list() || lists_equal(*a.as_list(), *b.as_list(), budget);
  }
  if (a.as_mapping() != nullptr && b.as_mapping() != nullptr) {
    return a.as_mapping() == b.as_mapping() ||
           mappings_equal(*a.as_mapping(), *b.as_mapping(), budget);
  }
  if (const auto* space = a.get<NamespaceValue*>()) {
    const auto* other = b.get<NamespaceValue*>();
    return other != nullptr && *space == *other;
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

bool is_less(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget) {
  budget.step();
  TemplateNumber x;
  TemplateNumber y;
  if (read_number(a, x) && read_number(b, y)) {
    return x.is_whole && y.is_whole ? x.whole < y.whole : x.real < y.real;
  }
  // UTF-8 has the order of code points.
  if (a.as_text() != nullptr && b.as_text() != nullptr) return *a.as_text() < *b.as_text();
  if (a.as_list() != nullptr && b.as_list() != nullptr &&
      a.as_list()->is_tuple == b.as_list()->is_tuple) {
    const auto& left = a.as_list()->items;
    const auto& right = b.as_list()->items;
    for (std::size_t i = 0; i < left.size() && i < right.size(); ++i) {
      if (!equals(left[i], right[i], budget)) return is_less(left[i], right[i], budget);
    }
    return left.size() < right.size();
  }
  require_defined(a);
  require_defined(b);
  template_fault(
      fmt::format("'<' not supported between instances of '{}' and '{}'", type_of(a), type_of(b)));
}

const TemplateValue* find_key(const MappingValue& mapping, const TemplateValue& key,
                              TemplateBudget& budget) {
  if (const std::string* text = key.as_text()) {
    budget.charge_steps(mapping.entries.size() / 16);
    return find_key(mapping, *text);
  }
  for (const auto& entry : mapping.entries) {
    if (equals(entry.first, key, budget)) return &entry.second;
  }
  return nullptr;
}

const TemplateValue* find_key(const MappingValue& mapping, std::string_view key) {
  for (const auto& entry : mapping.entries) {
    const std::string* text = entry.first.as_text();
    if (text != nullptr && *text == key) return &entry.second;
  }
  return nullptr;
}

std::vector<TemplateValue> items_of(const TemplateValue& value, TemplateBudget& budget) {
  std::vector<TemplateValue> items;
  if (value.is_undefined()) return items;
  if (const ListValue* list = value.as_list()) {
    items = list->items;
  } else if (const MappingValue* mapping = value.as_mapping()) {
    for (const auto& entry : mapping->entries) items.push_back(entry.first);
  } else if (const std::string* text = value.as_text()) {
    budget.charge_steps(text->size());
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t size = code_point_at(*text, at).size;
      items.push_back(TemplateValue::text(text->substr(at, size)));
      at += size;
    }
  } else {
    template_fault(fmt::format("'{}' object is not iterable", type_of(value)));
  }
  budget.charge_steps(items.size());
  return items;
}

void require_defined(const TemplateValue& value) {
  if (const auto* undefined = value.get<UndefinedValue>()) template_fault(*undefined->why);
}

}  // namespace orrery
