// tokens/chat/template_call.hpp - what filters, tests, methods and operators of templates do.
//
// Functions of values; faults of a template are thrown as TemplateFault. Cost: charged to the
// budget. Semantics are Python 3.11's and Jinja 3.1's.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens/chat/template_value.hpp"

namespace orrery {

struct CallArguments {
  std::vector<TemplateValue> positional;
  std::vector<std::pair<std::string, TemplateValue>> named;

  /// The argument of a place and name; nullptr if it is not given.
  [[nodiscard]] const TemplateValue* find(std::size_t place, std::string_view name) const;
  /// Throws if there are more positional arguments, or other names.
  void require(std::size_t positional_max, std::initializer_list<std::string_view> names) const;
  /// The arguments behind the first `count` positional ones.
  [[nodiscard]] CallArguments behind(std::size_t count) const;
};

/// A filter or test, or a method of `input`, with its arguments.
struct TemplateCall {
  std::string_view name;
  const TemplateValue& input;
  const CallArguments& arguments;
};

[[nodiscard]] TemplateValue apply_filter(const TemplateCall& call, TemplateBudget& budget);
[[nodiscard]] bool apply_test(const TemplateCall& call, TemplateBudget& budget);
[[nodiscard]] TemplateValue call_method(const TemplateCall& call, TemplateBudget& budget);

/// Filters that go over items. False: `name` is none of them.
[[nodiscard]] bool apply_item_filter(const TemplateCall& call, TemplateBudget& budget,
                                     TemplateValue& result);

/// object.name: a method if there is one, else an item.
[[nodiscard]] TemplateValue get_attribute(const TemplateValue& object, const std::string& name,
                                          TemplateBudget& budget);
/// object[key]: an item if there is one, else a method.
[[nodiscard]] TemplateValue get_item(const TemplateValue& object, const TemplateValue& key,
                                     TemplateBudget& budget);
/// The items of "a.b.0", as filters with an attribute read them.
[[nodiscard]] TemplateValue get_path(const TemplateValue& object, const TemplateValue& path,
                                     TemplateBudget& budget);
/// object[start:stop:step]; None stands for what is left out.
struct SliceBounds {
  TemplateValue start;
  TemplateValue stop;
  TemplateValue step;
};
[[nodiscard]] TemplateValue get_slice(const TemplateValue& object, const SliceBounds& bounds,
                                      TemplateBudget& budget);
[[nodiscard]] bool contains(const TemplateValue& where, const TemplateValue& item,
                            TemplateBudget& budget);

/// left OPERATOR right, for + - * / // % ** ~.
struct BinaryOperands {
  const TemplateValue& left;
  const TemplateValue& right;
};
[[nodiscard]] TemplateValue apply_binary(std::string_view sign, BinaryOperands operands,
                                         TemplateBudget& budget);
[[nodiscard]] bool apply_comparison(std::string_view sign, BinaryOperands operands,
                                    TemplateBudget& budget);
/// + or - in front.
[[nodiscard]] TemplateValue apply_unary(std::string_view sign, const TemplateValue& operand);

/// json.dumps(value, ensure_ascii=False, ...), with the arguments of the filter "tojson".
[[nodiscard]] std::string json_of(const TemplateValue& value, const CallArguments& arguments,
                                  TemplateBudget& budget);

/// Reads an argument. Throws if it is not of the type.
[[nodiscard]] std::string text_argument(const TemplateValue& value);
[[nodiscard]] std::int64_t whole_argument(const TemplateValue& value);

}  // namespace orrery
