#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokens/chat/template_call.hpp"
#include "tokens/chat/template_names.hpp"
#include "tokens/text/python_text.hpp"

namespace orrery {
namespace {

/// Tests of a value alone.
constexpr std::array<std::string_view, 18> kPlain = {
    "defined",  "undefined", "none",    "string", "mapping", "iterable",
    "sequence", "number",    "integer", "float",  "boolean", "true",
    "false",    "callable",  "lower",   "upper",  "odd",     "even"};
/// Tests against an argument, and the comparison each is.
struct Comparison {
  std::string_view name;
  std::string_view sign;
};
constexpr std::array<Comparison, 17> kComparisons = {{{"eq", "=="},
                                                      {"==", "=="},
                                                      {"equalto", "=="},
                                                      {"ne", "!="},
                                                      {"!=", "!="},
                                                      {"lt", "<"},
                                                      {"<", "<"},
                                                      {"lessthan", "<"},
                                                      {"le", "<="},
                                                      {"<=", "<="},
                                                      {"gt", ">"},
                                                      {">", ">"},
                                                      {"greaterthan", ">"},
                                                      {"ge", ">="},
                                                      {">=", ">="},
                                                      {"in", "in"},
                                                      {"divisibleby", "%"}}};

bool is_iterable(const TemplateValue& value) {
  return value.as_text() != nullptr || value.as_list() != nullptr ||
         value.as_mapping() != nullptr || value.is_undefined();
}

std::int64_t remainder(const TemplateValue& value, std::int64_t divisor, TemplateBudget& budget) {
  return whole_argument(apply_binary("%", {value, divisor}, budget));
}

bool plain_test(std::string_view name, const TemplateValue& value, TemplateBudget& budget) {
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.as_text() != nullptr;
  if (name == "mapping") return value.as_mapping() != nullptr;
  if (name == "sequence" && value.as_list() != nullptr) return value.as_list()->view.empty();
  if (name == "iterable" || name == "sequence") return is_iterable(value);
  if (name == "integer") return value.get<std::int64_t>() != nullptr;
  if (name == "float") return value.get<double>() != nullptr;
  if (name == "boolean") return value.get<bool>() != nullptr;
  if (name == "true" || name == "false") {
    return value.get<bool>() != nullptr && *value.get<bool>() == (name == "true");
  }
  if (name == "callable") {
    return value.get<TemplateValue::Function>() != nullptr || value.get<MacroValue>() != nullptr;
  }
  if (name == "odd") return remainder(value, 2, budget) == 1;
  if (name == "even") return remainder(value, 2, budget) == 0;
  if (name == "lower" || name == "upper") {
    const TemplateValue text = TemplateValue::text(text_of(value, budget));
    return is_true(call_method({name == "lower" ? "islower" : "isupper", text, {}}, budget));
  }
  TemplateNumber number;
  return read_number(value, number);
}

}  // namespace

bool is_template_test(std::string_view name) {
  return std::ranges::find(kPlain, name) != kPlain.end() ||
         std::ranges::find(kComparisons, name, &Comparison::name) != kComparisons.end();
}

bool apply_test(const TemplateCall& call, TemplateBudget& budget) {
  budget.step();
  const auto comparison = std::ranges::find(kComparisons, call.name, &Comparison::name);
  if (comparison == kComparisons.end()) {
    call.arguments.require(0, {});
    return plain_test(call.name, call.input, budget);
  }
  call.arguments.require(1, {});
  if (call.arguments.positional.empty()) {
    template_fault(fmt::format("the test '{}' expects an argument", call.name));
  }
  const TemplateValue& other = call.arguments.positional[0];
  if (comparison->sign == "%") {
    return !is_true(apply_binary("%", {call.input, other}, budget));
  }
  return apply_comparison(comparison->sign, {call.input, other}, budget);
}

}  // namespace orrery
