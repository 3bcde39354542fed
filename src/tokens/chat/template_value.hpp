// tokens/chat/template_value.hpp - the values of a template: Python's, as far as templates use
// them.
//
// Cheap to copy: texts, lists and mappings are shared and never change. Values are used by one
// thread. Invariant: values are nested at most kDepthMax deep, so that functions which walk them
// may recurse. Such a function charges a TemplateBudget, because a shared value can be reached
// often.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokens/chat/template_fault.hpp"

namespace orrery {

struct TemplateNode;
class TemplateScope;
class TemplateValue;

/// What a template may still use; exceeding it throws TemplateFault.
class TemplateBudget {
 public:
  struct Limits {
    std::int64_t steps = 2'000'000;
    std::int64_t bytes = std::int64_t{1} << 28;  ///< of all texts made, the output among them
  };
  explicit TemplateBudget(Limits limits) : left_(limits) {}
  void step() { charge_steps(1); }
  void charge_steps(std::size_t steps);
  void charge_bytes(std::size_t bytes);

 private:
  Limits left_;
};

struct UndefinedValue {
  std::shared_ptr<const std::string> why;  ///< "'name' is undefined"
};
struct NoneValue {};
struct ListValue {
  std::vector<TemplateValue> items;
  bool is_tuple = false;
  int depth = 1;
  /// The type of a list that Python does not make one, such as "dict_keys"; else "". It has no
  /// items by number.
  std::string_view view;
};
struct MappingValue {
  std::vector<std::pair<TemplateValue, TemplateValue>> entries;  ///< keys differ
  int depth = 1;
};
/// The one value that a template can change; owned by the renderer.
struct NamespaceValue {
  std::vector<std::pair<std::string, TemplateValue>> entries;
};
/// The variable "loop".
struct LoopValue {
  std::shared_ptr<const ListValue> items;
  std::size_t index = 0;
};
/// A macro, or the body of a call block.
struct MacroValue {
  const TemplateNode* node = nullptr;
  TemplateScope* scope = nullptr;  ///< where it was defined; the renderer keeps it
};
/// A function of the environment, or a method with its receiver.
struct FunctionValue;

class TemplateValue {
 public:
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const ListValue>;
  using Mapping = std::shared_ptr<const MappingValue>;
  using Loop = std::shared_ptr<const LoopValue>;
  using Function = std::shared_ptr<const FunctionValue>;
  using Any = std::variant<UndefinedValue, NoneValue, bool, std::int64_t, double, Text, List,
                           Mapping, NamespaceValue*, Loop, MacroValue, Function>;
  static constexpr int kDepthMax = 100;

  TemplateValue() : any_(NoneValue{}) {}
  template <class T>
    requires std::constructible_from<Any, T>
  TemplateValue(T value) : any_(std::move(value)) {}
  [[nodiscard]] static TemplateValue text(std::string text);
  [[nodiscard]] static TemplateValue undefined(std::string why);
  [[nodiscard]] static TemplateValue list(std::vector<TemplateValue> items);
  [[nodiscard]] static TemplateValue tuple(std::vector<TemplateValue> items);
  /// Items of another type: "dict_keys", "dict_values", "dict_items" or "generator".
  [[nodiscard]] static TemplateValue view(std::vector<TemplateValue> items, std::string_view type);
  /// The last of equal keys counts, at the place of the first.
  [[nodiscard]] static TemplateValue mapping(
      const std::vector<std::pair<TemplateValue, TemplateValue>>& entries);

  template <class T>
  [[nodiscard]] const T* get() const {
    return std::get_if<T>(&any_);
  }
  [[nodiscard]] bool is_undefined() const { return get<UndefinedValue>() != nullptr; }
  [[nodiscard]] bool is_none() const { return get<NoneValue>() != nullptr; }
  /// The text of a string; nullptr for other values.
  [[nodiscard]] const std::string* as_text() const;
  [[nodiscard]] const ListValue* as_list() const;
  [[nodiscard]] const MappingValue* as_mapping() const;
  [[nodiscard]] int depth() const;

 private:
  Any any_;
};

struct FunctionValue {
  std::string name;
  TemplateValue receiver;  ///< None for a function
  bool is_method = false;
};

/// A number: whole numbers, truth values and floats.
struct TemplateNumber {
  bool is_whole = true;
  std::int64_t whole = 0;
  double real = 0;  ///< the value in either case
};
/// Returns false if a value is no number.
[[nodiscard]] bool read_number(const TemplateValue& value, TemplateNumber& number);

[[nodiscard]] bool is_true(const TemplateValue& value);
/// Python's str(value) and repr(value).
[[nodiscard]] std::string text_of(const TemplateValue& value, TemplateBudget& budget);
[[nodiscard]] std::string repr_of(const TemplateValue& value, TemplateBudget& budget);
/// The name of Python's type, for messages.
[[nodiscard]] std::string type_of(const TemplateValue& value);
[[nodiscard]] bool equals(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget);
/// Whether a < b. Throws TemplateFault for values that have no order.
[[nodiscard]] bool is_less(const TemplateValue& a, const TemplateValue& b, TemplateBudget& budget);
/// The entry of a mapping; nullptr if it has none. A key that cannot be one is in no mapping.
[[nodiscard]] const TemplateValue* find_key(const MappingValue& mapping, const TemplateValue& key,
                                            TemplateBudget& budget);
[[nodiscard]] const TemplateValue* find_key(const MappingValue& mapping, std::string_view key);
/// What a loop or a filter goes over: items, keys, or characters. Throws TemplateFault.
[[nodiscard]] std::vector<TemplateValue> items_of(const TemplateValue& value,
                                                  TemplateBudget& budget);
/// Throws the fault of a value that is undefined.
void require_defined(const TemplateValue& value);

}  // namespace orrery
