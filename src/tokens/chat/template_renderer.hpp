// tokens/chat/template_renderer.hpp - runs the tree of a template.
//
// Made for one rendering, used by one thread; borrows the tree. Invariant: values reach the scopes
// and namespaces that they name as long as the renderer lives. Cost: charged to the budget; calls
// are nested at most kCallsMax deep.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokens/chat/template_call.hpp"
#include "tokens/chat/template_node.hpp"
#include "tokens/chat/template_value.hpp"

namespace orrery {

/// Variables of a block; a name that is not here is looked up in the outer scope.
class TemplateScope {
 public:
  explicit TemplateScope(TemplateScope* outer) : outer_(outer) {}
  void set(const std::string& name, TemplateValue value);
  [[nodiscard]] const TemplateValue* find(std::string_view name) const;
  /// Marks this scope and those around it as used by a macro.
  void keep();
  [[nodiscard]] bool kept() const { return kept_; }

 private:
  TemplateScope* outer_;
  bool kept_ = false;
  std::vector<std::pair<std::string, TemplateValue>> variables_;
};

class TemplateRenderer {
 public:
  static constexpr int kCallsMax = 30;

  /// `now` is the time of strftime_now, in seconds since 1970 in the time of the place.
  TemplateRenderer(TemplateBudget::Limits limits, std::int64_t now);
  void set(const std::string& name, TemplateValue value) { scope_->set(name, std::move(value)); }
  /// Throws TemplateFault with the line of the statement.
  [[nodiscard]] std::string render(const TemplateNode& node);

 private:
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

  Flow run(const TemplateNode& node);
  Flow run_for(const TemplateNode& node);
  std::vector<TemplateValue> loop_items(const TemplateNode& node);
  Flow run_if(const TemplateNode& node);
  Flow run_with(const TemplateNode& node);
  void run_set(const TemplateNode& node);
  void run_call_block(const TemplateNode& node);
  /// Runs a block and returns what it writes.
  std::string captured(const TemplateNode& body);
  void assign(const TemplateNode& target, const TemplateValue& value);
  void write(std::string_view text);

  TemplateValue evaluate(const TemplateNode& node);
  TemplateValue name(const TemplateNode& node);
  TemplateValue compare(const TemplateNode& node);
  TemplateValue slice(const TemplateNode& node);
  TemplateValue mapping(const TemplateNode& node);
  TemplateValue filtered(const TemplateNode& node, const TemplateValue* input);
  std::vector<TemplateValue> evaluate_all(const TemplateNode& node);
  CallArguments arguments(const TemplateNode& node);
  TemplateValue call(const TemplateValue& callee, const CallArguments& arguments);
  TemplateValue call_macro(MacroValue macro, const CallArguments& arguments);
  TemplateValue call_function(const FunctionValue& function, const CallArguments& arguments);
  TemplateValue make_namespace(const CallArguments& arguments);
  TemplateScope* open_scope(TemplateScope* outer);
  /// Goes back to a scope and frees the one that is left, unless a macro uses it.
  void close_scope(TemplateScope* back_to);

  TemplateBudget budget_;
  std::int64_t now_;
  std::vector<std::unique_ptr<TemplateScope>> scopes_;
  std::vector<std::unique_ptr<NamespaceValue>> namespaces_;
  TemplateScope* scope_ = nullptr;
  std::string* output_ = nullptr;
  int calls_ = 0;
  int line_ = 0;
};

/// strftime(format) of seconds since 1970; throws for a directive that is not supported.
[[nodiscard]] std::string formatted_time(std::string_view format, std::int64_t seconds);

}  // namespace orrery
