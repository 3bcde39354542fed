#include "tokens/chat/template_renderer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tokens/text/python_text.hpp"

namespace orrery {

using TreeKind = TemplateNode::Kind;

void TemplateScope::set(const std::string& name, TemplateValue value) {
  for (auto& [key, known] : variables_) {
    if (key == name) {
      known = std::move(value);
      return;
    }
  }
  variables_.emplace_back(name, std::move(value));
}

const TemplateValue* TemplateScope::find(std::string_view name) const {
  for (const TemplateScope* scope = this; scope != nullptr; scope = scope->outer_) {
    for (const auto& [key, value] : scope->variables_) {
      if (key == name) return &value;
    }
  }
  return nullptr;
}

void TemplateScope::keep() {
  for (TemplateScope* scope = this; scope != nullptr; scope = scope->outer_) scope->kept_ = true;
}

TemplateRenderer::TemplateRenderer(TemplateBudget::Limits limits, std::int64_t now)
    : budget_(limits), now_(now) {
  scope_ = open_scope(nullptr);
}

TemplateScope* TemplateRenderer::open_scope(TemplateScope* outer) {
  scopes_.push_back(std::make_unique<TemplateScope>(outer));
  return scopes_.back().get();
}

void TemplateRenderer::close_scope(TemplateScope* back_to) {
  if (scopes_.back().get() == scope_ && !scope_->kept()) scopes_.pop_back();
  scope_ = back_to;
}

std::string TemplateRenderer::render(const TemplateNode& node) {
  std::string text;
  output_ = &text;
  try {
    run(node);
  } catch (TemplateFault& fault) {
    if (fault.line == 0) fault.line = line_;
    throw;
  }
  return text;
}

void TemplateRenderer::write(std::string_view text) {
  budget_.charge_bytes(text.size());
  *output_ += text;
}

std::string TemplateRenderer::captured(const TemplateNode& body) {
  std::string text;
  std::string* const outer = std::exchange(output_, &text);
  run(body);
  output_ = outer;
  return text;
}

TemplateRenderer::Flow TemplateRenderer::run(const TemplateNode& node) {
  budget_.step();
  if (node.kind != TreeKind::kBlock) line_ = node.line;
  switch (node.kind) {
    case TreeKind::kText:
      write(node.text);
      return Flow::kNext;
    case TreeKind::kPrint:
      write(text_of(evaluate(*node.children[0]), budget_));
      return Flow::kNext;
    case TreeKind::kIf:
      return run_if(node);
    case TreeKind::kFor:
      return run_for(node);
    case TreeKind::kSet:
    case TreeKind::kSetBlock:
      run_set(node);
      return Flow::kNext;
    case TreeKind::kMacro:
      scope_->keep();
      scope_->set(node.text, MacroValue{&node, scope_});
      return Flow::kNext;
    case TreeKind::kCallBlock:
      run_call_block(node);
      return Flow::kNext;
    case TreeKind::kFilterBlock: {
      TemplateScope* const outer = std::exchange(scope_, open_scope(scope_));
      const TemplateValue text = TemplateValue::text(captured(*node.children[1]));
      close_scope(outer);
      write(text_of(filtered(*node.children[0], &text), budget_));
      return Flow::kNext;
    }
    case TreeKind::kWith:
    case TreeKind::kScoped:
      return run_with(node);
    case TreeKind::kBreak:
      return Flow::kBreak;
    case TreeKind::kContinue:
      return Flow::kContinue;
    default:
      break;
  }
  for (const auto& child : node.children) {
    if (const Flow flow = run(*child); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

TemplateRenderer::Flow TemplateRenderer::run_if(const TemplateNode& node) {
  std::size_t i = 0;
  for (; i + 1 < node.children.size(); i += 2) {
    if (is_true(evaluate(*node.children[i]))) return run(*node.children[i + 1]);
  }
  return i < node.children.size() ? run(*node.children[i]) : Flow::kNext;
}

std::vector<TemplateValue> TemplateRenderer::loop_items(const TemplateNode& node) {
  std::vector<TemplateValue> items = items_of(evaluate(*node.children[1]), budget_);
  if (!node.children[2]) return items;
  std::vector<TemplateValue> kept;
  for (TemplateValue& item : items) {
    TemplateScope* const outer = std::exchange(scope_, open_scope(scope_));
    assign(*node.children[0], item);
    if (is_true(evaluate(*node.children[2]))) kept.push_back(std::move(item));
    close_scope(outer);
  }
  return kept;
}

TemplateRenderer::Flow TemplateRenderer::run_for(const TemplateNode& node) {
  const TemplateValue list = TemplateValue::list(loop_items(node));
  const auto items = *list.get<TemplateValue::List>();
  if (items->items.empty()) return node.children[4] ? run(*node.children[4]) : Flow::kNext;
  TemplateScope* const outer = scope_;
  bool completed = false;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    scope_ = open_scope(outer);
    scope_->set("loop",
                TemplateValue::Loop(std::make_shared<const LoopValue>(LoopValue{items, i})));
    assign(*node.children[0], items->items[i]);
    const Flow flow = run(*node.children[3]);
    close_scope(outer);
    completed = completed || flow == Flow::kNext;
    if (flow == Flow::kBreak) break;
  }
  // As in the reference, "else" also follows a loop whose every turn was broken off.
  return !completed && node.children[4] ? run(*node.children[4]) : Flow::kNext;
}

TemplateRenderer::Flow TemplateRenderer::run_with(const TemplateNode& node) {
  TemplateScope* const outer = scope_;
  TemplateScope* const inner = open_scope(outer);
  for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
    inner->set(node.children[i]->text, evaluate(*node.children[i + 1]));
  }
  scope_ = inner;
  const Flow flow = run(*node.children.back());
  close_scope(outer);
  return flow;
}

void TemplateRenderer::run_set(const TemplateNode& node) {
  if (node.kind == TreeKind::kSet) return assign(*node.children[0], evaluate(*node.children[1]));
  TemplateScope* const outer = std::exchange(scope_, open_scope(scope_));
  TemplateValue value = TemplateValue::text(captured(*node.children[1]));
  close_scope(outer);
  if (node.children[2]) value = filtered(*node.children[2], &value);
  assign(*node.children[0], value);
}

void TemplateRenderer::run_call_block(const TemplateNode& node) {
  const TemplateNode& made = *node.children[0];
  const TemplateValue callee = evaluate(*made.children[0]);
  CallArguments given = arguments(made);
  scope_->keep();
  given.named.emplace_back("caller", MacroValue{node.children[1].get(), scope_});
  write(text_of(call(callee, given), budget_));
}

void TemplateRenderer::assign(const TemplateNode& target, const TemplateValue& value) {
  if (target.kind == TreeKind::kName) return scope_->set(target.text, value);
  if (target.kind == TreeKind::kAttribute) {
    const TemplateValue owner = evaluate(*target.children[0]);
    const auto* space = owner.get<NamespaceValue*>();
    if (space == nullptr) template_fault("cannot assign attribute on non-namespace object");
    for (auto& [key, known] : (*space)->entries) {
      if (key == target.text) {
        known = value;
        return;
      }
    }
    (*space)->entries.emplace_back(target.text, value);
    return;
  }
  const std::vector<TemplateValue> items = items_of(value, budget_);
  if (items.size() != target.children.size()) {
    template_fault(
        fmt::format("{} values to unpack, expected {}", items.size(), target.children.size()));
  }
  for (std::size_t i = 0; i < items.size(); ++i) assign(*target.children[i], items[i]);
}

TemplateValue TemplateRenderer::call(const TemplateValue& callee, const CallArguments& given) {
  require_defined(callee);
  if (const auto* macro = callee.get<MacroValue>()) return call_macro(*macro, given);
  if (const auto* function = callee.get<TemplateValue::Function>()) {
    if (!(*function)->is_method) return call_function(**function, given);
    return call_method({(*function)->name, (*function)->receiver, given}, budget_);
  }
  template_fault(fmt::format("'{}' object is not callable", type_of(callee)));
}

TemplateValue TemplateRenderer::call_macro(MacroValue macro, const CallArguments& given) {
  const TemplateNode& node = *macro.node;
  if (++calls_ > kCallsMax) template_fault("macros call each other too deep");
  if (given.positional.size() > node.names.size()) {
    template_fault(fmt::format("macro {} takes not more than {} argument(s)",
                               python_repr(node.text), node.names.size()));
  }
  TemplateScope* const caller = std::exchange(scope_, open_scope(macro.scope));
  const TemplateValue* body = given.find(node.names.size(), "caller");
  if (node.text != "caller") {
    scope_->set("caller", body != nullptr ? *body : TemplateValue::undefined("No caller defined"));
  }
  for (const auto& entry : given.named) {
    if (entry.first != "caller" && std::ranges::find(node.names, entry.first) == node.names.end()) {
      template_fault(fmt::format("macro {} takes no keyword argument {}", python_repr(node.text),
                                 python_repr(entry.first)));
    }
  }
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    const TemplateValue* value = given.find(i, node.names[i]);
    if (value != nullptr) {
      scope_->set(node.names[i], *value);
    } else if (node.children[i]) {
      scope_->set(node.names[i], evaluate(*node.children[i]));
    } else {
      scope_->set(node.names[i], TemplateValue::undefined(fmt::format(
                                     "parameter {} was not provided", python_repr(node.names[i]))));
    }
  }
  TemplateValue text = TemplateValue::text(captured(*node.children.back()));
  close_scope(caller);
  --calls_;
  return text;
}

}  // namespace orrery
