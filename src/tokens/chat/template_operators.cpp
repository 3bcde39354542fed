#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokens/chat/template_call.hpp"

namespace orrery {
namespace {

[[noreturn]] void refuse(std::string_view sign, BinaryOperands operands) {
  require_defined(operands.left);
  require_defined(operands.right);
  template_fault(fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", sign,
                             type_of(operands.left), type_of(operands.right)));
}

[[noreturn]] void refuse_overflow() { template_fault("a whole number is too large"); }

std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

TemplateValue whole_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) template_fault("a negative exponent is not supported");
  std::int64_t result = 1;
  for (std::int64_t i = 0; i < exponent && i < 64 + 1; ++i) {
    if (base == 0 || base == 1) return exponent == 0 ? std::int64_t{1} : base;
    if (base == -1) return std::int64_t{exponent % 2 == 0 ? 1 : -1};
    if (__builtin_mul_overflow(result, base, &result)) refuse_overflow();
  }
  return result;
}

TemplateValue whole_result(std::string_view sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == "**") return whole_power(a, b);
  if (sign == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (b == 0) {
    template_fault(sign == "/" ? "division by zero" : "integer division or modulo by zero");
  } else if (sign == "/") {
    return static_cast<double>(a) / static_cast<double>(b);
  } else if (b == -1) {
    overflow = sign == "//" && __builtin_sub_overflow(std::int64_t{0}, a, &result);
  } else {
    result = sign == "//" ? floor_quotient(a, b) : a - floor_quotient(a, b) * b;
  }
  if (overflow) refuse_overflow();
  return result;
}

TemplateValue real_result(std::string_view sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") template_fault("a power of a float is not supported");
  if (b == 0) template_fault("float division by zero");
  if (sign == "/") return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (sign == "%") return rest;
  return std::round((a - rest) / b);
}

TemplateValue repeated(const TemplateValue& value, std::int64_t times, TemplateBudget& budget) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  if (const std::string* text = value.as_text()) {
    if (text->empty()) return value;
    budget.charge_steps(count);
    std::string made;
    for (std::size_t i = 0; i < count; ++i) {
      budget.charge_bytes(text->size());
      made += *text;
    }
    return TemplateValue::text(std::move(made));
  }
  std::vector<TemplateValue> items;
  const ListValue& list = *value.as_list();
  budget.charge_steps(count);
  for (std::size_t i = 0; i < count && !list.items.empty(); ++i) {
    budget.charge_steps(list.items.size());
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return list.is_tuple ? TemplateValue::tuple(std::move(items))
                       : TemplateValue::list(std::move(items));
}

TemplateValue sum(BinaryOperands operands, TemplateBudget& budget) {
  const std::string* left = operands.left.as_text();
  const std::string* right = operands.right.as_text();
  if (left != nullptr && right != nullptr) {
    budget.charge_bytes(left->size() + right->size());
    return TemplateValue::text(*left + *right);
  }
  const ListValue* a = operands.left.as_list();
  const ListValue* b = operands.right.as_list();
  const bool lists = a != nullptr && b != nullptr && a->view.empty() && b->view.empty();
  if (!lists || a->is_tuple != b->is_tuple) {
    require_defined(operands.right);
    if (left != nullptr) {
      template_fault(
          fmt::format("can only concatenate str (not \"{}\") to str", type_of(operands.right)));
    }
    refuse("+", operands);
  }
  budget.charge_steps(a->items.size() + b->items.size());
  std::vector<TemplateValue> items = a->items;
  items.insert(items.end(), b->items.begin(), b->items.end());
  return a->is_tuple ? TemplateValue::tuple(std::move(items))
                     : TemplateValue::list(std::move(items));
}

}  // namespace

TemplateValue apply_binary(std::string_view sign, BinaryOperands operands, TemplateBudget& budget) {
  if (sign == "~") {
    std::string text = text_of(operands.left, budget);
    return TemplateValue::text(text += text_of(operands.right, budget));
  }
  TemplateNumber a;
  TemplateNumber b;
  const bool left = read_number(operands.left, a);
  const bool right = read_number(operands.right, b);
  if (left && right) {
    return a.is_whole && b.is_whole ? whole_result(sign, a.whole, b.whole)
                                    : real_result(sign, a.real, b.real);
  }
  const auto repeats = [](const TemplateValue& value) {
    return value.as_text() != nullptr ||
           (value.as_list() != nullptr && value.as_list()->view.empty());
  };
  if (sign == "*" && right && b.is_whole && repeats(operands.left)) {
    return repeated(operands.left, b.whole, budget);
  }
  if (sign == "*" && left && a.is_whole && repeats(operands.right)) {
    return repeated(operands.right, a.whole, budget);
  }
  require_defined(operands.left);
  if (sign == "%" && operands.left.as_text() != nullptr) {
    template_fault("formatting with % is not supported");
  }
  if (sign != "+") refuse(sign, operands);
  return sum(operands, budget);
}

bool apply_comparison(std::string_view sign, BinaryOperands operands, TemplateBudget& budget) {
  const auto& [a, b] = operands;
  if (sign == "==") return equals(a, b, budget);
  if (sign == "!=") return !equals(a, b, budget);
  if (sign == "in") return contains(b, a, budget);
  if (sign == "not in") return !contains(b, a, budget);
  if (sign == "<") return is_less(a, b, budget);
  if (sign == ">") return is_less(b, a, budget);
  if (sign == "<=") return !is_less(b, a, budget);
  return !is_less(a, b, budget);
}

TemplateValue apply_unary(std::string_view sign, const TemplateValue& operand) {
  require_defined(operand);
  TemplateNumber number;
  if (!read_number(operand, number)) {
    template_fault(fmt::format("bad operand type for unary {}: '{}'", sign, type_of(operand)));
  }
  if (!number.is_whole) return sign == "-" ? -number.real : number.real;
  std::int64_t result = number.whole;
  if (sign == "-" && __builtin_sub_overflow(std::int64_t{0}, number.whole, &result)) {
    refuse_overflow();
  }
  return result;
}

}  // namespace orrery
