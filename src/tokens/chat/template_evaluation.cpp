#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokens/chat/template_renderer.hpp"
#include "tokens/text/python_text.hpp"

namespace orrery {
namespace {

using TreeKind = TemplateNode::Kind;

constexpr std::int64_t kRangeMax = 100'000;  ///< as in the reference's sandbox
constexpr std::array<std::string_view, 5> kFunctions = {"range", "namespace", "dict",
                                                        "raise_exception", "strftime_now"};

TemplateValue range(const CallArguments& given, TemplateBudget& budget) {
  given.require(3, {});
  const auto& values = given.positional;
  if (values.empty()) template_fault("range expected at least 1 argument");
  const bool one = values.size() == 1;
  const std::int64_t start = one ? 0 : whole_argument(values[0]);
  const std::int64_t stop = whole_argument(values[one ? 0 : 1]);
  const std::int64_t step = values.size() < 3 ? 1 : whole_argument(values[2]);
  if (step == 0) template_fault("range() arg 3 must not be zero");
  std::vector<TemplateValue> items;
  for (std::int64_t i = start; step > 0 ? i < stop : i > stop;) {
    if (static_cast<std::int64_t>(items.size()) >= kRangeMax) {
      template_fault(fmt::format("a range of more than {} items", kRangeMax));
    }
    items.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  budget.charge_steps(items.size());
  return TemplateValue::list(std::move(items));
}

TemplateValue mapping_of(const CallArguments& given) {
  std::vector<std::pair<TemplateValue, TemplateValue>> entries;
  given.require(1, {"*"});
  if (!given.positional.empty()) {
    if (given.positional[0].as_mapping() == nullptr) template_fault("dict expects a mapping");
    entries = given.positional[0].as_mapping()->entries;
  }
  return TemplateValue::mapping(entries);
}

}  // namespace

TemplateValue TemplateRenderer::evaluate(const TemplateNode& node) {
  budget_.step();
  switch (node.kind) {
    case TreeKind::kConstant:
      return node.value;
    case TreeKind::kName:
      return name(node);
    case TreeKind::kList:
      return TemplateValue::list(evaluate_all(node));
    case TreeKind::kTuple:
      return TemplateValue::tuple(evaluate_all(node));
    case TreeKind::kMapping:
      return mapping(node);
    case TreeKind::kAttribute:
      return get_attribute(evaluate(*node.children[0]), node.text, budget_);
    case TreeKind::kItem:
      return get_item(evaluate(*node.children[0]), evaluate(*node.children[1]), budget_);
    case TreeKind::kSlice:
      return slice(node);
    case TreeKind::kCall:
      return call(evaluate(*node.children[0]), arguments(node));
    case TreeKind::kFilter:
      return filtered(node, nullptr);
    case TreeKind::kTest:
      return apply_test({node.text, evaluate(*node.children[0]), arguments(node)}, budget_);
    case TreeKind::kUnary:
      return apply_unary(node.text, evaluate(*node.children[0]));
    case TreeKind::kBinary: {
      const TemplateValue left = evaluate(*node.children[0]);
      return apply_binary(node.text, {left, evaluate(*node.children[1])}, budget_);
    }
    case TreeKind::kCompare:
      return compare(node);
    case TreeKind::kAnd:
    case TreeKind::kOr: {
      TemplateValue left = evaluate(*node.children[0]);
      return is_true(left) == (node.kind == TreeKind::kOr) ? left : evaluate(*node.children[1]);
    }
    case TreeKind::kNot:
      return !is_true(evaluate(*node.children[0]));
    case TreeKind::kCondition:
      if (is_true(evaluate(*node.children[1]))) return evaluate(*node.children[0]);
      if (node.children[2]) return evaluate(*node.children[2]);
      return TemplateValue::undefined(
          "the inline if-expression evaluated to false and no else section was defined.");
    default:
      template_fault("expected an expression");
  }
}

std::vector<TemplateValue> TemplateRenderer::evaluate_all(const TemplateNode& node) {
  std::vector<TemplateValue> values;
  values.reserve(node.children.size());
  for (const auto& child : node.children) values.push_back(evaluate(*child));
  return values;
}

TemplateValue TemplateRenderer::name(const TemplateNode& node) {
  if (const TemplateValue* found = scope_->find(node.text)) return *found;
  if (std::ranges::find(kFunctions, node.text) != kFunctions.end()) {
    return TemplateValue::Function(
        std::make_shared<const FunctionValue>(FunctionValue{node.text, {}, false}));
  }
  if (node.text == "self") template_fault("the variable 'self' is not supported");
  return TemplateValue::undefined(fmt::format("{} is undefined", python_repr(node.text)));
}

TemplateValue TemplateRenderer::mapping(const TemplateNode& node) {
  std::vector<std::pair<TemplateValue, TemplateValue>> entries;
  for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
    TemplateValue key = evaluate(*node.children[i]);
    entries.emplace_back(std::move(key), evaluate(*node.children[i + 1]));
  }
  return TemplateValue::mapping(entries);
}

TemplateValue TemplateRenderer::slice(const TemplateNode& node) {
  const TemplateValue object = evaluate(*node.children[0]);
  std::array<TemplateValue, 3> bounds;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (node.children[i + 1]) bounds[i] = evaluate(*node.children[i + 1]);
  }
  return get_slice(object, {bounds[0], bounds[1], bounds[2]}, budget_);
}

