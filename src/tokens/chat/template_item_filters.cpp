#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tokens/chat/template_call.hpp"
#include "tokens/chat/template_names.hpp"
#include "tokens/text/python_text.hpp"

namespace orrery {
namespace {

/// What is compared: texts in lower case unless case counts.
TemplateValue sort_key(const TemplateValue& value, const TemplateValue* case_sensitive) {
  const bool exact = case_sensitive != nullptr && is_true(*case_sensitive);
  if (exact || value.as_text() == nullptr) return value;
  return TemplateValue::text(python_lower(*value.as_text()));
}

TemplateValue attribute_of(const TemplateValue& item, const TemplateValue* path,
                           TemplateBudget& budget) {
  return path == nullptr || path->is_none() ? item : get_path(item, *path, budget);
}

using Keyed = std::pair<TemplateValue, TemplateValue>;

/// Sorts by keys; equal ones keep their order. Reversed, equal ones keep it too.
void sort_by_key(std::vector<Keyed>& items, const TemplateValue* reverse, TemplateBudget& budget) {
  const bool backwards = reverse != nullptr && is_true(*reverse);
  std::ranges::stable_sort(items, [&](const Keyed& a, const Keyed& b) {
    return backwards ? is_less(b.first, a.first, budget) : is_less(a.first, b.first, budget);
  });
}

TemplateValue values_of(std::vector<Keyed> items) {
  std::vector<TemplateValue> values;
  for (Keyed& item : items) values.push_back(std::move(item.second));
  return TemplateValue::list(std::move(values));
}

TemplateValue sorted(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(3, {"reverse", "case_sensitive", "attribute"});
  const TemplateValue* exact = call.arguments.find(1, "case_sensitive");
  const TemplateValue* path = call.arguments.find(2, "attribute");
  std::vector<Keyed> items;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    items.emplace_back(sort_key(attribute_of(item, path, budget), exact), item);
  }
  sort_by_key(items, call.arguments.find(0, "reverse"), budget);
  return values_of(std::move(items));
}

TemplateValue sorted_mapping(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(3, {"case_sensitive", "by", "reverse"});
  const TemplateValue* exact = call.arguments.find(0, "case_sensitive");
  const TemplateValue* by = call.arguments.find(1, "by");
  const std::string side = by == nullptr ? "key" : text_argument(*by);
  if (side != "key" && side != "value") {
    template_fault("You can only sort by either \"key\" or \"value\"");
  }
  if (call.input.as_mapping() == nullptr) template_fault("dictsort expects a mapping");
  std::vector<Keyed> items;
  for (const auto& [key, value] : call.input.as_mapping()->entries) {
    items.emplace_back(sort_key(side == "key" ? key : value, exact),
                       TemplateValue::tuple({key, value}));
  }
  sort_by_key(items, call.arguments.find(2, "reverse"), budget);
  return values_of(std::move(items));
}

TemplateValue unique(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(2, {"case_sensitive", "attribute"});
  const TemplateValue* exact = call.arguments.find(0, "case_sensitive");
  const TemplateValue* path = call.arguments.find(1, "attribute");
  std::vector<Keyed> items;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    TemplateValue key = sort_key(attribute_of(item, path, budget), exact);
    const bool known = std::ranges::any_of(
        items, [&](const Keyed& each) { return equals(each.first, key, budget); });
    if (!known) items.emplace_back(std::move(key), item);
  }
  return TemplateValue::view(values_of(std::move(items)).as_list()->items, "generator");
}

TemplateValue least_or_most(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(2, {"case_sensitive", "attribute"});
  const TemplateValue* exact = call.arguments.find(0, "case_sensitive");
  const TemplateValue* path = call.arguments.find(1, "attribute");
  std::optional<Keyed> best;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    TemplateValue key = sort_key(attribute_of(item, path, budget), exact);
    const bool better = !best || (call.name == "min" ? is_less(key, best->first, budget)
                                                     : is_less(best->first, key, budget));
    if (better) best = Keyed(std::move(key), item);
  }
  return best ? best->second : TemplateValue::undefined("No aggregated item, sequence was empty.");
}

TemplateValue total(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(2, {"attribute", "start"});
  const TemplateValue* path = call.arguments.find(0, "attribute");
  const TemplateValue* start = call.arguments.find(1, "start");
  TemplateValue sum = start == nullptr ? TemplateValue(std::int64_t{0}) : *start;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    const TemplateValue value = attribute_of(item, path, budget);
    sum = apply_binary("+", {sum, value}, budget);
  }
  return sum;
}

TemplateValue joined(const TemplateCall& call, TemplateBudget& budget) {
  call.arguments.require(2, {"d", "attribute"});
  const TemplateValue* between = call.arguments.find(0, "d");
  const TemplateValue* path = call.arguments.find(1, "attribute");
  const std::string separator = between == nullptr ? "" : text_of(*between, budget);
  std::string text;
  bool first = true;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    if (!first) text += separator;
    first = false;
    text += text_of(attribute_of(item, path, budget), budget);
    budget.charge_bytes(separator.size());
  }
  return TemplateValue::text(std::move(text));
}