TemplateValue TemplateRenderer::compare(const TemplateNode& node) {
  TemplateValue left = evaluate(*node.children[0]);
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    TemplateValue right = evaluate(*node.children[i + 1]);
    if (!apply_comparison(node.names[i], {left, right}, budget_)) return false;
    left = std::move(right);
  }
  return true;
}

TemplateValue TemplateRenderer::filtered(const TemplateNode& node, const TemplateValue* input) {
  const auto& child = node.children[0];
  const TemplateValue value = child && child->kind == TreeKind::kFilter ? filtered(*child, input)
                              : child                                   ? evaluate(*child)
                                                                        : *input;
  return apply_filter({node.text, value, arguments(node)}, budget_);
}

CallArguments TemplateRenderer::arguments(const TemplateNode& node) {
  CallArguments given;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    TemplateValue value = evaluate(*node.children[i]);
    if (node.names[i].empty()) {
      given.positional.push_back(std::move(value));
    } else {
      given.named.emplace_back(node.names[i], std::move(value));
    }
  }
  return given;
}

TemplateValue TemplateRenderer::make_namespace(const CallArguments& given) {
  auto space = std::make_unique<NamespaceValue>();
  const CallArguments positional{given.positional, {}};
  const TemplateValue mapping = mapping_of(positional);
  for (const auto& [key, value] : mapping.as_mapping()->entries) {
    space->entries.emplace_back(text_argument(key), value);
  }
  for (const auto& [key, value] : given.named) {
    const auto known =
        std::ranges::find(space->entries, key, &std::pair<std::string, TemplateValue>::first);
    if (known == space->entries.end()) {
      space->entries.emplace_back(key, value);
    } else {
      known->second = value;
    }
  }
  namespaces_.push_back(std::move(space));
  return namespaces_.back().get();
}

TemplateValue TemplateRenderer::call_function(const FunctionValue& function,
                                              const CallArguments& given) {
  if (function.name == "range") return range(given, budget_);
  if (function.name == "namespace") return make_namespace(given);
  if (function.name == "dict") {
    auto entries = mapping_of({given.positional, {}}).as_mapping()->entries;
    for (const auto& [key, value] : given.named) {
      entries.emplace_back(TemplateValue::text(key), value);
    }
    return TemplateValue::mapping(entries);
  }
  given.require(1, {"message", "format"});
  const bool raises = function.name == "raise_exception";
  const TemplateValue* argument = given.find(0, raises ? "message" : "format");
  if (argument == nullptr) template_fault(fmt::format("{} expects an argument", function.name));
  if (raises) template_fault(text_of(*argument, budget_));
  return TemplateValue::text(formatted_time(text_argument(*argument), now_));
}

}  // namespace orrery