TemplateValue mapped(const TemplateCall& call, TemplateBudget& budget) {
  std::vector<TemplateValue> made;
  const TemplateValue* path = nullptr;
  const TemplateValue* absent = nullptr;
  if (call.arguments.positional.empty()) {
    call.arguments.require(0, {"attribute", "default"});
    path = call.arguments.find(0, "attribute");
    absent = call.arguments.find(1, "default");
    if (path == nullptr) template_fault("map requires a filter argument");
  }
  const std::string filter = path == nullptr ? text_argument(call.arguments.positional[0]) : "";
  if (path == nullptr && !is_template_filter(filter)) {
    template_fault(fmt::format("No filter named {}.", python_repr(filter)));
  }
  const CallArguments rest = call.arguments.behind(1);
  for (const TemplateValue& item : items_of(call.input, budget)) {
    if (path == nullptr) {
      made.push_back(apply_filter({filter, item, rest}, budget));
      continue;
    }
    TemplateValue value = get_path(item, *path, budget);
    made.push_back(value.is_undefined() && absent != nullptr ? *absent : std::move(value));
  }
  return TemplateValue::view(std::move(made), "generator");
}

/// select, reject, selectattr and rejectattr.
TemplateValue selected(const TemplateCall& call, TemplateBudget& budget) {
  const bool by_attribute = call.name.ends_with("attr");
  const bool wanted = call.name.starts_with("select");
  if (by_attribute && call.arguments.positional.empty()) {
    template_fault("Missing parameter for attribute name");
  }
  const CallArguments behind_path = call.arguments.behind(by_attribute ? 1 : 0);
  const bool tests = !behind_path.positional.empty();
  const std::string test = tests ? text_argument(behind_path.positional[0]) : "";
  if (tests && !is_template_test(test)) {
    template_fault(fmt::format("No test named {}.", python_repr(test)));
  }
  const CallArguments rest = behind_path.behind(1);
  std::vector<TemplateValue> kept;
  for (const TemplateValue& item : items_of(call.input, budget)) {
    const TemplateValue value =
        by_attribute ? get_path(item, call.arguments.positional[0], budget) : item;
    const bool holds = tests ? apply_test({test, value, rest}, budget) : is_true(value);
    if (holds == wanted) kept.push_back(item);
  }
  return TemplateValue::view(std::move(kept), "generator");
}

TemplateValue pairs_of(const TemplateCall& call, TemplateBudget& budget) {
  if (call.input.is_undefined()) return TemplateValue::view({}, "generator");
  if (call.input.as_mapping() == nullptr) {
    template_fault("Can only get item pairs from a mapping.");
  }
  const TemplateValue pairs = call_method({"items", call.input, {}}, budget);
  return TemplateValue::view(pairs.as_list()->items, "generator");
}

TemplateValue reversed(const TemplateCall& call, TemplateBudget& budget) {
  std::vector<TemplateValue> items = items_of(call.input, budget);
  std::ranges::reverse(items);
  if (call.input.as_text() == nullptr) {
    return TemplateValue::view(std::move(items), "generator");
  }
  std::string text;
  for (const TemplateValue& item : items) text += *item.as_text();
  return TemplateValue::text(std::move(text));
}

TemplateValue first_or_last(const TemplateCall& call, TemplateBudget& budget) {
  const std::vector<TemplateValue> items = items_of(call.input, budget);
  if (!items.empty()) return call.name == "first" ? items.front() : items.back();
  return TemplateValue::undefined(fmt::format("No {} item, sequence was empty.", call.name));
}

}  // namespace

bool apply_item_filter(const TemplateCall& call, TemplateBudget& budget, TemplateValue& result) {
  const std::string_view name = call.name;
  if (name == "first" || name == "last") {
    result = first_or_last(call, budget);
  } else if (name == "list") {
    result = TemplateValue::list(items_of(call.input, budget));
  } else if (name == "items") {
    result = pairs_of(call, budget);
  } else if (name == "reverse") {
    result = reversed(call, budget);
  } else if (name == "join") {
    result = joined(call, budget);
  } else if (name == "map") {
    result = mapped(call, budget);
  } else if (name.starts_with("select") || name.starts_with("reject")) {
    result = selected(call, budget);
  } else if (name == "sort") {
    result = sorted(call, budget);
  } else if (name == "dictsort") {
    result = sorted_mapping(call, budget);
  } else if (name == "unique") {
    result = unique(call, budget);
  } else if (name == "min" || name == "max") {
    result = least_or_most(call, budget);
  } else if (name == "sum") {
    result = total(call, budget);
  } else {
    return false;
  }
  return true;
}

}  // namespace orrery
